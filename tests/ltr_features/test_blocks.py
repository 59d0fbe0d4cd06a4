"""Feature tables by blocks of queries: the same bytes as at once, on one machine or on workers."""

from __future__ import annotations

import shutil
import sys
from importlib import import_module

import numpy as np
import pytest
from distributed import Client
from killed_worker import killed_worker
from random_collection import random_collection

from letor.arrow_rows import ArrowRows
from letor.errors import InputError
from letor.parquet import read_parquet, write_parquet
from ltr_features import blocks, cluster, column_workers
from ltr_features.blocks import BlockWork, memory_size, write_columns
from ltr_features.candidates import choose_candidates
from ltr_features.column_workers import blocks_on
from ltr_features.columns import ColumnFamily, ColumnSpec
from ltr_features.columns.context import make_workspace, open_workspace
from ltr_features.columns.registry import get_family
from ltr_features.feature_table import build_columns
from ltr_features.part_store import PartFolder, PartUrl
from ltr_features.text.collection import Pairs

BM25 = {"bm25": {"depth": 5}}
SOURCES = [BM25, {"judged": {}, "bm25": {"depth": 3}}, {"lsi": {"depth": 4, "params": {"rank": 5}}}]

FULL = r"^worker on .*: .*blocks/.*\.arrow: .*[Ff]ile too large; put that right there, and run the "


def collection(n_queries=30):
    return random_collection(n_queries, 90)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return make_workspace(collection(), tmp_path_factory.mktemp("blocks") / "workspace")


@pytest.fixture
def families():
    return [get_family("letor46"), get_family("vsm")]


@pytest.fixture
def tiny(monkeypatch):
    """Row groups and blocks of a few rows."""
    monkeypatch.setattr("letor.parquet_rows._BLOCK_BYTES", 1)
    return 2 * 5 * (blocks._ROW_BYTES + 4 * blocks._COPIES * 47)  # two queries of five candidates


@pytest.fixture(params=["folder", "url"])
def parts(request, tmp_path):
    """Where workers put blocks, and the folder in which these are then."""
    folder = tmp_path / "blocks"
    if request.param == "folder":
        return PartFolder(folder), folder
    folder.mkdir()
    return PartUrl(f"file://{folder}", "own"), folder


@pytest.mark.parametrize("candidates", SOURCES, ids=["bm25", "two sources", "model"])
def test_any_blocks_give_the_bytes_of_the_whole(workspace, families, candidates, tmp_path, tiny):
    context = open_workspace(workspace)
    found = choose_candidates(context, candidates)
    whole = build_columns(context, found.pairs, families, origins=found.origins)
    write_parquet(whole, tmp_path / "whole.parquet")
    expected = (tmp_path / "whole.parquet").read_bytes()
    for memory in (1, tiny, 2**30):
        path, told = tmp_path / f"{memory}.parquet", []
        written = write_columns(
            context, candidates, families, path,
            memory=memory, on_progress=lambda done, total, told=told: told.append((done, total)),
        )  # fmt: skip
        assert path.read_bytes() == expected
        assert (written.n_rows, written.n_queries, written.width) == (
            len(whole), whole.n_queries, 47,
        )  # fmt: skip
        assert written.coverage == whole.coverage
        assert told[-1] == (30, 30)
        assert len(told) == {1: 30, tiny: len(told), 2**30: 1}[memory]
    assert read_parquet(tmp_path / "1.parquet").missing == whole.missing


def test_nothing_is_left_where_a_block_fails(workspace, families, tmp_path):
    def fails(work, todo):
        yield work.rows(open_workspace(workspace), todo[0])
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        write_columns(
            open_workspace(workspace), BM25, families, tmp_path / "rows.parquet",
            memory=1, made_by=fails,
        )  # fmt: skip
    assert not list(tmp_path.iterdir())


def test_a_collection_without_candidates_is_refused(tmp_path, families):
    context = open_workspace(make_workspace(collection(30), tmp_path / "w"))
    none = context.for_queries(["unheard"])
    with pytest.raises(InputError, match="no query has a candidate from bm25"):
        write_columns(none, BM25, families, tmp_path / "rows.parquet")


def test_sizes_of_memory():
    assert memory_size("2GiB") == 2**31
    assert memory_size("1.5 MB") == 1_500_000
    for wrong in ("2Gb", "many", "", "-1GiB", "10KiB"):
        with pytest.raises(InputError, match="memory"):
            memory_size(wrong)


def test_workers_make_the_same_bytes_and_go_on(workspace, families, tmp_path, tiny, workers, parts):
    context, (store, folder) = open_workspace(workspace), parts
    write_columns(context, BM25, families, tmp_path / "here.parquet", memory=tiny)

    def cut_off(made_by):
        def made(work, todo):
            for number, rows in enumerate(made_by(work, todo)):
                if number == 3:
                    raise KeyboardInterrupt
                yield rows

        return made

    path, made = tmp_path / "there.parquet", workers.scheduler_address
    with pytest.raises(KeyboardInterrupt), blocks_on(made, workspace, store) as made_by:
        write_columns(
            context, BM25, families, path, memory=tiny, made_by=cut_off(made_by)
        )  # fmt: skip
    kept = {file: file.stat().st_mtime_ns for file in folder.glob("*.arrow")}
    assert len(kept) >= 3
    with blocks_on(made, workspace, store) as made_by:
        written = write_columns(context, BM25, families, path, memory=tiny, made_by=made_by)
        assert all(file.stat().st_mtime_ns == time for file, time in kept.items())
    assert path.read_bytes() == (tmp_path / "here.parquet").read_bytes()
    assert written.n_rows == len(read_parquet(path))
    assert not list(folder.glob("*"))


def test_blocks_of_a_workspace_that_was_edited_since_are_not_reused(
    workspace, families, tmp_path, tiny, workers
):
    edited, store = tmp_path / "edited", PartFolder(tmp_path / "blocks")
    shutil.copytree(workspace, edited)

    def write(made_here=None):
        with blocks_on(workers.scheduler_address, edited, store) as made_by:
            write_columns(
                open_workspace(edited), BM25, families, tmp_path / "rows.parquet",
                memory=tiny, made_by=made_here(made_by) if made_here else made_by,
            )  # fmt: skip

    def cut_off(made_by):
        def made(work, todo):
            yield next(made_by(work, todo))
            raise KeyboardInterrupt

        return made

    with pytest.raises(KeyboardInterrupt):
        write(cut_off)
    judged = edited / "collection" / "qrels.tsv"
    judged.write_text(judged.read_text().replace("\t1\n", "\t2\n"))
    with pytest.raises(InputError, match=r"edited: changed since .*qrels\.tsv: changed.*in folder"):
        write()


def test_a_worker_with_a_full_disk_is_named_and_the_command_goes_on(
    workspace, families, tmp_path, tiny, workers
):
    resource = pytest.importorskip("resource", reason="limits how much a worker may write")
    context, folder = open_workspace(workspace), tmp_path / "blocks"
    write_columns(context, BM25, families, tmp_path / "here.parquet", memory=tiny)

    def write():
        with blocks_on(workers.scheduler_address, workspace, PartFolder(folder)) as made_by:
            write_columns(
                context, BM25, families, tmp_path / "there.parquet", memory=tiny, made_by=made_by
            )  # fmt: skip

    with Client(workers) as client:
        client.wait_for_workers(2)

        def limit(size):  # of files, as of a full disk: the last bytes are refused
            limits = (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
            client.run(resource.setrlimit, resource.RLIMIT_FSIZE, limits)

        try:
            limit(1000)
            with pytest.raises(InputError, match=FULL):
                write()
        finally:
            limit(resource.RLIM_INFINITY)
    assert not (tmp_path / "there.parquet").exists()
    for block in folder.glob("*.arrow"):  # that a worker has made since
        assert len(ArrowRows.open(block))
    write()
    assert (tmp_path / "there.parquet").read_bytes() == (tmp_path / "here.parquet").read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="kills a process by a signal")
def test_a_killed_worker_changes_nothing(workspace, families, tmp_path, tiny, workers, parts):
    context, (store, folder) = open_workspace(workspace), parts
    write_columns(context, BM25, families, tmp_path / "here.parquet", memory=1)
    with (
        blocks_on(workers.scheduler_address, workspace, store) as made_by,
        killed_worker(workers, lambda: any(folder.glob("*.arrow"))),
    ):
        write_columns(
            context, BM25, families, tmp_path / "there.parquet", memory=1, made_by=made_by
        )  # fmt: skip
    assert (tmp_path / "there.parquet").read_bytes() == (tmp_path / "here.parquet").read_bytes()


class FakeClient:
    """A worker that sees something else."""

    def __init__(self, **other):
        self.other = other

    def wait_for_workers(self, n, timeout):
        pass

    def run(self, look, *arguments, on_error):
        assert on_error == "return"
        host, seen = look(*arguments)
        changed = {
            w: next((v for k, v in self.other.items() if k in w), s) for w, s in seen.items()
        }
        return {"tcp://there:1": (host, changed)}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"version": "0.0.1"}, "worker tcp://there:1 on .*: the version is 0.0.1"),
        ({"/workspace": "missing"}, "folder .*workspace is missing, here it is [0-9a-f]{16};"),
        ({"folder": "missing"}, "folder .* is missing, here it is .*; install one version"),
    ],
)
def test_workers_that_would_do_otherwise_are_refused(workspace, tmp_path, other, message):
    with pytest.raises(InputError, match=message):
        cluster._check_workers(FakeClient(**other), [workspace, PartFolder(tmp_path)])
    cluster._check_workers(FakeClient(), [workspace, PartFolder(tmp_path)])


def test_a_worker_of_another_version_that_came_later_is_refused():
    with pytest.raises(
        InputError, match=r"has ltr-features .*, Unicode .*; .* runs there is old: "
    ):
        cluster._worked("old", b"")
    assert cluster._worked(cluster.software(), cluster.packed((max, (1, 2)))) == 2


def test_a_worker_without_the_package_is_named(tmp_path):
    class Broken(FakeClient):
        def run(self, look, *arguments, on_error):
            return {"tcp://a:1": OSError("gone"), "tcp://b:2": ModuleNotFoundError("ltr_features")}

    with pytest.raises(InputError, match="worker tcp://b:2 cannot run this package"):
        cluster._check_workers(Broken(), [tmp_path])


def test_a_cluster_without_workers_is_told():
    class Nobody(FakeClient):
        def wait_for_workers(self, n, timeout):
            raise TimeoutError

    with pytest.raises(InputError, match="the Dask scheduler has no worker after 60 s"):
        cluster._check_workers(Nobody(), [])


def test_a_worker_that_came_later_is_refused_for_other_inputs(workspace, families, tmp_path):
    work, block, parts = BlockWork(BM25, families), blocks.Block(0, 3), PartFolder(tmp_path)
    seen = column_workers._seen(workspace, work)
    for inputs in (
        ((str(workspace), "0" * 16),),
        (*seen, (str(workspace / "workspace.json"), "0" * 16)),
    ):
        with pytest.raises(InputError, match=r"worker on .*: .*workspace.* is another one there"):
            column_workers._write_block(inputs, work, block, parts, "block")
    column_workers._write_block(seen, work, block, parts, "block")
    assert len(ArrowRows.open(tmp_path / "block").query_ids) == 3


def test_a_worker_with_other_code_of_a_family_is_refused(workspace, tmp_path, monkeypatch):
    """Its files may be the same: it keeps the code that it has imported."""
    code = "from ltr_features.columns import VectorSpace\nclass Family(VectorSpace):\n    pass\n"
    (tmp_path / "their_columns.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    families = [import_module("their_columns").Family()]
    block, parts = blocks.Block(0, 3), PartFolder(tmp_path)
    before = BlockWork(BM25, families)
    seen = column_workers._seen(workspace, before)
    column_workers._write_block(seen, before, block, parts, "block")
    (tmp_path / "their_columns.py").write_text(code + "# changed")
    after = BlockWork(BM25, families)
    assert column_workers._base(seen, after) != column_workers._base(seen, before)
    with pytest.raises(InputError, match=r"worker on .*: the code of their_columns\.Family is not"):
        column_workers._write_block(seen, after, block, parts, "other")


def test_a_worker_learns_anew_for_a_class_that_was_defined_again(workspace, tmp_path):
    def defined(value):
        def compute(self, context, pairs):
            learned = context.cached("mine", lambda: np.float32(value))
            return np.full((len(pairs), 1), learned)

        columns = (ColumnSpec("mine", "d", "u", "any", "r"),)
        parts = {"name": "mine", "description": "d", "reference": "r", "columns": columns}
        return type("Mine", (ColumnFamily,), parts | {"compute": compute, "__module__": "__main__"})

    block, parts = blocks.Block(0, 3), PartFolder(tmp_path)
    for value in (3, 5):
        work = BlockWork(BM25, [defined(value)()])
        seen = column_workers._seen(workspace, work)
        column_workers._write_block(seen, work, block, parts, str(value))
        rows = ArrowRows.open(tmp_path / str(value))
        assert rows.table["mine"].unique().to_pylist() == [value]


def test_blocks_of_other_pairs_have_other_files():
    def named(documents, origins=None):
        pairs = Pairs(np.zeros(2, np.int64), np.array(documents))
        return column_workers._name(blocks.Block(0, 1, pairs, origins))

    assert named([1, 2]) == named([1, 2])
    assert len({named([1, 2]), named([1, 3]), named([1, 2], ["a", "b"])}) == 3
    assert column_workers._name(blocks.Block(3, 7)) == "3-7"


class Weighed(ColumnFamily):
    name = "weighed"
    columns = (ColumnSpec("weighed", "d", "u", "any", "r"),)

    def __init__(self, weights):
        self.weights = weights

    def compute(self, context, pairs):
        return self.weights[pairs.document][:, None].astype(np.float32)


def test_settings_name_the_files_of_blocks(workspace, families, tmp_path):
    def base(work):
        return column_workers._base(column_workers._seen(workspace, work), work)

    of = base(BlockWork(BM25, families))
    assert of == base(BlockWork(dict(BM25), [get_family("letor46"), get_family("vsm")]))
    assert of != base(BlockWork({"bm25": {"depth": 6}}, families))
    other = [get_family("letor46"), get_family("vsm", terms="letter-trigrams")]
    assert of != base(BlockWork(BM25, other))
    weights = np.arange(3000)
    weighed = base(BlockWork(BM25, [Weighed(weights)]))
    assert weighed == base(BlockWork(BM25, [Weighed(weights.copy())]))
    assert weighed != base(BlockWork(BM25, [Weighed(np.where(weights == 1500, 0, weights))]))
    scores = tmp_path / "scores.tsv"
    scores.write_text("query\tdocument\tscore\nq1\td1\t1\n")
    given = [get_family("scores", files={"engine": str(scores)})]
    before = base(BlockWork(BM25, given))
    assert before == base(BlockWork(BM25, given))
    scores.write_text("query\tdocument\tscore\nq1\td1\t1\nq2\td1\t3\n")
    assert before != base(BlockWork(BM25, given))
    for name in ("queries", "documents"):
        np.save(tmp_path / f"{name}.npy", np.ones((2, 3), np.float32))
        (tmp_path / f"{name}.txt").write_text("a\nb\n")
    files = {name: str(tmp_path / f"{name}.npy") for name in ("queries", "documents")}
    vectors = BlockWork(BM25, [get_family("vectors", **files)])
    assert str(tmp_path / "documents.txt") in dict(column_workers._seen(workspace, vectors))


def test_dask_is_asked_for_by_name(monkeypatch, workspace, tmp_path):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(InputError, match=r"install ltr-features\[dask\]"),
        blocks_on("local:2", workspace, PartFolder(tmp_path)),
    ):
        pass
