"""Measures against slow twins, ties included."""

import json
from dataclasses import replace

import numpy as np
import pytest

from ltr_features.studies.kinds.matching_config import TaskConfig
from ltr_features.studies.kinds.matching_curves import training_curve
from ltr_features.studies.kinds.matching_rows import (
    evaluate,
    make_row,
    n_parameters,
    ranked_documents,
    ranks_of_relevant,
)
from ltr_features.studies.kinds.matching_tasks import make_task, unseen_documents
from ssi_models.registry import get_model

LINKS = TaskConfig(source="links", folder="articles", n_triples=400, n_test_queries=15)


@pytest.fixture(scope="module")
def task(small_data):
    return make_task(LINKS, small_data)


def slow_measures(task, scores, query):
    """Average precision and P@10 by sorting, irrelevant documents first among equals."""
    known = set(task.known_document[task.known_query == query]) | {task.excluded[query]}
    relevant = set(task.test.document[task.test.query == query])
    ranked = [d for d in task.database if d not in known]
    ranked.sort(key=lambda d: (-scores[d], d in relevant))
    hits = [i for i, d in enumerate(ranked) if d in relevant]
    precision = [(n + 1) / (i + 1) for n, i in enumerate(hits)]
    return sum(precision) / len(relevant), sum(i < 10 for i in hits) / 10


@pytest.mark.parametrize("name", ["vsm", "popularity"])
def test_measures_are_those_of_the_slow_twin(task, name):
    model = get_model(name)().fit(task.Q, task.D, task.train)
    values, measures = evaluate(model, task)
    scores = model.cache(task.D).scores(task.Q)
    slow = np.array([slow_measures(task, scores[q], q) for q in values["query"]])
    np.testing.assert_allclose(values[["ap", "p10"]], slow)
    q, a, b = task.triples
    difference = scores[q, a] - scores[q, b]
    wrong = (difference < 0) + 0.5 * (difference == 0)
    assert measures["rank_loss"] == pytest.approx(wrong.mean())
    sums = [(wrong - wrong.mean())[q == i].sum() for i in np.unique(q)]
    assert measures["rank_loss_error"] == pytest.approx(np.sqrt(np.square(sums).sum()) / len(q))


def test_triples_of_queries_made_from_one_document_count_as_one_in_the_standard_error(task):
    pairs = replace(task, groups=task.groups // 2)
    values, measures = evaluate(get_model("vsm")().fit(task.Q, task.D, task.train), pairs)
    assert measures["map"] == pytest.approx(values["ap"].mean())
    scores = get_model("vsm")().fit(task.Q, task.D, task.train).cache(task.D).scores(task.Q)
    q, a, b = task.triples
    wrong = (scores[q, a] < scores[q, b]) + 0.5 * (scores[q, a] == scores[q, b])
    group = pairs.groups[q]
    sums = [(wrong - wrong.mean())[group == g].sum() for g in np.unique(group)]
    assert measures["rank_loss_error"] == pytest.approx(np.sqrt(np.square(sums).sum()) / len(q))


def test_the_source_and_its_training_links_are_not_ranked(task):
    query = int(task.asked[0])
    ranked = ranked_documents(task, query)
    assert not ranked[query]
    own = task.train.document[task.train.query == query]
    assert len(own)
    assert not ranked[own].any()
    assert ranked.sum() == len(task.D.indptr) - 1 - 1 - len(own)
    perfect = np.zeros(task.D.shape[0], np.float32)
    perfect[task.test.document[task.test.query == query]] = 1
    ranks = ranks_of_relevant(task, query, perfect)
    np.testing.assert_array_equal(ranks, np.arange(1, len(ranks) + 1))


def test_the_trial_that_validates_best_is_reported(task, tmp_path):
    trials = [
        {"rank": 4, "learning_rate": rate, "max_epochs": 2, "hold_out": "pairs"}
        for rate in (1e-9, 0.3)
    ]
    make_row(task, "ssi", trials, tmp_path, threads=1)
    result = json.loads((tmp_path / "result.json").read_text())
    validation = [trial["validation"] for trial in result["trials"]]
    assert result["kept"] == int(np.argmax(validation))
    assert result["parameters"] == 2 * 4 * task.D.shape[1]
    assert 0 <= result["measures"]["rank_loss"] <= 1


def test_parameters_can_be_chosen_for_unseen_documents(small_data, tmp_path):
    config = LINKS.model_copy(update={"split": "documents"})
    task = make_task(config, small_data)
    inner = unseen_documents(task, config)
    trials = [{"rank": 4, "max_epochs": 2, "scales": [scale]} for scale in (0.1, 10.0)]
    make_row(task, "ssi", trials, tmp_path, inner=inner, threads=1)
    result = json.loads((tmp_path / "result.json").read_text())
    expected = []
    for scale in (0.1, 10.0):
        model = get_model("ssi")(rank=4, max_epochs=2, scales=(scale,), threads=1)
        options = {"excluded": inner.excluded, "groups": inner.groups}
        model.fit(inner.Q, inner.D, inner.train, candidates=inner.candidates, **options)
        expected.append(evaluate(model, inner)[0]["ap"].mean())
    np.testing.assert_allclose([t["validation"] for t in result["trials"]], expected)
    assert result["kept"] == int(np.argmax(expected))


def test_baselines_are_chosen_on_training_pairs_too(task, tmp_path):
    make_row(task, "lsi", [{"rank": 1}, {"rank": 4}], tmp_path, threads=1)
    result = json.loads((tmp_path / "result.json").read_text())
    validation = [trial["validation"] for trial in result["trials"]]
    assert validation[1] > validation[0] > 0
    assert result["kept"] == 1


def test_parameters_are_counted_without_the_documents(task):
    popularity = get_model("popularity")().fit(task.Q, task.D, task.train)
    assert n_parameters(popularity) == task.D.shape[0]
    expansion = get_model("query-expansion")(beta=0.5, n_expansion=2)
    assert n_parameters(expansion.fit(task.Q, task.D, task.train)) == 1


def test_a_matrix_of_both_sides_is_counted_once(task):
    lsi = get_model("lsi")(rank=3).fit(task.Q, task.D, task.train)
    assert n_parameters(lsi) == 3 * task.D.shape[1]
    symmetric = get_model("ssi")(rank=2, symmetric=True, max_epochs=1)
    assert n_parameters(symmetric.fit(task.Q, task.D, task.train)) == 2 * task.D.shape[1]


def test_training_curves_begin_at_the_untrained_model_and_fall(small_data):
    params = {"rank": 5, "learning_rate": 0.1, "margin": 0.3, "seed": 0}
    for config, name, init in (
        (LINKS, "ssi", "lsi"),
        (TaskConfig(source="pairs", folder="sentences"), "cross-language", "normal"),
    ):
        task = make_task(config, small_data)
        points = training_curve(task, name, {**params, "init": init}, 3, 10, threads=1)
        assert [point["epoch"] for point in points] == [0, 1, 2, 3]
        assert points[-1]["train"] < points[0]["train"]
        assert all(0 <= point[part] <= 1 for point in points for part in ("train", "test"))
