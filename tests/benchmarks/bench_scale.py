"""How time and memory grow with documents, queries and rows, on made collections.

A collection is made from a vocabulary by Zipf's law whose size grows by Heaps' law with the words
that were written, with the mean length that is asked for: its numbers are those of texts, its
sentences are not. Each stage is a command in a process of its own, with what a stranger would type;
memory is the largest RssAnon, 20 times a second, so that mapped files do not count.

    python tests/benchmarks/bench_scale.py --documents 10000 100000 --words 100 --queries 1000 10000
        --memory 256MiB [--workers 2] [--stages columns rank folds em run] --out FOLDER

Prints time and memory of each stage and, from two sizes on, the exponents of their growth and what
these say of the English Wikipedia and of 10^8 rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from time import perf_counter, sleep

import numpy as np
import pyarrow.parquet as pq

#: Zipf's exponent; Heaps' law V = K n^BETA.
ZIPF, HEAPS_K, HEAPS_BETA = 1.07, 30.0, 0.55
BLOCK = 10_000
WORDS_OF_A_QUERY = 3
#: The English Wikipedia's articles, and the rows of a large search log.
ARTICLES, ROWS = 6_800_000, 100_000_000


def vocabulary(n_words: int) -> tuple[np.ndarray, np.ndarray]:
    """(Words, the cumulative share of each by Zipf's law)."""
    n = int(HEAPS_K * n_words**HEAPS_BETA)
    letters = np.array(list("etaoinshrdlu"))
    words = np.array(["".join(letters[list(map(int, np.base_repr(i + 12, 12).translate(
        str.maketrans("AB", "  ")).replace(" ", "9")))]) + str(i) for i in range(n)])  # fmt: skip
    weight = 1.0 / np.arange(1, n + 1) ** ZIPF
    return words, np.cumsum(weight) / weight.sum()


def make(folder: Path, n_documents: int, mean_length: int, n_queries: int) -> None:
    """Write a BEIR folder; a query's words are of its one relevant document, not the most frequent
    ones of the language, and frequent enough to find a hundred candidates."""
    rng = np.random.default_rng(0)
    words, share = vocabulary(n_documents * mean_length)
    (folder / "qrels").mkdir(parents=True)
    asked = set(rng.choice(n_documents, n_queries, replace=n_queries > n_documents).tolist())
    queries = []
    with open(folder / "corpus.jsonl", "w", encoding="utf-8") as out:
        for first in range(0, n_documents, BLOCK):
            n = min(BLOCK, n_documents - first)
            lengths = np.maximum(5, rng.lognormal(np.log(mean_length) - 0.25, 0.7, n)).astype(int)
            drawn = np.searchsorted(share, rng.random(lengths.sum()))
            for i, of_document in enumerate(np.split(drawn, np.cumsum(lengths)[:-1])):
                text = " ".join(words[of_document])
                out.write(json.dumps({"_id": f"d{first + i}", "text": text}) + "\n")
                if first + i in asked:
                    some = of_document[(of_document >= 20) & (of_document < 2000)]
                    chosen = rng.choice(some if len(some) else of_document, WORDS_OF_A_QUERY)
                    queries.append((first + i, " ".join(words[chosen])))
    with open(folder / "queries.jsonl", "w", encoding="utf-8") as out:
        out.writelines(json.dumps({"_id": f"q{d}", "text": t}) + "\n" for d, t in queries)
    lines = "".join(f"q{d}\td{d}\t1\n" for d, _ in queries)
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)


def measured(command: Sequence[str | Path]) -> tuple[float, float]:
    """(Seconds, the largest MiB of RssAnon over the process and those below it)."""
    began = perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "ltr_features.cli", *map(str, command)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    largest = 0
    while process.poll() is None:
        largest = max(largest, sum(map(anonymous, family_of(process.pid))))
        sleep(0.05)
    said = process.communicate()
    if process.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {said[1]}")
    return perf_counter() - began, largest / 1024


def anonymous(pid: int) -> int:
    """KiB that are the process's own; mapped files do not count."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)


def family_of(pid: int) -> list[int]:
    """A process and those below it."""
    children: list[str] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # it has ended
            children += task.read_text().split()
    return [pid, *(one for child in children for one in family_of(int(child)))]


#: An experiment whose rankers are small: what grows is the feature table.
EXPERIMENT = """
title = "Rows beyond memory"
introduction = "A made collection."
candidate_depth = 100
collection = { source = "beir", folder = "beir" }
columns = [{ family = "letor46" }]
models = [{ name = "lsi", model = "lsi", params = { rank = 50 } }]
rankers = [{ name = "trees", ranker = "lambdamart", params = { n_estimators = 10 } }]
splits = [{ name = "folds", title = "Folds", by = "query", folds = 5 }]
systems = [
    { name = "BM25", score = "bm25_whole" },
    { name = "words", columns = ["letor46"], ranker = "trees" },
    { name = "words + LSI", columns = ["letor46", "lsi"], ranker = "trees" },
]
[evaluation]
measures = ["NDCG@10"]
comparisons = [["words + LSI", "words"]]
hard_baseline = "words"
hard_systems = ["words + LSI"]
hard_selectors = ["BM25"]
"""


class Bench:
    """Stages on collections of growing size; with ``workers``, each also on one Dask worker and on
    so many, whose results must be the same bytes."""

    def __init__(self, memory: str, workers: int) -> None:
        self.memory, self.workers = memory, sorted({1, workers}) if workers else []
        self.stages: dict[str, list[tuple[int, float, float]]] = {}

    def stage(self, name: str, size: int, command: Sequence[str | Path]) -> None:
        seconds, mebibytes = measured(command)
        self.stages.setdefault(name, []).append((size, seconds, mebibytes))
        print(f"{name:34} {size:>11,} {seconds:8.1f} s {mebibytes:8.0f} MiB", flush=True)

    def spread(self, name: str, size: int, command: Sequence[str | Path], out: Path) -> None:
        """A stage that makes a file or a folder, and the same on workers."""
        self.stage(name, size, [*command, "--out", out])
        for n in self.workers:
            there = out.with_name(f"{n}-{out.name}")
            on = ["--scheduler", f"local:{n}"]
            self.stage(f"{name}, {n} workers", size, [*command, "--out", there, *on])
            if contents(there) != contents(out):
                sys.exit(f"{there}: the workers' bytes differ")

    def index(self, folder: Path, n_documents: int, mean_length: int, n_queries: int) -> None:
        name = f"index, {mean_length} words, {n_queries:,} queries, documents"
        command = ["index", "beir", f"folder={folder / 'beir'}"]
        self.spread(name, n_documents, command, folder / "workspace")

    def columns(self, folder: Path, n_documents: int, n_queries: int) -> None:
        rows, n = folder / "rows.parquet", 100 * n_queries
        command = ["columns", "build", "--workspace", folder / "workspace", "--family", "letor46",
                   "--memory", self.memory, "--quiet"]  # fmt: skip
        self.spread(f"46 columns of {n_documents:,} documents, rows", n, command, rows)
        n_rows = pq.read_metadata(rows).num_rows
        if n_rows < 95 * n_queries:
            sys.exit(f"{n_rows:,} rows only: the queries find fewer than 100 candidates")

    def folds(self, folder: Path, n_documents: int, n_queries: int) -> None:
        command = ["columns", "build", "--workspace", folder / "workspace", "--family", "letor46",
                   "--model", "lsi", "--param", "lsi.rank=50", "--model", "popularity",
                   "--format", "parquet", "--memory", self.memory, "--quiet"]  # fmt: skip
        name = f"5 folds, 48 columns of {n_documents:,} documents, rows"
        self.spread(name, 100 * n_queries, command, folder / "folds")
        self.rank(folder / "folds" / "Fold1" / "train.parquet", 60 * n_queries)

    def rank(self, file: Path, n_rows: int) -> None:
        command = ["rank", "train", file, "--param", "n_estimators=10",
                   "--memory", self.memory, "--quiet", "--out", file.parent / "ranker"]  # fmt: skip
        self.stage(f"LambdaMART, 10 trees, {file.stem}, rows", n_rows, command)

    def run(self, folder: Path, n_queries: int) -> None:
        toml = folder / "experiment.toml"
        toml.write_text(EXPERIMENT, encoding="utf-8")
        command = ["run", toml, "--data", folder, "--quiet"]
        for memory in ([], ["--memory", self.memory]):
            told = f"experiment {' '.join(memory)}, rows"
            out = folder / "-".join(["experiment", *memory])
            self.stage(told, 100 * n_queries, [*command, *memory, "--out", out])

    def em(self, folder: Path, n_queries: int, topics: int) -> None:
        params = [f"n_topics={topics}", "lambda2=0.5"]
        command = ["models", "fit", "bltm-pr", "--workspace", folder / "workspace", "--quiet",
                   *(part for value in params for part in ("--param", value))]  # fmt: skip
        name = f"BLTM-PR, {topics} topics, pairs"
        self.spread(name, n_queries, command, folder / "bltm-pr.safetensors")


def contents(path: Path) -> list[bytes]:
    """Digests of a file, or of those of a folder."""
    files = sorted(one for one in (path, *path.rglob("*")) if one.is_file())
    return [sha256(file.read_bytes()).digest() for file in files]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--queries", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--words", type=int, default=100, help="mean length of a document")
    parser.add_argument("--memory", default="256MiB")
    parser.add_argument("--workers", type=int, default=0, help="also on so many Dask workers")
    parser.add_argument(
        "--stages",
        nargs="+",
        choices=["columns", "rank", "folds", "em", "run"],
        default=["columns", "rank"],
    )
    parser.add_argument("--topics", type=int, default=100, help="of the topic model of stage em")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    bench = Bench(options.memory, options.workers)
    for n_documents in options.documents:
        for n_queries in options.queries:
            folder = options.out / f"{n_documents}-{n_queries}"
            make(folder / "beir", n_documents, options.words, n_queries)
            bench.index(folder, n_documents, options.words, n_queries)
            if "columns" in options.stages:
                bench.columns(folder, n_documents, n_queries)
            if "rank" in options.stages:
                bench.rank(folder / "rows.parquet", 100 * n_queries)
            if "folds" in options.stages:
                bench.folds(folder, n_documents, n_queries)
            if "run" in options.stages:
                bench.run(folder, n_queries)
            if "em" in options.stages:
                bench.em(folder, n_queries, options.topics)
    print("\nexponents of growth (1: proportional) between the two largest, and what they lead to:")
    print(f"{ARTICLES:,} documents of that length, {ROWS:,} rows, if they hold")
    for name, runs in bench.stages.items():
        if len({size for size, *_ in runs}) > 1:
            (n, s, m), (n2, s2, m2) = sorted(runs)[-2:]
            time, memory = (np.log(late / early) / np.log(n2 / n) for early, late in
                            ((s, s2), (m, m2)))  # fmt: skip
            larger = (ROWS if ", rows" in name or ", pairs" in name else ARTICLES) / n2
            print(f"{name:34} time {time:5.2f}: {s2 * larger**time / 60:6.0f} min   "
                  f"memory {memory:5.2f}: {m2 * larger**memory / 1024:6.1f} GiB")  # fmt: skip


if __name__ == "__main__":
    main()
