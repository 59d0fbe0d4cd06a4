"""What training chooses by held-out queries: margin, rate, form, factor."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from pair_data import bytes_of, quick_ssi
from pair_data import topic_texts as problem

from ssi_models.s2net.model import S2Net
from ssi_models.ssi.low_rank import LowRankSSI
from ssi_models.ssi.polynomial import PSI
from ssi_models.training import held_out
from ssi_models.training.choosing import EARLY, checkpoints, choose
from ssi_models.training.loop import Epoch, History
from ssi_models.training.preferences import Preferences


@pytest.mark.parametrize("symmetric", [True, False])
def test_the_margin_is_chosen_by_held_out_queries(symmetric, tmp_path):
    """The fit is that with the margin whose validation is the better, to the byte."""
    options = {"symmetric": symmetric, "init": "lsi"}
    each = [quick_ssi(margin=margin, **options).fit(*problem()) for margin in (0.3, 0.1)]
    chosen = quick_ssi(margin="auto", **options).fit(*problem(), checkpoint=tmp_path / "state")
    best = max(each, key=lambda fitted: fitted.history_.best_validation)
    assert bytes_of(chosen) == bytes_of(best)
    assert chosen.margin_ == best.margin_
    chosen.save(tmp_path / "model.safetensors")
    assert LowRankSSI.load(tmp_path / "model.safetensors").margin_ == best.margin_
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
    assert bytes_of(each[0]) != bytes_of(each[1])


@pytest.mark.parametrize("kind", [LowRankSSI, PSI, S2Net])
def test_whether_embeddings_are_shared_is_chosen_by_held_out_queries(kind, tmp_path):
    """The fit is that of the two whose validation is the better, to the byte."""
    quick = {"rank": 6, "batch_size": 32, "n_negatives": 20, "max_epochs": 8, "threads": 1}
    each = [kind(symmetric=v, margin=0.3, **quick).fit(*problem()) for v in (False, True)]
    best = max(each, key=lambda fitted: fitted.history_.best_validation)
    chosen = kind(margin=0.3, **quick).fit(*problem(), checkpoint=tmp_path / "state")
    assert chosen.symmetric_ is best.symmetric_
    assert bytes_of(chosen) == bytes_of(best)
    assert bytes_of(each[0]) != bytes_of(each[1])
    assert list(tmp_path.iterdir()) == []
    chosen.save(tmp_path / "model.safetensors")
    assert kind.load(tmp_path / "model.safetensors").symmetric_ is best.symmetric_
    again = kind(margin=0.3, warm_start=True, **quick).fit(*problem())
    again.save(tmp_path / "model.safetensors")
    loaded = kind.load(tmp_path / "model.safetensors")
    assert loaded.symmetric_ is again.symmetric_
    assert loaded.fit(*problem()).symmetric_ is again.symmetric_  # goes on from what it was
    if kind is not S2Net:
        shared = each[1].V_[0] if kind is PSI else each[1].V_
        np.testing.assert_array_equal(shared, each[1].U_)
    with pytest.raises(ValueError, match="symmetric must be True or False or 'auto', got 'yes'"):
        kind(symmetric="yes").fit(*problem())


_NOTHING = {(form, 0.03, margin): 1 for form in (0, 1) for margin in (0.3, 0.1)}


@pytest.mark.parametrize(
    ("measures", "best"),
    [
        # Both learn with the usual margin: the other one is tried with the better of them.
        ({(0, 0.03, 0.3): 2, (1, 0.03, 0.3): 3, (1, 0.03, 0.1): 4}, (1, 0.03, 0.1)),
        # Only the usual form learns.
        ({(0, 0.03, 0.3): 2, (1, 0.03, 0.3): 1, (0, 0.03, 0.1): 1}, (0, 0.03, 0.3)),
        # None learns (the start has 1): which form is better is seen with the other margin.
        ({**_NOTHING, (1, 0.03, 0.1): 4}, (1, 0.03, 0.1)),
        # None learns with any margin: the next rate is tried in the same way.
        (
            {**_NOTHING, (0, 0.003, 0.3): 2, (1, 0.003, 0.3): 3, (1, 0.003, 0.1): 2},
            (1, 0.003, 0.3),
        ),
        (_NOTHING | {(form, 0.003, margin): 1 for form, _, margin in _NOTHING}, (0, 0.03, 0.3)),
    ],
)
def test_forms_are_compared_with_each_margin_and_rate_until_one_learns(measures, best):
    """Epochs are early where nothing is learned, or late."""
    assert chosen_by(measures, {values: 99 * (m > 1) for values, m in measures.items()}) == best


ONE_FORM = {"form": (0,), "learning_rate": (0.03, 0.01, 0.003), "margin": (0.3,)}


@pytest.mark.parametrize(
    ("found", "best"),
    [
        # Measure and best epoch of each rate: the first late optimum ends the search.
        ({0.03: (2, EARLY + 1)}, 0.03),
        ({0.03: (2, EARLY), 0.01: (3, EARLY + 1)}, 0.01),
        ({0.03: (2, 1), 0.01: (1.5, EARLY + 1)}, 0.03),
        ({0.03: (1, 0), 0.01: (2, 1), 0.003: (1.5, 2)}, 0.01),
        ({0.03: (1, 0), 0.01: (1, 0), 0.003: (1.5, 2)}, 0.003),
    ],
)
def test_smaller_steps_are_tried_while_the_best_epoch_is_early(found, best):
    measures, epochs = (
        {(0, rate, 0.3): values[i] for rate, values in found.items()} for i in (0, 1)
    )
    assert chosen_by(measures, epochs, ONE_FORM) == (0, best, 0.3)


def test_an_early_optimum_of_a_short_training_says_nothing():
    first = (0, 0.03, 0.3)
    assert chosen_by({first: 2}, {first: 1}, ONE_FORM, stopped="max_epochs") == first


@pytest.mark.parametrize(
    ("measures", "best"),
    [
        # With many queries neither margins nor steps are compared where the usual ones teach
        # something, if only in the first epoch; forms are.
        ({(0, 0.03, 0.3): 2, (1, 0.03, 0.3): 3}, (1, 0.03, 0.3)),
        # None learns with the usual margin; both do with the other one.
        ({**_NOTHING, (0, 0.03, 0.1): 2, (1, 0.03, 0.1): 3}, (1, 0.03, 0.1)),
        # None learns with any margin: smaller steps, and again only the usual margin.
        ({**_NOTHING, (0, 0.003, 0.3): 2, (1, 0.003, 0.3): 3}, (1, 0.003, 0.3)),
    ],
)
def test_many_queries_are_trained_on_again_only_if_they_taught_nothing(measures, best):
    epochs = {values: int(m > 1) for values, m in measures.items()}
    assert chosen_by(measures, epochs, thorough=False) == best


def test_steps_that_taught_nothing_become_smaller_while_the_best_epoch_is_early():
    """With many queries, too."""
    measures = {(0, 0.03, 0.3): 1, (0, 0.01, 0.3): 2, (0, 0.003, 0.3): 3}
    epochs = {values: m - 1 for values, m in measures.items()}
    assert chosen_by(measures, epochs, ONE_FORM, thorough=False) == (0, 0.003, 0.3)


def chosen_by(measures, epochs, choices=None, stopped="patience", thorough=True):
    """The values that are chosen among trainings with these measures and best epochs."""
    if choices is None:
        choices = {"form": (0, 1), "learning_rate": (0.03, 0.003), "margin": (0.3, 0.1)}
    tried = []

    def train(chosen, _):
        values = chosen["form"], chosen["learning_rate"], chosen["margin"]
        measure = measures[values]
        history = History([Epoch(0, 0, 0, measure)] * (epochs[values] + 1), epochs[values], stopped)
        run = SimpleNamespace(
            measure=measure, is_better_than=lambda other, errors=1: measure > other.measure
        )
        tried.append(values)
        return run, history

    found = choose(choices, checkpoints(None, choices), train, thorough=thorough)
    assert sorted(tried) == sorted(measures)
    return tuple(found.chosen.values())


@pytest.mark.filterwarnings("ignore::ssi_models.training.loop.DivergenceWarning")
def test_steps_that_spoil_the_start_are_followed_by_shorter_ones():
    """The second rate is taken where the first learns nothing, and only there."""
    long, short = (quick_ssi(learning_rate=rate).fit(*problem()) for rate in (1e30, 0.1))
    assert long.history_.best_epoch == 0 < short.history_.best_epoch
    for rates in ((1e30, 0.1), (0.1, 1e30)):
        found = quick_ssi(learning_rate=rates).fit(*problem())
        assert found.learning_rate_ == 0.1
        assert bytes_of(found) == bytes_of(short)
    goes_on = found.set_params(warm_start=True, max_epochs=0).fit(*problem())
    assert goes_on.learning_rate_ == 0.1


@pytest.mark.parametrize("kind", [LowRankSSI, PSI])
def test_few_links_between_documents_teach_shared_embeddings(kind):
    """Documents of 12 topics that link to some others of their own, four of its 20 words each."""
    rng, n = np.random.default_rng(0), 240
    topic, D = np.arange(n) % 12, np.zeros((n, 300), np.float32)
    for i in range(n):
        D[i, topic[i] * 20 + rng.choice(20, 4, replace=False)] = 1
        D[i, 240 + rng.choice(60, 6, replace=False)] = 1
    D = sp.csr_matrix(D / np.linalg.norm(D, axis=1, keepdims=True))
    query, document = np.nonzero((topic[:, None] == topic) & (rng.random((n, n)) < 0.06))
    links = Preferences.from_pairs(query, document, n_queries=n, n_documents=n)
    options = {"batch_size": 64, "margin": 0.3, "threads": 1, "max_epochs": 20}
    model = kind(8, **options).fit(D, D, links, excluded=np.arange(n))
    apart = kind(8, symmetric=False, **options).fit(D, D, links, excluded=np.arange(n))
    assert model.symmetric_
    assert model.history_.best_validation > 1.2 * apart.history_.best_validation


def test_embeddings_that_start_at_word_matching_are_not_shared():
    assert quick_ssi(init="identity").fit(*problem()).symmetric_ is False
    with pytest.raises(ValueError, match="symmetric: separate degrees"):
        PSI(symmetric=True, separate=True).fit(*problem())
    quick = {"rank": 6, "batch_size": 32, "max_epochs": 2, "threads": 1}
    assert PSI(separate=True, **quick).fit(*problem()).symmetric_ is False


def test_many_queries_are_trained_on_once(monkeypatch):
    monkeypatch.setattr(held_out, "MANY_QUERIES", 60)
    numbers = []
    chosen = quick_ssi(margin="auto").fit(
        *problem(), callback=lambda epoch: numbers.append(epoch.number)
    )
    assert numbers == sorted(set(numbers))
    assert bytes_of(chosen) == bytes_of(quick_ssi(margin=0.3).fit(*problem()))


@pytest.mark.parametrize("symmetric", [False, True])
def test_the_chosen_factor_is_that_of_scores_with_unit_documents(symmetric):
    """Without training, the stored embeddings give the start's cosines, times one factor."""
    Q, D, pairs = problem()
    quick = {"rank": 6, "max_epochs": 0, "threads": 1, "diagonal": "none", "symmetric": symmetric}
    fitted = LowRankSSI(unit_documents=True, **quick).fit(Q, D, pairs)
    start = LowRankSSI(unit_documents=False, **quick).fit(Q, D, pairs)
    E = D @ start.V_
    lengths = np.linalg.norm(E, axis=1, keepdims=True)
    cosines = (Q @ start.U_) @ (E / np.maximum(lengths, 1e-30)).T
    found = fitted.cache(D).scores(Q)
    factor = (found * cosines).sum() / (cosines**2).sum()
    np.testing.assert_allclose(found, factor * cosines, atol=1e-5)
    assert factor > 0


def test_whether_documents_have_unit_length_is_chosen_by_held_out_queries():
    quick = {"rank": 6, "batch_size": 32, "n_negatives": 20, "max_epochs": 8, "threads": 1}
    quick |= {"margin": 0.3, "symmetric": False}
    each = [LowRankSSI(unit_documents=v, **quick).fit(*problem()) for v in (False, True)]
    chosen = LowRankSSI(unit_documents="auto", **quick).fit(*problem())
    assert bytes_of(chosen) == bytes_of(each[chosen.unit_documents_])
    with pytest.raises(
        ValueError, match="unit_documents must be True or False or 'auto', got 'yes'"
    ):
        LowRankSSI(unit_documents="yes").fit(*problem())
