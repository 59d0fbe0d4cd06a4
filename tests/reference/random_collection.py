"""A collection of random words, for tests of how rows are made and stored."""

from __future__ import annotations

import numpy as np

from ltr_features.text.collection import Collection, Judgements

WORDS = [f"word{i}" for i in range(40)]
N_DOCUMENTS = 60


def random_collection(n_queries: int, n_judged: int) -> Collection:
    """60 documents and some queries, with about so many judgements; query 4 has no candidate."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 12)) for _ in range(N_DOCUMENTS)]
    queries = [" ".join(rng.choice(WORDS, 3)) for _ in range(n_queries)]
    queries[4] = "unheard"
    judged = np.unique(rng.integers([0, 0], [n_queries, N_DOCUMENTS], (n_judged, 2)), axis=0)
    return Collection(
        "some",
        [f"d{i}" for i in range(N_DOCUMENTS)],
        {"body": texts},
        [f"q{i}" for i in range(n_queries)],
        queries,
        Judgements(judged[:, 0].copy(), judged[:, 1].copy(), rng.integers(0, 3, len(judged))),
    )
