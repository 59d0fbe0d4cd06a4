"""Added and removed documents in a pipeline's folder, whoever reads, writes or dies meanwhile."""

from __future__ import annotations

import json

import numpy as np
import pytest
from additions import N
from toys import refused

from letor.digests import changed_files, written_digests
from letor.errors import InputError
from letor.lock import locked
from ltr_base.machine import temporary_paths
from ltr_features import ScoringPipeline, added_documents


def test_saved_pipelines_have_their_added_documents(pipeline, more, collection, tmp_path):
    everything = [*collection.document_ids, "copy", "odd"]
    text = collection.query_texts[3]
    pipeline.save(tmp_path / "p")
    index = tmp_path / "p" / "features" / "workspace" / "index" / "whole.counts.npy"
    written = index.stat().st_mtime_ns
    more.save_added(tmp_path / "p")
    assert index.stat().st_mtime_ns == written
    more.save(tmp_path / "whole")
    for folder in ("p", "whole"):
        assert changed_files(tmp_path / folder) == []
        assert changed_files(tmp_path / folder / "features") == []
        again = ScoringPipeline.load(tmp_path / folder)
        np.testing.assert_array_equal(again.score(text, everything), more.score(text, everything))
        assert again.features.added_.drift() == more.features.added_.drift()
    path = tmp_path / "p" / "features" / "features.json"
    assert json.loads(path.read_text())["version"] == 3  # earlier programs refuse it
    (tmp_path / "p" / "features" / "added" / "corpus.jsonl").unlink()
    with pytest.raises(InputError, match=r"corpus\.jsonl"):
        ScoringPipeline.load(tmp_path / "p")


def test_no_program_loses_what_another_one_added(pipeline, more, tmp_path):
    pipeline.save(tmp_path / "p")
    first, second = (ScoringPipeline.load(tmp_path / "p") for _ in range(2))
    first = first.with_documents(["one"], {"body": ["common1"]})
    first.save_added(tmp_path / "p")
    second = second.with_documents(["two"], {"body": ["common2"]})
    lost = r"p/features: documents were added there since .*; load it again and add to that"
    for other in (second, more):
        with pytest.raises(InputError, match=lost):
            other.save_added(tmp_path / "p")
    further = first.with_documents(["three"], {"body": ["common2"]})
    further.save_added(tmp_path / "p")
    with pytest.raises(InputError, match=lost):
        first.save_added(tmp_path / "p")
    again = ScoringPipeline.load(tmp_path / "p").with_documents(["two"], {"body": ["common2"]})
    again.save(tmp_path / "elsewhere")
    again.save_added(tmp_path / "p")
    assert ScoringPipeline.load(tmp_path / "p").features.n_documents == N + 3
    assert ScoringPipeline.load(tmp_path / "elsewhere").features.n_documents == N + 3


def test_a_pipeline_is_loaded_while_documents_are_added(pipeline, more, tmp_path, monkeypatch):
    pipeline.save(tmp_path / "p")

    def read_then_added(folder):
        found = written_digests(folder)
        monkeypatch.undo()
        more.save_added(tmp_path / "p")
        return found

    monkeypatch.setattr("ltr_features.feature_files.written_digests", read_then_added)
    assert ScoringPipeline.load(tmp_path / "p").features.n_documents == N + 2


def test_a_held_pipeline_is_not_written(pipeline, more, tmp_path):
    pipeline.save(tmp_path / "p")
    (tmp_path / "more.csv").write_text("id,body\nodd,common1\n")
    before = {path: path.read_bytes() for path in (tmp_path / "p").rglob("*.json")}
    with locked(tmp_path / "p"):
        assert changed_files(tmp_path / "p") == []
        for write in (more.save_added, pipeline.save):
            with pytest.raises(InputError, match=r"p: a run is going on there \(process \d+ on"):
                write(tmp_path / "p")
        add = ("pipeline", "add", tmp_path / "p", tmp_path / "more.csv")
        assert "a run is going on there" in refused(*add)
    assert {path: path.read_bytes() for path in (tmp_path / "p").rglob("*.json")} == before
    assert changed_files(tmp_path / "p") == []
    more.save_added(tmp_path / "p")
    more.save(tmp_path / "p")
    assert changed_files(tmp_path / "p") == []


def test_an_interrupt_leaves_what_was_there_before(
    pipeline, more, collection, tmp_path, monkeypatch
):
    pipeline.save(tmp_path / "p")

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("ltr_features.added_documents.read_json", interrupted)
        with pytest.raises(KeyboardInterrupt):
            more.save_added(tmp_path / "p")
    text = collection.query_texts[3]
    again = ScoringPipeline.load(tmp_path / "p")
    np.testing.assert_array_equal(again.score(text, ["d4"]), pipeline.score(text, ["d4"]))
    more.save_added(tmp_path / "p")
    again = ScoringPipeline.load(tmp_path / "p")
    np.testing.assert_array_equal(again.score(text, ["d4"]), more.score(text, ["d4"]))


@pytest.mark.parametrize("name", ["corpus.jsonl", "removed.json"])
def test_damaged_added_documents_are_refused(more, tmp_path, name):
    """With a file cut after a line, or lost, documents would be missing, or come back."""
    more.without_documents(["d0"]).save(tmp_path / "p")
    path = tmp_path / "p" / "features" / "added" / name
    if name == "removed.json":
        path.unlink()
    else:
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(InputError, match=rf"{name}.* restore it"):
        ScoringPipeline.load(tmp_path / "p")


def test_documents_added_during_loading_are_read_as_a_whole(pipeline, more, tmp_path, monkeypatch):
    """Texts of one version with the removed ids of another would make a document empty."""
    gone = more.without_documents(["d0"])
    gone.save(tmp_path / "p")
    text = next(iter(pipeline.features.context_.collection.fields.values()))[0]
    before, again = ScoringPipeline.load(tmp_path / "p"), added_documents.load_collection

    def loaded(folder):
        found = again(folder)
        if before.features.unknown_documents(["d0"]):
            monkeypatch.setattr(added_documents, "load_collection", again)
            before.with_documents(["d0"], {"body": [text]}).save_added(tmp_path / "p")
        return found

    monkeypatch.setattr(added_documents, "load_collection", loaded)
    found = ScoringPipeline.load(tmp_path / "p")
    expected = before.with_documents(["d0"], {"body": [text]})
    np.testing.assert_array_equal(found.score(text, ["d0"]), expected.score(text, ["d0"]))


def test_what_a_killed_process_left_is_no_part_of_the_pipeline(pipeline, more, tmp_path):
    pipeline.save(tmp_path / "p")
    for target in (tmp_path / "p" / "digests.json", tmp_path / "p" / "features" / "added"):
        left, _ = temporary_paths(target)
        left.mkdir()
        (left / "corpus.jsonl").touch()
    more.save_added(tmp_path / "p")
    assert changed_files(tmp_path / "p") == []
    assert [path for path in (tmp_path / "p").rglob(".*") if path.name != ".locked"] == []
