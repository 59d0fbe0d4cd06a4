"""Lock-free training: on one thread the same as ever, on several about as good."""

import numpy as np
import pytest
from pair_data import topic_texts

from ssi_models.parallel import Workers
from ssi_models.registry import get_model
from ssi_models.s2net.model import S2Net
from ssi_models.ssi.cross_language import CrossLanguageSSI
from ssi_models.ssi.low_rank import LowRankSSI
from ssi_models.training import run

N = 80
QUICK = {
    "batch_size": 16, "n_negatives": 16, "max_epochs": 6, "margin": 0.3, "hogwild": True,
}  # fmt: skip


def data():
    return topic_texts(N)


@pytest.mark.parametrize("name", ["ssi", "psi", "diagonal", "hash", "full", "cross-language"])
def test_one_thread_gives_the_same_bytes(name):
    kind = get_model(name)
    quick = {**QUICK, "learning_rate": 0.03, "threads": 1}
    fits = [kind(**{**quick, "hogwild": wild}).fit(*data()) for wild in (True, False)]
    for tensor in kind.tensors:
        assert len({getattr(fit, f"{tensor}_").tobytes() for fit in fits}) == 1


@pytest.mark.parametrize("name", ["ssi", "psi", "hash", "full", "cross-language", "s2net"])
def test_two_threads_learn(name):
    history = get_model(name)(**QUICK, learning_rate=0.1, threads=2).fit(*data()).history_
    assert history.best_validation > history.epochs[0].validation
    assert history.epochs[-1].loss < history.epochs[1].loss


def test_two_tasks_learn_side_by_side():
    Q, D, pairs = data()
    model = CrossLanguageSSI(6, init="normal", **QUICK, threads=2).fit(
        Q, D, pairs, monolingual=(D, pairs)
    )
    assert model.history_.best_validation > 1.2 * model.history_.epochs[0].validation


def test_replicas_share_parameters_and_no_workspace():
    Q, D, pairs = data()
    model = LowRankSSI(4, n_frequent=9)
    with Workers(1) as workers:
        run = model.make_run(model._prepared(Q, D, pairs), 0.1, workers)
        other = run.replica()
        for name, values in run.scorer.parameters().items():
            assert other.scorer.parameters()[name] is values
        for name in ("Q", "D", "embedded_Q", "embedded_D"):
            assert getattr(run.scorer, name).place is not getattr(other.scorer, name).place
        assert run.slot is not other.slot


def test_whole_passes_cannot_be_hogwild():
    with pytest.raises(ValueError, match="hogwild: l-bfgs takes whole passes"):
        S2Net(optimizer="l-bfgs", hogwild=True).fit(*data())


def test_copies_for_parts_get_all_threads_too(monkeypatch):
    Q, D, pairs = data()
    at_once = []
    alone = run.hogwild_steps

    def watched(replicas, batches):
        at_once.append(len(replicas))
        return alone(replicas, batches)

    monkeypatch.setattr(run, "hogwild_steps", watched)
    model = LowRankSSI(4, **QUICK, threads=2)
    copy = model.fit_parts(Q, D, pairs, [np.arange(40), np.arange(40, N)])[0]
    assert set(at_once) == {2}
    assert copy.history_.best_validation > copy.history_.epochs[0].validation
