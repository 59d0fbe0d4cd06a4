"""Documents counted and written by workers: the workspace has the bytes that one process writes."""

import sys
from pathlib import Path

import numpy as np
import pytest
from folders import contents
from killed_worker import killed_worker
from toys import run, toy

from letor.errors import InputError
from ltr_features.columns.context import make_workspace
from ltr_features.text import document_workers, stored_texts
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection_files import save_collection
from ltr_features.text.document_workers import DocumentWorkers, documents_on
from ltr_features.text.term_counts import merge_counted

WORDS = ["Straße", "cafe\u0301", "日本", "𝒳𝒴", "the", "running", "runs", *map(str, range(300))]
ANALYZER = Analyzer(stopwords="english", stemmer="english")


def collection(n=200):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, rng.integers(0, 40))) for _ in range(n)]
    titles = [" ".join(rng.choice(WORDS, 3)) if i % 3 else "" for i in range(n)]
    fields = {"body": texts, "title": titles}
    return toy(fields, ["runs"])


@pytest.fixture
def small(monkeypatch):
    """Ranges of eight documents."""
    monkeypatch.setattr(stored_texts, "_BLOCK", 8)
    monkeypatch.setattr(document_workers, "_RANGE_BYTES", 1)


@pytest.fixture
def expected(small, tmp_path):
    return contents(make_workspace(collection(), tmp_path / "here", analyzer=ANALYZER))


def times(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("[0-9a-f]*")}


class CutOff(DocumentWorkers):
    """Interrupted after nine results of a method."""

    def __init__(self, workers, method):
        super().__init__(workers.cluster, workers.folder)
        object.__setattr__(self, method, lambda *given: self.cut(getattr(workers, method)(*given)))

    def cut(self, results):
        for number, result in enumerate(results):
            if number == 9:
                raise KeyboardInterrupt
            yield result


def test_a_workspace_is_the_same_and_goes_on(expected, tmp_path, workers):
    folder, out, address = tmp_path / "there.parts", tmp_path / "there", workers.scheduler_address
    kept = {}
    for method, least, most in (("lines", 9, 24), ("counted", 29, 49)):
        with pytest.raises(KeyboardInterrupt), documents_on(address, folder) as found:
            make_workspace(collection(), out, analyzer=ANALYZER, workers=CutOff(found, method))
        assert not out.exists()
        assert kept.items() <= times(folder).items()
        kept = times(folder)
        assert least <= len(kept) <= most
    with documents_on(address, folder) as found:
        make_workspace(collection(), out, analyzer=ANALYZER, workers=found)
        assert len(times(folder)) == 50
        assert kept.items() <= times(folder).items()
    assert contents(out) == expected
    assert not folder.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="kills a process by a signal")
def test_a_killed_worker_changes_nothing(expected, tmp_path, workers):
    folder, out = tmp_path / "there.parts", tmp_path / "there"
    with (
        documents_on(workers.scheduler_address, folder) as found,
        killed_worker(workers, lambda: any(folder.glob("[0-9a-f]*.npz"))),
    ):
        make_workspace(collection(), out, analyzer=ANALYZER, workers=found)
    assert contents(out) == expected


@pytest.mark.parametrize("n_workers", [1, 2])
def test_the_command_writes_the_same(n_workers, tmp_path):
    data, here, there = (tmp_path / name for name in ("data", "here", "there"))
    data.mkdir()
    save_collection(collection(), data)
    run("index", "collection", f"folder={data}", "--out", here)
    run(
        "index", "collection", f"folder={data}", "--out", there, "--scheduler", f"local:{n_workers}"
    )
    assert contents(there) == contents(here)
    assert not (tmp_path / "there.parts").exists()


def test_nothing_is_left_of_what_was_refused(tmp_path):
    given = ("beir", f"folder={tmp_path / 'none'}", "--out", tmp_path / "w", "--scheduler")
    with pytest.raises(InputError, match="--scheduler nowhere: no Dask scheduler answers there"):
        run("index", *given, "nowhere")
    with pytest.raises(InputError, match="none"):
        run("index", *given, "local:1")
    assert not list(tmp_path.iterdir())


def part(folder, **other):
    """All documents of a folder, for a worker."""
    given = {"folder": str(folder), "first": 0, "last": 1}
    return document_workers._Range(**{"documents": str(folder), **given, **other})


def counted(folder, analyzer=ANALYZER):
    """The file that a worker writes of all documents."""
    return Path(document_workers._write_counts(part(folder), analyzer))


def written(folder):
    return Path(document_workers._write_lines(part(folder)))


def test_files_are_named_by_texts_and_recipe(tmp_path):
    stored_texts.save_documents(collection(), tmp_path)
    first, lines, made = counted(tmp_path), written(tmp_path), times(tmp_path)
    assert (counted(tmp_path), written(tmp_path)) == (first, lines)
    assert times(tmp_path).items() == made.items()
    assert counted(tmp_path, Analyzer()) != first
    stored_texts.save_documents(collection(100), tmp_path)
    assert counted(tmp_path) != first
    assert written(tmp_path) != lines


def test_a_worker_without_the_texts_is_refused(tmp_path):
    stored_texts.save_documents(collection(), tmp_path)
    with pytest.raises(InputError, match=r"worker on .*elsewhere.*corpus.arrow is not there; keep"):
        part(tmp_path, documents=str(tmp_path / "elsewhere")).read()


def test_damaged_counts_are_refused(tmp_path):
    stored_texts.save_documents(collection(20), tmp_path)
    path = counted(tmp_path)
    content, blocks = path.read_bytes(), document_workers._read(path)
    rng, refused = np.random.default_rng(0), 0
    for _ in range(200):
        changed = bytearray(content)
        changed[rng.integers(len(changed))] ^= rng.integers(1, 256)
        path.write_bytes(changed)
        try:
            found = document_workers._read(path)
        except InputError:
            refused += 1
            continue
        for (field, block), (field_found, block_found) in zip(blocks, found, strict=True):
            assert (field, block.runs) == (field_found, block_found.runs)
            for array, array_found in zip(block[1:], block_found[1:], strict=True):
                np.testing.assert_array_equal(array, array_found)
    assert refused > 150
    path.write_bytes(content[:-1])
    with pytest.raises(InputError, match="remove it and index the collection again"):
        document_workers._read(path)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("numbers", lambda a: a + 10**6, "numbers: value 0 is"),
        ("counts", lambda a: a[1:], "counts: has shape"),
        ("sizes", lambda a: a[1:], "sizes: must add up to"),
        ("sizes", lambda a: a.astype(np.int32), "sizes: holds int32, must be int64"),
    ],
)
def test_arrays_that_do_not_fit_each_other_are_refused(name, change, message, tmp_path):
    stored_texts.save_documents(collection(20), tmp_path)
    path = counted(tmp_path)
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **arrays | {f"body.{name}": change(arrays[f"body.{name}"])})
    with pytest.raises(InputError, match=message):
        document_workers._read(path)


def test_ranges_cover_the_blocks(monkeypatch):
    monkeypatch.setattr(document_workers, "_RANGE_BYTES", 10)
    assert list(document_workers._cut([4, 4, 4, 11, 1, 2])) == [(0, 3), (3, 4), (4, 6)]
    assert list(document_workers._cut([4, 4, 4])) == [(0, 3)]
    assert list(document_workers._cut([])) == []


def test_the_counts_of_a_file_are_those_of_the_texts(tmp_path):
    stored_texts.save_documents(collection(), tmp_path)
    blocks = document_workers._read(counted(tmp_path))
    words, matrices = merge_counted(blocks, ("title", "body"), ANALYZER)
    for field, matrix in zip(("title", "body"), matrices, strict=True):
        for text, row in zip(collection().fields[field], matrix, strict=True):
            tokens = ANALYZER.tokens(text)
            found = zip([words[j] for j in row.indices], row.data.tolist(), strict=True)
            assert dict(found) == {token: tokens.count(token) for token in tokens}
