"""Seeded mini-batches of relevant pairs, with shared negatives and each query's own negatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ssi_models.training.candidate_lists import CandidateLists
from ssi_models.training.preferences import Preferences


def _none() -> NDArray[np.int64]:
    return np.zeros((0, 0), np.int64)


@dataclass(frozen=True)
class Batch:
    """B relevant pairs, K documents that are negatives of all of them, and, for each pair, k
    negatives from its query's own list.

    Attributes:
        query, positive: int64 [B]. grade: float32 [B], grade of each relevant pair.
        negatives: int64 [K], distinct document rows.
        own: int64 [B, k], document rows; -1 for none.
        own_pool: int64 [B], number of documents that a pair's own negatives are a sample of.
        task: which of a run's tasks the batch belongs to.
        number: (epoch, number within the epoch), both counted from 0.
        weight: float32 [B], how much each pair counts, or None if all count alike.
    """

    query: NDArray[np.int64]
    positive: NDArray[np.int64]
    grade: NDArray[np.float32]
    negatives: NDArray[np.int64]
    task: int = 0
    number: tuple[int, int] = (0, 0)
    own: NDArray[np.int64] = field(default_factory=_none)
    own_pool: NDArray[np.int64] = field(default_factory=_none)
    weight: NDArray[np.float32] | None = None

    @property
    def weights(self) -> NDArray[np.float32]:
        """float32 [B], the weights; all 1 if pairs count alike."""
        return np.ones(len(self.query), np.float32) if self.weight is None else self.weight

    def __post_init__(self) -> None:
        if not self.own.size:
            object.__setattr__(self, "own", np.zeros((len(self.query), 0), np.int64))
            object.__setattr__(self, "own_pool", np.zeros(len(self.query), np.int64))

    @cached_property
    def texts(self) -> Texts:
        """The distinct texts of the batch."""
        return Texts(self)


class Texts:
    """The distinct texts of a batch, each of which is embedded and updated once.

    Attributes:
        n_negatives: K.
        queries: int64 [u], distinct query rows; query_of: int64 [B], the position of each pair's.
        documents: int64 [K + p], the shared negatives, then the distinct positives and own ones.
        pair_query, pair_document: int64 [B + B k], positions among the queries and documents: each
            pair with its positive, then with each of its own negatives (any position where it has
            none). positive_of: int64 [B], the first B of pair_document.
    """

    def __init__(self, batch: Batch) -> None:
        self.n_negatives = len(batch.negatives)
        self.queries, self.query_of = np.unique(batch.query, return_inverse=True)
        B, own = len(batch.query), batch.own.ravel()
        chosen = np.concatenate([batch.positive, np.where(own < 0, batch.positive[:1], own)])
        distinct, place = np.unique(chosen, return_inverse=True)
        self.documents = np.concatenate([batch.negatives, distinct])
        self.pair_query = np.concatenate([self.query_of, np.repeat(self.query_of, len(own) // B)])
        self.pair_document = self.n_negatives + place
        self.positive_of = self.pair_document[:B]

    def by_pair(
        self, pairs: NDArray[np.float32], shared: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(positive [B], negative [B, K + k]) scores, from those of the pairs, float32 [B + B k],
        and those of the queries with the shared negatives, float32 [u, K]."""
        B, negative = len(self.query_of), shared[self.query_of]
        if len(pairs) > B:
            negative = np.concatenate([negative, pairs[B:].reshape(B, -1)], axis=1)
        return pairs[:B], negative

    def gradients(self, A: NDArray[np.float32]) -> NDArray[np.float32]:
        """C, float32 [u, K + p], such that the sum over pairs b and negatives k of
        A_bk (f(q_b, d+_b) - f(q_b, d-_bk)) is the sum of C_ij f(query i, document j)."""
        B, K = len(self.query_of), self.n_negatives
        C = np.zeros((len(self.queries), len(self.documents)), np.float32)
        order = np.argsort(self.query_of, kind="stable")
        starts = np.searchsorted(self.query_of[order], np.arange(len(self.queries)))
        np.negative(np.add.reduceat(A[order, :K], starts, axis=0), out=C[:, :K])
        np.add.at(C, (self.query_of, self.positive_of), A.sum(axis=1))
        np.subtract.at(C, (self.pair_query[B:], self.pair_document[B:]), A[:, K:].ravel())
        return C


@dataclass(frozen=True, eq=False)
class OwnNegatives:
    """The documents of each query's list that may be its negatives.

    Attributes:
        lists: the lists, without documents that are excluded or judged as high as the query's best.
        grade: float32 [n], grade of each document of the lists; 0 if it is not judged.
    """

    lists: CandidateLists
    grade: NDArray[np.float32]

    @classmethod
    def of(
        cls,
        lists: CandidateLists,
        preferences: Preferences,
        excluded: NDArray[np.int64] | None = None,
    ) -> Self:
        """The own negatives in ``lists``, given preferences over the same rows."""
        offsets, document, judged = preferences.judged(excluded)
        n = preferences.n_documents
        owner = np.repeat(np.arange(preferences.n_queries), np.diff(offsets))
        # The higher grade last, so that a search from the right finds the higher of two: an
        # excluded document may be judged as well.
        order = np.lexsort((judged, owner * n + document))
        keys, judged = (owner * n + document)[order], judged[order]
        query = lists.query
        wanted = query * n + lists.document
        at = np.searchsorted(keys, wanted, side="right") - 1
        grade = np.where((at >= 0) & (keys[at] == wanted), judged[at], np.float32(0))
        best = np.full(preferences.n_queries, np.inf, np.float32)  # no relevant document: no list
        best[preferences.queries] = np.maximum.reduceat(
            preferences.grade, preferences.offsets[preferences.queries]
        )
        kept = (grade < best[query]) & (best[query] < np.inf)
        offsets = np.searchsorted(query[kept], np.arange(lists.n_queries + 1)).astype(np.int64)
        return cls(CandidateLists(offsets, lists.document[kept], n), grade[kept])

    def sizes(self, query: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64 [B]: for each query, the number of documents that may be its negatives."""
        return self.lists.offsets[query + 1] - self.lists.offsets[query]

    def draw(
        self,
        query: NDArray[np.int64],
        grade: NDArray[np.float32],
        n: int,
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        """int64 [B, n]: documents drawn from the list of each pair's query; -1 where the one drawn
        is not judged below the pair's grade, or the list is empty.

        A query's pairs share the draw. The documents are equally spaced in the list, starting at a
        random rank, so that they cover all of it and are distinct if it has n documents or more; in
        a shorter list, some are repeated. Every document is equally likely to be drawn.
        """
        queries, place = np.unique(query, return_inverse=True)
        sizes = self.sizes(queries)[:, None]
        rank = ((np.arange(n) + rng.random((len(queries), 1))) * (sizes / n)).astype(np.int64)
        at = self.lists.offsets[queries][:, None] + np.minimum(rank, sizes - 1)
        found = np.where(sizes > 0, at, 0)[place]
        if not len(self.grade):
            return np.full(found.shape, -1, np.int64)
        usable = (sizes > 0)[place] & (self.grade[found] < grade[:, None])
        return np.where(usable, self.lists.document[found], -1)


#: Where the negatives of a batch come from.
NEGATIVES = ("uniform", "in-batch", "given")
#: What is shuffled in each epoch.
SHUFFLES = ("pairs", "queries")


@dataclass(frozen=True)
class PairStream:
    """All relevant pairs once per epoch in random order, with fresh negatives per batch.

    With ``shuffle="pairs"`` a batch is B random pairs; with "queries" it is random queries with
    all their pairs, about B of them: a query is then embedded once for all of its pairs.

    The order depends on (seed, epoch) alone, so that training resumes at any epoch as if it had
    never stopped. Sharing K negatives in a batch instead of drawing one per pair means that one
    pass over a document's words serves B tuples.

    Attributes:
        negatives: "uniform": K documents drawn uniformly from the candidates (Bai et al., section
            2.3); "in-batch": relevant documents of the batch, which draws documents in proportion
            to their number of queries and needs no further documents; "given": no shared ones, but
            the query's own documents that are judged lower than the relevant one.
        own: what each pair's own negatives are drawn from, or None.
        n_own: number of own negatives per pair (k).
    """

    preferences: Preferences
    candidates: NDArray[np.int64]
    batch_size: int
    n_negatives: int
    seed: int
    negatives: str = "uniform"
    task: int = 0
    shuffle: str = "pairs"
    own: OwnNegatives | None = None
    n_own: int = 0

    @property
    def pool(self) -> int:
        """Number of documents that the negatives are a sample of."""
        return len(self.candidates)

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of one epoch (numbered from 0)."""
        rng = np.random.default_rng([self.seed, number])
        for place, pairs in enumerate(self._parts(rng)):
            query, grade = self.preferences.query[pairs], self.preferences.grade[pairs]
            weight = self.preferences.weight
            negatives, own = self.draw(pairs, rng), {}
            if self.own is not None:
                own["own"] = self.own.draw(query, grade, self.n_own, rng)
                own["own_pool"] = self.own.sizes(query)
            yield Batch(
                query,
                self.preferences.document[pairs],
                grade,
                negatives,
                self.task,
                (number, place),
                weight=None if weight is None else weight[pairs],
                **own,
            )

    def _parts(self, rng: np.random.Generator) -> list[NDArray[np.int64]]:
        """The pairs of each batch of an epoch."""
        if self.shuffle == "pairs":
            order = rng.permutation(len(self.preferences))
            return np.split(order, np.arange(self.batch_size, len(order), self.batch_size))
        offsets = self.preferences.offsets
        queries = rng.permutation(self.preferences.queries)
        before = np.cumsum(offsets[queries + 1] - offsets[queries])
        number = np.concatenate([[0], before[:-1]]) // self.batch_size
        groups = np.split(queries, np.flatnonzero(np.diff(number)) + 1)
        return [
            np.concatenate([np.arange(offsets[q], offsets[q + 1]) for q in group])
            for group in groups
        ]

    def draw(self, pairs: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """The distinct documents, int64 [K], that are negatives of all of a batch's pairs."""
        if self.negatives == "in-batch":
            # With return_index, np.unique sorts, ten times as fast here as NumPy 2.4's hashing.
            relevant, _ = np.unique(self.preferences.document[pairs], return_index=True)
            if len(relevant) <= self.n_negatives:
                return relevant
            return np.sort(rng.choice(relevant, self.n_negatives, replace=False))
        if self.negatives == "given":
            return np.zeros(0, np.int64)
        size = min(self.n_negatives, len(self.candidates))
        return rng.choice(self.candidates, size=size, replace=False, shuffle=False)


def own_negatives(
    negatives: str,
    share: float,
    lists: CandidateLists | None,
    preferences: Preferences,
    excluded: NDArray[np.int64] | None = None,
) -> tuple[OwnNegatives | None, float]:
    """The source of each query's own negatives, and their share of a pair's loss. The source is
    the documents judged for a query if negatives are "given", otherwise its list, if it has one.

    Raises:
        ValueError: negatives are "given", but there are none.
    """
    if negatives == "given":
        lists, share = CandidateLists.of_judged(preferences), 1.0
    if lists is None:
        return None, 0.0
    own = OwnNegatives.of(lists, preferences, excluded)
    if negatives == "given" and not len(own.grade):
        raise ValueError(
            "negatives='given': no document is judged below a relevant one of the same query; "
            "give pairs of grade 0, or use other negatives"
        )
    return own, share


def alternate(
    first: Callable[[int], Iterator[Batch]], second: Callable[[int], Iterator[Batch]], number: int
) -> Iterator[Batch]:
    """An epoch in which a batch of the second stream, restarted whenever it ends, follows each
    batch of the first."""
    others = second(number)
    for batch in first(number):
        yield batch
        other = next(others, None)
        if other is None:
            number += 1_000_003
            others = second(number)
            other = next(others)
        yield other
