"""Damaged files of every kind, read in processes of their own: whatever is in them, they are read
or refused with their name, in time, in little memory.

``python tests/reference/hostile.py 100000`` reads so many, of all kinds; ``--kind "index"`` of one;
``--kind "index" --case 17`` reads one case in this process and shows what happens.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from multiprocessing import forkserver
from pathlib import Path
from typing import Any
from unittest import mock

import mutations
import numpy as np
import small_files
from scipy.sparse import csr_matrix
from small_files import TEXTS

from letor.column_names import read_rows
from letor.errors import InputError, reading
from letor.fold_files import read_folds
from letor.parquet import read_parquet
from letor.rankers.registry import load_ranker
from letor.rankers.trees import TreeRanker
from letor.trec import read_qrels, read_run
from ltr_features.clicks.reading import read_click_counts, read_click_rows
from ltr_features.clicks.ubi import read_ubi
from ltr_features.columns.context import ColumnContext, open_workspace
from ltr_features.columns.registry import get_family
from ltr_features.embeddings.doc2vec import Doc2Vec
from ltr_features.embeddings.id_vectors import read_id_vectors
from ltr_features.embeddings.vectors import WordVectors
from ltr_features.entities.replay import StoredAnnotations
from ltr_features.entities.tagme_service import TagmeService
from ltr_features.entities.wikipedia_linker import WikipediaLinker
from ltr_features.scoring import ScoringPipeline
from ltr_features.sources.registry import read_collection
from ltr_features.sources.score_tables import read_scores
from ltr_features.sources.wikipedia import read_dump
from ltr_features.studies.run import kind_of, study_class
from ltr_features.text.collection import Pairs
from ltr_features.text.index import TermIndex
from ssi_models.registry import load_model

SECONDS, BYTES = 10, 2**30
#: What a case may come to; the first two are as it should be.
OUTCOMES = ("read", "refused", "crash", "hang", "traceback", "no name", "memory")
ALL_PAIRS = Pairs(np.repeat(np.arange(6), small_files.N), np.tile(np.arange(small_files.N), 6))


def _ranker(folder: Path) -> None:
    ranker, rows = load_ranker(folder / "ranker"), small_files.rows()
    if set(ranker.feature_names_) <= set(rows.column_names):
        with reading(folder):  # of scores beyond float32 it says whose they are, not which file's
            ranker.predict(rows)
    if isinstance(ranker, TreeRanker):
        ranker.dump()
        ranker.contributions(np.zeros((1, ranker._n_inputs), np.float32))


def _model(folder: Path) -> None:
    model = load_model(folder / "model.safetensors")
    Q, D = small_files.matrices(model.name)
    n_documents = len(getattr(model, "in_degree_", range(D.shape[0])))
    if (model.n_query_words_, model.n_words_, n_documents) == (Q.shape[1], *D.shape[::-1]):
        n = np.arange(small_files.N)
        model.score(Q, D, n, n[::-1])
        model.cache(D).scores(Q)
        if "popularity" not in model.name:
            model.nearest_words(0)
        model.remarks  # noqa: B018


def _columns(context: ColumnContext) -> None:
    for name in ("letor46", "vsm"):
        get_family(name).compute(context, ALL_PAIRS)


def _index(folder: Path) -> None:
    index = TermIndex.open(folder / "index")
    if index.n_documents == small_files.N:
        _columns(ColumnContext(small_files.collection(), index, threads=1))


def _workspace(folder: Path) -> None:
    context = open_workspace(folder / "workspace", threads=1)
    if (context.collection.n_queries, context.collection.n_documents) == (6, small_files.N):
        _columns(context)


def _knowledge(folder: Path) -> None:
    linker = WikipediaLinker(folder / "kb", threads=1)
    linked = linker.link(TEXTS)
    rows = linker.base.rows([m.entity for found in linked for m in found])
    _ = [linker.base.abstracts[row] for row in rows[rows >= 0].tolist()]


def _doc2vec(folder: Path) -> None:
    model = Doc2Vec.load(folder / "model.safetensors")
    model.infer(csr_matrix(np.ones((3, len(model.words)), np.int32)), threads=1)


def _pipeline(folder: Path) -> None:
    ScoringPipeline.load(folder / "pipeline").rank("word1 word3", 5)


def _table(suffix: str) -> Callable[[Path], Any]:
    return lambda folder: read_collection(
        "table",
        documents=folder / f"documents{suffix}",
        judgements=folder / f"judgements{suffix}",
        document_columns={"id": "id", "title": "name", "body": "text"},
        judgement_columns={"text": "query", "query": "query_id"},
    )


def _trec(folder: Path) -> None:
    read_collection("trec", documents=folder / "documents.trec", topics=folder / "topics.txt",
                    qrels=folder / "qrels.txt")  # fmt: skip


def _run(folder: Path) -> None:
    read_run(folder / "bm25.run")
    read_qrels(folder / "qrels.txt")
    read_scores(folder / "bm25.run")


def _experiment(folder: Path) -> None:
    path = folder / "experiment.toml"
    study_class(kind_of(path)).read(path, folder)


def _vectors(name: str) -> Callable[[Path], Any]:
    return lambda folder: WordVectors.load(folder / name, ["word1", "word3", "no"])


_CLICK_TIMES = {"time": "time"}
READERS: Mapping[str, Callable[[Path], Any]] = {
    "letor": lambda folder: read_rows(folder / "rows.txt"),
    "letor gz": lambda folder: read_rows(folder / "rows.txt.gz"),
    "letor parquet": lambda folder: read_parquet(folder / "rows.parquet"),
    "folds": read_folds,
    "folds parquet": read_folds,
    **{kind: _table(f".{kind.split()[1]}") for kind in small_files.MAKERS if "table" in kind},
    "trec": _trec,
    "topics xml": _trec,
    "run": _run,
    "beir": lambda folder: read_collection("beir", folder=folder),
    **{kind: _experiment
       for kind in small_files.MAKERS if "experiment" in kind},
    **{kind: _ranker for kind in small_files.MAKERS if kind.startswith("ranker ")},
    **{kind: _model for kind in small_files.MAKERS if kind.startswith("model ")},
    "index": _index,
    "workspace": _workspace,
    "knowledge base": _knowledge,
    "vectors glove": _vectors("vectors.txt"),
    "vectors text": _vectors("vectors.txt"),
    "vectors binary": _vectors("vectors.bin"),
    "vectors own": _vectors("v.safetensors"),
    **{f"vectors {s}": lambda folder, s=s: read_id_vectors(folder / f"vectors.{s}")
       for s in ("npy", "npz", "safetensors", "parquet")},
    "doc2vec": _doc2vec,
    "doc2vec tree": _doc2vec,
    **{f"scores {s}": lambda folder, s=s: read_scores(folder / f"scores.{s}")
       for s in ("csv", "tsv", "jsonl", "parquet")},
    **{f"clicks {s}": lambda folder, s=s: read_click_rows(folder / f"log.{s}", columns=_CLICK_TIMES)
       for s in ("csv", "jsonl", "parquet")},
    "click counts": lambda folder: read_click_counts(folder / "log.tsv"),
    "ubi": lambda folder: read_ubi(folder / "queries.jsonl", folder / "events.jsonl"),
    "wikipedia dump": lambda folder: list(read_dump(folder / "dump.xml")),
    "tagme cache": lambda folder: TagmeService(folder / "answers.sqlite", pause=0).link(TEXTS),
    "annotations": lambda folder: StoredAnnotations(folder / "annotations.jsonl").link(TEXTS),
    "pipeline": _pipeline,
}  # fmt: skip


def read_case(kind: str, original: Path, folder: Path, seed: int, case: int) -> tuple[str, str]:
    """The outcome of reading one damaged copy, and what is to be said of it."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(original, folder)
    rng = np.random.default_rng([seed, case])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        what = "; ".join(mutations.mutate_folder(folder, rng) for _ in range(rng.integers(1, 3)))
        if rng.random() < 0.5:
            mutations.write_digests_anew(folder)
        try:
            READERS[kind](folder)
        except (InputError, ValueError, OSError) as error:
            # The command line makes one line of all three, and of no other.
            refused = isinstance(error, InputError | OSError) or kind.startswith("model ")
            if refused and folder.name in str(error):
                return "refused", str(error)
            if refused:
                return "no name", f"{what}: {error}"
            return "traceback", f"{what}: {traceback.format_exc(limit=-3)}"
        except Exception:
            return "traceback", f"{what}: {traceback.format_exc(limit=-3)}"
    return "read", ""


def _peak() -> int:
    """Most bytes in memory since the last call."""
    status = Path("/proc/self/status").read_text()
    Path("/proc/self/clear_refs").write_text("5")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return 1024 * int(found[1]) if found else 0


def _batch(kind: str, home: Path, seed: int, start: int, stop: int) -> None:
    """Read cases, and write a line for each into ``home / "log"``, before and after."""
    os.environ.pop("GCUBE_TOKEN", None)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, whatever it is doing
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    original = home / "original"
    if not original.exists():
        small_files.make(kind, original)
    READERS[kind](original)  # compiles
    measured = Path("/proc/self/clear_refs").exists()
    with (home / "log").open("a") as log:
        for case in range(start, stop):
            print(case, file=log, flush=True)
            base = _peak() if measured else 0
            signal.alarm(SECONDS)
            outcome, said = read_case(kind, original, home / "damaged", seed, case)
            signal.alarm(0)
            if measured and _peak() - base > BYTES:
                outcome = "memory"
            print(json.dumps([case, outcome, said[-2000:]]), file=log, flush=True)


_FORKS = multiprocessing.get_context("forkserver")


def read_damaged(kind: str, home: Path, seed: int, n: int) -> list[tuple[int, str, str]]:
    """Read ``n`` damaged copies; (case, outcome, what is said) of each.

    They are read one after the other in a process, and in another where one ends it.
    """
    _FORKS.set_forkserver_preload(["hostile"])
    # The server that processes are forked from looks for modules in PYTHONPATH alone.
    with mock.patch.dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))):
        forkserver.ensure_running()
    home.mkdir(parents=True, exist_ok=True)
    found: dict[int, tuple[int, str, str]] = {}
    while len(found) < n:
        process = _FORKS.Process(target=_batch, args=(kind, home, seed, len(found), n))
        process.start()
        process.join()
        lines = (home / "log").read_text().splitlines() if (home / "log").exists() else []
        (home / "log").unlink(missing_ok=True)
        records = [json.loads(line) for line in lines]
        found |= {r[0]: tuple(r) for r in records if isinstance(r, list)}
        if process.exitcode:
            case = next((r for r in reversed(records) if isinstance(r, int)), None)
            if process.exitcode > 0 or case is None or case in found:
                raise RuntimeError(f"{kind}: no case was read, exit code {process.exitcode}")
            hangs = process.exitcode == -signal.SIGALRM
            found[case] = (case, "hang" if hangs else "crash", f"exit code {process.exitcode}")
    return [found[case] for case in sorted(found)]


def failures(found: list[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
    return [case for case in found if case[1] not in OUTCOMES[:2]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=int, nargs="?", default=100)
    parser.add_argument("--kind", choices=list(READERS), action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int)
    parser.add_argument("--show", type=int, default=3, help="failures of a kind that are shown")
    arguments = parser.parse_args()
    kinds = arguments.kind or list(READERS)
    with tempfile.TemporaryDirectory() as temporary:
        if arguments.case is not None:
            original = small_files.make(kinds[0], Path(temporary) / "original")
            print(*read_case(kinds[0], original, Path(temporary) / "damaged", arguments.seed,
                             arguments.case), sep="\n")  # fmt: skip
            return
        total: Counter[str] = Counter()
        print(f"{'kind':28}{'cases':>7}", *(f"{name:>10}" for name in OUTCOMES), "   seconds")
        for kind in kinds:
            start = time.perf_counter()
            n = -(-arguments.cases // len(kinds))
            found = read_damaged(kind, Path(temporary) / kind, arguments.seed, n)
            counts = Counter(outcome for _, outcome, _ in found)
            total += counts
            print(f"{kind:28}{n:7}", *(f"{counts[name]:10}" for name in OUTCOMES),
                  f"{time.perf_counter() - start:10.1f}", flush=True)  # fmt: skip
            for case, outcome, said in failures(found)[: arguments.show]:
                print(f"    case {case}, {outcome}: {said}", file=sys.stderr)
        print(f"{'all':28}{sum(total.values()):7}", *(f"{total[name]:10}" for name in OUTCOMES))


if __name__ == "__main__":
    main()
