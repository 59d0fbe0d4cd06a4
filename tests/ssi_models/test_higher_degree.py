"""Where the relation that decides is one of third degree, or words are too rare to be learned, the
models made for it are better: small cases of ``tests/benchmarks/bench_higher_degree.py``."""

import numpy as np
from higher_degree import pairs_of_words, rare_words

from ssi_models.ssi.correlated_hash import CorrelatedHashSSI
from ssi_models.ssi.low_rank import LowRankSSI
from ssi_models.ssi.polynomial import PSI

SETTINGS = {
    "init": "lsi", "margin": 0.3, "learning_rate": 0.03, "scales": (1.0,), "batch_size": 256,
    "n_negatives": 256, "max_epochs": 12, "patience": 12, "threads": 1,
}  # fmt: skip


def mean_precision(model, data):
    return data.precision(model.fit(data.Q, data.D, data.links)).mean()


def test_degree_3_finds_what_pairs_of_words_say():
    """Half of a topic's documents are relevant, and degree 2 finds the topic. Rank 30 of degree 2
    has the parameters of rank 20 of degree 3."""
    data = pairs_of_words(4000, 0, n_topics=4, n_values=2, n_synonyms=2, n_common=20)
    for rank in (20, 30):
        assert 0.45 < mean_precision(LowRankSSI(rank, **SETTINGS), data) < 0.55
    for separate in (False, True):
        third = PSI(20, separate=separate, **SETTINGS)
        assert mean_precision(third, data) > 0.8


def test_hashing_finds_what_rare_words_stand_for():
    data = rare_words(4000, 0, n_concepts=60)
    model = CorrelatedHashSSI(20, n_features=60, bins=1, **SETTINGS)
    hashed = mean_precision(model, data)
    np.testing.assert_array_equal(model.frequent_, np.arange(60))
    for n_frequent in (60, None):
        plain = LowRankSSI(20, n_frequent=n_frequent, **SETTINGS)
        assert hashed > mean_precision(plain, data) + 0.2
