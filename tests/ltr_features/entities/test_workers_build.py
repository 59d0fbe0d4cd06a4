"""Knowledge bases made by workers: the bytes of one process, also after interrupts and deaths."""

from __future__ import annotations

import bz2
import os
import shutil
import sys
from functools import partial
from pathlib import Path

import pytest
from dumps import PACKED, dump_xml, linked_dump, multistream, page_xml
from folders import different
from killed_worker import killed_worker
from toys import refused, run

from letor.errors import InputError
from ltr_features.entities import build, spool
from ltr_features.entities.build import build_knowledge_base
from ltr_features.sources import dump_ranges, dump_stream

N = 60


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    path = tmp_path_factory.mktemp("dump") / "dump.xml"
    path.write_bytes(linked_dump(N))
    return path


@pytest.fixture(scope="module")
def here(dump):
    """By this process, at once."""
    build_knowledge_base(dump, dump.parent / "kb")
    return dump.parent / "kb"


@pytest.fixture
def tiny(monkeypatch):
    """Many small pieces."""
    monkeypatch.setattr(dump_stream, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(dump_ranges, "_STREAMS_BYTES", 1000)
    monkeypatch.setattr(spool, "PART_BLOCKS", 3)
    monkeypatch.setattr(build, "_WORDS", 200)
    for name in ("_senses", "_in_links"):
        monkeypatch.setattr(build, name, partial(getattr(build, name), part=50))


@pytest.fixture
def last_seen(monkeypatch):
    """Names and times of the pieces, when they are removed."""
    seen = {}

    def remove(path, *rest, **given):
        found = {p.name: p.stat().st_mtime_ns for p in Path(path).glob("*.npz")}
        seen.update(found)
        actual(path, *rest, **given)

    actual = shutil.rmtree
    monkeypatch.setattr(shutil, "rmtree", remove)
    return seen


def pieces(folder, kind):
    return {p.name: p.stat().st_mtime_ns for p in folder.glob(f"*-{kind}-*.npz")}


def test_small_pieces_in_one_process(dump, here, tiny, last_seen, tmp_path):
    build_knowledge_base(dump, tmp_path / "kb", processes=2)
    assert different(here, tmp_path / "kb") == set()
    for kind in ("part", "in-links", "senses", "counts"):
        assert sum(f"-{kind}-" in name for name in last_seen) > 4, kind
    assert os.listdir(tmp_path) == ["kb"]


@pytest.mark.parametrize("kind", PACKED)
def test_workers_make_the_same_bytes(kind, dump, here, tiny, workers, tmp_path):
    pack = PACKED[kind]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "dump.xml").write_bytes(pack(dump.read_bytes()))
    told = []
    facts = build_knowledge_base(
        tmp_path / "in" / "dump.xml",
        tmp_path / "kb",
        scheduler=workers.scheduler_address,
        on_progress=lambda done, total: told.append((done, total)),
    )
    assert facts["articles"] == facts["redirects"] == N
    assert different(here, tmp_path / "kb") == set()
    assert sorted(os.listdir(tmp_path)) == ["in", "kb"]
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] == (tmp_path / "in" / "dump.xml").stat().st_size


def test_the_command_with_paths_of_its_own_folder(dump, here, tmp_path, monkeypatch):
    (tmp_path / "dump.xml").write_bytes(dump.read_bytes())
    monkeypatch.chdir(tmp_path)
    given = ("wikipedia", "dump.xml", "--scheduler", "local:1", "--out", "kb")
    assert "articles: 60" in run(*given).output
    assert different(here, tmp_path / "kb") == set()
    assert "processes: workers of the scheduler parse" in refused(*given, "--processes", 2)


def test_it_goes_on_where_it_was_cut_off(
    dump, here, tiny, last_seen, workers, tmp_path, monkeypatch
):
    packed, parts = tmp_path / "dump.xml.bz2", tmp_path / "kb.parts"
    packed.write_bytes(bz2.compress(dump.read_bytes()))
    again = partial(
        build_knowledge_base, packed, tmp_path / "kb", scheduler=workers.scheduler_address
    )

    def interrupt(*given, **options):
        raise KeyboardInterrupt

    def cut_off(done, total):
        if len(pieces(parts, "part")) >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        again(on_progress=cut_off)
    assert not (tmp_path / "kb").exists()
    kept = pieces(parts, "part")
    assert len(kept) >= 3
    with monkeypatch.context() as patch:
        patch.setattr(build, "_senses", interrupt)
        with pytest.raises(KeyboardInterrupt):
            again()
    assert kept.items() <= pieces(parts, "part").items()
    kept = pieces(parts, "part") | pieces(parts, "in-links")
    links = (next(parts.glob("*-links")) / "to").stat().st_mtime_ns
    with monkeypatch.context() as patch:
        patch.setattr(build, "_count_occurrences", interrupt)
        with pytest.raises(KeyboardInterrupt):
            again()
    assert (next(parts.glob("*-links")) / "to").stat().st_mtime_ns == links
    kept |= pieces(parts, "senses")
    again()
    assert kept.items() <= last_seen.items()
    assert different(here, tmp_path / "kb") - {"knowledge.json", "digests.json"} == set()
    assert not parts.exists()


def test_other_settings_take_no_piece_of_these(dump, tiny, tmp_path):
    pack = partial(build.digest, held_out=frozenset({"a", "b"}), withhold_query_sections=False)
    same = partial(build.digest, held_out=frozenset({"b", "a"}), withhold_query_sections=False)
    other = partial(build.digest, held_out=frozenset(), withhold_query_sections=False)
    assert spool._name(dump, pack) == spool._name(dump, same)
    copy = tmp_path / dump.name
    copy.write_bytes(dump.read_bytes())
    assert len({spool._name(dump, pack), spool._name(dump, other), spool._name(copy, pack)}) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="kills a process by a signal")
@pytest.mark.parametrize("kind", ["part", "senses"])
def test_a_killed_worker_changes_nothing(kind, dump, here, tiny, workers, tmp_path):
    parts = tmp_path / "kb.parts"
    with killed_worker(workers, lambda: pieces(parts, kind)):
        build_knowledge_base(dump, tmp_path / "kb", scheduler=workers.scheduler_address)
    assert different(here, tmp_path / "kb") == set()


def test_bad_dumps_are_refused(dump, tiny, workers, tmp_path):
    out, scheduler = tmp_path / "kb", workers.scheduler_address
    bad = tmp_path / "bad.xml"
    with pytest.raises(InputError, match=r"bad\.xml: no such file"):
        build_knowledge_base(bad, out, scheduler=scheduler)
    assert not list(tmp_path.iterdir())
    xml = dump.read_bytes()
    bad.write_bytes(xml[: len(xml) // 2])
    with pytest.raises(InputError, match=r"bad\.xml: the XML ends at byte .*truncated"):
        build_knowledge_base(bad, out, scheduler=scheduler)
    bad.write_bytes(xml.replace(b"thing 41 is", b"<b>"))
    with pytest.raises(InputError, match=r"bad\.xml: malformed XML .* page 'Thing 41'; get"):
        build_knowledge_base(bad, out, scheduler=scheduler)
    bad.write_bytes(dump_xml([page_xml("A", redirect="B")]))
    with pytest.raises(InputError, match="no article in it"):
        build_knowledge_base(bad, out, scheduler=scheduler)
    assert not out.exists()


def test_damage_in_a_stream_is_told(dump, tiny, workers, tmp_path):
    bad, told = tmp_path / "bad.bz2", r"bytes count from [\d,]+ of the file"
    packed = multistream(dump.read_bytes())
    for damaged, message in (
        (packed[:-60], rf"bad\.bz2: the compressed data ends early.* \({told}\)"),
        (multistream(dump.read_bytes().replace(b"thing 41 is", b"<b>")), rf"malformed XML.*{told}"),
        (multistream(dump.read_bytes() + b"<more/>"), "there is more than </mediawiki>"),
    ):
        bad.write_bytes(damaged)
        with pytest.raises(InputError, match=message):
            build_knowledge_base(bad, tmp_path / "kb", scheduler=workers.scheduler_address)


def test_a_worker_without_the_folder_is_told(tmp_path):
    with pytest.raises(InputError, match=r"worker on .*: .*nowhere is another one there"):
        spool._made(tmp_path / "nowhere" / "part", dict)


def test_a_damaged_piece_is_named(tmp_path):
    (tmp_path / "piece.npz").write_bytes(b"PK\x03\x04")
    with pytest.raises(InputError, match=r"piece\.npz: .*; remove it, and run the same command"):
        spool.read_arrays(tmp_path / "piece.npz", "words")
