"""Reading MediaWiki dumps: records, formats, processes, memory, and files that cannot be read."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import multiprocessing
import re
import signal
import subprocess
import sys
import tracemalloc
from collections import Counter
from html import unescape
from pathlib import Path

import pytest
from dumps import dump_xml, page_xml

from letor.errors import InputError
from ltr_features.sources import dump_stream
from ltr_features.sources.wiki_links import normalise_title
from ltr_features.sources.wikipedia import (
    Article,
    Redirect,
    excerpt_path,
    progress_bar,
    read_dump,
    resolve_redirect,
)


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.fixture
def small_dump() -> bytes:
    return dump_xml(
        [
            page_xml("Hund", "Ein [[tier]] & <b>mehr</b>.\n== Arten ==\n[[Dackel]]s", page_id=7),
            page_xml("Hunde", "#WEITERLEITUNG [[Hund]]", page_id=8, redirect="Hund"),
            page_xml("Diskussion:Hund", "talk", namespace=1, page_id=9),
            page_xml("Q1", '{"json": 1}', model="wikibase-item", page_id=10),
            page_xml("leer", "", page_id=11),
            page_xml("alt", "\n#Redirect: [[hund#Arten|x]]", page_id=12),
        ]
    )


# --- the excerpt shipped with gensim --------------------------------------------------------------


@pytest.fixture(scope="module")
def excerpt() -> list[Article | Redirect]:
    return list(read_dump(excerpt_path()))


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    """Title to markup of the excerpt's articles, by regular expressions alone."""
    xml = bz2.decompress(excerpt_path().read_bytes()).decode()
    pages = re.findall(r"<page>(.*?)</page>", xml, re.DOTALL)
    found = {}
    for page in pages:
        title, text = re.search(
            r"<title>(.*?)</title>.*<text[^>]*>(.*)</text>", page, re.S
        ).groups()  # type: ignore[union-attr]
        if "<ns>0</ns>" in page and "<redirect " not in page:
            found[unescape(title)] = unescape(text)
    return found


def articles_of(records: list[Article | Redirect]) -> dict[str, Article]:
    return {record.title: record for record in records if isinstance(record, Article)}


def test_excerpt_counts(excerpt: list[Article | Redirect], sources: dict[str, str]) -> None:
    articles = articles_of(excerpt)
    assert list(articles) == list(sources)
    assert len(articles) == 106
    # The hundredth redirect is of the namespace "Wikipedia".
    assert sum(isinstance(record, Redirect) for record in excerpt) == 99
    assert [record.page_id for record in excerpt] == sorted(r.page_id for r in excerpt)
    assert excerpt[0] == Redirect(10, "AccessibleComputing", "Computer accessibility")


def test_excerpt_sections_are_its_headings(
    excerpt: list[Article | Redirect], sources: dict[str, str]
) -> None:
    total = 0
    for title, article in articles_of(excerpt).items():
        plain = re.sub(r"<!--.*?-->", "", sources[title], flags=re.DOTALL)
        levels = [len(m) for m in re.findall(r"^(=+).+?=+[ \t]*$", plain, re.MULTILINE)]
        assert [section.level for section in article.sections] == [1, *levels]
        total += len(levels)
    assert total == 2261


def test_excerpt_links_agree_with_gensims(
    excerpt: list[Article | Redirect], sources: dict[str, str]
) -> None:
    """gensim finds no link that we have not, but for captions that it takes for links."""
    from gensim.corpora.wikicorpus import find_interlinks

    articles = articles_of(excerpt)
    assert sum(len(s.links) for a in articles.values() for s in a.sections) == 27_108
    ours, theirs = Counter(), Counter()  # type: Counter[tuple[str, str]], Counter[tuple[str, str]]
    other = re.compile(r"#|\s*$|[a-z-]+:(?! )|(?:WP|Wikipedia|Template|Wikt|Media|File|UTC):")
    for title in list(articles)[::12]:
        ours.update((title, link.target) for s in articles[title].sections for link in s.links)
        for target, _ in find_interlinks(sources[title]):
            if not other.match(target):
                theirs[title, normalise_title(target.partition("#")[0])] += 1
    assert theirs.total() > 1500
    missing = theirs - ours
    assert missing.total() < 0.02 * theirs.total()
    # Whatever else it finds is a caption's end: nowhere is it the beginning of a link.
    assert [m for m in missing if re.search(rf"\[\[{re.escape(m[1])}[|\]#]", sources[m[0]])] == []


def test_excerpt_texts_are_clean(excerpt: list[Article | Redirect]) -> None:
    sections = [s for article in articles_of(excerpt).values() for s in article.sections]
    everything = "\n".join(f"{s.heading}\n{s.text}" for s in sections)
    residue = (
        r"\[\[|\]\]|\{\{|\}\}|\{\||^\||\|\||\|thumb|</?(?:ref|br|small)|''|&nbsp;|^==|\b\d+px\b"
    )
    assert re.findall(residue, everything, re.MULTILINE) == []
    assert re.findall(r"  |[^\S\n ]", everything) == []
    assert 440_000 < len(re.findall(r"[^\W\d_]{2,}", everything)) < 470_000
    for section in sections:
        for link in section.links:
            assert section.text[link.start :].startswith(link.anchor)


def test_excerpt_sections_by_eye(excerpt: list[Article | Redirect]) -> None:
    articles = articles_of(excerpt)
    river = articles["Aa River"].sections
    assert river[1].heading == "Former names"
    assert river[1].text == (
        "Gauja, a river in Latvia, formerly known as Livländische Aa\n"
        "Lielupe, a river in Latvia, formerly known as Kurländische Aa"
    )
    assert [(link.target, link.start) for link in river[1].links] == [("Gauja", 0), ("Lielupe", 60)]
    (minor,) = articles["Asia Minor (disambiguation)"].sections
    assert minor.text == (
        "Asia Minor is an alternative name for Anatolia, the westernmost protrusion of Asia, "
        "comprising the majority of the Republic of Turkey. It may also refer to:\n"
        '"Asia Minor" (instrumental), a 1961 instrumental recording by Jimmy Wisner (operating '
        "under the name Kokomo)\n"
        "Asia Minor (album), an album by Jamaican-born jazz trumpeter Dizzy Reece"
    )
    devices = next(s for s in articles["Ampere"].sections if s.heading == "Portable devices")
    assert (devices.level, devices.text) == (3, "Hearing aid (typically 1 mW at 1.4 V): 0.7 mA")


def test_two_processes_read_the_same(excerpt: list[Article | Redirect]) -> None:
    def digest(records: list[Article | Redirect]) -> str:
        return hashlib.sha256(repr(records).encode()).hexdigest()

    assert digest(list(read_dump(excerpt_path(), processes=2))) == digest(excerpt)


@pytest.mark.skipif(sys.platform == "win32", reason="kills by a signal")
def test_processes_end_with_one_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "reads.py"
    script.write_text(
        "if __name__ == '__main__':\n"
        "    import os, signal\n"
        "    from ltr_features.sources.wikipedia import excerpt_path, read_dump\n"
        "    records = iter(read_dump(excerpt_path(), processes=2))\n"
        "    next(records)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    # Processes that went on would keep its output open.
    killed = subprocess.run([sys.executable, script], capture_output=True, timeout=60)
    assert killed.returncode == -signal.SIGKILL


def test_a_process_that_is_killed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the system, say, for lack of memory."""
    monkeypatch.setattr(dump_stream, "BLOCK_BYTES", 1 << 14)
    records = iter(read_dump(excerpt_path(), processes=2))
    next(records)
    multiprocessing.active_children()[0].kill()
    with pytest.raises(InputError, match="was ended from outside; in a script of"):
        list(records)


# --- small dumps ----------------------------------------------------------------------------------


def check_small(records: list[Article | Redirect]) -> None:
    hund, hunde, leer, alt = records
    assert isinstance(hund, Article)
    assert (hund.page_id, hund.title) == (7, "Hund")
    assert [(s.heading, s.text) for s in hund.sections] == [
        ("", "Ein tier & mehr."),
        ("Arten", "Dackels"),
    ]
    assert [link.target for s in hund.sections for link in s.links] == ["Tier", "Dackel"]
    assert hunde == Redirect(8, "Hunde", "Hund")
    assert isinstance(leer, Article)
    assert leer.title == "Leer"
    assert alt == Redirect(12, "Alt", "Hund")


@pytest.mark.parametrize("block_bytes", [1 << 20, 300, 7])
@pytest.mark.parametrize("form", ["xml", "bz2", "multistream", "gz", "bom"])
def test_formats_are_told_by_content(
    form: str,
    block_bytes: int,
    small_dump: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dump_stream, "BLOCK_BYTES", block_bytes)
    pieces = re.split(rb"(?=<page>)", small_dump)
    content = {
        "xml": small_dump,
        "bz2": bz2.compress(small_dump),
        "multistream": b"".join(map(bz2.compress, pieces)),
        "gz": gzip.compress(small_dump),
        "bom": b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?>\n' + small_dump,
    }[form]
    check_small(list(read_dump(write(tmp_path / "dump", content))))


def test_dump_without_pages(tmp_path: Path) -> None:
    assert list(read_dump(write(tmp_path / "d.xml", dump_xml([])))) == []


def test_titles_follow_the_sites_rule(tmp_path: Path) -> None:
    page = page_xml("iota", "[[kappa]] [[Datei:x.png|mini|Bild]] [[Kategorie:K]] [[Medium:y|y]]")
    dump = dump_xml([page], case="case-sensitive")
    (article,) = read_dump(write(tmp_path / "d.xml", dump))
    assert isinstance(article, Article)
    assert article.title == "iota"
    assert [link.target for link in article.sections[0].links] == ["kappa"]
    assert article.sections[0].text == "kappa\nBild\ny"


def test_redirects_are_resolved() -> None:
    table = {"A": "B", "B": "C", "X": "Y", "Y": "X", "Z": "Z", "I": "X"}
    titles = ["A", "B", "C", "X", "Z", "I"]
    assert [resolve_redirect(t, table) for t in titles] == ["C", "C", "C", "X", "Z", "I"]


def test_progress_ends_at_the_files_size(small_dump: bytes, tmp_path: Path) -> None:
    path = write(tmp_path / "d.xml", small_dump)
    calls: list[tuple[int, int]] = []
    with progress_bar("reading") as advance:
        advance(1, 2)
        list(read_dump(path, on_progress=lambda *done: calls.append(done)))
    assert calls[-1] == (len(small_dump), len(small_dump))


def test_progress_bar_is_quiet_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar("reading") as advance:
        advance(1, 2)
    assert capfd.readouterr() == ("", "")


def test_memory_does_not_grow_with_the_dump(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dump_stream, "BLOCK_BYTES", 1 << 16)
    head, tail = dump_xml([]).split(b"</mediawiki>")
    some = bz2.compress("".join(page_xml(f"P{i}", "x [[y]]") for i in range(200)).encode())

    def peak(copies: int) -> int:
        path = tmp_path / f"{copies}.xml.bz2"
        closing = bz2.compress(b"</mediawiki>" + tail)
        path.write_bytes(bz2.compress(head) + some * copies + closing)
        tracemalloc.start()
        try:
            assert sum(1 for _ in read_dump(path)) == 200 * copies
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(50) < peak(5) + (1 << 18) < 8 << 20


# --- what cannot be read --------------------------------------------------------------------------

NOT_DUMPS = {
    "empty": (b"", "is empty"),
    "html": (b"<!DOCTYPE html>\n<html><body>404</body></html>", "begins with b'<!DOCTYPE html>"),
    "rss": (
        b'<?xml version="1.0"?>\n<!-- x -->\n<rss><item/></rss>',
        "it is no MediaWiki XML dump",
    ),
    "text": (b"Anarchism is a political philosophy", "begins with b'Anarchism is a"),
    "sql": (b"-- MySQL dump 10.13\nDROP TABLE page;", "begins with b'-- MySQL dump"),
    "7z": (b"7z\xbc\xaf\x27\x1c\x00\x04", 'begins with b"7z'),
    "zip": (b"PK\x03\x04\x14\x00", "begins with b'PK"),
    "html in bz2": (bz2.compress(b"<html>no</html>"), "begins with b'<html>no"),
    "empty bz2": (bz2.compress(b""), "is empty"),
    "no bz2": (b"BZh9 not really", "damaged"),
    "header only": (b"<mediawiki xml:lang='de'><siteinfo>", "truncated"),
    "bad header": (b"<mediawiki><siteinfo></mediawiki>", "malformed XML before the first page"),
}


@pytest.mark.parametrize("kind", NOT_DUMPS)
def test_other_files_are_refused_at_once(kind: str, tmp_path: Path) -> None:
    content, cause = NOT_DUMPS[kind]
    path = write(tmp_path / "enwiki.xml.bz2", content)
    with pytest.raises(InputError, match=re.escape(cause)) as refusal:
        read_dump(path)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_missing_file_folder_and_parameter_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.xml: no such file"):
        read_dump(tmp_path / "none.xml")
    with pytest.raises(InputError, match="is a folder"):
        read_dump(tmp_path)
    with pytest.raises(InputError, match="processes must be 1 or more, got 0"):
        read_dump(tmp_path / "none.xml", processes=0)


def broken(dump: bytes) -> dict[str, tuple[bytes, str]]:
    """Files that begin well, and what must be said of their damage."""
    second = dump.index(b"<page>", dump.index(b"</page>"))
    packed = b"".join(bz2.compress(piece) for piece in re.split(rb"(?=<page>)", dump))
    spoiled = bytearray(bz2.compress(dump * 9))
    spoiled[len(spoiled) // 2] ^= 0xFF
    text = rb"<text([^>]*)>[^<]*</text>"
    return {
        "cut bz2": (packed[:-40], f"ends early, at byte {len(packed) - 40:,}"),
        "spoiled bz2": (bytes(spoiled), "damaged near byte"),
        "no bz2 behind bz2": (packed[:-40].rpartition(b"BZh")[0] + b"?", "without </mediawiki>"),
        "cut gz": (gzip.compress(dump)[:-20], "ends early"),
        "cut page": (dump[: second + 30], "without </mediawiki>"),
        "cut end": (dump[:-5], "without </mediawiki>"),
        "more": (dump + b"<page/>", "more than </mediawiki> after XML byte"),
        "entity": (dump.replace(b"Hunde<", b"Hun&de;<"), "malformed XML (undefined entity"),
        "tag": (dump.replace(b"<id>8</id>", b"<id>8"), "malformed XML (mismatched tag"),
        "bytes": (dump.replace(b"Hunde<", b"Hun\xffde<"), "malformed XML (not well-formed"),
        "no id": (dump.replace(b"<id>8</id>", b""), "page 'Hunde' has no <id> number"),
        "no title": (dump.replace(b"<title>Hunde</title>", b""), "<page> with a <title>"),
        "between": (dump.replace(b"</page>", b"</page><log/>", 1), "<log> where a <page>"),
        "stub": (re.sub(text, rb"<text\1 />", dump), "a 'stub' dump"),
    }


@pytest.mark.parametrize("kind", broken(b"<page></page><page>"))
def test_damage_is_reported_where_it_is(kind: str, small_dump: bytes, tmp_path: Path) -> None:
    content, cause = broken(small_dump)[kind]
    path = write(tmp_path / "d", content)
    with pytest.raises(InputError, match=re.escape(cause)) as failure:
        list(read_dump(path))
    assert str(failure.value).startswith(f"{path}: ")
    assert "page" in str(failure.value)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize("kind", ["malformed", "truncated"])
def test_damage_is_found_after_the_records_before_it(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same records, then the same message, whatever the number of processes."""
    monkeypatch.setattr(dump_stream, "BLOCK_BYTES", 1000)
    dump = dump_xml([page_xml(f"P{i}") for i in range(50)])
    damage = dump.index(b"<title>P40<") + 9
    dump = dump[:damage] + (b"&" + dump[damage:] if kind == "malformed" else b"")
    path = write(tmp_path / "d.xml", dump)
    outcomes = []
    for processes in (1, 2):
        seen: list[str] = []
        records = read_dump(path, processes=processes)
        with pytest.raises(InputError) as failure:
            seen.extend(record.title for record in records)
        outcomes.append((seen, str(failure.value)))
    assert outcomes[0] == outcomes[1]
    seen, message = outcomes[0]
    assert seen == [f"P{i}" for i in range(len(seen))]
    assert 35 < len(seen) <= 40
    byte = int(re.search(r"at (?:XML )?byte ([\d,]+)", message)[1].replace(",", ""))  # type: ignore[index]
    assert byte == (dump.rindex(b"\n", 0, damage) + 1 if kind == "malformed" else len(dump))
    assert re.search("page:? 'P39'", message)


def test_page_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump_stream, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(dump_stream, "MAX_PAGE_BYTES", 1 << 20)
    dump = dump_xml([page_xml("A"), page_xml("B", "x" * (2 << 20))])
    with pytest.raises(InputError, match=r"no </page> within 1 MiB .* last whole page: 'A'"):
        list(read_dump(write(tmp_path / "d.xml", dump)))


def test_reading_can_stop_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump_stream, "BLOCK_BYTES", 1000)
    path = write(tmp_path / "d.xml", dump_xml([page_xml(f"P{i}") for i in range(100)]))
    for processes in (1, 2):
        records = read_dump(path, processes=processes)
        assert next(records).title == "P0"
        records.close()  # type: ignore[attr-defined]
        assert list(records) == []


def test_excerpt_is_named_when_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gensim").mkdir()
    (tmp_path / "gensim" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "gensim", raising=False)
    with pytest.raises(InputError, match="installed without its test data"):
        excerpt_path()
