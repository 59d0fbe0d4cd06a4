"""Simulated logs: seeded, of any number of sessions, and as their users are said to be."""

import numpy as np
import pytest

from letor.dataset import RankingData
from letor.errors import InputError
from ltr_features.clicks.reading import read_click_rows
from ltr_features.clicks.rules import LogRules
from ltr_features.clicks.simulation import Simulation, Users


def rows(seed=0):
    rng = np.random.default_rng(seed)
    sizes = [3, 12, 1, 20]
    queries = np.repeat([f"q{i}" for i in range(4)], sizes)
    y = rng.integers(0, 3, sum(sizes))
    shuffled = rng.permutation(sum(sizes))
    return RankingData.from_rows(rng.random((sum(sizes), 1)), y, queries).select_rows(shuffled)


def test_the_file_says_what_the_log_says(tmp_path):
    data = rows()
    simulation = Simulation(data, data.X[:, 0], exploration=1.0)
    log = simulation.log(5_000)
    for name in ("x.tsv.gz", "x.csv", "x.parquet"):
        n = simulation.write(5_000, tmp_path / name)
        read = read_click_rows(tmp_path / name, rules=LogRules(queries="id"))
        assert n == read.description["rows"] == log.shown.sum()
        assert read.n_pages == 5_000
        assert len(read.pages) == len(log.pages)
        assert sorted(read.shown.tolist()) == sorted(log.shown.tolist())
        assert read.clicked.sum() == log.clicked.sum()


def test_a_document_of_several_queries_is_one_document():
    ids = np.array(["a", "b", "c", "b", "a", "d"], dtype=object)
    data = RankingData.from_rows(
        np.arange(6)[:, None], [1, 0, 2, 0, 1, 2], ["p", "p", "p", "q", "q", "q"], document_ids=ids
    )
    log = Simulation(data, data.X[:, 0]).log(200)
    assert sorted(log.document_ids) == ["a", "b", "c", "d"]
    shown = {(log.query_ids[q], log.document_ids[d])
             for q, d in zip(log.pair_query, log.pair_document, strict=True)}  # fmt: skip
    assert shown == {*zip("pppqqq", ids, strict=True)}


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    data = rows()
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        Simulation(data, data.X[:, 0], seed=seed).write(6_000, tmp_path / f"{name}.tsv")
    a, b, c = ((tmp_path / f"{name}.tsv").read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_more_sessions_begin_like_fewer(tmp_path):
    data = rows()
    simulation = Simulation(data, data.X[:, 0], exploration=0.5)
    few = tmp_path / "few.tsv"
    many = tmp_path / "many.tsv"
    simulation.write(1_000, few)
    simulation.write(9_000, many)
    assert many.read_text().startswith(few.read_text())


def test_without_exploration_the_rankers_order_is_shown():
    data = rows()
    log = Simulation(data, data.X[:, 0], depth=5).log(500)
    for query in range(4):
        mine = np.flatnonzero(data.query_index == query)
        best = mine[np.argsort(-data.X[mine, 0], kind="stable")][:5]
        shown = log.pair_query[log.result_pair] == query
        order = np.argsort(log.result_position[shown])
        documents = log.pair_document[log.result_pair[shown]][order].tolist()
        assert [int(log.document_ids[d]) for d in documents] == best.tolist()


def test_exploration_shows_the_better_more_often_above():
    data = rows()
    log = Simulation(data, data.X[:, 0], exploration=1.0, depth=1).log(20_000)
    query = 3
    mine = np.flatnonzero(data.query_index == query)
    z = (data.X[mine, 0] - data.X[mine, 0].mean()) / data.X[mine, 0].std()
    expected = np.exp(z) / np.exp(z).sum()  # Plackett and Luce
    shown = np.zeros(len(data))
    pairs = log.pair_query[log.result_pair] == query
    shown[log.pair_document[log.result_pair[pairs]]] = log.shown[pairs]
    share = shown[mine] / shown.sum()
    errors = np.sqrt(expected * (1 - expected) / shown.sum())
    assert (np.abs(share - expected) < 4.5 * errors).all()


@pytest.mark.parametrize("eta", [0.0, 0.5, 2.0])
def test_position_based_clicks_have_their_rates(eta):
    data = rows()
    simulation = Simulation(data, data.X[:, 0], Users(eta=eta, noise=0.2), exploration=1.0)
    log = simulation.log(30_000)
    ranks = log.result_position + 1.0
    p = simulation.attraction[log.pair_document[log.result_pair]] * ranks**-eta
    z = (log.clicked - log.shown * p) / np.sqrt(np.maximum(log.shown * p * (1 - p), 1e-9))
    z = z[(p > 0) & (p < 1) & (log.shown > 50)]
    assert abs(np.mean(z**2) - 1) < 5 * np.sqrt(2 / len(z))


def test_cascade_users_click_once_and_satisfied_ones_leave():
    data = rows()
    for model, most in (("cascade", 1), ("dbn", 10)):
        users = Users(model, noise=0.4, continuation=1.0)
        log = Simulation(data, data.X[:, 0], users, exploration=1.0).log(2_000)
        clicks = np.add.reduceat(log.pages.click.astype(int), log.pages.offsets[:-1])
        assert clicks.max() <= most
        best = data.y[log.pair_document[log.pages.pair]] == data.y.max()
        after_best = log.pages.click & best & (log.pages.place < log.pages.last_click[
            log.pages.row_page])  # fmt: skip
        assert not after_best.any()  # a result of the best grade always satisfies


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda d: Users("eyes"), "users must be 'pbm' or"),
        (lambda d: Users(eta=-1), "eta must be 0 or more"),
        (lambda d: Users(noise=2), "noise must lie"),
        (lambda d: Simulation(d, [1.0]), "scores have shape"),
        (lambda d: Simulation(d, np.full(len(d), np.nan)), "not finite"),
        (lambda d: Simulation(d, d.X[:, 0], depth=0), "depth must lie"),
        (lambda d: Simulation(d, d.X[:, 0], exploration=-1), "exploration must be"),
        (lambda d: Simulation(d, d.X[:, 0]).log(0), "n_sessions must be"),
        (lambda d: Simulation(d, d.X[:, 0]).write(3, "x.txt"), "must end in"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make(rows())


def test_unjudged_rows_are_refused():
    data = RankingData.from_rows([[1.0], [2.0]], [-1, 1], ["q", "q"])
    with pytest.raises(InputError, match="drop unjudged rows"):
        Simulation(data, data.X[:, 0])
