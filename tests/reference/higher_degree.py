"""Made collections in which the relation that decides is known: one of third degree, or words too
rare to be learned. Every link is of a query and a document of its own; test queries and the
documents that are ranked for them are others again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.base import MatchingModel
from ssi_models.matrices import check_csr
from ssi_models.training.preferences import Preferences

N_QUERIES, N_RANKED = 500, 2000


@dataclass(frozen=True)
class Collection:
    """A made collection.

    Attributes:
        Q, D: unit rows of training queries and documents; query i is linked to document i, further
            documents have no link. links: those pairs.
        queries, ranked: unit rows, those of the test. relevant: bool [queries, ranked documents].
    """

    Q: sp.csr_matrix
    D: sp.csr_matrix
    links: Preferences
    queries: sp.csr_matrix
    ranked: sp.csr_matrix
    relevant: NDArray[np.bool_]

    def precision(self, model: MatchingModel) -> NDArray[np.float64]:
        """The average precision of each test query."""
        scores = model.cache(self.ranked).scores(self.queries)
        order = np.argsort(-scores, axis=1, kind="stable")
        hit = np.take_along_axis(self.relevant, order, axis=1)
        at = np.cumsum(hit, axis=1) / np.arange(1, hit.shape[1] + 1)
        return (at * hit).sum(axis=1) / hit.sum(axis=1)


def pairs_of_words(
    n_links: int,
    seed: int,
    *,
    n_topics: int = 10,
    n_values: int = 4,
    n_synonyms: int = 4,
    n_common: int = 100,
) -> Collection:
    """Two words of a document together say what one word of the query asks for.

    A document has a topic and two attributes a, b of n values; a query has a topic and asks for
    c; relevant is (a + b) mod n = c in the same topic. Topics and values are each told by one of
    several synonyms; queries and documents have words of their own for them, and share only
    common words that say nothing. For any c, all values of a are equally likely in relevant
    documents, and so are those of b: q'Wd can find the topic and nothing else.
    """
    rng = np.random.default_rng([seed, 10])
    sizes = np.array([n_topics, n_values, n_topics, n_values, n_values]) * n_synonyms
    starts = np.concatenate([[0], np.cumsum(sizes)])
    width = starts[-1] + n_common

    def texts(kinds: list[tuple[int, NDArray[np.int64]]], n_others: int) -> sp.csr_matrix:
        n = len(kinds[0][1])
        named = [
            starts[kind] + value * n_synonyms + rng.integers(n_synonyms, size=n)
            for kind, value in kinds
        ]
        others = starts[-1] + rng.integers(n_common, size=(n_others, n))
        return unit_rows(np.vstack([*named, others]).T, width)

    def draw(n: int) -> tuple[sp.csr_matrix, sp.csr_matrix, NDArray[np.int64]]:
        topic, a, b = (rng.integers(m, size=n) for m in (n_topics, n_values, n_values))
        c = (a + b) % n_values
        Q = texts([(0, topic), (1, c)], 1)
        return Q, texts([(2, topic), (3, a), (4, b)], 3), topic * n_values + c

    Q, D, _ = draw(n_links)
    queries, _, wanted = draw(N_QUERIES)
    _, ranked, found = draw(N_RANKED)
    return Collection(Q, D, links(D, n_links), queries, ranked, wanted[:, None] == found)


def rare_words(
    n_links: int,
    seed: int,
    *,
    n_concepts: int = 300,
    links_per_word: float = 4,
    rare: float = 0.8,
) -> Collection:
    """Most words are rare variants of a frequent word, beside which they stand in texts that
    nobody linked.

    A query names three concepts; its document names the three that they lead to (a fixed random
    permutation that links have to teach) and three others. A concept is told by its frequent word,
    or, with probability ``rare``, by one of its variants. Variants are as many as leave each in
    ``links_per_word`` queries, so that the vocabulary grows with the collection as in texts. Twice
    as many documents as links have no link: they name three concepts by frequent word and variant.
    """
    rng = np.random.default_rng([seed, 11])
    leads_to = rng.permutation(n_concepts)
    n_variants = max(1, round(3 * n_links * rare / n_concepts / links_per_word))
    width = n_concepts * (1 + n_variants)

    def variant(concept: NDArray[np.int64]) -> NDArray[np.int64]:
        return n_concepts + concept * n_variants + rng.integers(n_variants, size=concept.shape)

    def told(concept: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(rng.random(concept.shape) < rare, variant(concept), concept)

    def draw(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        asked, others = rng.integers(n_concepts, size=(2, n, 3))
        return told(asked), told(np.hstack([leads_to[asked], others]))

    linking, linked = draw(n_links)
    concepts = rng.integers(n_concepts, size=(2 * n_links, 3))
    unlinked = np.hstack([concepts, variant(concepts)])
    queries, ranked = draw(N_RANKED)
    D = unit_rows(np.vstack([linked, unlinked]), width)
    return Collection(
        unit_rows(linking, width), D, links(D, n_links),
        unit_rows(queries[:N_QUERIES], width), unit_rows(ranked, width),
        np.eye(N_QUERIES, N_RANKED, dtype=bool),
    )  # fmt: skip


def links(D: sp.csr_matrix, n: int) -> Preferences:
    return Preferences.from_pairs(np.arange(n), np.arange(n), n_queries=n, n_documents=D.shape[0])


def unit_rows(words: NDArray[np.int64], width: int) -> sp.csr_matrix:
    """Counts of the words int64 [n, length] of texts, each row of length 1."""
    n, length = words.shape
    counts = (np.ones(words.size, np.float32), words.ravel(), np.arange(n + 1) * length)
    X = sp.csr_matrix(counts, (n, width))
    X.sum_duplicates()
    norms = np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1]))
    X.data /= np.repeat(norms, np.diff(X.indptr))
    return check_csr("X", X)
