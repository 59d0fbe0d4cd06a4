"""One XGBoost on several workers: the same model for the same number of them."""

import sys
from time import monotonic, sleep

import numpy as np
import pytest
from killed_worker import killed_worker
from toys import refused, run

from letor.dataset import RankingData
from letor.errors import InputError
from letor.parquet import read_parquet, write_parquet
from letor.rankers.xgboost_lambdamart import XGBoostLambdaMART
from ltr_features.rank_workers import train_on

N_QUERIES, DEPTH = 60, 20


def some_rows():
    rng = np.random.default_rng(0)
    n = N_QUERIES * DEPTH
    X = rng.normal(size=(n, 5)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] > 1).astype(np.float32)
    names = [f"q{i}" for i in range(N_QUERIES)]
    return RankingData(X, y, names, np.repeat(np.arange(N_QUERIES), DEPTH), list("abcde"))


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    write_parquet(some_rows(), path)
    return path


def train(rows, out, *given, ranker="xgboost"):
    """The command."""
    few = ("--ranker", ranker, "--param", "n_estimators=20")
    return "rank", "train", rows, *few, "--out", out, *given


def model_of(folder):
    return (folder / "model.json").read_bytes()


def test_the_model_depends_on_the_number_of_workers_alone(rows, workers, tmp_path):
    for name, given in {
        "alone": (),
        "one": ("--scheduler", "local:1"),
        "two": ("--scheduler", workers.scheduler_address),
    }.items():
        run(*train(rows, tmp_path / name, *given))
    train_on(
        workers.scheduler_address,
        rows,
        XGBoostLambdaMART(n_estimators=20),
        tmp_path / "mapped",
        memory=1,
    )
    models = {path.name: model_of(path) for path in tmp_path.iterdir()}
    assert models["alone"] == models["one"] != models["two"]
    data, best = some_rows(), []
    for name in ("alone", "two", "mapped"):
        ranker = XGBoostLambdaMART.load(tmp_path / name)
        assert ranker.feature_names_ == list("abcde")
        best.append(ranker.score(data))
    assert best == pytest.approx([best[0]] * 3, abs=0.02)


def test_two_workers_repeat(rows, workers, tmp_path):
    for name in "ab":
        run(*train(rows, tmp_path / name, "--scheduler", workers.scheduler_address))
    assert model_of(tmp_path / "a") == model_of(tmp_path / "b")


def test_some_rows_of_a_file(rows):
    whole, some = read_parquet(rows), read_parquet(rows, rows=slice(DEPTH, 3 * DEPTH))
    np.testing.assert_array_equal(some.X, whole.X[DEPTH : 3 * DEPTH])
    assert some.query_ids == ["q1", "q2"]
    assert some.query_index.tolist() == [0] * DEPTH + [1] * DEPTH


@pytest.mark.parametrize(
    ("ranker", "given", "message"),
    [
        ("lambdamart", (), "--scheduler: only --ranker xgboost trains on workers"),
        ("xgboost", ("--vali", "x.parquet"), "--vali: workers do not stop early"),
        ("xgboost", ("--param", "normalise=standard"), "looks at all rows: use another one"),
        ("xgboost", ("--columns", "9"), "--columns, --max-columns, --non-finite: for"),
        ("xgboost", ("--non-finite", "nan"), "--columns, --max-columns, --non-finite: for"),
    ],
)
def test_what_workers_cannot_do_is_refused(rows, tmp_path, ranker, given, message):
    on_workers = ("--scheduler", "local:1", *given)
    assert message in refused(*train(rows, tmp_path / "ranker", *on_workers, ranker=ranker))


@pytest.mark.skipif(sys.platform == "win32", reason="kills a process by a signal")
def test_a_worker_that_is_killed_ends_the_training(rows, workers, tmp_path):
    """The others need it, and say so instead of waiting; the command can be run again."""
    ranker, end = XGBoostLambdaMART(n_estimators=1_000_000), monotonic() + 5
    with (
        pytest.raises(InputError, match="a worker died, and the others need it: run the comm"),
        killed_worker(workers, lambda: monotonic() > end),
    ):
        train_on(workers.scheduler_address, rows, ranker, tmp_path / "ranker")
    assert not (tmp_path / "ranker").exists()
    sleep(1)
    train_on(workers.scheduler_address, rows, XGBoostLambdaMART(n_estimators=2), tmp_path / "again")
