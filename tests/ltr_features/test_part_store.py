"""Parts of workers in a folder or at a URL: the same bytes, and nothing left."""

from __future__ import annotations

import errno
import pickle
import sys
import tempfile
from pathlib import Path
from shutil import copyfile

import pytest
from folders import different
from small_files import collection
from toys import run

from letor.errors import InputError
from ltr_features.column_workers import blocks_on
from ltr_features.columns.context import make_workspace
from ltr_features.part_store import PartUrl, part_store


@pytest.fixture(scope="module")
def server():
    """The address of a server that speaks as S3 does, with the bucket "parts"."""
    pytest.importorskip("s3fs", reason="pip install s3fs 'moto[server]' to try s3://")
    moto = pytest.importorskip("moto.server", reason="pip install s3fs 'moto[server]' to try s3://")
    import boto3

    with pytest.MonkeyPatch.context() as patch:
        started = moto.ThreadedMotoServer(port=0)
        started.start()
        host, port = started.get_host_and_port()
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        boto3.client("s3").create_bucket(Bucket="parts")
        yield "s3://parts/some/prefix"
        started.stop()


@pytest.fixture(params=["folder", "file", "s3"])
def place(request, tmp_path):
    if request.param == "s3":
        return request.getfixturevalue("server")
    (tmp_path / "parts").mkdir()
    return str(tmp_path / "parts") if request.param == "folder" else f"file://{tmp_path}/parts"


@pytest.fixture
def at(tmp_path):
    """A URL, and the folder that it stands for."""
    folder = tmp_path / "parts"
    folder.mkdir()
    return f"file://{folder}", folder


def put(store, name, text):
    with store.working() as folder:
        (folder / name).write_text(text)
        store.put(folder / name)


def text(store, name):
    with store.reading(name) as path:
        return path.read_text()


def test_parts_are_found_by_all_and_removed_alone(place, tmp_path):
    store, other = (part_store(place, tmp_path / name) for name in ("a.parquet", "b.parquet"))
    assert store.seen() == pickle.loads(pickle.dumps(store)).seen()
    assert not store.has("one")
    for number in ("1", "2"):  # another worker may make it, too
        put(store, "one", number)
    put(store, "two", "")
    put(other, "one", "3")
    again = part_store(place, tmp_path / "a.parquet")
    assert (again.has("one"), text(again, "one"), text(again, "two")) == (True, "2", "")
    store.remove()
    assert not part_store(place, tmp_path / "a.parquet").has("one")
    assert text(other, "one") == "3"
    assert "part" in str(store)


def test_half_a_part_is_none(at, tmp_path, monkeypatch):
    store = part_store(at[0], tmp_path / "a.parquet")

    def dies(files, *paths, **options):
        raise KeyboardInterrupt

    from fsspec.implementations.local import LocalFileSystem

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "mv", dies)
        with pytest.raises(KeyboardInterrupt):
            put(store, "one", "1")
    assert not store.has("one")
    put(store, "one", "1")
    assert text(store, "one") == "1"
    store.remove()  # with what is left of the first
    assert not list(at[1].iterdir())


def test_a_full_disk_names_the_file_or_the_temporary_folder(at, tmp_path, monkeypatch):
    store = part_store(at[0], tmp_path / "a.parquet")
    from fsspec.implementations.local import LocalFileSystem

    for names, expected in (((), tempfile.gettempdir()), (("from", None, "to"), "to")):

        def full(files, *paths, names=names):
            copyfile(*paths)  # in part
            raise OSError(errno.ENOSPC, "No space left on device", *names)

        with monkeypatch.context() as patch:
            patch.setattr(LocalFileSystem, "put_file", full)
            with pytest.raises(OSError) as caught:
                put(store, "one", "1")
        assert (caught.value.filename, caught.value.filename2) == (expected, None)
        assert [path.name.rpartition("-")[2] for path in at[1].iterdir()] == ["mark"]


def test_places_that_cannot_be_used_are_told(tmp_path, monkeypatch):
    def told(place):
        with pytest.raises(InputError) as caught:
            part_store(place, tmp_path / "a.parquet")
        return str(caught.value)

    assert "ValueError: Protocol not known: nowhere; check the address" in told("nowhere://bucket")
    assert "No such file or directory" in told(f"file://{tmp_path}/missing")
    assert "without *, ?, [ and ] is needed" in told("s3://bucket/*")
    (tmp_path / "file").touch()
    assert "name another one" in told(str(tmp_path / "file"))
    known = sys.modules["fsspec.registry"]._registry
    monkeypatch.delitem(known, "s3", raising=False)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    assert "Install s3fs to access S3; all machines need it" in told("s3://bucket/prefix")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    assert "install ltr-features[dask]" in told("s3://bucket/prefix")


def test_a_bucket_that_is_not_there_or_not_ours(server, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"^parts s3://other, on .*bucket does not exist.*; check"):
        part_store("s3://other", tmp_path / "a.parquet")


def test_a_store_that_workers_do_not_see_is_refused(tmp_path):
    workspace = make_workspace(collection(), tmp_path / "workspace")
    with (
        pytest.raises(
            InputError, match=r"^worker tcp://.*: parts memory://here, on .*FileNotFound"
        ),
        blocks_on("local:1", workspace, part_store("memory://here", tmp_path / "a.parquet")),
    ):
        pass


def test_blocks_and_models_by_way_of_s3(server, tmp_path):
    workspace, place = make_workspace(collection(), tmp_path / "workspace"), f"{server}/more"
    s3fs = pytest.importorskip("s3fs")
    build = ("columns", "build", "--workspace", workspace, "--family", "vsm")
    models = ("--model", "lsi", "--param", "lsi.rank=2", "--folds", 4)
    for name in ("here", "there"):
        spread = ("--scheduler", "local:2", "--parts", place) if name == "there" else ()
        for given, out in (((), f"{name}.parquet"), (models, name)):
            given = (*build, *given, "--out", tmp_path / out, *spread)
            run(*given)
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()
    assert not different(tmp_path / "here", tmp_path / "there")
    assert list((tmp_path / "there" / "models").iterdir())
    PartUrl(place, "own").begin()
    assert [Path(name).name for name in s3fs.S3FileSystem().ls(place)] == ["own-mark"]
