"""How much of its quality a column loses where queries are misspelled: words and letter trigrams.

    LTR_DATA=<folder of data sets> python tests/benchmarks/bench_typos.py
        [--data cranfield npl] [--model ssi] [--stemmer english] [--draws 5] [--seed 0]

The first, the fourth, the seventh, ... word of at least four letters of every test query gets one
typo: two neighbours swapped, or a letter dropped, replaced or inserted. MAP over all documents, of
the queries as they are and of ``--draws`` misspelled versions of each, by the tf-idf cosine (the
family vsm), or by a model with its default settings (``--model``): trained on the queries as they
are, in five parts, each part's queries scored by a model of the other four.

loss: 1 - MAP of misspelled / MAP of clean queries. ratio: the loss over that of words, with its
95 % interval over 10,000 samples of the queries (of each collection, for the mean of all).

Means of the five collections, cosine, 5 draws:

- words: MAP .2106, misspelled .1522, loss 29.6 %.
- letter trigrams: .2109, .1992, 7.0 %, ratio .24 [.16, .31].
- both: .2299, .2044, 12.5 %, ratio .42 [.36, .49].
- Stemmed: losses of 26.6, 9.8 (.37 [.29, .44]) and 13.7 % (.52 [.44, .59]); clean .2352, .2168,
  .2402.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
from data_sets import AbsentError, folder_of
from numpy.typing import NDArray

from letor.folds import k_fold
from ltr_features import Analyzer, LearnedColumn, get_family, read_collection
from ltr_features.columns.base import ColumnFamily
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.trained import TrainedColumn
from ltr_features.text.collection import Collection, Pairs
from ltr_features.text.index import TermIndex
from ltr_features.text.letter_ngrams import KINDS, Terms

COLLECTIONS = ("cranfield", "cisi", "cacm", "npl", "nfcorpus")
N_RESAMPLES = 10_000
LETTERS = "abcdefghijklmnopqrstuvwxyz"
Scorers = list[tuple[NDArray[np.int64], ColumnFamily]]


def misspelled(text: str, rng: np.random.Generator) -> str:
    """The text with a typo in every third word of at least four letters."""
    words = re.split(r"([^\W\d_]{4,})", text)  # the words at odd places
    words[1::6] = [typo(word, rng) for word in words[1::6]]
    return "".join(words)


def typo(word: str, rng: np.random.Generator) -> str:
    """A word with one letter swapped with the next, dropped, replaced or put in."""
    kind, letter = rng.integers(4), LETTERS[rng.integers(len(LETTERS))]
    at = int(rng.integers(len(word) - 1 if kind == 0 else len(word)))
    head, tail = word[:at], word[at:]
    return head + [tail[1::-1] + tail[2:], tail[1:], letter + tail[1:], letter + tail][kind]


def scorers(
    context: ColumnContext, terms: Terms, model: str | None, folder: Path, seed: int
) -> Scorers:
    """Query rows, and the column that scores them; it has seen none of their labels."""
    collection = context.collection
    if model is None:
        return [(np.arange(collection.n_queries), get_family("vsm", terms=terms))]
    row = {query: i for i, query in enumerate(collection.query_ids)}
    column = TrainedColumn(context, LearnedColumn(model, model, terms=terms), folder)
    parts = [np.array(sorted(row[q] for q in fold.test))
             for fold in k_fold(collection.query_ids, 5, seed=seed)]  # fmt: skip
    every = np.arange(collection.n_queries)
    return [(part, column.fitted(np.setdiff1d(every, part))) for part in parts]


def average_precisions(
    context: ColumnContext, columns: Scorers, texts: list[str]
) -> NDArray[np.float64]:
    """float64 [n_queries]: of all documents in the order of their scores, ties in that of rows."""
    collection = context.collection
    judged, relevant = collection.judgements, {}
    for query, document in zip(
        judged.query[judged.grade > 0], judged.document[judged.grade > 0], strict=True
    ):
        relevant.setdefault(query, []).append(document)
    asked, result = context.for_queries(texts), np.zeros(len(texts))
    documents = np.arange(collection.n_documents)
    for rows, column in columns:
        pairs = Pairs(np.repeat(rows, len(documents)), np.tile(documents, len(rows)))
        scores = column.compute(asked, pairs).reshape(len(rows), -1)
        for row, own in zip(rows, scores, strict=True):
            rank = np.empty(len(documents))
            rank[np.argsort(-own, kind="stable")] = documents + 1
            ranks = np.sort(rank[relevant.get(row, [])])
            result[row] = (np.arange(1, len(ranks) + 1) / ranks).mean() if len(ranks) else 0
    return result


def losses(values: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """The loss of each kind of terms over samples of queries: [..., terms] of values [2, terms,
    n_queries], clean and misspelled, and rows [..., sample]."""
    clean, misspelled = (np.moveaxis(v[:, rows].mean(axis=-1), 0, -1) for v in values)
    return 1 - misspelled / clean


def measured(collection: Collection, arguments: argparse.Namespace) -> NDArray[np.float64]:
    """float64 [2, terms, n_queries]: average precision of clean and misspelled queries."""
    index = TermIndex.build(collection, Analyzer(stemmer=arguments.stemmer))
    context = ColumnContext(collection, index, threads=1)
    texts = list(collection.query_texts)
    draws = [np.random.default_rng([arguments.seed, i]) for i in range(arguments.draws)]
    versions = [[misspelled(text, rng) for text in texts] for rng in draws]
    rows = []
    for terms in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            columns = scorers(context, terms, arguments.model, Path(folder), arguments.seed)
        clean = average_precisions(context, columns, texts)
        wrong = [average_precisions(context, columns, version) for version in versions]
        rows.append((clean, np.mean(wrong, axis=0)))
    return np.array(rows).transpose(1, 0, 2)


def show(name: str, maps: NDArray[np.float64], loss: NDArray, samples: NDArray) -> None:
    """A line per kind of terms: MAPs [2, terms], losses [terms] and [n_resamples, terms]."""
    for i, terms in enumerate(KINDS):
        line = f"{name:10s} {terms:15s} {maps[0, i]:.4f} {maps[1, i]:10.4f} {loss[i]:8.1%}"
        if i:
            low, high = np.quantile(samples[:, i] / samples[:, 0], [0.025, 0.975])
            line += f"   {loss[i] / loss[0]:5.2f} [{low:.2f}, {high:.2f}]"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=COLLECTIONS, choices=COLLECTIONS)
    parser.add_argument("--model", help="a trained model instead of the tf-idf cosine")
    parser.add_argument("--stemmer", help="english, porter, ...; none by default")
    parser.add_argument("--draws", type=int, default=5, help="misspelled versions of each query")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    start, rng = perf_counter(), np.random.default_rng(arguments.seed)
    print(f"{arguments.model or 'tf-idf cosine'}, MAP\n")
    print(f"{'':10s} {'terms':15s} {'clean':6s} {'misspelled':>10s} {'loss':>8s}   ratio [95 %]")
    every = []
    for name in arguments.data:
        try:
            folder = folder_of(name)
        except AbsentError as error:
            print(f"{name:10s} skipped: {error}")
            continue
        values = measured(read_collection("beir", folder=folder, splits=["test"]), arguments)
        n = values.shape[2]
        loss = losses(values, np.arange(n))
        samples = np.concatenate(
            [losses(values, rng.integers(n, size=(500, n))) for _ in range(N_RESAMPLES // 500)]
        )
        every.append((values.mean(axis=2), loss, samples))
        show(name, *every[-1])
    if len(every) > 1:
        show("mean", *(np.mean(part, axis=0) for part in zip(*every, strict=True)))
    print(f"\n{perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
