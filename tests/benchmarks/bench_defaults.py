"""Whether models work as they come: start, default and tuned MAP of each on every collection.

Each model is fitted on training queries and ranks the whole collection for test queries
(``ranking_tasks``: queries in three parts, each tested by models of the other two, or one fixed
split), three times:

- start: what it is before it learns. Of models trained by epochs, epoch 0; of the others the
  tf-idf cosine, or ``unigram`` where they take counts. Between two vocabularies there is no such
  start for the latter.
- default: with default parameters, and ``vocabularies="separate"`` between two vocabularies.
- tuned: the best of a small grid, chosen on training queries alone, anew for every split. Of
  models trained by epochs (init x margin x learning_rate) by the validation measure of each fit;
  of the others (rank, n_topics or prune) by halves of the training queries, each ranked by a
  model of the other half.

A model that refuses its training data is of no use there, and counts as 0.

Cranfield, CISI, NFCorpus and the citations of CACM influenced the defaults. The others did not:
they were looked at once, to check.

Every fit is kept as a file in ``--out``, so that a killed run goes on where it was and rows can be
added later. Starts and defaults of all collections come first, then the grids. A folder belongs
to one version of the models: take a new one after a change. ``--table`` prints what there is
so far without computing; the table is also written to the folder, as CSV and Markdown. It has the
collections and models that were asked for, and p-values are corrected over these.

    LTR_DATA=<folder of data sets> python tests/benchmarks/bench_defaults.py --out FOLDER
        [--collections cranfield npl] [--models ssi opca] [--no-grid] [--threads 2] [--table]

``--own FOLDER`` (may be repeated) tries the models on a collection of your own, in BEIR's layout,
instead: its judgements, or its links where it has a ``links.tsv``.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from data_sets import AbsentError
from numpy.typing import NDArray
from ranking_tasks import COLLECTIONS, Split, Task, of_folder
from threadpoolctl import threadpool_limits

from ltr_features.studies.statistics.paired_tests import bootstrap_interval, fisher_randomisation
from ltr_features.studies.statistics.significance import corrected
from ssi_models.base import MatchingModel
from ssi_models.registry import get_model
from ssi_models.training.trainable import TrainableModel
from ssi_models.word_weight import WeighsWords

Params = Mapping[str, Any]
Record = dict[str, Any]

CHOSEN_ON = ("cranfield", "cisi", "nfcorpus", "citations")
ACROSS_LANGUAGES = ("cross-language", "cl-lsa", "opca", "s2net")
MODELS = (
    "ssi", "psi", "correlated-hash", "diagonal", "sparse", "hash", "full", "cross-language",
    "s2net", "opca", "cl-lsa", "plsa", "bltm", "bltm-pr", "bltm-pr-1v", "wtm",
)  # fmt: skip
#: These come after all others.
SLOW = ("hash", "full", "bltm-pr", "bltm-pr-1v")
START, DEFAULT = {"max_epochs": 0}, {}
#: What models say that learned nothing.
KEPT = ("did not improve on its start", "gives no weight to its learned part")
OF_EPOCHS = {
    "init": ("identity", "lsi"),
    "margin": (0.1, 0.3, 1.0),
    "learning_rate": (0.01, 0.03, 0.1),
}
OF_OTHERS = {"rank": (50, 100, 200), "n_topics": (50, 100, 200), "prune": (0.0, 1e-4, 1e-3)}
N_DRAWS, LEVEL = 10_000, 0.05
#: More sign patterns than bootstrap samples: the smallest p must survive Holm's correction.
N_PATTERNS = 100_000
GOAL = 0.97


@dataclass(frozen=True)
class Fit:
    """A model on a split of a collection, with the parameters that differ from its defaults."""

    collection: str
    model: str
    params: Params
    split: str

    @property
    def file(self) -> str:
        """Where it is kept, below the folder of all fits."""
        named = ",".join(f"{name}={value}" for name, value in self.params.items()) or "default"
        return f"{self.collection}/{self.model}/{named}@{self.split}.json"

    @property
    def header(self) -> Record:
        """What its file begins with."""
        return {**vars(self), "params": dict(self.params)}


@dataclass(frozen=True)
class Store:
    """The folder of fits."""

    folder: Path

    def get(self, fit: Fit) -> Record | None:
        """What was kept of a fit; None where there is no file, or not of this fit."""
        try:
            record = json.loads((self.folder / fit.file).read_text(encoding="utf-8"))
            whole = len(record["values"]) == len(record["queries"]) > 0
            kept = whole and all(record[key] == value for key, value in fit.header.items())
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return record if kept else None

    def put(self, fit: Fit, found: Record) -> Record:
        """Keep what was found; the file appears at once or not at all."""
        record, path = fit.header | found, self.folder / fit.file
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(record) + "\n", encoding="utf-8")
        unfinished.replace(path)
        return record


def start_of(model: str, separate: bool) -> tuple[str, Params] | None:
    """The model, with its parameters, that a model starts from; None where there is none."""
    if trained_by_epochs(model):
        return model, START
    if separate:
        return None
    return ("unigram" if get_model(model).inputs == "counts" else "vsm"), DEFAULT


def grid_of(model: str) -> list[Params]:
    """The parameters to compare, without those that are the model's defaults."""
    default = get_model(model)().get_params()
    choices = OF_EPOCHS if trained_by_epochs(model) else OF_OTHERS
    if model == "cross-language":
        choices = {**choices, "init": ("normal", "cl-lsa")}  # no identity between two languages
    axes = {name: values for name, values in choices.items() if name in default}
    points = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    return [{name: v for name, v in point.items() if v != default[name]} for point in points]


def trained_by_epochs(model: str) -> bool:
    return issubclass(get_model(model), TrainableModel)


def models_for(models: Sequence[str], separate: bool) -> list[str]:
    """Those that can learn where queries and documents have two vocabularies, or one."""
    if separate:
        return [model for model in models if model in ACROSS_LANGUAGES]
    return [model for model in models if model != "cross-language"]


def measured(task: Task, fit: Fit, split: Split, threads: int) -> Record:
    """Fit a model and rank the collection for the split's test queries."""
    kind = get_model(fit.model)
    own = {"vocabularies": "separate"} if task.separate else {}
    own = {name: value for name, value in own.items() if name in kind().get_params()}
    model = kind(**own, **fit.params, threads=threads)
    tested = task.preferences.only(split.test)
    preferences = task.preferences.only(split.train).without_reversed(tested, task.excluded)
    start = perf_counter()
    with threadpool_limits(threads):
        try:
            model.fit(*task.matrices(model), preferences, excluded=task.excluded)
        except ValueError as error:
            seconds, values = perf_counter() - start, np.zeros(len(split.test))
            facts = {"kept_start": False, "best_validation": 0.0, "remarks": [f"refused ({error})"]}
        else:
            seconds, facts = perf_counter() - start, facts_of(model)
            values = task.average_precisions(model, split.test)
    return {
        "n_splits": len(task.splits),
        "separate": task.separate,
        "seconds": round(seconds, 2),
        **facts,
        "queries": split.test.tolist(),
        "values": values.tolist(),
    }


def facts_of(model: MatchingModel) -> Record:
    """What the fit says of itself."""
    facts: Record = {"kept_start": False, "remarks": model.remarks}
    if isinstance(model, TrainableModel):
        history = model.history_
        facts |= {
            "kept_start": any(said in remark for remark in model.remarks for said in KEPT),
            "best_epoch": history.best_epoch,
            "epochs": history.epochs[-1].number,
            "best_validation": history.best_validation,
            "scale": model.scale_,
            "word_weight": getattr(model, "word_weight_", None),
        }
    elif isinstance(model, WeighsWords):
        weight = model.weight_of_words
        facts |= {"kept_start": weight == 1, "word_weight": weight}
    return facts


def compute(
    task: Task, store: Store, models: Sequence[str], *, grid: bool, threads: int = 1
) -> None:
    """Fits that are not kept yet, of the models' grids or else of their starts and defaults."""
    for model in models_for(models, task.separate):
        try:
            for wanted in tuning(task, store, model) if grid else defaults(task, model):
                compute_fit(task, store, *wanted, threads)
        except MemoryError as error:
            print(f"{task.name} {model}: left out: {error}", flush=True)


def defaults(task: Task, model: str) -> Iterator[tuple[str, Params, Split]]:
    start = start_of(model, task.separate)
    for split in task.splits:
        if start is not None:
            yield *start, split
        yield model, DEFAULT, split


def tuning(task: Task, store: Store, model: str) -> Iterator[tuple[str, Params, Split]]:
    grid = grid_of(model)
    for split in task.splits:
        if trained_by_epochs(model):
            yield from ((model, params, split) for params in grid)
        else:
            yield from ((model, params, half) for half in split.halves() for params in grid)
            chosen = choice(store, task.name, model, split.name)
            assert chosen is not None, "both halves are done"
            yield model, chosen, split


def compute_fit(
    task: Task, store: Store, model: str, params: Params, split: Split, threads: int
) -> None:
    fit = Fit(task.name, model, params, split.name)
    kept = store.get(fit)
    if kept is not None and kept["queries"] == split.test.tolist():
        return
    record = store.put(fit, measured(task, fit, split, threads))
    # What starts say of themselves goes without saying.
    said = "" if params == START else "; ".join(r.split(":")[0] for r in record["remarks"])
    print(
        f"{fit.file.removesuffix('.json'):60s} {np.mean(record['values']):.4f} "
        f"{record['seconds']:7.1f} s  {said}",
        flush=True,
    )


def choice(store: Store, collection: str, model: str, split: str) -> Params | None:
    """The parameters of the grid that serve held-out training queries of a split best (the first
    of equals); None while a fit is missing."""
    by_epochs, grid = trained_by_epochs(model), grid_of(model)
    splits = [split] if by_epochs else [split + half for half in "ab"]
    goodness = []
    for params in grid:
        records = [store.get(Fit(collection, model, params, name)) for name in splits]
        found = [record for record in records if record is not None]
        if len(found) < len(splits):
            return None
        values = [r["best_validation"] if by_epochs else np.mean(r["values"]) for r in found]
        goodness.append(np.mean(values))
    return grid[int(np.argmax(goodness))]


@dataclass(frozen=True)
class Row:
    """A model on a collection: records of each split; no start or no grid where lists are empty."""

    collection: str
    model: str
    start: list[Record]
    default: list[Record]
    tuned: list[Record]

    def differences(self, other: str) -> NDArray[np.float64] | None:
        """Default minus another, by query."""
        records = getattr(self, other)
        return None if not records else values_of(self.default) - values_of(records)


def values_of(records: Sequence[Record]) -> NDArray[np.float64]:
    return np.concatenate([record["values"] for record in records])


def rows_of(store: Store, collections: Sequence[str], models: Sequence[str]) -> list[Row]:
    """What is complete: the default at least, of every split."""
    found = [row_of(store, collection, model) for collection in collections for model in models]
    return [row for row in found if row is not None]


def row_of(store: Store, collection: str, model: str) -> Row | None:
    first = store.get(Fit(collection, model, DEFAULT, "1"))
    if first is None:
        return None
    splits = [str(number) for number in range(1, first["n_splits"] + 1)]

    def records(wanted: Sequence[tuple[str, Params] | None]) -> list[Record]:
        """One per split; empty if one is missing, or was tested by other queries."""
        found = [
            None if what is None else store.get(Fit(collection, *what, split))
            for what, split in zip(wanted, splits, strict=True)
        ]
        whole = [record for record in found if record is not None]
        return whole if len(whole) == len(splits) else []

    default = records([(model, DEFAULT)] * len(splits))
    if not default:
        return None
    queries = [record["queries"] for record in default]
    chosen = [choice(store, collection, model, split) for split in splits]
    others = [
        records([start_of(model, first["separate"])] * len(splits)),
        records([None if params is None else (model, params) for params in chosen]),
    ]
    start, best = (r if [x["queries"] for x in r] == queries else [] for r in others)
    return Row(collection, model, start, default, best)


def table_of(rows: Sequence[Row]) -> pd.DataFrame:
    """A line per collection and model; p-values are corrected over the whole table."""
    lines = []
    for row in rows:
        line: Record = {
            "collection": row.collection,
            "role": "chosen on" if row.collection in CHOSEN_ON else "checked",
            "model": row.model,
            "queries": len(values_of(row.default)),
        }
        for what in ("start", "default", "tuned"):
            records = getattr(row, what)
            line[what] = values_of(records).mean() if records else np.nan
        line["ratio"] = line["default"] / line["tuned"]
        for other in ("start", "tuned"):
            line |= compared(row.differences(other), other)
        line["kept"] = sum(record["kept_start"] for record in row.default)
        line["fits"] = len(row.default)
        line["seconds"] = np.median([record["seconds"] for record in row.default])
        lines.append(line)
    table = pd.DataFrame(lines)
    p = table[["p start", "p tuned"]].to_numpy(copy=True)
    made = np.isfinite(p)
    p[made] = corrected(p[made]) if made.any() else p[made]
    table[["p start", "p tuned"]] = p
    for other in ("start", "tuned"):
        certain, above = table[f"p {other}"] < LEVEL, table[f"- {other}"] > 0
        table[f"vs {other}"] = np.where(certain, np.where(above, "above", "below"), "")
    return table


def compared(differences: NDArray[np.float64] | None, other: str) -> Record:
    """Mean difference, its interval and p-value (not corrected); NaN where there is none."""
    if differences is None:
        return {f"{name} {other}": np.nan for name in ("-", "low", "high", "p")}
    low, high = bootstrap_interval(differences, confidence=1 - LEVEL, n_resamples=N_DRAWS)[0]
    p = fisher_randomisation(differences, n_permutations=N_PATTERNS)[0]
    return {f"- {other}": differences.mean(), f"low {other}": low, f"high {other}": high,
            f"p {other}": p}  # fmt: skip


def summary_of(table: pd.DataFrame) -> pd.DataFrame:
    """A line per model, over its collections."""
    lines = []
    for model, own in table.groupby("model", sort=False):
        started, tuned = own["start"].notna().sum(), own["tuned"].notna().sum()
        below, above = own["vs start"] == "below", own["vs start"] == "above"
        worse, ratio = own["vs tuned"] == "below", own["ratio"].mean()
        met = ratio >= GOAL and not (below | worse).any() and 2 * above.sum() >= started
        lines.append(
            {
                "model": model,
                "collections": len(own),
                "default / tuned": ratio,
                "below start": f"{below.sum()} of {started}",
                "below tuned": f"{worse.sum()} of {tuned}",
                "above start": f"{above.sum()} of {started}",
                "goals": "not tuned yet" if tuned < len(own) else "met" if met else "missed",
            }
        )
    return pd.DataFrame(lines)


def report_of(table: pd.DataFrame) -> str:
    """Both tables in Markdown."""
    shown = pd.DataFrame(
        {
            "collection": table["collection"],
            "model": table["model"],
            "start": number(table["start"]),
            "default": number(table["default"]),
            "tuned": number(table["tuned"]),
            "default / tuned": number(table["ratio"], ".3f"),
            "default - start": with_interval(table, "start"),
            "default - tuned": with_interval(table, "tuned"),
            "kept start": [
                f"{k} of {n}" for k, n in zip(table["kept"], table["fits"], strict=True)
            ],
            "s per fit": number(table["seconds"], ".1f"),
        }
    )
    summary = summary_of(table)
    roles = table.drop_duplicates("collection").groupby("role")["collection"].agg(", ".join)
    summary["default / tuned"] = number(summary["default / tuned"], ".3f")
    lines = [
        "MAP of test queries, whole collection ranked. "
        f"Influenced the defaults: {roles.get('chosen on', 'none of these')}. "
        f"Checked once: {roles.get('checked', 'none of these')}.",
        "",
        *markdown(shown),
        "",
        f"Intervals: {1 - LEVEL:.0%} bootstrap over queries, {N_DRAWS:,} draws. ▲ ▼: the default "
        f"is above or below, Fisher's randomisation test, Holm over the table, p < {LEVEL}. "
        "Seconds: median of the fits with default parameters.",
        "",
        f"Goals: mean default / tuned {GOAL} or more; significantly below start or tuned nowhere; "
        "significantly above start on half of the collections at least.",
        "",
        *markdown(summary),
    ]
    return "\n".join(lines) + "\n"


def number(column: pd.Series, form: str = ".4f") -> list[str]:
    return [f"{value:{form}}" if np.isfinite(value) else "" for value in column]


def with_interval(table: pd.DataFrame, other: str) -> list[str]:
    """Differences with intervals and marks."""
    marks = {"above": " ▲", "below": " ▼", "": ""}
    columns = (table[f"{name} {other}"] for name in ("-", "low", "high", "vs"))
    return [
        f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]{marks[verdict]}" if np.isfinite(mean) else ""
        for mean, low, high, verdict in zip(*columns, strict=True)
    ]


def markdown(table: pd.DataFrame) -> list[str]:
    """A Markdown table, its columns aligned as text."""
    cells = [list(table.columns), *table.astype(str).to_numpy().tolist()]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    return [
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |"
        for line in cells
    ]


def write_table(store: Store, collections: Sequence[str], models: Sequence[str]) -> None:
    """Print the table of what there is, and write it into the folder."""
    rows = rows_of(store, collections, models)
    if not rows:
        print("nothing is complete yet")
        return
    table = table_of(rows)
    text = report_of(table)
    table.to_csv(store.folder / "table.csv", index=False)
    (store.folder / "table.md").write_text(text, encoding="utf-8")
    print("\n" + text)


def compute_all(arguments: argparse.Namespace, store: Store) -> None:
    """All fits that are missing, the most telling first."""
    tasks = []
    readers = {path.name: partial(of_folder, path) for path in arguments.own} or COLLECTIONS
    for name in arguments.collections:
        try:
            tasks.append(readers[name]())
        except AbsentError as error:
            print(f"{name}: skipped: {error}", flush=True)
    slow = [model for model in arguments.models if model in SLOW]
    quick = [model for model in arguments.models if model not in SLOW]
    for grid in (False,) if arguments.no_grid else (False, True):
        for models, task in product((quick, slow), tasks):
            compute(task, store, models, grid=grid, threads=arguments.threads)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the fits and the table")
    for name, known in (("collections", tuple(COLLECTIONS)), ("models", MODELS)):
        parser.add_argument(f"--{name}", nargs="+", choices=known, default=list(known))
    parser.add_argument("--own", type=Path, action="append", default=[], metavar="FOLDER")
    parser.add_argument("--no-grid", action="store_true", help="starts and defaults only")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="print what there is; compute nothing")
    arguments = parser.parse_args()
    if arguments.own:
        arguments.collections = [path.name for path in arguments.own]
    arguments.out.mkdir(parents=True, exist_ok=True)
    store = Store(arguments.out)
    if not arguments.table:
        compute_all(arguments, store)
    write_table(store, arguments.collections, arguments.models)


if __name__ == "__main__":
    main()
