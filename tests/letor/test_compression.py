"""Compressed text: read to its end, or refused when it is far longer than its file."""

import bz2
import gzip
import json
import lzma
import os
import subprocess
import sys
import textwrap

import pytest
import zstandard

from letor import compression
from letor.compression import open_for_arrow, open_input, read_buffer, text_lines
from letor.errors import InputError
from letor.lint import validate
from letor.svmlight import read_letor

PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstandard.compress}
MIB = 1 << 20


@pytest.mark.parametrize("suffix", ["", *PACK])
def test_a_reader_that_is_ahead_does_not_read_the_next_file(suffix, tmp_path):
    pack = PACK.get(suffix, bytes)
    (tmp_path / f"a{suffix}").write_bytes(pack(b"first"))
    (tmp_path / f"b{suffix}").write_bytes(pack(b"second"))
    with open_for_arrow(tmp_path / f"a{suffix}") as stream:
        ahead = stream  # as a thread of Arrow's holds it
    with open_for_arrow(tmp_path / f"b{suffix}") as stream:
        assert ahead.read() == b"first"
        assert stream.read() == b"second"


@pytest.mark.parametrize("suffix", PACK)
def test_a_file_holds_so_much_and_no_more(suffix, tmp_path, monkeypatch):
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(PACK[suffix](b"\n" * 4 * MIB))
    size = path.stat().st_size
    monkeypatch.setattr(compression, "ALWAYS_UNPACKED", 4 * MIB)
    assert len(read_buffer(path)) == 4 * MIB
    monkeypatch.setattr(compression, "ALWAYS_UNPACKED", 4 * MIB - 1)
    said = f"a.txt{suffix}: its {size:,} bytes hold more than 4,194,303 bytes.*decompress it"
    with pytest.raises(InputError, match=said):
        read_buffer(path)
    monkeypatch.setattr(compression, "LARGEST_MULTIPLE", -(-4 * MIB // size))
    with pytest.raises(InputError, match=said):
        read_buffer(path)
    monkeypatch.setattr(compression, "FROM_BYTES", size)
    assert len(read_buffer(path)) == 4 * MIB


@pytest.mark.parametrize("suffix", PACK)
def test_nothing_is_no_compressed_file(suffix, tmp_path):
    """As an interrupted copy leaves it; what is compressed has a header, even if it is empty."""
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(PACK[suffix](b""))
    assert len(read_buffer(path)) == 0
    path.write_bytes(b"")
    with pytest.raises(InputError, match=f"a.txt{suffix}: it is empty, which no {suffix} file is"):
        read_buffer(path)


def test_a_file_that_arrow_does_not_unpack_is_told(tmp_path):
    path = tmp_path / "a.bz2"
    path.write_bytes(bz2.compress(b"1") + bz2.compress(b"") + bz2.compress(b"2"))
    with pytest.raises(InputError, match=r"a.bz2: damaged .*; copy it again, or unpack it"):
        read_buffer(path)


OTHER_FORMATS = {
    "a.txt": {
        "is xz, not text; decompress it": lzma.compress(b"1"),
        "is gzip, not text; end its name in .gz": gzip.compress(b"1"),
        "is bz2, not text; end its name in .bz2": bz2.compress(b"1"),
        "is zstd, not text; end its name in .zst": zstandard.compress(b"1"),
        "is Parquet, not text; end its name in .parquet": b"PAR1",
        r"is Arrow \(Feather\), not text; save the table as .parquet": b"ARROW1\0\0",
        "is a pickle, not text; it may run code: save the table as": b"\x80\x05\x95",
        "is a zip file, not text; unpack it": b"PK\3\4",
        "is a NumPy array, not text; write its values as text": b"\x93NUMPY",
    },
    "a.txt.gz": {"is zstd, not gzip; end its name in .zst": zstandard.compress(b"1")},
    "a.parquet": {"to make LETOR text of it: ltr-features convert": b"PAR1"},
}


@pytest.mark.parametrize("name", OTHER_FORMATS)
def test_files_of_other_formats_are_told(name, tmp_path):
    for said, content in OTHER_FORMATS[name].items():
        (tmp_path / name).write_bytes(content)
        readers = [read_letor, lambda path: list(text_lines(path))]
        for read in readers if name == "a.parquet" else [*readers, validate]:
            with pytest.raises(InputError, match=f"{name} is .*{said.removeprefix('is ')}"):
                read(tmp_path / name)
    (tmp_path / "b.txt").write_text("BZh\n")
    assert list(text_lines(tmp_path / "b.txt")) == [(1, "BZh")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_rows_in_utf16_are_told(encoding, tmp_path):
    (tmp_path / "a.txt").write_text("\ufeff" * ("be" in encoding) + "1 qid:1 1:2\n", encoding)
    with pytest.raises(InputError, match="as the file is UTF-16: save it as UTF-8"):
        read_letor(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("content", "encoding", "text"),
    [
        ("Stra\xdfe", "cp1252", "Stra\xdfe"),
        ("Stra\xdfe", "utf-8", "Stra\xdfe"),  # though cp1252 is named
        ("Stra\xdfe", "utf-8-sig", "Stra\xdfe"),
        ("\xc3x", "cp1252", "\xc3x"),
        ("plain", "ascii", "plain"),
    ],
)
def test_an_encoding_is_that_of_files_that_are_not_utf8(content, encoding, text, tmp_path):
    for suffix in ("", *PACK):
        path = tmp_path / f"a{suffix}"
        path.write_bytes(PACK.get(suffix, bytes)(content.encode(encoding)))
        assert list(text_lines(path, "cp1252")) == [(1, text)]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "iso2022_jp"])
def test_utf16_is_not_taken_for_utf8(encoding, tmp_path):
    """In UTF-16, \u80c2 has the bytes of a character of UTF-8; \u4e00 has those of ASCII."""
    for text in ("id,a", "\u4e00,a", "\u80c2,a", "\u3042"):
        if encoding != "iso2022_jp" or text != "\u80c2,a":
            (tmp_path / "a").write_bytes(text.encode(encoding))
            assert list(text_lines(tmp_path / "a", encoding)) == [(1, text)]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_ascii_is_not_taken_for_utf16(encoding, tmp_path):
    """A spreadsheet's table may be UTF-16, and the judgements beside it plain text."""
    (tmp_path / "a").write_bytes(b"query,label\n")
    assert list(text_lines(tmp_path / "a", encoding)) == [(1, "query,label")]


def test_content_is_counted_however_it_is_read(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"a b\n" * 1000))
    for n in (1, 7, 5000, -1):
        with open_input(path) as stream:
            assert b"".join(iter(lambda n=n, stream=stream: stream.read(n), b"")) == b"a b\n" * 1000


@pytest.mark.parametrize("lines", [1, 3])
def test_lines_longer_than_blocks(lines, tmp_path, monkeypatch):
    monkeypatch.setattr(compression, "_BLOCK_BYTES", 4)
    path = tmp_path / "a.txt"
    for line in ("", "abc", "abcd", "x" * 23):
        for end in ("", "\n"):
            path.write_text("\n".join([line] * lines) + end)
            expected = [line] * lines if line or end else [line] * (lines - 1)
            assert [text for _, text in text_lines(path)] == expected


def test_columns_that_are_absent_are_counted_against_the_compressed_file(tmp_path):
    path = tmp_path / "rows.txt.gz"
    path.write_bytes(gzip.compress(b"1 qid:1 200:1\n" + b"0 qid:1\n" * 400_000))
    with pytest.raises(InputError, match=r"line 1 has the column 200.*times the file"):
        read_letor(path)
    assert read_letor(path, n_columns=200).X.shape == (400_001, 200)


def test_text_that_is_no_letor_text_is_not_listed_line_by_line(tmp_path, monkeypatch):
    monkeypatch.setattr("letor.parser.MANY_BAD_LINES", 10)
    path = tmp_path / "rows.txt"
    path.write_text("1 qid:1 1:1\n" * 30 + "x\n" * 10)
    assert len(validate(path).bad_lines) == 10
    path.write_text("1 qid:1 1:1\n" * 30 + "x\n" * 20)
    assert len(validate(path).bad_lines) == 20
    path.write_text("1 qid:1 1:1\n" * 10 + "x\n" * 30)
    with pytest.raises(InputError, match=r"11 of the first 21 lines are bad.*line 11"):
        validate(path)
    with pytest.raises(InputError, match="11 of the first 21"):
        read_letor(path, on_error="skip", rejected=[])


# Name, reader of the path p, and what the file repeats behind its beginning.
BOMBS = {
    "letor": ("rows.txt", "letor.read_letor(p)", b"1 qid:1 1:1\n", b"0 qid:1\n"),
    "validate": ("rows.txt", "lint.validate(p)", b"1 qid:1 1:1\n", b"0\n"),
    "qrels": ("qrels.txt", "trec.read_qrels(p)", b"1 0 d 1\n", b" " * 99 + b"\n"),
    "run": ("a.run", "score_tables.read_scores(p)", b"", b"1 Q0 d 1 1 t\n"),
    "scores csv": ("a.csv", "score_tables.read_scores(p)", b"qid,docno,bm25\n", b"1,d,1\n"),
    "csv of blank lines": ("a.csv", "score_tables.read_scores(p)", b"qid,docno,bm25\n", b"\n"),
    "scores jsonl": ("a.jsonl", "score_tables.read_scores(p)", b'{"qid":"', b"a"),
    "documents csv": (
        "a.csv", "read_collection('table', documents=p, judgements=p, "
        "document_columns={'id': 'id', 'body': 'body'}, judgement_columns={'text': 'id'})",
        b"id,body\n", b"d,b\n"
    ),
    "corpus": (
        "corpus.jsonl", "read_collection('beir', folder=p.parent, splits=['q'])",
        b"", b'{"_id":"1"}\n'
    ),
    "topics": ("topics.txt", "trec_topics.read_topics(p)", b"", b"1:a\n"),
    "documents": ("a.trec", "list(trec_documents.trec_documents(p))", b"<DOC>", b"<DOC>"),
    "clicks": ("log.tsv", "reading.read_click_counts(p)", b"", b"q\td\t1\t1\t1\n"),
    "vectors": ("vectors.txt", "vector_files.read_vectors(p)", b"", b"a" + b" 1" * 50 + b"\n"),
    "dump": ("dump.xml", "list(read_dump(p))", b"<mediawiki><siteinfo/>", b" "),
    "feature log": ("a.jsonl", "feature_log.read_feature_log(p)", b"", b" " * 99 + b"\n"),
}  # fmt: skip

READ = """
    import json, re, sys
    from pathlib import Path
    import letor
    from letor import lint, trec
    from letor.errors import InputError
    from ltr_features import read_collection
    from ltr_features.clicks import reading
    from ltr_features.embeddings import vector_files
    from ltr_features.sources import feature_log, score_tables, trec_documents, trec_topics
    from ltr_features.sources.wikipedia import read_dump

    def most():
        return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])

    p, before = Path(sys.argv[1]), most()
    try:
        eval(sys.argv[2])
    except InputError as error:
        said = str(error)
    print(json.dumps([said, (most() - before) / 2**10]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize("kind", BOMBS)
def test_a_file_made_to_fill_the_memory_is_refused_in_little_memory(kind, tmp_path):
    name, read, begin, repeated = BOMBS[kind]
    path = tmp_path / f"{name}.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(begin)
        for _ in range(64):
            file.write(repeated * (MIB // len(repeated)))
    assert path.stat().st_size < MIB
    (tmp_path / "qrels").mkdir()
    for beside in ("queries.jsonl", "qrels/q.tsv"):  # that a BEIR folder must have
        (tmp_path / beside).touch()
    command = [sys.executable, "-c", textwrap.dedent(READ), str(path), read]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    said, peak = json.loads(done.stdout)
    assert str(path) in said
    assert "\n" not in said
    assert peak < 1024  # MiB


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_is_no_missing_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe: a pipe or a device, not a file: files are"):
        read_letor(tmp_path / "pipe")
