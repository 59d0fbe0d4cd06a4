"""Clicks: ``clicks judge``, ``clicks models``, ``clicks simulate``."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from letor.errors import InputError
from ltr_base.names import counted
from ltr_features.commands import completion
from ltr_features.commands.options import (
    Commands,
    check_outputs,
    echo,
    print_facts,
    settings,
    tell_replaced,
)

if TYPE_CHECKING:
    from ltr_features.clicks.base import ClickModel
    from ltr_features.clicks.log import ClickLog

app = Commands(
    help="Judgements from click logs, click models, and simulated logs.", no_args_is_help=True
)

Logs = Annotated[
    list[Path],
    typer.Argument(
        help="Click logs (.tsv, .csv, .jsonl, .parquet), or UBI's queries (.jsonl): files, folders "
        "of them, or patterns in quotes ('logs/2026-*.gz')."
    ),
]
Layout = Annotated[
    str, typer.Option(help="rows (one per shown result), counts (of results), or ubi.")
]
Events = Annotated[
    list[Path] | None,
    typer.Option(help="UBI's events (.jsonl); a folder, a pattern, or repeat the option."),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="KEY=NAME of a column: query, document, position, clicked, session, time, shown; or "
        "KEY=NUMBER if the files have no header line.",
    ),
]
Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        help="KEY=VALUE: queries, first_position, depth, since, until, max_clicks (within the "
        "depth), max_pages.",
    ),
]
Unknown = Annotated[str, typer.Option(help="UBI clicks on results not shown: raise or skip.")]
BadRow = Annotated[
    str,
    typer.Option(
        help="Rows, counts or records that cannot be read: raise, or skip and count them by reason."
    ),
]


def _read(
    log: list[Path],
    layout: str,
    events: list[Path] | None,
    columns: list[str] | None,
    rules: dict[str, Any],
    on_unknown: str,
    on_bad_row: str,
) -> Any:
    from ltr_features.clicks.source import read_log

    if on_unknown != "raise" and layout != "ubi":
        raise InputError("--on-unknown is for --layout ubi; leave it out")
    given = settings(columns or [], "column").items()
    named = {key: name if type(name) is int else str(name) for key, name in given}
    found = read_log(
        log,
        layout=layout,
        columns=named or None,
        events=events or None,
        rules=rules,
        on_unknown=on_unknown,
        on_bad_row=on_bad_row,
    )
    print_facts(found.description)
    echo(
        f"  {counted(len(found.query_ids), 'query')}, {counted(found.n_pairs, 'pair')}, "
        f"{counted(int(found.clicked.sum()), 'click')} on "
        f"{counted(int(found.shown.sum()), 'shown result')}"
    )
    return found


@app.command("judge")
def clicks_judge(
    log: Logs,
    out: Annotated[
        Path, typer.Option(help="The folder of judgements; those of an earlier call are replaced.")
    ],
    layout: Layout = "rows",
    events: Events = None,
    column: Columns = None,
    rule: Rules = None,
    on_unknown: Unknown = "raise",
    on_bad_row: BadRow = "raise",
    model: Annotated[
        str,
        typer.Option(help="ctr, pbm, cascade, dcm or dbn.", autocompletion=completion.click_models),
    ] = "pbm",
    param: Annotated[list[str] | None, typer.Option(help="Model parameter, KEY=VALUE.")] = None,
    min_evidence: Annotated[
        float, typer.Option(help="Examinations that a pair needs in order to be judged.")
    ] = 10.0,
    grades: Annotated[int, typer.Option(help="Number of grades, starting at 0.")] = 5,
    scale: Annotated[
        float | None,
        typer.Option(help="Relevance of the best grade.", show_default="99th percentile"),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Judgements to compare with, by the log's queries (texts or ids)."),
    ] = None,
) -> None:
    """Judge the pairs of a click log: qrels, grades with their evidence, weighted pairs, and the
    examination of each position.

    Example: ltr-features clicks judge log.tsv --rule first_position=1 --out judged"""
    from ltr_features.clicks.judging import ClickJudgements, check_grading, describe
    from ltr_features.clicks.output import (
        by_label,
        check_folder,
        check_ids,
        curve,
        write_judgements,
    )
    from ltr_features.clicks.source import unfitted_model
    from ltr_features.sources.files import read_judgements
    from ltr_features.sources.input_files import files_of
    from ltr_features.studies.identity import Digests

    check_folder(out)
    given = [*log, *(events or [])]
    if inside := [folder for folder in given if folder.resolve() in out.resolve().parents]:
        raise InputError(f"{out} is in {inside[0]}, whose files are the log; name another folder")
    replaced = check_outputs(out, inputs=[*given, labels], kind="folder")
    check_grading(min_evidence, grades, scale)
    rules, options = settings(rule or [], "rule"), settings(param or [], "param")
    unfitted = unfitted_model(model, options)
    known = None if labels is None else read_judgements(labels)
    log = files_of(log)  # files that come later are not read
    events = files_of(events or []) if layout == "ubi" else events
    found = _read(log, layout, events, column, rules, on_unknown, on_bad_row)
    check_ids(found)
    fitted = unfitted.fit(found)
    judgements = ClickJudgements(fitted, min_evidence, grades, scale)
    compared = None if known is None else by_label(judgements, known)
    provenance = {
        "files": Digests().identities([*log, *(events or [])]),
        "layout": layout,
        "rules": {name: str(value) for name, value in rules.items()},
        "model": model,
        "parameters": {name: str(value) for name, value in options.items()},
    }
    remarks = write_judgements(judgements, out, provenance)
    print_facts(describe(judgements))
    echo(curve(fitted).round(4).to_string(index=False))
    if compared is not None:
        echo(compared.round(4).to_string(index=False))
    for remark in remarks:
        echo(f"note: {remark}", err=True)
    tell_replaced(replaced)
    echo(f"{model}: {out}")


@app.command("models")
def clicks_models(
    log: Logs,
    layout: Layout = "rows",
    events: Events = None,
    column: Columns = None,
    rule: Rules = None,
    on_unknown: Unknown = "raise",
    on_bad_row: BadRow = "raise",
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Click models; by default all that can learn from the log.",
            autocompletion=completion.click_models,
        ),
    ] = None,
    test: Annotated[
        list[Path] | None, typer.Option(help="Logs to predict; by default the fitted one.")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="A time: fit pages before it, predict later ones."),
    ] = None,
) -> None:
    """Fit click models and show how well each predicts a log: likelihood, perplexity, examination.

    Example: ltr-features clicks models log.tsv --column time=time --split 2024-06-01"""
    from ltr_features.clicks.models import click_models, get_click_model
    from ltr_features.clicks.times import time_of

    rules = settings(rule or [], "rule")
    if split is not None and math.isnan(time_of(split).number):
        raise InputError(f"--split is neither a number nor a time (ISO 8601): {split!r}")
    if split is not None and (test or {"since", "until"} & set(rules)):
        raise InputError("--split makes its own test log; leave out --test, since and until")
    if split is not None and layout == "counts":
        raise InputError("--split needs pages with times, and counts have none; give --test")
    if test and layout == "ubi":
        raise InputError("--test takes logs of rows or counts; split UBI's by time (--split)")
    kinds = {name: get_click_model(name) for name in model or click_models()}
    _check_apart(log, test or [])
    earlier = rules if split is None else {**rules, "until": split}
    train = _read(log, layout, events, column, earlier, on_unknown, on_bad_row)
    held_out = train
    if split is not None:
        later = {**rules, "since": split}
        held_out = _read(log, layout, events, column, later, on_unknown, on_bad_row)
    elif test:
        held_out = _read(test, layout, events, column, rules, on_unknown, on_bad_row)
    _predict(kinds, train, held_out, asked=bool(model))


def _check_apart(log: list[Path], test: list[Path]) -> None:
    """Raise InputError if a file of the test log is fitted, too."""
    from ltr_features.clicks.rules import content_digest
    from ltr_features.sources.input_files import files_of

    fitted = {content_digest(path): path for path in files_of(log)} if test else {}
    for path in files_of(test):
        if same := fitted.get(content_digest(path)):
            raise InputError(
                f"--test {path}: the same log as {same}, which is fitted: its pages do not show "
                "how models predict others; leave it out of one of the two"
            )


def _predict(
    kinds: Mapping[str, type[ClickModel]], train: ClickLog, held_out: ClickLog, *, asked: bool
) -> None:
    """Fit models and print how well each predicts. ``asked``: whether the user named the models, so
    that one that cannot be fitted on the log is an error."""
    import pandas as pd

    from ltr_features.clicks.source import fitted_model
    from ltr_features.remarks import alike

    rows, curves, remarks = [], {}, []
    for name, kind in kinds.items():
        if train.pages is None and not kind.from_counts:
            if asked:
                train.needed_pages(name)
            remarks.append((name, "left out, the log has only counts"))
            continue
        start = time.perf_counter()
        fitted = fitted_model(train, name)
        seconds = time.perf_counter() - start
        predicted = fitted.predict(held_out)
        rows.append(
            {
                "model": name,
                "log-likelihood per result": predicted.log_likelihood / predicted.n_rows,
                "perplexity": predicted.perplexity,
                "impossible clicks": predicted.n_impossible,
                "seconds": seconds,
            }
        )
        curves[name] = fitted.examination_
        remarks += [(name, remark) for remark in fitted.remarks_]
    what = "the log that was fitted" if held_out is train else "pages that were not fitted"
    echo(f"Prediction of {what}:")
    echo(pd.DataFrame(rows).round(4).to_string(index=False))
    echo("Examination by position:")
    positions = pd.RangeIndex(1, train.n_positions + 1, name="position")
    echo(pd.DataFrame(curves, index=positions).round(4).to_string())
    for names, remark in alike(remarks):
        echo(f"note: {', '.join(names)}: {remark}", err=True)


@app.command("simulate")
def clicks_simulate(
    rows: Annotated[Path, typer.Argument(help="Judged rows: LETOR text or Parquet.")],
    out: Annotated[Path, typer.Option(help="The new log: .tsv, .csv (also .gz), .parquet.")],
    sessions: Annotated[int, typer.Option(min=1, help="Number of result pages.")] = 10_000,
    column: Annotated[
        str | None, typer.Option(help="The column by which results are ranked.")
    ] = None,
    ranker: Annotated[
        Path | None, typer.Option(help="Folder of a ranker that ranks the results instead.")
    ] = None,
    users: Annotated[str, typer.Option(help="pbm, cascade, dcm or dbn.")] = "pbm",
    eta: Annotated[
        float | None, typer.Option(help="Steepness of examination (pbm).", show_default="1.0")
    ] = None,
    noise: Annotated[float, typer.Option(help="Click rate of examined grade-0 results.")] = 0.1,
    continuation: Annotated[
        float | None, typer.Option(help="Chance to read on (dcm, dbn).", show_default="0.9")
    ] = None,
    depth: Annotated[int, typer.Option(min=1, help="Results on a page.")] = 10,
    exploration: Annotated[
        float, typer.Option(help="How much rankings vary, in standard deviations of the score.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same log.")] = 0,
) -> None:
    """Simulate the clicks of users with known behaviour on judged rows.

    Example: ltr-features clicks simulate test.txt --column bm25_whole --out log.tsv"""
    from letor.column_names import read_rows
    from letor.rankers.registry import load_ranker
    from ltr_features.clicks.simulation import USERS_WITH, Simulation, Users

    if (column is None) == (ranker is None):
        raise InputError("name what ranks the results: either --column or --ranker")
    replaced = check_outputs(out, inputs=[rows, ranker])
    given = {"eta": eta, "continuation": continuation}
    chosen = {name: value for name, value in given.items() if value is not None}
    for name in chosen:
        if users not in (of := USERS_WITH[name]):
            raise InputError(f"--{name} is for --users {' or '.join(of)}; leave it out")
    behaviour = Users(users, noise=noise, **chosen)
    production = None if ranker is None else load_ranker(ranker)
    data = read_rows(rows)
    scores = data.column(str(column)) if production is None else production.predict(data)
    simulation = Simulation(data, scores, behaviour, depth, exploration, seed)
    n_rows = simulation.write(sessions, out)
    tell_replaced(replaced)
    echo(f"{counted(sessions, 'page')}, {counted(n_rows, 'row')}: {out}")
