"""Rankers as estimators of scikit-learn: search, Pipeline, permutation importance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_matrix
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from letor import InputError, RankingData, evaluate, ranking_scorer
from letor.errors import LetorWarning
from letor.evaluation import Evaluator
from letor.measures import choosing_measure
from letor.rankers import LambdaMART, XGBoostLambdaMART, get_ranker, load_ranker


def rows(seed: int = 0, n_queries: int = 30) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """X, y and qid; the label is that of column "good"; the index begins far from 0."""
    rng = np.random.default_rng(seed)
    n = 8 * n_queries
    index = np.arange(1000, 1000 + n)
    names = ["noise", "good", "more noise"]
    X = pd.DataFrame(rng.random((n, 3)), columns=names, index=index)
    y = pd.Series(np.floor(3 * X["good"]), index=index)
    return X, y, pd.Series(np.repeat(np.arange(n_queries), 8), index=index)


def quick(**params: Any) -> LambdaMART:
    return LambdaMART(n_estimators=10, min_data_in_leaf=5, **params)


def same_data(X: pd.DataFrame, y: pd.Series, qid: pd.Series) -> RankingData:
    return RankingData.from_rows(X.to_numpy(), y, qid, column_names=list(X.columns))


def test_names_are_handed_out_lazily() -> None:
    import letor
    import letor.rankers as rankers

    for module in (letor, rankers):
        assert set(dir(module)) == set(module.__all__)
        assert all(getattr(module, name) is not None for name in module.__all__)
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            module.nothing  # noqa: B018
    classes = [getattr(rankers, name) for name in rankers.__all__ if name[0].isupper()]
    assert [get_ranker(kind.name) for kind in classes] == classes
    assert rankers.load_ranker is load_ranker


@pytest.mark.parametrize("normalise", ["none", "minmax"])
def test_arrays_and_frames_fit_as_ranking_data_does(normalise: str) -> None:
    train, valid, test = (rows(seed) for seed in range(3))
    expected = quick(normalise=normalise).fit(same_data(*train), same_data(*valid))
    scores = expected.predict(same_data(*test))
    qid = {"qid": test[2]}
    X, y, q = train
    by_name = quick(normalise=normalise).fit(X, y, qid=q, eval_set=[valid[:2]], eval_qid=[valid[2]])
    assert by_name.feature_names_ == list(X.columns)
    assert by_name.best_iteration_ == expected.best_iteration_
    np.testing.assert_array_equal(by_name.predict(test[0], **qid), scores)
    turned = test[0][["good", "more noise", "noise"]]
    np.testing.assert_array_equal(by_name.predict(turned, **qid), scores)
    np.testing.assert_array_equal(by_name.predict(test[0].to_numpy(), **qid), scores)
    by_place = quick(normalise=normalise).fit(
        X.to_numpy(), y.to_numpy(), qid=q.to_numpy(),
        eval_set=(valid[0].to_numpy(), valid[1]), eval_qid=valid[2],
    )  # fmt: skip
    assert by_place.feature_names_ == ["1", "2", "3"]
    np.testing.assert_array_equal(by_place.predict(test[0].to_numpy(), **qid), scores)
    value = Evaluator(choosing_measure("map"), same_data(*test)).mean(scores)
    assert by_name.score(*test[:2], **qid, measure="map") == value
    assert expected.score(same_data(*test), measure="map") == value


def test_arguments_that_do_not_go_together_are_named() -> None:
    X, y, qid = rows()
    data = same_data(X, y, qid)
    with pytest.raises(InputError, match="labels y and qid"):
        quick().fit(X, y)
    with pytest.raises(InputError, match="labels y and eval_qid"):
        quick().fit(X, y, qid=qid, eval_set=(X, y))
    with pytest.raises(InputError, match=r"eval_qid: give eval_set=\(X, y\), too"):
        quick().fit(X, y, qid=qid, eval_qid=qid)
    with pytest.raises(InputError, match="leave out qid, eval_set and eval_qid"):
        quick().fit(data, data, eval_qid=qid)
    with pytest.raises(InputError, match="one set of validation rows"):
        quick().fit(X, y, qid=qid, eval_set=[(X, y)] * 2, eval_qid=[qid] * 2)
    with pytest.raises(InputError, match="leave out qid"):
        quick().fit(data, qid=qid)
    with pytest.raises(InputError, match="must be RankingData, too"):
        quick().fit(data, y)
    ranker = quick(normalise="minmax").fit(X, y, qid=qid)
    with pytest.raises(InputError, match=r"normalise='minmax' looks at all rows.*qid=qid"):
        ranker.predict(X)
    with pytest.raises(InputError, match="lack columns of the training rows: good"):
        ranker.predict(X.drop(columns="good"), qid=qid)
    with pytest.raises(
        InputError, match="the array has 2 columns, the training rows have 3, in the order of"
    ):
        ranker.predict(X.to_numpy()[:, :2], qid=qid)
    of_array = quick().fit(X.to_numpy(), y, qid=qid)
    with pytest.raises(InputError, match=r"have names \(good, more noise, noise\): give an array"):
        of_array.predict(X, qid=qid)


def test_infinite_values_are_refused_by_column() -> None:
    X, y, qid = rows()
    ranker = quick().fit(X, y, qid=qid)
    X.iloc[3, 1] = np.inf
    for given, column in ((X, "column 'good'"), (X.to_numpy(), "column 2 of X")):
        with pytest.raises(InputError, match=f"^{column}: infinite values"):
            quick().fit(given, y, qid=qid)
        with pytest.raises(InputError, match=f"^{column}: infinite values"):
            ranker.predict(given, qid=qid)


def test_sparse_rows_to_score_are_told_to_be_made_dense() -> None:
    X, y, qid = rows()
    with pytest.raises(InputError, match=r"a csr_matrix: give X\.toarray\(\)"):
        quick().fit(X, y, qid=qid).predict(csr_matrix(X), qid=qid)


def test_pandas_objects_have_the_same_index() -> None:
    X, y, qid = rows()
    turned = y.iloc[::-1]
    with pytest.raises(
        InputError, match=r"^X and y are .*row 0: 1000 and 1239.*y\.loc\[X\.index\]"
    ):
        quick().fit(X, turned, qid=qid)
    with pytest.raises(InputError, match=r"^y and qid are pandas objects with different indexes"):
        quick().fit(X.to_numpy(), y, qid=qid.reset_index(drop=True))
    with pytest.raises(InputError, match=r"^X and eval_qid are"):
        quick().fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid.iloc[::-1])
    ranker = quick().fit(X, turned.to_numpy(), qid=qid)
    with pytest.raises(InputError, match=r"^X and qid are"):
        ranker.predict(X, qid=qid.iloc[::-1])


def test_rows_without_column_names_may_lack_the_last_columns() -> None:
    X, y, qid = rows()
    X["last"] = X.pop("good") - 0.5
    full, zero = (RankingData.from_rows(x.to_numpy(), y, qid) for x in (X, X.assign(last=0.0)))
    short = full.select_columns(full.column_names[:-1])
    ranker = XGBoostLambdaMART(n_estimators=5, normalise="none")  # for it, missing is not 0
    with pytest.warns(LetorWarning, match=r"validation rows: no row has a value in column 3 of"):
        ranker.fit(full, short)
    with pytest.warns(LetorWarning, match=r"rows to score: no row has a value in column 3 of"):
        scores = ranker.predict(short)
    np.testing.assert_array_equal(scores, ranker.predict(zero))
    with pytest.raises(InputError, match="lack columns of the training rows: 1; make them"):
        ranker.predict(full.select_columns(full.column_names[1:]))


def test_grid_search_by_groups() -> None:
    X, _, qid = rows(n_queries=40)
    y = np.floor(1.5 * (X["good"] + X["noise"]))
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = quick().set_fit_request(qid=True).set_score_request(qid=True)
        search = GridSearchCV(ranker, {"n_estimators": [1, 30]}, cv=GroupKFold(4))
        search.fit(X, y, groups=qid, qid=qid)
    assert search.best_params_ == {"n_estimators": 30}
    folds = list(GroupKFold(4).split(X, y, qid))
    for split, (train, test) in enumerate(folds):
        parts = [[part.iloc[places] for part in (X, y, qid)] for places in (train, test)]
        alone = quick().set_params(n_estimators=30).fit(same_data(*parts[0]))
        expected = alone.score(same_data(*parts[1]))
        assert search.cv_results_[f"split{split}_test_score"][1] == pytest.approx(expected)
    assert search.best_estimator_.feature_names_ == list(X.columns)


def test_cross_validation_by_a_measure_of_choice() -> None:
    """The scorer finds the queries of a part by the index of the frame."""
    X, y, qid = rows(n_queries=40)
    values = cross_val_score(
        LinearRegression(), X, y, groups=qid, cv=GroupKFold(4), scoring=ranking_scorer("map", qid)
    )
    for value, (train, test) in zip(values, GroupKFold(4).split(X, y, qid), strict=True):
        scores = LinearRegression().fit(X.iloc[train], y.iloc[train]).predict(X.iloc[test])
        data = same_data(X.iloc[test], y.iloc[test], qid.iloc[test])
        assert value == Evaluator(choosing_measure("map"), data).mean(scores)


def test_equal_scores_are_scored_in_random_order() -> None:
    _, y, qid = rows(n_queries=300)
    y = y.groupby(qid).transform(lambda labels: labels.sort_values(ascending=False).to_numpy())
    X = pd.DataFrame({"same": 1.0}, index=y.index)
    value = ranking_scorer("p@1", qid)(LinearRegression().fit(X, y), X, y)
    assert value == pytest.approx((y > 0).mean(), abs=0.1)  # 1 in the order of the rows


def test_splits_through_queries_are_told(recwarn: Any) -> None:
    X, y, qid = rows()
    scorer = ranking_scorer("map", qid)
    cross_val_score(LinearRegression(), X, y, groups=qid, cv=GroupKFold(3), scoring=scorer)
    assert not recwarn
    with pytest.warns(LetorWarning, match=r"has [1-7] of 8 rows of the query .*cv=GroupKFold"):
        cross_val_score(LinearRegression(), X, y, cv=KFold(3, shuffle=True), scoring=scorer)


@pytest.mark.parametrize("normalise", ["none", "minmax"])
def test_permutation_importance(normalise: str) -> None:
    X, y, qid = rows()
    ranker = quick(normalise=normalise).fit(X, y, qid=qid)
    scorer = ranking_scorer("ndcg@10", qid=qid)
    assert scorer(ranker, X, y) == ranker.score(X, y, qid=qid)
    found = permutation_importance(ranker, X, y, scoring=scorer, n_repeats=3, random_state=0)
    assert found.importances_mean.argmax() == 1
    assert found.importances_mean[1] > 0.1
    by_place = ranking_scorer("ndcg@10", qid=qid.to_numpy())
    assert by_place(ranker, X.to_numpy(), y.to_numpy()) == scorer(ranker, X, y)
    with pytest.raises(InputError, match="X must be a pandas DataFrame and qid a Series with its"):
        by_place(ranker, X[:8], y[:8])
    twice = pd.Index([0]).repeat(len(X))
    with pytest.raises(InputError, match="the index of X and qid must have no label twice"):
        ranking_scorer("map", qid.set_axis(twice))(ranker, X.set_axis(twice)[:8], y[:8])
    with pytest.raises(InputError, match="no entry for the row 1000"):
        ranking_scorer("map", qid=qid.iloc[8:])(ranker, X, y)
    with pytest.raises(InputError, match="give the query of each row"):
        ranking_scorer("map")


@pytest.mark.parametrize("normalise", ["none", "minmax"])
def test_pipeline(normalise: str) -> None:
    X, y, qid = rows()
    pipeline = make_pipeline(StandardScaler(), quick(normalise=normalise))
    pipeline.fit(X, y, lambdamart__qid=qid)
    scaled = StandardScaler().fit_transform(X)
    alone = quick(normalise=normalise).fit(scaled, y, qid=qid)
    expected = alone.predict(scaled, qid=qid)
    np.testing.assert_array_equal(pipeline.predict(X, qid=qid), expected)
    value = ranking_scorer("ndcg@5", qid=qid)(pipeline, X, y)
    assert value == alone.score(scaled, y, qid=qid, measure="ndcg@5")
    named = make_pipeline(StandardScaler().set_output(transform="pandas"), quick())
    named.fit(X, y, lambdamart__qid=qid)
    assert named[-1].feature_names_ == list(X.columns)
    assert named.set_params(lambdamart__n_estimators=2)[-1].n_estimators == 2


def test_masked_values_are_missing_and_masked_labels_refused():
    X = np.ma.masked_less(np.arange(8.0).reshape(4, 2), 3)
    qid = np.array([0, 0, 1, 1])
    data = RankingData.from_rows(X, np.ones(4), qid)
    np.testing.assert_array_equal(np.isnan(data.X), X.mask)
    data = RankingData.from_rows(X, [0, 1, 2, 0], [0, 0, 0, 0])
    with pytest.raises(InputError, match="scores have masked values"):
        evaluate(data, np.ma.masked_equal([4, 3, 2, 1], 2), "ndcg")
    with pytest.raises(InputError, match="a measure is named by a text such as 'ndcg@10', got 5"):
        evaluate(data, [4, 3, 2, 1], [5])
    labels = np.ma.masked_equal([0, 1, 2, 0], 2)
    with pytest.raises(InputError, match="labels y have masked values"):
        RankingData.from_rows(np.ones((4, 1)), labels, qid)


@pytest.mark.parametrize("name", ["label", "qid", "query_id", "docno"])
def test_labels_and_ids_among_the_features_are_refused(name: str) -> None:
    X, y, qid = rows()
    with pytest.raises(InputError, match=rf"columns {name}, .* X\.drop\(columns=\['{name}'\]\)"):
        quick().fit(X.assign(**{name: qid}), y, qid=qid)


def test_features_that_equal_the_label_are_told(recwarn: Any) -> None:
    X, y, qid = rows()
    quick().fit(X, y, qid=qid)
    assert not recwarn
    with pytest.warns(LetorWarning, match=r"equal the label in all rows \(grade\)") as caught:
        quick().fit(X.assign(grade=y), y, qid=qid)
    assert caught[0].filename == __file__
    X, y, qid = rows(n_queries=200)
    recwarn.clear()
    quick().fit(X.assign(grade=np.append(y[:-1], y.iloc[-1] + 1)), y, qid=qid)
    assert not recwarn
