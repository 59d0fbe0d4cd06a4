"""Tasks (titles, training pairs of queries and titles, test queries in two halves), and rankings by
a fitted model, with weights for each half of the test queries tuned on the other half."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from letor.errors import InputError
from letor.files import read_json, write_json
from ltr_base.slices import slices
from ltr_features.sources.beir import read_beir
from ltr_features.sources.query_files import read_query_groups
from ltr_features.studies.kinds.clickthrough_config import ClickthroughConfig, TaskConfig
from ltr_features.text.collection import Collection
from ltr_features.text.letter_ngrams import Kind, LetterTrigrams
from ltr_features.text.query_texts import normalised
from ltr_features.text.records import find_file
from ltr_features.text.term_counts import count_terms, renumbered
from ssi_models.base import MatchingModel
from ssi_models.mixing import chosen_by_others
from ssi_models.projections.baselines import VSM
from ssi_models.topics.language_model import CachedTitles, LanguageModel
from ssi_models.training.preferences import Preferences
from ssi_models.vocabulary import Vocabulary
from ssi_models.weighting import TfIdf

#: Number of pairs of a query and a title that are scored at a time.
_PAIRS = 2**22

#: Facts of which reports warn.
GROUPS = "groups of test queries"
TAUGHT = "of them with the text of a training query"
WORDLESS = "of them without a word of titles or training queries"


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
        taught: bool [m], whether a training query has the text of the test query.
        query_ids: ids of the test queries.
        vocabulary: the terms. terms: their kind.
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
    query_ids: tuple[str, ...]
    vocabulary: Vocabulary
    terms: Kind = "words"

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
            terms=texts["terms"],
        )  # fmt: skip


def task_files(config: TaskConfig, data: Path) -> list[Path]:
    """The input files of a task.

    Raises:
        InputError: a file is missing.
    """
    judged = (f"qrels/{name}.tsv" for name in (config.train, config.test) if name is not None)
    names = ["corpus.jsonl", "queries.jsonl", *judged]
    files = [find_file(data / config.folder, name) for name in names]
    return files + ([] if config.groups is None else [data / config.groups])


def make_task(config: TaskConfig, data: Path) -> Task:
    """Read a collection and make a task from it. Queries of one group, or of the same text, are on
    the same side of each random split: for training or testing, and for the half on which mixtures
    are tuned.

    Raises:
        InputError: a file is missing or has another format, the documents lack the field, a query
            has no group, or there are fewer than two queries for training or testing.
    """
    test = read_beir(data / config.folder, splits=[config.test])
    if config.field not in test.fields:
        raise InputError(
            f"{data / config.folder}: documents have no {config.field!r}, only "
            f"{', '.join(test.fields)}"
        )
    rng = np.random.default_rng([config.seed, 0])
    if config.groups is not None:
        groups = read_query_groups(data / config.groups, test.query_ids)
        test = replace(test, query_groups=[groups[query] for query in test.query_ids])
    kept = test.kept_together(by_group=True)
    unit = np.arange(test.n_queries) if kept is None else kept
    if config.train is None:
        shuffled = rng.permutation(unit.max() + 1)
        # Units may have many queries, and at least two of them are tested.
        dealt = np.cumsum(np.bincount(unit)[shuffled])[: max(1, len(shuffled) - 2)]
        cut = 1 + int(np.abs(dealt - round(config.train_share * len(unit))).argmin())
        chosen, asked = (np.flatnonzero(np.isin(unit, u)) for u in np.split(shuffled, [cut]))
        train, train_unit = test, unit
    else:
        train = read_beir(data / config.folder, splits=[config.train])
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
    order = np.argsort(np.array(test.document_ids), kind="stable")
    place = np.argsort(order)
    titles = [test.fields[config.field][row] for row in order.tolist()]
    texts = [train.query_texts[row] for row in chosen.tolist()]
    asked_texts = [test.query_texts[row] for row in asked.tolist()]
    vocabulary, counts, asked_counts = _counted([*titles, *texts], asked_texts, config)
    taught = set(map(normalised, texts))
    query, document, _ = _judged(train, chosen, place)
    return Task(
        Q=counts[len(titles) :],
        T=asked_counts,
        D=counts[: len(titles)],
        train=Preferences.from_pairs(
            query, document, n_queries=len(chosen), n_documents=len(titles)
        ),
        train_group=train_unit[chosen],
        **dict(zip(("query", "document", "grade"), _judged(test, asked, place), strict=True)),
        half=(rng.permutation(len(units)) % 2)[unit_of_query],
        group=unit_of_query.astype(np.int64),
        taught=np.array([normalised(text) in taught for text in asked_texts], dtype=bool),
        query_ids=tuple(test.query_ids[row] for row in asked.tolist()),
        vocabulary=vocabulary,
        terms=config.terms,
    )


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
    collection: Collection, queries: NDArray[np.int64], place: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Query, document and grade of positive judgements of the queries, renumbered from 0."""
    judged = collection.judgements
    row = np.full(collection.n_queries, -1)
    row[queries] = np.arange(len(queries))
    used = (row[judged.query] >= 0) & (judged.grade > 0)
    return row[judged.query[used]], place[judged.document[used]], judged.grade[used]


class NDCG:
    """NDCG of rankings of all documents, per query.

    Gain 2^grade - 1, discount 1 / log2(rank + 1); unjudged documents have grade 0, queries without
    relevant documents NDCG 0; equal scores (to 1e-10) are ordered by document row.

    Args:
        n_queries, n_documents: the shape of the scores.
        query, document, grade: int64 [n], the judgements.
    """

    def __init__(
        self,
        n_queries: int,
        n_documents: int,
        query: NDArray[np.int64],
        document: NDArray[np.int64],
        grade: NDArray[np.int64],
        cutoffs: Sequence[int],
    ) -> None:
        self.cutoffs = tuple(cutoffs)
        self._depth = min(max(cutoffs), n_documents)
        self._gain = np.zeros((n_queries, n_documents))
        self._gain[query, document] = 2.0**grade - 1
        self._discount = 1 / np.log2(np.arange(2, self._depth + 2))
        self._ideal = self._sums(-np.sort(-self._gain, axis=1)[:, : self._depth])

    def all(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64 [n_queries, cutoffs] for scores, float64 [n_queries, n_documents]."""
        key = scores - 1e-10 * np.arange(self._gain.shape[1])
        best = np.argpartition(-key, self._depth - 1, axis=1)[:, : self._depth]
        order = np.argsort(-np.take_along_axis(key, best, axis=1), axis=1, kind="stable")
        ranked = np.take_along_axis(best, order, axis=1)
        gained = self._sums(np.take_along_axis(self._gain, ranked, axis=1))
        return np.divide(gained, self._ideal, out=np.zeros_like(gained), where=self._ideal > 0)

    def _sums(self, gains: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = np.cumsum(gains * self._discount, axis=1)
        return sums[:, np.minimum(self.cutoffs, self._depth) - 1]


def ranked(
    model: MatchingModel, task: Task, mixed: bool, config: ClickthroughConfig
) -> tuple[pd.DataFrame, list[list[float]]]:
    """Rank all titles for the test queries, some queries at a time.

    Args:
        mixed: whether to mix the model with word matching. config: has the weights to try.

    Returns:
        NDCG per query (rows) and cutoff; and the weights with which each half was scored: (lambda1,
        lambda2), or the weight of the tf-idf cosine, or none.
    """
    m, n = task.T.shape[0], task.D.shape[0]
    language = isinstance(model, LanguageModel)
    weights, scores = (_of_language_model if language else _of_rows)(model, task, mixed, config)
    values = np.empty((len(weights), m, len(config.cutoffs)))
    for rows in slices(m, _PAIRS // n):
        asked = (task.query >= rows.start) & (task.query < rows.stop)
        judged = task.query[asked] - rows.start, task.document[asked], task.grade[asked]
        ndcg = NDCG(min(rows.stop, m) - rows.start, n, *judged, config.cutoffs)
        for found, of_weight in zip(values, scores(rows), strict=True):
            found[rows] = ndcg.all(of_weight)
    best = chosen_by_others(values[:, :, -1], task.half)
    row = np.array([best[half] for half in task.half.tolist()])
    table = pd.DataFrame(values[row, np.arange(m)], columns=list(config.measures))
    table.insert(0, "query", task.query_ids)
    return table, [weights[i] for i in best.values() if weights[i]]


#: Weights to try, and the scores by each of them of the queries of a slice with all titles, float64
#: [m, n].
_Mixtures: TypeAlias = tuple[list[list[float]], Callable[[slice], Iterator[NDArray[np.float64]]]]


def _of_language_model(
    model: MatchingModel, task: Task, mixed: bool, config: ClickthroughConfig
) -> _Mixtures:
    titles = model.cache(task.D)
    assert isinstance(titles, CachedTitles)
    n = task.D.shape[0]
    weights = [list(pair) for pair in product(config.lambda1, config.lambda2 if mixed else (0.0,))]

    def scores(rows: slice) -> Iterator[NDArray[np.float64]]:
        query = np.arange(task.T.shape[0])[rows]
        every = np.repeat(query, n), np.tile(np.arange(n), len(query))
        parts = titles.probabilities(task.T, *every)
        for pair in weights:
            yield parts.log_likelihood(*pair).reshape(len(query), n)

    return weights, scores


def _of_rows(
    model: MatchingModel, task: Task, mixed: bool, config: ClickthroughConfig
) -> _Mixtures:
    Q, T, D = task.matrices(model.inputs)
    own, words = model.cache(D), VSM().fit(Q, D, task.train).cache(D)

    def scores(rows: slice) -> Iterator[NDArray[np.float64]]:
        learned = own.scores(T[rows]).astype(np.float64)
        if not mixed:
            yield learned
            return
        plain = words.scores(T[rows]).astype(np.float64)
        for alpha in config.weights:
            yield alpha * plain + (1 - alpha) * learned

    return [[alpha] for alpha in config.weights] if mixed else [[]], scores
