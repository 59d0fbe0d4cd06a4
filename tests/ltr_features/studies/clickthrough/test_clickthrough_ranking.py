"""Rankings of test queries: by weights that are tuned on others, and without their own titles."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp

from ltr_features.studies.kinds.clickthrough_ranking import ranked
from ssi_models.projections.query_expansion import QueryExpansion
from ssi_models.topics.language_model import UnigramLM
from ssi_models.training.preferences import Preferences


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


def test_the_title_that_a_query_was_made_from_is_not_fed_back_to_it():
    """It is the first title, and has words of the third; what is relevant has words of the second,
    which matches the query as well."""
    rows = [[0.6, 0.8, 0], [0.6, 0, 0.8], [0, 1, 0], [0, 0, 1]]
    D = sp.csr_matrix(np.array(rows, np.float32))
    T = sp.csr_matrix(np.array([[1, 0, 0]] * 2, np.float32))
    train = Preferences.from_pairs([0, 1], [1, 1], n_queries=2, n_documents=4)
    task = SimpleNamespace(
        T=T, D=D, query=np.arange(2), document=np.full(2, 3), grade=np.ones(2, np.int64),
        half=np.arange(2), source=np.array([0, -1]), query_ids=range(2), train=train,
        matrices=lambda inputs: (T, T, D),
    )  # fmt: skip
    config = SimpleNamespace(cutoffs=(2,), measures=["NDCG@2"])
    model = QueryExpansion(beta=1.0, n_expansion=1).fit(T, D, train)
    table, _ = ranked(model, task, False, config)
    np.testing.assert_allclose(table["NDCG@2"], [1 / np.log2(3), 0])
