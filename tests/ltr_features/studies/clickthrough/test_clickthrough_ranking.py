"""The weights of the test queries: those of each half are tuned on the other one."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp

from ltr_features.studies.kinds.clickthrough_ranking import ranked
from ssi_models.topics.language_model import UnigramLM


def test_no_query_is_ranked_by_weights_that_were_tuned_on_it():
    rng = np.random.default_rng(0)
    T, D = (sp.csr_matrix(rng.integers(0, 3, (n, 9)).astype(np.float32)) for n in (20, 30))
    query, document = np.divmod(rng.choice(20 * 30, 60, replace=False), 30)
    task = SimpleNamespace(
        T=T, D=D, query=query, document=document, grade=np.ones(60, np.int64),
        half=np.arange(20) % 2, source=np.full(20, -1), query_ids=range(20),
    )  # fmt: skip

    def found(*weights):
        config = SimpleNamespace(cutoffs=(3,), measures=["NDCG@3"], lambda1=weights, lambda2=(0,))
        table, chosen = ranked(UnigramLM().fit(T, D), task, False, config)
        return table["NDCG@3"].to_numpy(), [pair[0] for pair in chosen]

    weights = (0.05, 0.2, 0.5, 0.8, 0.95)
    alone = np.stack([found(weight)[0] for weight in weights])
    tuned, chosen = found(*weights)
    assert chosen[0] != chosen[1]
    for half in (0, 1):
        own = task.half == half
        best = alone[:, ~own].mean(axis=1).argmax()
        assert chosen[half] == weights[best]
        np.testing.assert_array_equal(tuned[own], alone[best, own])
