"""Models by name, and their parameters: flat, together, and by the names that they had."""

from __future__ import annotations

import pytest
from sklearn.base import clone

import ssi_models
from ltr_base.parallel import thread_count
from ssi_models import LowRankSSI, S2Net, S2NetOptions, TrainingOptions
from ssi_models.persistence import load_tensors, save_tensors
from ssi_models.registry import MODELS, get_model, load_model, make_model


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="there is no model 'ssl'; did you mean 'ssi'"):
        get_model("ssl")
    with pytest.raises(TypeError, match="'margn'"):
        make_model("ssi", margn=1)


@pytest.mark.parametrize("name", ["tfidf", "tf-idf", "TF-IDF"])
def test_former_names_are_known(name):
    with pytest.warns(FutureWarning, match=f"model '{name}' is now 'vsm'"):
        assert get_model(name) is MODELS["vsm"]


def test_options_together_and_one_by_one_are_the_same():
    flat = make_model("ssi", rank=7, margin=0.5, max_epochs=3)
    together = LowRankSSI(7, training=TrainingOptions(margin=0.5, max_epochs=3))
    assert flat.get_params() == together.get_params()
    assert flat.training == together.training
    assert flat.get_params()["margin"] == 0.5
    assert "training" not in flat.get_params()
    one = LowRankSSI(training=TrainingOptions(margin=0.5), patience=2)
    assert (one.training.margin, one.training.patience) == (0.5, 2)


def test_one_option_leaves_a_models_other_defaults():
    model = S2Net(batch_size=9)
    assert model.training == S2NetOptions(batch_size=9)
    model.set_params(margin=0.3, rank=5)
    assert (model.training.margin, model.training.batch_size, model.rank) == (0.3, 9, 5)
    model.set_params(training=S2NetOptions(margin=0.4))
    assert model.training.batch_size == S2NetOptions().batch_size
    with pytest.raises(TypeError, match="training must be options, such as TrainingOptions"):
        S2Net(training={"margin": 0.4})
    with pytest.raises(TypeError, match="training: s2net takes S2NetOptions, got TrainingOptions"):
        S2Net(training=TrainingOptions()).check_params()


@pytest.mark.parametrize("kind", MODELS.values())
def test_models_can_be_cloned(kind):
    """By scikit-learn, whose own classes they are not."""
    model = kind(seed=3) if "seed" in kind.default_params() else kind()
    if hasattr(model, "training"):
        model.set_params(margin=0.7)
    again = clone(model)
    assert again is not model
    assert again.get_params() == model.get_params()
    assert list(model.get_params()) == list(kind.default_params())


def test_a_former_parameter_is_known(tmp_path):
    with pytest.warns(FutureWarning, match="emphasis is now rank_weight"):
        model = make_model("ssi", emphasis="warp")
    assert model.training.rank_weight == "warp"
    with pytest.warns(FutureWarning, match="emphasis is now rank_weight"):
        assert model.set_params(emphasis="ndcg").training.rank_weight == "ndcg"


def test_files_of_former_versions_are_read(tmp_path, recwarn):
    """Version 1 had no version, and other names."""
    path = tmp_path / "model"
    model = fitted_vsm()
    model.save(path)
    header, arrays = load_tensors(path)
    assert header.pop("version") == 2
    save_tensors(path, {**header, "model": "tfidf"}, arrays)
    assert type(load_model(path)) is type(model)
    save_tensors(path, {**header, "version": 3}, arrays)
    with pytest.raises(ValueError, match="of a newer version of this package; update it"):
        load_model(path)
    save_tensors(path, {**header, "model": "no such"}, arrays)
    with pytest.raises(ValueError, match="holds a 'no such' model, which this version does not"):
        load_model(path)
    assert not recwarn


def fitted_vsm():
    import scipy.sparse as sp

    one = sp.identity(2, format="csr")
    pairs = ssi_models.Preferences.from_pairs([0], [0], n_queries=2, n_documents=2)
    return make_model("vsm").fit(one, one, pairs)


def test_public_names_are_there():
    assert set(ssi_models.__all__) == set(dir(ssi_models))
    for name in ssi_models.__all__:
        assert getattr(ssi_models, name).__name__ == name
    assert {"LowRankSSI", "Preferences", "load_model"} < set(ssi_models.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'LowRank'"):
        ssi_models.LowRank  # noqa: B018


@pytest.mark.parametrize("threads", [0, 1.5, "x"])
def test_numbers_of_threads_that_cannot_be_are_refused(threads):
    with pytest.raises(ValueError, match=f"threads must be 1 or more, got {threads!r}"):
        thread_count(threads)
