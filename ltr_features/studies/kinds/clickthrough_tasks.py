"""Tasks: titles, training pairs of queries and titles, test queries in two halves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from letor.errors import InputError
from letor.files import read_json, write_json
from ltr_features.sources.beir import read_beir
from ltr_features.sources.query_files import SAME_ID, with_groups_and_times, with_sources
from ltr_features.studies.kinds.clickthrough_config import TaskConfig
from ltr_features.text.collection import Collection
from ltr_features.text.id_rows import are_reversed
from ltr_features.text.letter_ngrams import Kind, LetterTrigrams
from ltr_features.text.query_texts import normalised
from ltr_features.text.records import find_file
from ltr_features.text.term_counts import count_terms, renumbered
from ssi_models.training.preferences import Preferences
from ssi_models.vocabulary import Vocabulary
from ssi_models.weighting import TfIdf

#: Facts of which reports warn.
GROUPS = "groups of test queries"
TAUGHT = "of them with the text of a training query"
KNOWN = "of them in a group of training queries"
WORDLESS = "of them without a word of titles or training queries"
MADE = "of them made from a title, which is not ranked for them"
OWN = "share of the queries that seem made from the document of their id"


@dataclass(frozen=True, eq=False)
class Task:
    """A task; its vocabulary consists of the terms of titles and training queries.

    Attributes:
        Q, T, D: float32 CSR counts of training queries, test queries and titles, one column per
            term; titles in the order of their documents' ids.
        train: pairs of training queries and titles of relevant documents.
        train_group: int64 [number of training queries], as ``group``: what models hold out in
            turn must not separate them.
        query, document, grade: int64 [n], judgements of the test queries.
        half: int64 [m], 0 or 1 per test query.
        group: int64 [m], equal for test queries of one group or of the same text.
        taught, known: bool [m], whether a training query has the text of the test query, or is of
            its group, if groups are known.
        source, train_source: int64 [m] and [number of training queries], the title of the document
            that a query was made from, which is not ranked for it, -1 for none.
        query_ids: ids of the test queries.
        vocabulary: the terms. terms: their kind.
        own_text_share: see :attr:`.Collection.own_text_share`.
    """

    Q: sp.csr_matrix
    T: sp.csr_matrix
    D: sp.csr_matrix
    train: Preferences
    train_group: NDArray[np.int64]
    query: NDArray[np.int64]
    document: NDArray[np.int64]
    grade: NDArray[np.int64]
    half: NDArray[np.int64]
    group: NDArray[np.int64]
    taught: NDArray[np.bool_]
    known: NDArray[np.bool_]
    source: NDArray[np.int64]
    train_source: NDArray[np.int64]
    query_ids: tuple[str, ...]
    vocabulary: Vocabulary
    terms: Kind = "words"
    own_text_share: float = 0.0

    @cached_property
    def weighting(self) -> TfIdf:
        """Tf-idf weighting fitted on titles and training queries together."""
        return TfIdf().fit(sp.vstack([self.D, self.Q], format="csr"))

    def matrices(self, inputs: str) -> tuple[sp.csr_matrix, sp.csr_matrix, sp.csr_matrix]:
        """Q, T and D as counts, or as unit tf-idf rows."""
        if inputs == "counts":
            return self.Q, self.T, self.D
        weigh = self.weighting.transform
        return weigh(self.Q), weigh(self.T), weigh(self.D)

    def facts(self) -> dict[str, float]:
        """Sizes of the task, for the report."""
        made = {
            KNOWN: int(self.known.sum()),
            MADE: int((self.source >= 0).sum()),
            OWN: self.own_text_share,
        }
        return {
            "training queries": self.Q.shape[0],
            "training pairs": len(self.train),
            "test queries": self.T.shape[0],
            TAUGHT: int(self.taught.sum()),
            WORDLESS: int((np.diff(self.T.indptr) == 0).sum()),
            "titles": self.D.shape[0],
            self.terms: self.D.shape[1],
            f"{self.terms} per title": float(self.D.sum() / self.D.shape[0]),
            f"{self.terms} per test query": float(self.T.sum() / self.T.shape[0]),
            **{name: number for name, number in made.items() if number},
        }

    def save(self, folder: Path) -> None:
        """Write the task into a folder."""
        for name in ("Q", "T", "D"):
            sp.save_npz(folder / f"{name}.npz", getattr(self, name))
        pairs = {"train_query": self.train.query, "train_document": self.train.document}
        arrays: dict[str, Any] = {k: v for k, v in vars(self).items() if type(v) is np.ndarray}
        np.savez(folder / "rows.npz", **pairs | arrays)
        texts = {
            "query_ids": self.query_ids, "terms": self.terms, "vocabulary": list(self.vocabulary),
            "own_text_share": self.own_text_share,
        }  # fmt: skip
        for name, found in (("texts", texts), ("facts", self.facts())):
            write_json(folder / f"{name}.json", found)

    @classmethod
    def load(cls, folder: Path) -> Task:
        """Read what ``save`` wrote."""
        Q, T, D = (sp.load_npz(folder / f"{name}.npz").tocsr() for name in ("Q", "T", "D"))
        with np.load(folder / "rows.npz") as rows:
            arrays = {name: rows[name] for name in rows}
        shape = {"n_queries": Q.shape[0], "n_documents": D.shape[0]}
        pairs = arrays.pop("train_query"), arrays.pop("train_document")
        texts = read_json(folder / "texts.json")
        return cls(
            Q, T, D, train=Preferences.from_pairs(*pairs, **shape), **arrays,
            query_ids=tuple(texts["query_ids"]), vocabulary=Vocabulary(texts["vocabulary"]),
            terms=texts["terms"], own_text_share=texts["own_text_share"],
        )  # fmt: skip


def task_files(config: TaskConfig, data: Path) -> list[Path]:
    """The input files of a task.

    Raises:
        InputError: a file is missing.
    """
    judged = (f"qrels/{name}.tsv" for name in (config.train, config.test) if name is not None)
    names = ["corpus.jsonl", "queries.jsonl", *judged]
    files = [find_file(data / config.folder, name) for name in names]
    of_queries = {"groups": config.groups}
    if config.sources != SAME_ID:
        of_queries["sources"] = config.sources
    for key, name in of_queries.items():
        if name is None:
            continue
        if not (data / name).is_file():
            raise InputError(f"{key}: there is no file {data / name}")
        files.append(data / name)
    return files


def make_task(config: TaskConfig, data: Path) -> Task:
    """Read a collection and make a task from it. Queries of one group, or of the same text, are on
    the same side of each random split: for training or testing, and for the half on which mixtures
    are tuned. A training pair that is a test pair the other way round, of queries made from
    documents, is left out.

    Raises:
        InputError: a file is missing or has another format, the documents lack the field, a query
            has no group, or there are fewer than two queries for training or testing, or no pairs
            for training.
    """
    train, test, half = _parts(config, data)
    documents = test.collection
    order = np.argsort(np.array(documents.document_ids), kind="stable")
    place = np.argsort(order)
    titles = [documents.fields[config.field][row] for row in order.tolist()]
    vocabulary, counts, asked_counts = _counted([*titles, *train.texts], test.texts, config)
    train_source, source = _sources(train, place), _sources(test, place)
    query, document, grade = _judged(test, place)
    learned, title, _ = _judged(train, place)
    reverse = are_reversed((train_source[learned], title), (source[query], document), len(titles))
    if reverse.all():
        raise InputError(
            f"{data / config.folder}: no relevant pair is left for training; {len(learned)} are "
            "test pairs the other way round"
        )
    return Task(
        Q=counts[len(titles) :],
        T=asked_counts,
        D=counts[: len(titles)],
        train=Preferences.from_pairs(
            learned[~reverse], title[~reverse], n_queries=len(train.rows), n_documents=len(titles)
        ),
        train_group=train.group,
        query=query,
        document=document,
        grade=grade,
        half=half,
        group=test.group,
        taught=_among(map(normalised, test.texts), map(normalised, train.texts)),
        known=_among(test.groups, train.groups),
        source=source,
        train_source=train_source,
        query_ids=tuple(documents.query_ids[row] for row in test.rows.tolist()),
        vocabulary=vocabulary,
        terms=config.terms,
        own_text_share=documents.own_text_share,
    )


@dataclass(frozen=True, eq=False)
class _Queries:
    """Queries for training, or for testing.

    Attributes:
        collection: has them, among others. rows: theirs there, int64 [n].
        group: int64 [n], see :class:`Task`.
    """

    collection: Collection
    rows: NDArray[np.int64]
    group: NDArray[np.int64]

    @property
    def texts(self) -> list[str]:
        return [self.collection.query_texts[row] for row in self.rows.tolist()]

    @property
    def groups(self) -> list[str | None]:
        """None where no groups are known."""
        named = self.collection.query_groups
        return [None if named is None else named[row] for row in self.rows.tolist()]


def _parts(config: TaskConfig, data: Path) -> tuple[_Queries, _Queries, NDArray[np.int64]]:
    """Read a collection, and deal its queries or take them as given: those for training, those for
    testing, and the half of each of these; see :func:`make_task`."""
    test = _read(config, data, config.test)
    if config.field not in test.fields:
        raise InputError(
            f"{data / config.folder}: documents have no {config.field!r}, only "
            f"{', '.join(test.fields)}"
        )
    kept = test.kept_together(by_group=True)
    unit = np.arange(test.n_queries) if kept is None else kept
    rng = np.random.default_rng([config.seed, 0])
    if config.train is None:
        chosen, asked = _dealt(unit, config.train_share, rng)
        train, train_unit = test, unit
    else:
        train = _read(config, data, config.train)
        chosen, asked = np.arange(train.n_queries), np.arange(test.n_queries)
        together = train.kept_together(by_group=True)
        train_unit = chosen if together is None else together
    units, unit_of_query = np.unique(unit[asked], return_inverse=True)
    if min(len(chosen), len(units)) < 2:
        what = "test queries" if kept is None else "groups of test queries"
        raise InputError(
            f"{data / config.folder}: {len(chosen)} training queries and {len(units)} {what}; two "
            "of each are needed"
        )
    half = (rng.permutation(len(units)) % 2)[unit_of_query]
    tested = _Queries(test, asked, unit_of_query.astype(np.int64))
    return _Queries(train, chosen, train_unit[chosen]), tested, half


def _among(some: Iterable[str | None], others: Iterable[str | None]) -> NDArray[np.bool_]:
    """Which of some are among others; None is not."""
    known = {*others} - {None}
    return np.array([one in known for one in some], dtype=bool)


def _dealt(
    unit: NDArray[np.int64], train_share: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Queries for training and for testing; those of one unit together, int64 [n] from 0."""
    shuffled = rng.permutation(unit.max() + 1)
    # Units may have many queries, and at least two of them are tested.
    dealt = np.cumsum(np.bincount(unit)[shuffled])[: max(1, len(shuffled) - 2)]
    cut = 1 + int(np.abs(dealt - round(train_share * len(unit))).argmin())
    train, test = (np.flatnonzero(np.isin(unit, u)) for u in np.split(shuffled, [cut]))
    return train, test


def _read(config: TaskConfig, data: Path, split: str) -> Collection:
    """The documents, and the queries of a file of judgements with their groups, which test queries
    must have, and the documents that they were made from."""
    collection = read_beir(data / config.folder, splits=[split])
    groups, sources = config.groups, config.sources
    if groups is not None:
        needed = collection.query_ids if split == config.test else ()
        collection = with_groups_and_times(collection, data / groups, None, needed)
    return collection if sources is None else with_sources(collection, sources, data)


def _sources(queries: _Queries, place: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of the document that each of the queries was made from, -1 for none."""
    if queries.collection.query_sources is None:
        return np.full(len(queries.rows), -1)
    row = queries.collection.query_sources[queries.rows]
    return np.where(row >= 0, place[row], -1)


def _counted(
    texts: list[str], asked: list[str], config: TaskConfig
) -> tuple[Vocabulary, sp.csr_matrix, sp.csr_matrix]:
    """The terms of the texts, and float32 counts of them in the texts and in the asked ones."""
    words, counts = count_terms(texts, config.analyzer)
    asked_words, asked_counts = count_terms(asked, config.analyzer)
    if config.terms == "words":
        vocabulary = Vocabulary(words)
        asked_counts = renumbered(asked_counts, vocabulary.rows(asked_words), len(words))
    else:
        trigrams = LetterTrigrams.of(words)
        vocabulary, counts = trigrams.vocabulary, counts @ trigrams.of_words(words)
        asked_counts = asked_counts @ trigrams.of_words(asked_words)
        for matrix in (counts, asked_counts):
            matrix.sort_indices()
    return vocabulary, counts.astype(np.float32).tocsr(), asked_counts.astype(np.float32).tocsr()


def _judged(
    queries: _Queries, place: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Query, document and grade of positive judgements of the queries, renumbered from 0."""
    judged = queries.collection.judgements
    row = np.full(queries.collection.n_queries, -1)
    row[queries.rows] = np.arange(len(queries.rows))
    used = (row[judged.query] >= 0) & (judged.grade > 0)
    return row[judged.query[used]], place[judged.document[used]], judged.grade[used]
