"""Tasks: queries, documents, and which documents are relevant, for training and for testing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from letor.compression import text_lines
from letor.errors import InputError
from letor.files import read_json, write_json
from ltr_base.names import counted
from ltr_features.sources.beir import read_documents
from ltr_features.studies.kinds.matching_config import TaskConfig
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.id_rows import are_reversed, finder
from ltr_features.text.letter_ngrams import LetterTrigrams
from ltr_features.text.query_texts import normalised
from ltr_features.text.records import find_file, id_rows
from ltr_features.text.term_counts import count_terms
from ssi_models.training.preferences import Preferences
from ssi_models.weighting import TfIdf, heaviest

PARTS = ("train", "dev", "test")


@dataclass(frozen=True, eq=False)
class Task:
    """A task; arrays have row numbers as int64.

    Attributes:
        Q: float32 CSR [m, V_q], unit tf-idf rows of queries. D: [n, V_d], likewise of documents.
        train, test: relevant pairs of rows of Q and D.
        known_query, known_document: pairs that are not ranked in testing: training links of test
            queries.
        excluded: [m], the document from which a query was made (never its answer), or -1.
        groups: [m], the same number for all queries from one source.
        n_copies: number of further queries and documents with the text of another one, for which
            they are taken. n_taught: of test pairs that are training pairs, too, and left out.
        candidates: documents that may be negatives in training.
        database: documents that are ranked in testing, ascending.
        asked: the fixed test queries of MAP and P@10.
        triples: [3, n_triples]: query, relevant document, other document of the database.
    """

    Q: sp.csr_matrix
    D: sp.csr_matrix
    train: Preferences
    test: Preferences
    known_query: NDArray[np.int64]
    known_document: NDArray[np.int64]
    excluded: NDArray[np.int64]
    groups: NDArray[np.int64]
    candidates: NDArray[np.int64]
    database: NDArray[np.int64]
    asked: NDArray[np.int64]
    triples: NDArray[np.int64]
    n_copies: int = 0
    n_taught: int = 0

    def save(self, folder: Path) -> None:
        """Write the task into a folder."""
        sp.save_npz(folder / "Q.npz", self.Q)
        if self.D is not self.Q:
            sp.save_npz(folder / "D.npz", self.D)
        pairs = {
            f"{part}_{side}": getattr(getattr(self, part), side)
            for part in ("train", "test")
            for side in ("query", "document")
        }
        arrays: dict[str, Any] = {k: v for k, v in vars(self).items() if type(v) is np.ndarray}
        np.savez(folder / "rows.npz", **pairs | arrays)
        write_json(folder / "facts.json", self.facts())

    @classmethod
    def load(cls, folder: Path) -> Task:
        """Read what ``save`` wrote."""
        Q = sp.load_npz(folder / "Q.npz").tocsr()
        D = sp.load_npz(folder / "D.npz").tocsr() if (folder / "D.npz").exists() else Q
        with np.load(folder / "rows.npz") as rows:
            arrays = {name: rows[name] for name in rows}
        shape = {"n_queries": Q.shape[0], "n_documents": D.shape[0]}
        for part in ("train", "test"):
            pairs = arrays.pop(f"{part}_query"), arrays.pop(f"{part}_document")
            arrays[part] = Preferences.from_pairs(*pairs, **shape)
        facts = read_json(folder / "facts.json")
        return cls(Q, D, **arrays, n_copies=facts["copies"], n_taught=facts["taught_pairs"])

    def facts(self) -> dict[str, float]:
        """Sizes of the task, for the report."""
        train, test = ((self.excluded[p.query], p.document) for p in (self.train, self.test))
        return {
            "queries": self.Q.shape[0],
            "documents": self.D.shape[0],
            "without_words": int((np.diff(self.D.indptr) == 0).sum()),
            "query_words": self.Q.shape[1],
            "document_words": self.D.shape[1],
            "words_per_query": self.Q.nnz / self.Q.shape[0],
            "words_per_document": self.D.nnz / self.D.shape[0],
            "training_pairs": len(self.train),
            "test_pairs": len(self.test),
            "reversed_pairs": int(are_reversed(test, train, self.D.shape[0]).sum()),
            "copies": self.n_copies,
            "taught_pairs": self.n_taught,
            "wordless_queries": int((np.diff(self.Q.indptr)[self.asked] == 0).sum()),
            "shared_words": float((self.excluded >= 0).all()),
            "untaught_query_words": _untaught(self.Q, self.train.query, self.test.query),
            "untaught_document_words": _untaught(self.D, self.train.document, self.test.document),
            "test_queries": len(self.asked),
            "database": len(self.database),
            "triples": self.triples.shape[1],
        }


def _untaught(X: sp.csr_matrix, train: NDArray[np.int64], test: NDArray[np.int64]) -> float:
    """The share of the words of test texts that are in no training text."""
    taught = np.bincount(X[np.unique(train)].indices, minlength=X.shape[1]) > 0
    words = X[np.unique(test)].indices
    return float(1 - taught[words].mean()) if len(words) else 0.0


def task_files(config: TaskConfig, data: Path) -> list[Path]:
    """The input files of a task.

    Raises:
        InputError: a file is missing.
    """
    folder = data / config.folder
    if config.source == "links":
        names = ["corpus.jsonl", "links.tsv"]
    else:
        languages = (config.query_language, config.document_language)
        names = [f"{part}.{language}" for part in PARTS for language in languages]
    return [find_file(folder, name) for name in names]


def make_task(config: TaskConfig, data: Path) -> Task:
    """Read the texts and make a task from them.

    Raises:
        InputError: a file is missing or has another format, or there is too little data.
    """
    paths = task_files(config, data)
    if config.source == "pairs":
        return _pair_task(config, paths)
    return _link_task(config, paths)


def _link_task(config: TaskConfig, paths: list[Path]) -> Task:
    row_of, fields, _ = read_documents(paths[0])
    lacking = [name for name in config.fields if name not in fields]
    if len(lacking) == len(config.fields) or (lacking and "fields" in config.model_fields_set):
        raise InputError(
            f"{paths[0]}: documents have no {' and no '.join(lacking)}, only {', '.join(fields)}"
        )
    read = [fields[name] for name in config.fields if name in fields]
    texts = [" ".join(parts) for parts in zip(*read, strict=True)]
    counts, document = _counted(texts, config)
    weighting = TfIdf().fit(counts)
    D = heaviest(weighting.transform(counts), config.heaviest)
    n = D.shape[0]
    rng = np.random.default_rng([config.seed, 0])
    ends = document[np.stack(id_rows(paths[1], [finder(row_of)] * 2), axis=1)]
    links = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
    train, test, database, candidates = _split(links, n, config, rng)
    known = train
    if config.use_share < 1:
        # A stream of its own: whatever the share, the same queries are tested, on the same answers.
        n_used, shares = max(1, round(config.use_share * len(train))), [config.seed, 2]
        train = train[np.sort(np.random.default_rng(shares).permutation(len(train))[:n_used])]
    if config.query_words is None:
        Q, excluded = D, np.arange(n)
    else:
        repeats = config.queries_per_article
        rows = np.concatenate([np.repeat(np.arange(n), repeats), np.arange(n)])
        Q = weighting.transform(draw_words(counts, rows, config.query_words, rng))
        excluded = rows
        first, test_first = train * np.array([repeats, 1]), n * repeats
        train = np.concatenate([_later(first, draw) for draw in range(repeats)])
        known, test = _later(known, test_first), _later(test, test_first)
    task = _finish(config, Q, D, train, test, known, excluded, candidates, database, rng)
    return replace(task, n_copies=len(document) - n)


def _pair_task(config: TaskConfig, paths: list[Path]) -> Task:
    parts = [[line for _, line in text_lines(path)] for path in paths]
    sizes = [len(part) for part in parts]
    for i in range(0, len(paths), 2):
        n, others = sizes[i : i + 2]
        if n != others:
            raise InputError(
                f"{paths[i]} has {counted(n, 'line')}, {paths[i + 1].name} {others:,}: line i of "
                "one must say what line i of the other says; complete the shorter file"
            )
    n_train, n_test = sizes[0], sizes[4]
    rng = np.random.default_rng([config.seed, 0])
    sides = [_counted([*chain(*side)], config) for side in (parts[::2], parts[1::2])]
    Q, D = (heaviest(TfIdf().fit(X).transform(X), config.heaviest) for X, _ in sides)
    pairs = np.stack([row for _, row in sides], axis=1)
    taught, asked = pairs[:n_train], np.unique(pairs[len(pairs) - n_test :], axis=0)
    width = np.array([D.shape[0], 1])
    new = ~np.isin(asked @ width, taught @ width)
    test = asked[new]
    chosen = rng.permutation(n_train)[: max(1, round(config.use_share * n_train))]
    drawn = rng.permutation(n_train)[: config.n_documents]
    database = np.unique(np.concatenate([taught[drawn, 1], test[:, 1]]))
    train, known = (np.unique(some, axis=0) for some in (taught[chosen], taught))
    task = _finish(
        config, Q, D, train, test, known, np.full(Q.shape[0], -1), np.unique(train[:, 1]),
        database, rng,
    )  # fmt: skip
    used = np.concatenate([taught, pairs[len(pairs) - n_test :]])
    n_copies = sum(len(used) - len(np.unique(side)) for side in used.T)
    return replace(task, n_copies=n_copies, n_taught=int((~new).sum()))


def _finish(
    config: TaskConfig,
    Q: sp.csr_matrix,
    D: sp.csr_matrix,
    train: NDArray[np.int64],
    test: NDArray[np.int64],
    known: NDArray[np.int64],
    excluded: NDArray[np.int64],
    candidates: NDArray[np.int64],
    database: NDArray[np.int64],
    rng: np.random.Generator,
) -> Task:
    """Draw the test queries and the triples, and construct the task."""
    if not len(train) or not len(test):
        raise InputError(
            f"{config.folder}: {len(train)} training and {len(test)} test pairs; both are needed"
        )
    asked = np.unique(test[:, 0])
    if len(asked) > config.n_test_queries:
        asked = np.sort(rng.choice(asked, config.n_test_queries, replace=False))
    shape = {"n_queries": Q.shape[0], "n_documents": D.shape[0]}
    known = known[np.isin(known[:, 0], test[:, 0])]
    known = known[np.argsort(known[:, 0], kind="stable")]
    pair = rng.integers(len(test), size=config.n_triples)
    other = database[rng.integers(len(database), size=config.n_triples)]
    query = test[pair, 0]
    relevant = np.concatenate([test, known]) @ [D.shape[0], 1]
    fair = ~np.isin(query * D.shape[0] + other, relevant) & (other != excluded[query])
    return Task(
        Q=Q,
        D=D,
        train=Preferences.from_pairs(*train.T, **shape),
        test=Preferences.from_pairs(*test.T, **shape),
        known_query=known[:, 0],
        known_document=known[:, 1],
        excluded=excluded.astype(np.int64),
        groups=np.where(excluded >= 0, excluded, np.arange(Q.shape[0])).astype(np.int64),
        candidates=candidates,
        database=database,
        asked=asked,
        triples=np.stack([query, test[pair, 1], other])[:, fair],
    )


def _split(
    links: NDArray[np.int64], n: int, config: TaskConfig, rng: np.random.Generator
) -> tuple[NDArray[np.int64], ...]:
    """Training links, test links, documents ranked in testing, documents used in training."""
    everything = np.arange(n)
    if config.split != "documents":
        chosen = rng.random(len(links)) < config.train_share
        if config.split == "linked-pairs":
            _, pair = np.unique(np.sort(links, axis=1), axis=0, return_inverse=True)
            chosen = chosen[pair.ravel()]
        return links[chosen], links[~chosen], everything, everything
    trains = rng.random(n) < config.train_share
    train, test = trains[links].all(axis=1), (~trains[links]).all(axis=1)
    return links[train], links[test], np.flatnonzero(~trains), np.flatnonzero(trains)


def _later(pairs: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """The pairs, with their queries moved down by a number of rows."""
    return np.stack([pairs[:, 0] + rows, pairs[:, 1]], axis=1)


def unseen_documents(task: Task, config: TaskConfig) -> Task:
    """A task made of the training pairs of a task that splits documents: the training documents are
    split again, so that parameters can be chosen on documents unseen in training.

    Args:
        config: of the given task.

    Raises:
        InputError: a part has no pairs.
    """
    rng = np.random.default_rng([config.seed, 1])
    trains = np.ones(task.D.shape[0], np.bool_)
    trains[task.candidates] = rng.random(len(task.candidates)) < config.train_share
    pairs = np.stack([task.train.query, task.train.document], axis=1)
    sources = np.stack([trains[task.excluded[pairs[:, 0]]], trains[pairs[:, 1]]])
    train, test = pairs[sources.all(axis=0)], pairs[~sources.any(axis=0)]
    none = np.zeros((0, 2), np.int64)
    kept = trains[task.candidates]
    documents = task.candidates[kept], task.candidates[~kept]
    return _finish(config, task.Q, task.D, train, test, none, task.excluded, *documents, rng)


def draw_words(
    counts: sp.csr_matrix, rows: NDArray[np.int64], n: int, rng: np.random.Generator
) -> sp.csr_matrix:
    """n different random words of each of the given rows (all words if a row has fewer), each
    counted once."""
    words, indptr = [], [0]
    for row in rows:
        every = counts.indices[counts.indptr[row] : counts.indptr[row + 1]]
        chosen = every if len(every) <= n else rng.choice(every, n, replace=False, shuffle=False)
        words.append(np.sort(chosen))
        indptr.append(indptr[-1] + len(chosen))
    indices = np.concatenate(words)
    ones = np.ones(len(indices), np.int32)
    return sp.csr_matrix((ones, indices, indptr), shape=(len(rows), counts.shape[1]))


def _counted(texts: Sequence[str], config: TaskConfig) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
    """Counts of the words in the task's dictionary, columns in code point order, and the row of
    each text.

    Equal texts (see :func:`normalised`) have one row: no model can tell them apart, so that one
    would give away the answers of the other, and be counted as wrong where the other is right.
    """
    position: dict[str | int, int] = {}
    # Nothing says that empty texts, such as missing translations, are equal.
    keys = [normalised(text) or i for i, text in enumerate(texts)]
    row = np.array([position.setdefault(key, len(position)) for key in keys], dtype=np.int64)
    first = np.unique(row, return_index=True)[1]
    analyzer = Analyzer(min_length=1, cjk_bigrams=config.cjk_bigrams)
    words, counts = count_terms([texts[i] for i in first.tolist()], analyzer)
    if config.terms != "words":
        trigrams = LetterTrigrams.of(words)
        counts = (counts @ trigrams.of_words(words)).tocsr()
        counts.sort_indices()
    n_terms = counts.shape[1]
    frequency = np.bincount(counts.indices, weights=counts.data, minlength=n_terms)
    documents = np.bincount(counts.indices, minlength=n_terms)
    allowed = np.flatnonzero(documents >= config.min_documents)
    if config.n_words is not None:
        order = np.argsort(-frequency[allowed], kind="stable")[: config.n_words]
        allowed = np.sort(allowed[order])
    return counts[:, allowed].tocsr(), row
