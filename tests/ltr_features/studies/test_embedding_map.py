"""Maps of words and documents: principal components of their vectors, and the nearest in all
dimensions."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.decomposition import PCA
from toys import context_of, topics

from ltr_features.columns.fitted import model_texts
from ltr_features.studies.kinds import ranking_models
from ltr_features.studies.kinds.ranking_models import map_of_documents, map_of_words, nearest_words
from ltr_features.studies.kinds.sections import ModelConfig
from ltr_features.studies.page.charts.embedding_map import LONGEST, embedding_map_chart, places
from ltr_features.studies.statistics.embedding_map import NEAREST, embedding_map
from ssi_models.training.preferences import Preferences

WORDS = [f"word{i}" for i in range(50)]


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)


def test_points_are_the_principal_components_of_unit_vectors(vectors: np.ndarray) -> None:
    found = embedding_map("m", "words", WORDS, vectors)
    assert found is not None
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    theirs = PCA(2).fit(units.astype(np.float64))
    assert np.abs(found.points) == pytest.approx(np.abs(theirs.transform(units)), abs=1e-6)
    assert found.variance == pytest.approx(theirs.explained_variance_ratio_.sum())
    assert found.dimension == 8
    turned = embedding_map("m", "words", WORDS, -vectors)
    assert turned is not None
    assert turned.points == pytest.approx(-found.points, abs=1e-9)  # signs are not arbitrary


def test_the_nearest_are_those_with_the_largest_cosine(vectors: np.ndarray) -> None:
    found = embedding_map(
        "m", "words", WORDS, vectors * np.arange(1, 51)[:, None]
    )  # length does not matter
    assert found is not None
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    others = [j for j in range(50) if j != 7]
    expected = sorted(others, key=lambda j: -float(units[7] @ units[j]))[:NEAREST]
    assert found.nearest[7].tolist() == expected


def test_words_without_a_vector_are_left_out_and_too_few_give_no_map(vectors: np.ndarray) -> None:
    some = vectors.copy()
    some[[0, 3]] = 0
    found = embedding_map("m", "words", WORDS, some)
    assert found is not None
    assert list(found.labels) == [w for i, w in enumerate(WORDS) if i not in (0, 3)]
    assert embedding_map("m", "words", WORDS[:2], vectors[:2]) is None
    assert embedding_map("m", "words", WORDS, np.zeros((50, 0), np.float32)) is None
    same = embedding_map("m", "words", WORDS[:4], np.ones((4, 2), np.float32))
    assert same is not None
    assert np.isfinite(places(same)).all()


def test_dots_stand_at_their_places_and_labels_leave_each_other_room(vectors: np.ndarray) -> None:
    found = embedding_map("m", "words", [*WORDS[:49], "<b>"], vectors)
    assert found is not None
    chart = embedding_map_chart(found)
    drawn = ET.fromstring(str(chart.svg("k")))
    dots = np.array([[float(use.attrib[k]) for k in ("x", "y")] for use in drawn.iter("use")])
    assert len(dots) == 50
    scale = np.array([420.0, chart.height])
    assert dots == pytest.approx(places(found) * scale, abs=0.05)
    assert "<b>" not in str(chart.svg("k"))
    labels = list(drawn.iter("text"))
    assert labels[0].text == "word0"  # the most important word is written
    assert len(labels) < 50


def test_long_titles_are_cut_and_stay_within_the_drawing(vectors: np.ndarray) -> None:
    titles = [f"{i} on the origin of species by means of natural selection" for i in range(50)]
    found = embedding_map("m", "documents", titles, vectors)
    assert found is not None
    labels = list(ET.fromstring(str(embedding_map_chart(found).svg("k"))).iter("text"))
    assert labels[0].text == "0 on the origin of species …"
    assert len(labels) > 3
    for label in labels:
        left = float(re.findall(r"[-\d.]+", label.get("transform") or f"({label.get('x')}")[0])
        assert 0 <= left <= 420 - 0.62 * 9.5 * LONGEST


def fitted_in_study(config, monkeypatch):
    """A model of a toy collection, and a study whose maps are of it."""
    context = context_of(topics())
    texts, pairs = model_texts(context, config.recipe), context.collection.judgements
    relevant = pairs.query[pairs.grade > 0], pairs.document[pairs.grade > 0]
    shape = {"n_queries": texts.Q.shape[0], "n_documents": texts.D.shape[0]}
    preferences = Preferences.from_pairs(*relevant, **shape)
    fitted = config.recipe.new_model()
    weighting = {} if texts.weighting is None else {"weighting": texts.weighting}
    fitted.fit(texts.Q, texts.D, preferences, vocabulary=texts.vocabulary, **weighting)
    study = SimpleNamespace(
        config=SimpleNamespace(
            word_map="m", document_map="m", models=[config], nearest_words=[],
            splits=[SimpleNamespace(title="Unseen queries")],
        ),
        context=context, collection=context.collection, title=str, outputs=[None],
    )  # fmt: skip
    monkeypatch.setattr(ranking_models, "test_models", lambda *_: [fitted])
    return fitted, study


@pytest.mark.parametrize(("model", "drawn"), [("lsa", True), ("vsm", False), ("popularity", False)])
def test_only_models_whose_vectors_make_their_scores_are_drawn(model, drawn, monkeypatch):
    _, study = fitted_in_study(ModelConfig(name="m", model=model), monkeypatch)
    maps = map_of_documents(study), map_of_words(study)
    assert [found is not None for found in maps] == [drawn, drawn]


@pytest.mark.parametrize("model", ["lsa", "plsa"])
@pytest.mark.parametrize("terms", ["letter-trigrams", "both"])
def test_words_of_a_model_of_trigrams_are_texts_of_their_trigrams(model, terms, monkeypatch):
    params = {"lsa": {"rank": 6}, "plsa": {"n_topics": 6, "lambda2": 0.5}}[model]
    config = ModelConfig(name="m", model=model, terms=terms, params=params)
    fitted, study = fitted_in_study(config, monkeypatch)
    found = map_of_words(study)
    in_every_document = {"http"} if model == "lsa" else set()  # without a weight
    assert {*found.labels} == {*study.context.index.vocabulary} - in_every_document
    alone = model_texts(study.context.for_queries(list(found.labels)), config.recipe).Q
    expected = embedding_map("m", "words", found.labels, fitted.embed_documents(alone))
    np.testing.assert_allclose(found.points, expected.points, atol=1e-4)

    table = nearest_words("Unseen queries", config, fitted, ["topic5word5"])
    if model == "plsa":  # explains single terms
        assert not table.rows
        return
    text = alone[found.labels.index("topic5word5")]
    near = fitted.nearest_words_of_text(text, 20)
    others = [f"{fitted.vocabulary_[t]} {x:.2f}" for t, x in near if t not in text.indices]
    assert table.rows == [("topic5word5", ", ".join(others[:5]))]


def test_small_probabilities_of_nearest_words_are_not_shown_as_0(monkeypatch):
    config = ModelConfig(name="m", model="plsa", params={"n_topics": 6, "lambda2": 0.5})
    fitted, _ = fitted_in_study(config, monkeypatch)
    fitted.phi_q_ = fitted.phi_q_ / np.float32(1000)
    ((_, shown),) = nearest_words("Unseen queries", config, fitted, ["topic5word5"]).rows
    assert min(float(match.split()[1]) for match in shown.split(", ")) > 0
