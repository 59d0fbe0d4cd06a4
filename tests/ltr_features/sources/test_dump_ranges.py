"""Ranges of a dump's pages, as other processes read them."""

from __future__ import annotations

import re
from contextlib import closing

import pytest
from dumps import PACKED, linked_dump, multistream

from letor.errors import InputError
from ltr_features.sources import dump_ranges, dump_stream
from ltr_features.sources.dump_ranges import page_ranges
from ltr_features.sources.dump_stream import DumpStream


@pytest.fixture
def xml():
    return linked_dump(60)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(dump_stream, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(dump_ranges, "_STREAMS_BYTES", 1000)


@pytest.mark.parametrize("kind", PACKED)
def test_ranges_hold_the_pages_of_the_dump(kind, xml, tmp_path):
    (tmp_path / "dump").write_bytes(PACKED[kind](xml))
    with closing(DumpStream(tmp_path / "dump")) as stream:
        ranges = [held for held, _ in page_ranges(stream, 2, lambda n: tmp_path / f"{n}.xml")]
    assert len(ranges) > 4
    blocks = [block for held in ranges for block in held.blocks()]
    page = re.compile(rb"<page>.*?</page>", re.DOTALL)
    assert page.findall(b"".join(block.xml for block in blocks)) == page.findall(xml)
    if kind == "streams":
        assert {held.path.name for held in ranges} == {"dump"}
        assert ranges[1].counted() == f" (bytes count from {ranges[1].begin:,} of the file)"
    else:
        assert not any(held.counted() for held in ranges)
        assert all(xml[block.offset :].startswith(block.xml) for block in blocks)


def test_a_stream_that_is_too_long_is_no_range(xml, tmp_path, monkeypatch):
    monkeypatch.setattr(dump_ranges, "_LONGEST", 1100)
    (tmp_path / "dump").write_bytes(multistream(xml, pages=200))
    assert dump_ranges._ranges_of_streams(tmp_path / "dump") == []


def test_a_worker_that_sees_another_dump_is_told(xml, tmp_path):
    copy = tmp_path / "dump.xml"
    copy.write_bytes(xml)
    with closing(DumpStream(copy)) as stream:
        ((held, _),) = page_ranges(stream, 99, lambda n: None)
    copy.write_bytes(b"<mediawiki>")
    with pytest.raises(InputError, match=r"dump\.xml, as .* sees it, is another file"):
        next(held.blocks())
    copy.unlink()
    with pytest.raises(InputError, match=r"dump\.xml, as .* sees it, is not there; keep it on"):
        next(held.blocks())
