"""Pieces of work on a cluster: where they are done, and what happens to those of a dead worker."""

import os
import signal
import sys
from importlib import import_module
from threading import Lock
from time import sleep

import pytest
from killed_worker import killed_worker

from letor.errors import InputError
from ltr_features.cluster import Cluster, connected, local_cluster


@pytest.fixture
def address():
    """Work that takes some seconds, and tells where it was done."""

    def work(seconds):  # not of this file, which workers cannot import
        from time import sleep

        from distributed import get_worker

        sleep(seconds)
        return get_worker().address

    return work


@pytest.fixture
def dies():
    """Work that kills its worker."""

    def work():
        import os

        os.kill(os.getpid(), 9)

    return work


def test_a_piece_goes_back_to_the_worker_that_did_it(workers, address):
    homes = {}
    with connected(workers.scheduler_address) as cluster:
        first = list(cluster.in_order(address, [(0.0,)] * 6, homes))
        assert sorted(first.count(place) for place in set(first)) == [3, 3]
        assert [homes[i] for i in range(6)] == first
        assert list(cluster.in_order(address, [(0.0,)] * 6, homes)) == first


def test_more_pieces_of_one_worker_go_to_others(workers, address):
    with connected(workers.scheduler_address) as cluster:
        homes = dict.fromkeys(range(4), cluster.workers[0])
        places = list(cluster.in_order(address, [(0.0,)] * 4, homes))
        assert sorted(places.count(place) for place in cluster.workers) == [2, 2]


@pytest.mark.skipif(sys.platform == "win32", reason="kills a process by a signal")
def test_the_pieces_of_a_worker_that_dies_are_done_by_another(workers, address):
    with connected(workers.scheduler_address) as cluster:
        homes = {}
        before = list(cluster.in_order(address, [(0.0,)] * 2, homes))
        begun = cluster.in_order(address, [(2.0,)] * 2, homes)
        with killed_worker(workers, lambda: True):
            after = list(begun)
        assert len(set(before) & set(after)) == 1
        assert [homes[0], homes[1]] == after


def test_work_ends_where_no_worker_is_left(monkeypatch):
    from distributed import Client, LocalCluster

    monkeypatch.setattr("ltr_features.cluster._PATIENCE", 1)
    with LocalCluster(n_workers=0, dashboard_address=":0") as nobody, Client(nobody) as client:
        cluster = Cluster(client)
        with pytest.raises(InputError, match="there has been no worker for 1 s: start some"):
            cluster.result(cluster.submit(len, "abc"))


@pytest.mark.skipif(sys.platform == "win32", reason="kills a process by a signal")
def test_a_worker_of_this_machine_may_take_long_to_come_back(monkeypatch):
    """Dask, which is told here to wait for it a tenth of a second, would close it for good."""
    import dask

    monkeypatch.setattr("ltr_features.cluster._PATIENCE", 20)
    impatient = dask.config.set({"distributed.deploy.lost-worker-timeout": "100ms"})
    with impatient, local_cluster(1) as workers, connected(workers.scheduler_address) as cluster:
        os.kill(workers.workers[0].pid, signal.SIGKILL)
        while cluster.workers:
            sleep(0.01)
        sleep(0.5)
        assert cluster.result(cluster.submit(len, "abc")) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="kills a process by a signal")
def test_a_piece_that_kills_its_workers_is_given_up(workers, dies):
    with (
        connected(workers.scheduler_address) as cluster,
        pytest.raises(InputError, match="workers died of one piece of work, several times"),
    ):
        list(cluster.in_order(dies, [()], {}))


def test_a_package_that_workers_lack_is_named_and_they_live_on(workers, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("def work():\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    work = import_module("only_here").work
    with connected(workers.scheduler_address) as cluster:
        with pytest.raises(InputError, match=r"worker on .*: .*'only_here'; install the packages"):
            cluster.result(cluster.submit(work))
        assert cluster.result(cluster.submit(len, "abc")) == 3


def test_work_that_cannot_be_sent_is_told(workers):
    with (
        connected(workers.scheduler_address) as cluster,
        pytest.raises(InputError, match=r"cannot be sent to them .*lock.*: families and models "),
    ):
        cluster.submit(str, Lock())
