"""What every ranker promises (``letor.rankers.base.Ranker``), installed plug-ins included."""

import json
import multiprocessing
import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import letor.normalise
import letor.rankers
from letor.dataset import RankingData
from letor.errors import InputError, LetorWarning, NotFittedError
from letor.evaluation import Evaluator
from letor.measures import parse_measure
from letor.normalise import NORMALISERS
from letor.rankers.array_ranker import ArrayRanker
from letor.rankers.base import Ranker
from letor.rankers.registry import get_ranker, load_ranker, ranker_names
from letor.tuning import GRIDS

# Settings that keep the tests short; a ranker that is not named here runs with its defaults.
QUICK = {
    "lambdamart": {"n_estimators": 40, "learning_rate": 0.2},
    "xgboost": {"n_estimators": 40, "learning_rate": 0.2},
    "listnet": {"n_epochs": 60, "label_scale": 5.0},
    "ranknet": {"n_epochs": 60, "hidden": 4, "learning_rate": 0.03},
    "rankboost": {"n_rounds": 100},
    "coordinate-ascent": {"n_restarts": 1, "n_sweeps": 3},
}
#: Rankers that are not meant to find the best column, or to use all of them.
WEAK = {"first-column"}


@pytest.fixture(params=ranker_names())
def make(request):
    """Makes a fresh ranker."""
    kind = get_ranker(request.param)
    return lambda **more: kind(**{**QUICK.get(request.param, {}), **more})


@pytest.fixture
def learner(make):
    """Makes a fresh ranker that is to find the best column."""
    if make().name in WEAK:
        pytest.skip("weak by design")
    return make


def toy(seed, n_queries=30, noise=0.0, gap=0.0):
    """Labels 0, 1, 2 by the thirds of column "good"; string ids, rows of a query scattered.

    ``gap`` is the share of each third, at its ends, that has no values.
    """
    rng = np.random.default_rng(seed)
    n = 12 * n_queries
    query = rng.permutation(np.repeat([f"query {i}" for i in range(n_queries)], 12))
    X = rng.random((n, 3), dtype=np.float32)
    y = np.floor(3 * np.clip(X[:, 1] + noise * rng.normal(size=n), 0, 0.999))
    if gap > 0:
        X[:, 1] = (y + gap / 2 + (1 - gap) * (3 * X[:, 1] - y)) / 3
    names = ["noise", "good", "more noise"]
    ids = np.array([f"d{i}" for i in range(n)], dtype=object)
    return RankingData.from_rows(X, y, query, column_names=names, document_ids=ids)


def scores_of(ranker, data):
    scores = ranker.predict(data)
    assert scores.dtype == np.float32
    assert scores.shape == (len(data),)
    assert np.isfinite(scores).all()
    return scores


def test_scores_of_many_rows_do_not_depend_on_how_they_are_divided(make, monkeypatch):
    ranker, data = make().fit(toy(0), toy(1)), toy(2)
    together = scores_of(ranker, data)
    monkeypatch.setattr(letor.normalise, "ROWS_AT_ONCE", 50)
    np.testing.assert_array_equal(scores_of(ranker, data), together)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_fits_and_loads_the_same_ranker(make, tmp_path):
    """Libraries whose threads have run in the process that forks would wait for them forever."""
    threads = {"num_threads": 2} if "num_threads" in make().get_params() else {}
    ranker, data = make(**threads).fit(toy(0), toy(1)), toy(2, n_queries=1000)
    ranker.save(tmp_path / "ranker")

    def child():
        np.save(tmp_path / "loaded.npy", load_ranker(tmp_path / "ranker").predict(data))
        np.save(tmp_path / "fitted.npy", make(**threads).fit(toy(0), toy(1)).predict(data))

    scores = scores_of(ranker, data)
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(60)
    hangs = process.is_alive()
    process.kill()
    assert not hangs
    for name in ("loaded", "fitted"):
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), scores)


def test_each_round_is_told(learner):
    told = []
    ranker = learner().fit(toy(0), toy(1), callback=lambda *finished: told.append(finished))
    if not hasattr(ranker, "validation_curve_"):
        pytest.skip("it does not learn in rounds")
    assert told == list(enumerate(ranker.validation_curve_, start=1))
    told.clear()
    ranker.fit(toy(0), callback=lambda *finished: told.append(finished))
    assert told == [(number, None) for number in range(1, len(told) + 1)]
    assert told
    told.clear()
    ranker.fit(toy(0), toy(1))
    assert not told


def test_separable_toy_reaches_ndcg_1(learner):
    ranker = learner()
    assert ranker.fit(toy(0, 60, gap=0.2), toy(1, 120, gap=0.2)) is ranker
    held_out = toy(2, gap=0.2)
    assert Evaluator(parse_measure("ndcg@10"), held_out).mean(scores_of(ranker, held_out)) == 1


def test_reordering_rows_only_reorders_scores(make):
    ranker = make(normalise="minmax").fit(toy(0, noise=0.2), toy(1, noise=0.2))
    data = toy(2)
    scores = scores_of(ranker, data)
    order = np.random.default_rng(0).permutation(len(data))
    np.testing.assert_array_equal(scores_of(ranker, data.select_rows(order)), scores[order])


def test_other_queries_do_not_change_a_querys_scores(make):
    ranker = make(normalise="minmax").fit(toy(0, noise=0.2))
    data = toy(2)
    rows = data.query_index == 3
    alone = data.select_rows(rows)
    np.testing.assert_array_equal(scores_of(ranker, alone), scores_of(ranker, data)[rows])


def test_constant_column_is_harmless(make):
    def extended(data):
        return data.with_columns(["constant"], np.full(len(data), 7))

    plain = make().fit(toy(0), toy(1)).predict(toy(2))
    with_constant = make().fit(extended(toy(0)), extended(toy(1)))
    np.testing.assert_array_equal(scores_of(with_constant, extended(toy(2))), plain)
    importance = with_constant.feature_importance().set_index("column")
    assert importance.loc["constant", "splits"] == 0


def test_queries_of_one_row_are_allowed(make):
    def with_singles(data):
        single = RankingData.from_rows(
            data.X[:5], [0, 1, 2, 0, 1], list("vwxyz"), column_names=data.column_names
        )
        return RankingData.from_rows(
            np.vstack([single.X, data.X]),
            np.concatenate([single.y, data.y]),
            [*"vwxyz", *(data.query_ids[q] for q in data.query_index)],
            column_names=data.column_names,
        )

    ranker = make().fit(with_singles(toy(0)), with_singles(toy(1)))
    assert len(scores_of(ranker, with_singles(toy(2)))) == 5 + len(toy(2))


def test_validation_rows_are_optional(make):
    assert np.ptp(scores_of(make().fit(toy(0)), toy(2))) > 0


def test_what_only_says_when_to_stop_needs_validation_rows(make):
    others = {"measure": "p@2", "early_stopping_rounds": 1}
    without = scores_of(make().fit(toy(0, noise=0.3)), toy(2))
    for name in make().stopping:
        ranker = make(**{name: others[name]}).fit(toy(0, noise=0.3))
        np.testing.assert_array_equal(scores_of(ranker, toy(2)), without)
    assert ("early_stopping_rounds" in make().stopping) == hasattr(make(), "early_stopping_rounds")


@pytest.mark.parametrize("label", [0.5, 31, 1001])
def test_labels_that_cannot_be_learned_from_are_told_before_training(make, label):
    """As those of training rows that are validation rows, too."""
    rows = toy(0)
    rows = replace(rows, y=np.where(rows.y == 2, np.float32(label), rows.y))
    said = []
    for attempt in (lambda: make().check_rows(rows), lambda: make().fit(rows, rows)):
        try:
            attempt()
        except InputError as error:
            said.append(str(error).removeprefix("measure NDCG@10: "))
    assert not said or (len(said) == 2 and said[0] == said[1])


def test_no_rows_give_no_scores(make):
    ranker = make().fit(toy(0))
    nothing = toy(2).select_rows(np.zeros(len(toy(2)), dtype=bool))
    assert ranker.predict(nothing).shape == (0,)


def test_columns_are_matched_by_name(make):
    ranker = make().fit(toy(0), toy(1).select_columns(["good", "more noise", "noise"]))
    assert ranker.feature_names_ == ["noise", "good", "more noise"]
    data = toy(2)
    turned = data.select_columns(["more noise", "noise", "good"])
    np.testing.assert_array_equal(scores_of(ranker, turned), scores_of(ranker, data))


def test_missing_and_unknown_columns_are_refused_by_name(make):
    ranker = make().fit(toy(0))
    with pytest.raises(InputError, match=r"rows to score lack columns .*: good, noise"):
        ranker.predict(toy(2).select_columns(["more noise"]))
    with pytest.raises(InputError, match="not trained on: extra;"):
        ranker.predict(toy(2).with_columns(["extra"], np.zeros(len(toy(2)))))
    with pytest.raises(InputError, match=r"validation rows lack columns .*: good"):
        make().fit(toy(0), toy(1).select_columns(["noise", "more noise"]))
    with pytest.raises(InputError, match="training rows: they have no columns to learn from"):
        make().fit(toy(0).select_columns([]))


def test_two_fits_are_equal(make):
    train, valid = toy(0, noise=0.2), toy(1, noise=0.2)
    ranker = make()
    first = ranker.fit(train, valid).predict(toy(2))
    np.testing.assert_array_equal(ranker.fit(train, valid).predict(toy(2)), first)
    np.testing.assert_array_equal(make().fit(train, valid).predict(toy(2)), first)


def test_number_of_threads_changes_nothing(make):
    if "num_threads" not in make().get_params():
        pytest.skip("this ranker has no num_threads")
    one, two = (
        make(num_threads=t).fit(toy(0, 200, 0.2), toy(1, noise=0.2)).predict(toy(2)) for t in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("normalise", sorted(NORMALISERS))
def test_save_and_load_keep_every_bit(make, normalise, tmp_path):
    """The normaliser travels with the model."""
    ranker = make(normalise=normalise).fit(toy(0, noise=0.2), toy(1, noise=0.2))
    ranker.save(tmp_path / "model")
    for load in (load_ranker, type(ranker).load):
        again = load(tmp_path / "model")
        assert type(again) is type(ranker)
        assert again.get_params() == ranker.get_params()
        assert again.feature_names_ == ranker.feature_names_
        np.testing.assert_array_equal(again.predict(toy(2)), ranker.predict(toy(2)))
        assert again.feature_importance().equals(ranker.feature_importance())
    again.save(tmp_path / "again")
    for path in (tmp_path / "model").iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes(), path.name


def test_it_is_loaded_without_pickle(make, tmp_path, monkeypatch):
    """Which would run what someone put into a file: ``np.load`` too, if it is told to."""
    make().fit(toy(0), toy(1)).save(tmp_path / "model")

    def refuse(*given, **options):
        raise AssertionError("a saved ranker is read by pickle")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    assert type(load_ranker(tmp_path / "model")) is type(make())


def test_normaliser_is_applied_at_scoring(make):
    """Per query, a positive factor and an offset vanish under min-max; powers of two are exact."""
    ranker = make(normalise="minmax").fit(toy(0))
    data = toy(2)
    factor = np.float32(2) ** (data.query_index % 5)[:, None]
    stretched = replace(data, X=data.X * factor)
    np.testing.assert_array_equal(scores_of(ranker, stretched), scores_of(ranker, data))


def test_own_rankers_do_not_look_at_the_order_of_the_file(make):
    """LightGBM and XGBoost sum in the order of the rows, after shuffling them by the seed."""
    if not isinstance(make(), ArrayRanker):
        pytest.skip("not one of our own rankers")
    train, valid, data = toy(0, noise=0.2), toy(1, noise=0.2), toy(2)
    scores = make(normalise="minmax").fit(train, valid).predict(data)
    by_label = [part.select_rows(np.argsort(-part.y, kind="stable")) for part in (train, valid)]
    np.testing.assert_array_equal(make(normalise="minmax").fit(*by_label).predict(data), scores)


def test_labels_of_any_range(learner):
    """Grades to 4, two grades that are not 0 and 1, and a query without relevant rows."""
    data = toy(0)
    five = replace(data, y=np.floor(5 * data.X[:, 1]))
    odd = replace(data, y=np.where(data.y == 2, np.float32(7), np.float32(3)))
    empty = replace(data, y=np.where(data.query_index < 5, 0, data.y))
    for train in (five, odd, empty):
        ranker = learner().fit(train, train)
        value = Evaluator(parse_measure("skip:ndcg@5"), train).mean(scores_of(ranker, train))
        assert value > 0.9


def test_inputs_are_not_modified(make):
    for normalise in NORMALISERS:
        data = [toy(0), toy(1), toy(2)]
        for part in data:
            part.X.flags.writeable = False
            part.y.flags.writeable = False
        before = [(part.X.copy(), part.y.copy()) for part in data]
        make(normalise=normalise).fit(data[0], data[1]).predict(data[2])
        for part, (X, y) in zip(data, before, strict=True):
            np.testing.assert_array_equal(part.X, X)
            np.testing.assert_array_equal(part.y, y)


def test_unfitted_rankers_say_so(make, tmp_path):
    ranker = make()
    for call in (
        lambda: ranker.predict(toy(0)),
        lambda: ranker.save(tmp_path / "model"),
        ranker.feature_importance,
    ):
        with pytest.raises(NotFittedError, match="call fit first"):
            call()
    assert not (tmp_path / "model").exists()


#: What a ranker does without being told. People compare results with those of last year: a default
#: that changes is changed here too, and stands in the changelog.
DEFAULTS = {
    "adarank": "n_rounds=300 measure=ndcg@10 update=paper max_repeats=5 descending=True "
    "early_stopping_rounds=100 normalise=minmax",
    "coordinate-ascent": "n_restarts=2 n_sweeps=10 tolerance=0.001 measure=ndcg@10 "
    "normalise=minmax seed=0",
    "lambdamart": "objective=lambdarank n_estimators=1000 learning_rate=0.05 num_leaves=10 "
    "min_data_in_leaf=20 feature_fraction=1.0 bagging_fraction=1.0 lambda_l2=0.0 "
    "truncation_level=30 gain=exponential measure=ndcg@10 early_stopping_rounds=100 "
    "normalise=raw+zscore seed=0 num_threads=None position_bias=False "
    "position_bias_regularization=0.0",
    "listnet": "hidden=0 label_scale=1.0 n_epochs=200 learning_rate=0.01 batch_size=16 "
    "weight_decay=0.0 n_networks=1 measure=ndcg@10 early_stopping_rounds=30 normalise=zscore "
    "seed=0",
    "rankboost": "n_rounds=500 n_thresholds=255 learning_rate=1.0 query_weights=queries "
    "descending=False measure=ndcg@10 early_stopping_rounds=150 normalise=raw+zscore",
    "ranknet": "hidden=16 n_epochs=200 learning_rate=0.003 batch_size=16 weight_decay=0.0 "
    "n_networks=1 measure=ndcg@10 early_stopping_rounds=20 normalise=zscore seed=0",
    "xgboost": "objective=rank:ndcg n_estimators=1000 learning_rate=0.05 max_depth=4 "
    "min_child_weight=0.1 subsample=1.0 colsample_bytree=1.0 reg_lambda=1.0 measure=ndcg@10 "
    "early_stopping_rounds=100 normalise=raw+zscore seed=0 lambdarank_unbiased=False "
    "lambdarank_bias_norm=1.0",
}


OURS = [name for name in ranker_names() if get_ranker(name).__module__.startswith("letor.")]


@pytest.mark.parametrize("name", OURS)
def test_defaults_do_not_change_unnoticed(name):
    found = " ".join(f"{k}={value}" for k, value in get_ranker(name)().get_params().items())
    assert name in DEFAULTS, f'add to DEFAULTS: "{name}": "{found}"'
    assert found == DEFAULTS[name]


@pytest.mark.parametrize("name", OURS)
def test_rankers_of_ours_are_imported_by_class_and_have_values_to_try(name):
    assert get_ranker(name).__name__ in letor.rankers.__all__, "add it to letor/rankers/__init__.py"
    assert name in GRIDS, "add it to letor.tuning.GRIDS"


def test_parameters_can_be_read_and_set(make):
    ranker = make()
    assert type(ranker)(**ranker.get_params()).get_params() == ranker.get_params()
    assert ranker.set_params(normalise="zscore") is ranker
    assert ranker.get_params()["normalise"] == "zscore"
    again = clone(ranker.fit(toy(0)))
    assert type(again) is type(ranker)
    assert again.get_params() == ranker.get_params()
    assert not hasattr(again, "feature_names_")
    with pytest.raises(InputError, match=r"no parameter 'trees'; there are .*normalise"):
        ranker.set_params(trees=3)
    with pytest.raises(InputError, match="'max' is unknown"):
        make(normalise="max").fit(toy(0))


def test_parameters_outside_their_range_are_refused_before_training(make, capfd):
    ranker = make()
    for parameter, (least, largest) in ranker.ranges.items():
        fraction = least + 0.5 if isinstance(least, int) else None
        for value in (least - 1, 2 * largest + 1, "x", float("nan"), True, fraction):
            with pytest.raises(InputError, match=f"{parameter}=.*: must be a .*number from"):
                make(**{parameter: value}).fit(toy(0))
    for parameter, choices in ranker.choices.items():
        with pytest.raises(
            InputError, match=f"{parameter}='none of them': choose from {choices[0]}"
        ):
            make(**{parameter: "none of them"}).fit(toy(0))
    if "measure" in ranker.get_params():
        for valid in (toy(1), None):  # of no use without validation rows, but misspelled
            with pytest.raises(InputError, match="measure 'ndgc@10' is unknown"):
                make(measure="ndgc@10").fit(toy(0), valid)
    captured = capfd.readouterr()
    assert captured.out + captured.err == "", "refused before a library sees them"


@pytest.mark.filterwarnings("error")
def test_missing_and_infinite_values_are_accepted(make):
    data = toy(0)
    X = data.X.copy()
    X[::7, 0], X[::5, 2], X[::11, 2] = np.nan, np.inf, -np.inf
    data = replace(data, X=X)
    assert np.isfinite(scores_of(make().fit(data), data)).all()


def test_saving_leaves_other_people_s_folders_alone(make, tmp_path):
    ranker = make().fit(toy(0))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(InputError, match="mine is not empty and holds no ranker"):
        ranker.save(tmp_path / "mine")
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
    (tmp_path / "empty").mkdir()
    for _ in range(2):  # an empty folder, then a ranker's
        ranker.save(tmp_path / "empty")
    assert load_ranker(tmp_path / "empty").feature_names_ == ranker.feature_names_


def test_labels_without_order_are_refused(make):
    data = toy(0)
    with pytest.raises(InputError, match=r"training rows: no query \(of 30\) has two"):
        make().fit(replace(data, y=np.ones_like(data.y)))
    with pytest.raises(InputError, match=r"validation rows: no query .*, or no validation rows$"):
        make().fit(data, replace(data, y=np.zeros_like(data.y)))
    query = data.query_ids[data.query_index[4]]
    for label in (-1, np.inf):
        unusable = data.y.copy()
        unusable[4] = label
        named = rf"negative training .*: 1 \(row 4, query {query}: {label}"
        with pytest.raises(InputError, match=named):
            make().fit(replace(data, y=unusable))


def test_a_failed_fit_leaves_the_old_model(make):
    ranker = make().fit(toy(0))
    before = ranker.predict(toy(2))
    with pytest.raises(InputError):
        ranker.fit(replace(toy(0), y=-toy(0).y))
    np.testing.assert_array_equal(ranker.predict(toy(2)), before)


def test_importance_names_the_useful_column(learner):
    table = learner().fit(toy(0)).feature_importance()
    assert list(table.columns) == ["column", "gain", "splits"]
    assert sorted(table["column"]) == ["good", "more noise", "noise"]
    assert table["column"].iloc[0] == "good"
    assert (table["gain"].diff().dropna() <= 0).all()


def test_fitting_is_quiet(make, capfd):
    make().fit(toy(0), toy(1)).predict(toy(2))
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_folders_that_hold_no_such_ranker_are_refused(make, tmp_path):
    with pytest.raises(InputError, match=r"no ranker\.json"):
        load_ranker(tmp_path)
    make().fit(toy(0)).save(tmp_path / "model")
    path = tmp_path / "model" / "ranker.json"
    description = json.loads(path.read_text())
    path.write_text(json.dumps({**description, "format_version": 99}))
    with pytest.raises(InputError, match="format version 99"):
        load_ranker(tmp_path / "model")
    path.write_text(json.dumps({**description, "ranker": "unheard of"}))
    with pytest.raises(InputError, match="'unheard of'"):
        load_ranker(tmp_path / "model")
    with pytest.raises(InputError, match="'unheard of'"):
        type(make()).load(tmp_path / "model")
    path.write_text(json.dumps(description))
    with pytest.raises(InputError, match=r"letor\.rankers\.load_ranker"):
        Ranker.load(tmp_path / "model")
    reversed_names = description["feature_names"][::-1]
    path.write_text(json.dumps({**description, "feature_names": reversed_names}))
    with pytest.raises(InputError, match=r"ranker\.json is damaged"):
        load_ranker(tmp_path / "model")
    path.write_text("{")
    with pytest.raises(InputError, match="not the description of a ranker"):
        load_ranker(tmp_path / "model")


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        (np.ones(3), r"by an array \[3\]"),
        (np.ones((360, 1)), r"by an array \[360, 1\]"),
        (np.full(360, np.nan), "by NaN"),
        (np.full(360, 1e39), "beyond float32 .*normalise='zscore'"),
    ],
)
def test_scores_that_are_no_number_per_row_are_refused(scores, said, monkeypatch):
    ranker = get_ranker("adarank")().fit(toy(0))
    monkeypatch.setattr(ranker, "_predict", lambda data: scores)
    with pytest.raises(InputError, match=f"AdaRank scored 360 rows {said}"):
        ranker.predict(toy(2))


class Mine(Ranker):
    """Sum of the columns."""

    name = "mine"

    def __init__(self, normalise="none", weight=1.0):
        self.normalise, self.weight = normalise, weight

    def _fit(self, train, valid):
        self.folder_ = None

    def _predict(self, data):
        return data.X.sum(axis=1)

    def _importance(self):
        return np.ones((2, self._n_inputs))

    def _save(self, folder):
        return {"folder": self.folder_}

    def _load(self, folder, fitted):
        self.folder_ = fitted["folder"]


def test_a_ranker_of_ones_own_cannot_change_the_rows_it_is_given(monkeypatch):
    ranker = Mine().fit(toy(0), toy(1))
    monkeypatch.setattr(Mine, "_predict", lambda self, data: data.X.sort())
    with pytest.raises(ValueError, match="read-only"):
        ranker.predict(toy(2))
    for change in (lambda data: data.X.fill(0), lambda data: data.y.fill(0)):
        monkeypatch.setattr(Mine, "_fit", lambda self, *parts: [change(part) for part in parts])  # noqa: B023
        with pytest.raises(ValueError, match="read-only") as raised:
            Mine().fit(toy(0), toy(1))
        assert raised.value.__notes__ == ["in ranker 'mine'"]


def test_errors_of_a_ranker_of_ones_own_say_whose_they_are(monkeypatch, tmp_path):
    ranker = Mine().fit(toy(0))
    for part, call in (
        ("_predict", lambda: ranker.predict(toy(2))),
        ("_save", lambda: ranker.save(tmp_path / "mine")),
        ("_importance", ranker.feature_importance),
    ):
        monkeypatch.setattr(Mine, part, lambda *given: {}["coefficients"])
        with pytest.raises(KeyError) as raised:
            call()
        assert raised.value.__notes__ == ["in ranker 'mine'"], part
    assert not (tmp_path / "mine").exists()


def test_what_a_ranker_of_ones_own_lacks_is_named(monkeypatch, tmp_path):
    ranker = Mine().fit(toy(0))
    ranker.folder_ = tmp_path
    with pytest.raises(InputError, match=r"what its _save returns, .* which has no PosixPath"):
        ranker.save(tmp_path / "mine")
    assert not (tmp_path / "mine").exists()
    monkeypatch.setattr(Mine, "_importance", lambda self: [[1.0], [1.0]])
    with pytest.raises(InputError, match=r"_importance must return two lists.* of the 3 columns"):
        ranker.feature_importance()
    del ranker.weight
    with pytest.raises(InputError, match=r"Mine has no weight: .*constructor stores each"):
        ranker.fit(toy(0))


def test_unknown_ranker():
    with pytest.raises(InputError, match=r"no ranker 'svm'; there are .*lambdamart"):
        get_ranker("svm")


@pytest.mark.parametrize(
    ("name", "strict"),
    [("lambdamart", {"min_data_in_leaf": 10**6}), ("xgboost", {"min_child_weight": 1e9})],
)
def test_a_ranker_that_learned_nothing_says_so(name, strict, tmp_path, recwarn):
    data = toy(0)
    ranker = get_ranker(name)(**QUICK[name]).fit(data)
    assert ranker.remarks == []
    assert not [w for w in recwarn if w.category is LetorWarning]
    with pytest.warns(LetorWarning, match=f"{name}: learned nothing, .* scores all rows alike"):
        nothing = get_ranker(name)(**QUICK[name], **strict).fit(data, data)
    assert np.ptp(nothing.predict(data)) == 0
    nothing.save(tmp_path / "ranker")
    assert load_ranker(tmp_path / "ranker").remarks == nothing.remarks != []
    with pytest.raises(NotFittedError):
        get_ranker(name)().remarks  # noqa: B018
