"""Fits whose pieces other processes compute: the numbers of one process, and no lost work."""

import numpy as np
import pytest
import scipy.sparse as sp

from ssi_models.s2net import tuples
from ssi_models.s2net.model import S2Net
from ssi_models.topics import shared_e_step
from ssi_models.topics.bilingual import BLTM, BLTMPR, BLTMPR1V, PLSA
from ssi_models.topics.translation import IBMModel1
from ssi_models.training.preferences import Preferences

N_PAIRS, N_WORDS = 150_000, 40


class Here:
    """Other processes that are this one; they may stop after some pieces, and every so many pieces
    a new one takes over, which holds nothing."""

    def __init__(self, folder, most=None, new=1_000_000):
        self.folder, self.most, self.new, self.n_pieces = folder, most, new, 0
        shared_e_step._held.clear()

    def in_order(self, work, calls, homes=None):
        for given in calls:
            if self.n_pieces == self.most:
                raise KeyboardInterrupt
            self.n_pieces += 1
            if self.n_pieces % self.new == 0:
                shared_e_step._held.clear()
            yield work(*given)


@pytest.fixture(scope="module")
def pairs():
    """Pairs of texts of three words; some are empty, and pairs count differently."""
    rng = np.random.default_rng(3)
    sides = []
    for n_known in (N_WORDS - 15, N_WORDS):
        words = rng.integers(0, n_known, (N_PAIRS, 3))
        words[rng.random(N_PAIRS) < 0.01] = -1
        rows = np.repeat(np.arange(N_PAIRS), 3)[words.ravel() >= 0]
        ones = np.ones(len(rows), np.float32)
        sides.append(sp.csr_matrix((ones, (rows, words[words >= 0])), (N_PAIRS, N_WORDS)))
    every = np.arange(N_PAIRS)
    known = Preferences.from_pairs(
        every,
        every,
        weight=rng.integers(1, 4, N_PAIRS).astype(np.float32),
        n_queries=N_PAIRS,
        n_documents=N_PAIRS,
    )
    return *sides, known


def fitted(model, pairs, executor=None, checkpoint=None, **options):
    Q, D, preferences = pairs
    model = model(**options)
    model.executor = executor
    known = preferences if model.weighs_pairs else None
    return model.fit(Q, D, known, checkpoint=checkpoint)


TOPICS = {"n_topics": 3, "iterations": 3, "lambda2": 0.5, "threads": 1}


@pytest.mark.parametrize("model", [PLSA, BLTM, BLTMPR, BLTMPR1V])
def test_em_has_the_numbers_of_one_process(model, pairs, tmp_path):
    alone, executor = fitted(model, pairs, **TOPICS), Here(tmp_path)
    shared = fitted(model, pairs, executor, **TOPICS)
    assert executor.n_pieces == 2 * 3  # shards, iterations
    for name in ("phi_q_", "phi_d_", "theta_"):
        np.testing.assert_array_equal(getattr(shared, name), getattr(alone, name))
    assert shared.history_ == alone.history_


@pytest.mark.parametrize("new", [1, 3])
@pytest.mark.parametrize("memory_limit", [2.0, 0.0], ids=["in memory", "in files"])
def test_processes_take_over_the_topics_of_others(new, memory_limit, pairs, tmp_path, monkeypatch):
    """From the last file of theta, and the E-steps since then."""
    monkeypatch.setattr(shared_e_step, "_SAVED", 3)
    settings = {**TOPICS, "iterations": 5, "memory_limit": memory_limit}
    shared = fitted(BLTMPR, pairs, Here(tmp_path, new=new), **settings)
    alone = fitted(BLTMPR, pairs, **settings)
    for name in ("phi_q_", "theta_"):
        np.testing.assert_array_equal(getattr(shared, name), getattr(alone, name))
    assert not shared_e_step._held  # nothing is left behind
    kept = {path.name.split("-")[0] for path in tmp_path.glob("em-*/*")}
    assert kept == {"pairs", "phi", "theta", "sums"}
    assert len(list(tmp_path.glob("em-*/phi-*"))) <= 3


@pytest.mark.parametrize("n_pieces", [1, 2, 3, 5])
def test_em_that_was_cut_off_goes_on(n_pieces, pairs, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        fitted(BLTMPR, pairs, Here(tmp_path, n_pieces), **TOPICS)
    again = Here(tmp_path)
    resumed = fitted(BLTMPR, pairs, again, **TOPICS)
    asked = 2 * 3 - n_pieces + n_pieces % 2  # a shard that is there is asked for, not made
    assert again.n_pieces == asked
    np.testing.assert_array_equal(resumed.phi_q_, fitted(BLTMPR, pairs, **TOPICS).phi_q_)


@pytest.mark.parametrize("n_pieces", [1, 4])
def test_translation_tables_are_those_of_one_process(n_pieces, pairs, tmp_path):
    settings = {"iterations": 4, "prune": 1e-2, "lambda2": 0.5, "threads": 1}
    alone = fitted(IBMModel1, pairs, **settings)
    with pytest.raises(KeyboardInterrupt):
        fitted(IBMModel1, pairs, Here(tmp_path, n_pieces), tmp_path / "fit", **settings)
    again = Here(tmp_path)
    shared = fitted(IBMModel1, pairs, again, tmp_path / "fit", **settings)
    assert again.n_pieces == 2 * (4 - n_pieces // 2)  # 450,000 words; iterations
    np.testing.assert_array_equal(shared.table_values_, alone.table_values_)
    np.testing.assert_array_equal(shared.table_indices_, alone.table_indices_)
    assert shared.history_ == alone.history_


FULL_BATCH = {"rank": 4, "optimizer": "l-bfgs", "max_epochs": 4, "margin": 0.1, "threads": 1}


def test_full_batches_have_the_numbers_of_one_process(monkeypatch, tmp_path):
    monkeypatch.setattr(tuples, "SHARD", 50)
    texts = some_texts()
    alone, executor = fitted(S2Net, texts, **FULL_BATCH), Here(tmp_path)
    shared = fitted(S2Net, texts, executor, **FULL_BATCH)
    assert executor.n_pieces > 20
    np.testing.assert_array_equal(shared.A_q_, alone.A_q_)
    assert shared.history_.epochs[1:] == alone.history_.epochs[1:]
    assert shared.training_loss_ == alone.training_loss_
    monkeypatch.setattr(tuples, "SHARD", 1000)
    whole = fitted(S2Net, texts, **FULL_BATCH)
    np.testing.assert_allclose(whole.history_.epochs[2].loss, alone.history_.epochs[2].loss, 1e-5)


def test_full_batches_that_were_cut_off_go_on(monkeypatch, tmp_path):
    monkeypatch.setattr(tuples, "SHARD", 50)
    texts = some_texts()
    with pytest.raises(KeyboardInterrupt):
        fitted(S2Net, texts, Here(tmp_path, 9), checkpoint=tmp_path / "fit", **FULL_BATCH)
    again = Here(tmp_path)
    resumed = fitted(S2Net, texts, again, checkpoint=tmp_path / "fit", **FULL_BATCH)
    np.testing.assert_array_equal(resumed.A_q_, fitted(S2Net, texts, **FULL_BATCH).A_q_)


def some_texts():
    """Unit rows of queries and documents, two relevant documents for each query."""
    rng = np.random.default_rng(5)
    sides = []
    for n in (100, 200):
        X = sp.random(n, 60, 0.1, format="csr", rng=rng, dtype=np.float32)
        X += sp.csr_matrix((np.ones(n, np.float32), (np.arange(n), np.arange(n) % 20)), X.shape)
        sides.append(sp.csr_matrix(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1)))))
    query = np.repeat(np.arange(100), 2)
    return *sides, Preferences.from_pairs(query, np.arange(200), n_queries=100, n_documents=200)
