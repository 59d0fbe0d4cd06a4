"""The training loop: early stopping, divergence, checkpoint and resume, learning rates."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import numpy as np
import pytest
import scipy.sparse as sp
import ssi_twins as twins
from pair_data import bytes_of, killing, quick_ssi
from pair_data import topic_texts as problem

from ssi_models import checkpoint
from ssi_models.matrices import check_csr
from ssi_models.ssi.correlated_hash import CorrelatedHashSSI
from ssi_models.ssi.full import FullSSI
from ssi_models.ssi.low_rank import LowRankSSI
from ssi_models.ssi.polynomial import PSI
from ssi_models.training.candidate_lists import CandidateLists
from ssi_models.training.loop import DivergenceWarning, Settings, divergence_in_remarks, train
from ssi_models.training.options import RATES, TrainingOptions
from ssi_models.training.preferences import Preferences


def test_training_finds_words_that_go_together():
    fitted = quick_ssi(max_epochs=30).fit(*problem())
    losses = [epoch.loss for epoch in fitted.history_.epochs[1:]]
    assert losses[-1] < 0.5 * losses[0]
    # Word 0 is of topic 0, whose document words are 15, 16, 17.
    assert {t for t, _ in fitted.nearest_words(0, 4)} - {0} == {15, 16, 17}
    # Not 1: half of the relevant documents are not in the labels.
    assert fitted.history_.best_validation > 1.5 * fitted.history_.epochs[0].validation


@pytest.mark.parametrize("change", ["params", "candidates", "excluded", "candidate_lists"])
def test_a_checkpoint_of_another_run_is_not_resumed(tmp_path, change):
    path = tmp_path / "state"

    with pytest.raises(KeyboardInterrupt):
        quick_ssi().fit(*problem(), checkpoint=path, callback=killing(2))
    options = {
        "candidates": {"candidates": np.arange(40)},
        "excluded": {"excluded": np.arange(60)},
        "candidate_lists": {"candidate_lists": CandidateLists.of_judged(problem()[2])},
    }.get(change, {})
    params = {"margin": 0.5} if change == "params" else {}
    other = quick_ssi(**params).fit(*problem(), checkpoint=path, **options)
    assert bytes_of(other) == bytes_of(quick_ssi(**params).fit(*problem(), **options))


def test_a_large_state_is_written_now_and_then(tmp_path, monkeypatch):
    """Not after each epoch, as writing may take longer than learning."""
    written = []
    monkeypatch.setattr(checkpoint, "SMALL", 0)
    monkeypatch.setattr(checkpoint, "save_tensors", lambda *_: written.append(1) or sleep(0.05))
    quick_ssi(max_epochs=8, patience=8).fit(*problem(), checkpoint=tmp_path / "state")
    assert not written  # within seconds
    monkeypatch.setattr(checkpoint, "PAUSE", 0)
    fitted = quick_ssi(max_epochs=8, patience=8).fit(*problem(), checkpoint=tmp_path / "state")
    assert 1 <= len(written) < len(fitted.history_.epochs) - 1


def test_divergence_keeps_the_last_good_parameters_and_names_a_rate():
    with pytest.warns(DivergenceWarning, match=r"the learning rate was 1e\+30, try 1e\+29"):
        fitted = quick_ssi(learning_rate=1e30, optimizer="sgd").fit(*problem())
    assert np.isfinite(fitted.U_).all()
    assert np.isfinite(fitted.V_).all()
    assert fitted.history_.best_epoch == 0


def test_scores_that_are_not_finite_are_divergence_too():
    """Products of embeddings overflow where every single number is finite."""
    Q, D, links = problem()
    psi = PSI(4, degree=3, unit_documents=False, symmetric=False, hold_out="queries")
    psi.set_params(optimizer="sgd", learning_rate=100, max_epochs=3)
    with pytest.warns(DivergenceWarning, match="a score or the loss is not finite"):
        psi.fit(Q, D, links)
    assert np.isfinite(psi.cache(D).scores(Q)).all()


def test_divergence_is_left_to_remarks_by_the_thread_that_asks_for_it():
    def fit():
        return quick_ssi(learning_rate=1e30, optimizer="sgd").fit(*problem())

    before = warnings.filters[:]
    with ThreadPoolExecutor(1) as others, divergence_in_remarks():
        assert warnings.filters == before
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert "diverged" in " ".join(fit().remarks)
        with pytest.warns(DivergenceWarning):
            others.submit(fit).result()


def test_training_that_cannot_help_returns_the_word_matching_model():
    rng = np.random.default_rng(0)
    X = sp.csr_matrix(twins.unit_rows(rng, 40, 25, 0.4))
    own = Preferences.from_pairs(np.arange(40), np.arange(40), n_queries=40, n_documents=40)
    fitted = quick_ssi(max_epochs=4, patience=1).fit(X, X, own)
    assert fitted.history_.best_epoch == 0
    scores = fitted.score(X, X, np.zeros(40, int), np.arange(40))
    np.testing.assert_allclose(scores, (X @ X[0].T).toarray()[:, 0], atol=1e-6)


def test_patience_and_the_clock_end_training():
    epochs = quick_ssi(max_epochs=50, patience=2, least_gain=0).fit(*problem()).history_
    assert len(epochs.epochs) - 1 - epochs.best_epoch == 2
    assert len(quick_ssi(max_seconds=1e-9).fit(*problem()).history_.epochs) == 1


def test_small_gains_do_not_keep_training_going():
    class Rising:
        finite = True

        def __init__(self, gain):
            self.gain, self.value = gain, np.ones(1)

        def state(self):
            return {"value": self.value}

        def epoch(self, number):
            yield 0.0, 0, 1

        def validate(self):
            self.value *= 1 + self.gain
            return float(self.value[0])

        def begin(self):
            pass

        def beats_start(self):
            return True

    def last(gain):
        history = train(
            Rising(gain), Settings(TrainingOptions(max_epochs=30, patience=4, least_gain=0.01))
        )
        assert history.best_epoch == history.epochs[-1].number  # kept all the same
        return history.best_epoch

    assert last(0.002) == 4
    assert last(0.004) == 30  # 1.2 % in three epochs


def test_automatic_rate_has_the_lowest_training_loss():
    fitted = quick_ssi(learning_rate="auto", optimizer="sgd").fit(*problem())
    assert fitted.learning_rate_ in RATES
    losses = {
        rate: quick_ssi(learning_rate=rate, optimizer="sgd", max_epochs=2)
        .fit(*problem())
        .history_.epochs[-1]
        .loss
        for rate in RATES
    }
    assert fitted.learning_rate_ == min(losses, key=losses.get)


def test_warm_start_goes_on_from_the_fitted_parameters():
    first = quick_ssi(max_epochs=5).fit(*problem())
    best = first.history_.best_validation
    again = first.set_params(warm_start=True, max_epochs=0).fit(*problem())
    assert again.history_.epochs[0].validation == best
    with pytest.raises(ValueError, match="warm_start: U was fitted with shape"):
        again.set_params(rank=3).fit(*problem())


def test_validation_by_rank_loss():
    fitted = quick_ssi(validation_measure="rank_loss").fit(*problem())
    values = [epoch.validation for epoch in fitted.history_.epochs]
    assert all(-1 <= value <= 0 for value in values)
    assert max(values) == fitted.history_.best_validation > values[0]


def test_held_out_pairs_belong_to_queries_that_are_trained():
    fitted = quick_ssi(hold_out="pairs", max_epochs=20).fit(*problem())
    queries = fitted.validation_queries_
    assert len(queries) > 20
    assert fitted.history_.best_validation > 1.2 * fitted.history_.epochs[0].validation
    with pytest.raises(ValueError, match="groups: single pairs are held out"):
        quick_ssi(hold_out="pairs").fit(*problem(), groups=np.arange(60))


@pytest.mark.parametrize(
    ("kind", "params", "change", "message"),
    [
        (LowRankSSI, {"n_frequent": 20}, {}, r"other words have weights now \(embedded_words_\)"),
        (FullSSI, {}, {}, r"other words have weights now \(rows_\)"),
        (CorrelatedHashSSI, {"n_features": 20}, {}, "the frequent words are others"),
        (PSI, {}, {"degree": 4}, "V2 was fitted with shape None"),
    ],
)
def test_a_warm_start_is_from_parameters_of_the_same_words(kind, params, change, message):
    """Rows of the same number would stand for other words."""
    Q, D, pairs = problem()
    first = kind(max_epochs=1, threads=1, hold_out="queries", **params).fit(Q, D, pairs)
    first.set_params(warm_start=True, **change)
    # The first words become rare, and those of the first queries are turned around.
    turned = sp.csr_matrix(Q[:, ::-1]), sp.csr_matrix(D[:, ::-1])
    with pytest.raises(ValueError, match=f"warm_start: .*{message}"):
        first.fit(*((Q, D) if change else turned), pairs)


@pytest.mark.parametrize("rank_weight", ["uniform", "warp", "ndcg", "map"])
@pytest.mark.parametrize("negatives", ["uniform", "in-batch"])
@pytest.mark.parametrize("loss", ["margin", "logistic"])
def test_every_loss_learns(loss, rank_weight, negatives):
    fitted = quick_ssi(loss=loss, rank_weight=rank_weight, negatives=negatives, max_epochs=10)
    history = fitted.fit(*problem()).history_
    assert history.best_validation > 1.2 * history.epochs[0].validation


def test_given_negatives_learn_from_rejected_documents_only():
    Q, D, pairs = problem()
    rejected = [(q, d) for q in range(60) for d in range(0, 60, 7) if q % 5 != d % 5]
    query, document = (np.array(x) for x in zip(*rejected, strict=True))
    labels = Preferences.from_pairs(
        np.concatenate([pairs.query, query]),
        np.concatenate([pairs.document, document]),
        np.repeat([1, 0], [len(pairs), len(query)]),
        n_queries=60,
        n_documents=60,
    )
    history = quick_ssi(negatives="given", max_epochs=10).fit(Q, D, labels).history_
    assert history.best_validation > 1.2 * history.epochs[0].validation


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"rank": 0}, "rank must be 1 or more, got 0"),
        ({"learning_rate": 0}, "learning_rate must be positive"),
        ({"learning_rate": "fast"}, "learning_rate must be a number or .* 'auto', got 'fast'"),
        ({"learning_rate": (0.1, 0)}, r"learning_rate must be positive .* got \(0.1, 0\)"),
        ({"learning_rate": ()}, "learning_rate must be positive"),
        ({"margin": float("nan")}, "margin must be a number or 'auto', got nan"),
        ({"max_seconds": -1}, "max_seconds must be 0 or more"),
        ({"optimizer": "adam"}, "optimizer 'adam' is unknown; use one of"),
        ({"loss": "square"}, "loss 'square' is unknown"),
        ({"rank_weight": "err"}, "rank_weight 'err' is unknown"),
        ({"negatives": "hard"}, "negatives 'hard' is unknown"),
        ({"scales": ()}, "scales must be"),
        ({"validation_share": 1.0}, "validation_share must be in"),
        ({"hold_out": "words"}, "hold_out 'words' is unknown"),
        ({"max_epochs": -1}, "max_epochs must be 0 or more"),
        ({"init": "zero"}, "init 'zero' is unknown"),
        ({"diagonal": "yes"}, "diagonal 'yes' is unknown"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\), got 1.0"),
        ({"n_frequent": 0}, "n_frequent must be 1 or more"),
    ],
)
def test_bad_parameters_are_refused_by_name(params, message):
    with pytest.raises(ValueError, match=message):
        quick_ssi(**params).fit(*problem())


@pytest.mark.filterwarnings("error")
def test_no_warning_in_an_ordinary_fit():
    fitted = quick_ssi().fit(*problem())
    assert len(fitted.history_.epochs) > 1


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("kind", [LowRankSSI, PSI, CorrelatedHashSSI])
def test_embedded_documents_of_unit_length(kind, symmetric, tmp_path):
    Q, D, pairs = problem()
    quick = {"rank": 6, "batch_size": 32, "n_negatives": 20, "max_epochs": 4, "threads": 1}
    fitted = kind(symmetric=symmetric, unit_documents=True, **quick).fit(Q, D, pairs)
    lengths = np.linalg.norm(fitted.document_representation(check_csr("D", D)).dense, axis=1)
    np.testing.assert_allclose(lengths[lengths > 0], 1, rtol=1e-5)
    assert (lengths > 0).any()
    plain = kind(symmetric=symmetric, unit_documents=False, **quick).fit(Q, D, pairs)
    assert bytes_of(plain) != bytes_of(fitted)
    # The stored factor is that of the validation: the model ranks as it did there.
    fitted.save(tmp_path / "model.safetensors")
    loaded = kind.load(tmp_path / "model.safetensors")
    assert loaded.unit_documents_ is True
    np.testing.assert_array_equal(loaded.cache(D).scores(Q), fitted.cache(D).scores(Q))


def test_embeddings_that_start_at_zero_have_no_unit_length():
    with pytest.raises(ValueError, match="unit_documents: embeddings that start at 0"):
        quick_ssi(unit_documents=True).fit(*problem())
    assert quick_ssi(unit_documents="auto").fit(*problem()).unit_documents_ is False
