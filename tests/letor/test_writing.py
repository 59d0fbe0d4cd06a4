"""Writing LETOR text and appending columns: what comes back is what was there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import letor.writing
from letor.dataset import RankingData
from letor.errors import InputError
from letor.kernels.shortest_decimal import shortest_decimal
from letor.kernels.svmlight_writing import write_number
from letor.string_array import StringArray
from letor.svmlight import append_columns, read_letor, write_letor


def text_of(value: np.float32, fixed: int = -1) -> str:
    out = np.empty(64, dtype=np.uint8)
    length = write_number(out, 0, value, int(value.view(np.uint32)), fixed)
    return out[:length].tobytes().decode()


def check_shortest(bits: int) -> None:
    value = np.array([bits], dtype=np.uint32).view(np.float32)[0]
    text = text_of(value)
    assert np.float32(text).view(np.uint32) == bits
    digits, exponent = shortest_decimal(bits)
    wanted = np.format_float_scientific(value, unique=True, trim="-")
    assert float(f"{digits}e{exponent}") == float(wanted)
    assert len(text) <= 17


@settings(max_examples=500, deadline=None)
@given(st.integers(1, 0x7F7FFFFF))
def test_shortest_text_of_any_float32(bits: int) -> None:
    check_shortest(bits)


def test_shortest_text_at_powers_of_two() -> None:
    for exponent in range(255):
        for step in (-1, 0, 1):
            bits = (exponent << 23) + step
            if 0 < bits < 0x7F800000:
                check_shortest(bits)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "-0"),
        (3, "3"),
        (-20, "-20"),
        (0.1, "0.1"),
        (1e8, "100000000"),
        (1e9, "1e9"),
        (16777216, "16777216"),
        (123.456, "123.456"),
        (1e-4, "0.0001"),
        (1.5e-5, "0.000015"),
        (1.25e-6, "1.25e-6"),
        (-3.4028235e38, "-3.4028235e38"),
        (1e-45, "1e-45"),
    ],
)
def test_shortest_text_by_hand(value: float, text: str) -> None:
    assert text_of(np.float32(value)) == text


@settings(max_examples=300, deadline=None)
@given(st.floats(-(2.0**20), 2.0**20, width=32), st.integers(0, 12))
def test_fixed_decimals_equal_printf(value: float, digits: int) -> None:
    assert text_of(np.float32(value), digits) == f"{value:.{digits}f}"


words = st.text(
    st.characters(min_codepoint=33, exclude_characters="#", exclude_categories=["Cs", "Cc", "Zs"]),
    min_size=1,
    max_size=8,
)
comments = st.binary(max_size=12).map(
    lambda b: b"#" + b.replace(b"\n", b"").rstrip(b"\r") if b else b""
)


@st.composite
def data_sets(draw: st.DrawFn) -> RankingData:
    n, p = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    number = st.floats(width=32, allow_infinity=False)
    X = np.array([[draw(number) for _ in range(p)] for _ in range(n)], dtype=np.float32)
    X[0, p - 1] = 1.0  # the last column appears in the file
    y = np.array([draw(st.floats(-1, 64, width=32)) for _ in range(n)], dtype=np.float32)
    queries = draw(st.lists(words, min_size=n, max_size=n))
    texts = np.array([*draw(st.lists(comments, min_size=n, max_size=n)), None], dtype=object)[:-1]
    return RankingData.from_rows(X, y, queries, comments=texts)


@settings(max_examples=60, deadline=None)
@given(data_sets(), st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", ".gz", ".zst"]))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, data: RankingData, line_end: str, suffix: str
) -> None:
    path = tmp_path_factory.mktemp("rows") / f"rows.txt{suffix}"
    write_letor(data, path, line_end=line_end)
    again = read_letor(path, missing=np.nan)
    assert np.array_equal(again.X, data.X, equal_nan=True)
    assert np.array_equal(np.signbit(again.X), np.signbit(data.X) & ~np.isnan(data.X))
    assert np.array_equal(again.y, data.y)
    assert list(again.query_ids) == list(data.query_ids)
    assert np.array_equal(again.query_index, data.query_index)
    assert list(again.comments if again.comments is not None else [b""] * len(data)) == list(
        data.comments
    )


def small(**kwargs) -> RankingData:
    X = np.array([[0.5, np.nan], [1 / 3, 1e-7]], dtype=np.float32)
    return RankingData.from_rows(X, [1, 0], ["q", "r"], **kwargs)


def test_document_ids_become_comments(tmp_path: Path) -> None:
    write_letor(small(document_ids=np.array(["d1", ""], dtype=object)), tmp_path / "o.txt")
    assert (tmp_path / "o.txt").read_text() == (
        "1 qid:q 1:0.5 #docid = d1\n0 qid:r 1:0.33333334 2:1e-7\n"
    )
    write_letor(small(), tmp_path / "o.txt", digits=3, line_end="\r\n")
    assert (tmp_path / "o.txt").read_bytes() == (b"1 qid:q 1:0.500\r\n0 qid:r 1:0.333 2:0.000\r\n")


def test_what_the_format_cannot_hold(tmp_path: Path) -> None:
    path = tmp_path / "o.txt"
    path.write_text("before")
    X = np.array([[1, 2], [3, 4]], dtype=np.float32)
    data = RankingData.from_rows(X.copy(), [1, 0], ["q", "r"], column_names=["BM25", "PageRank"])
    data.X[1, 1] = np.inf
    refused = [
        (data, {}, "row 1, column PageRank: LETOR text cannot hold inf"),
        (small(), {"digits": 13}, "digits=13"),
        (RankingData.from_rows(X[:1] * 1e18, [0], ["q"]), {"digits": 6}, "use digits=None"),
        (RankingData.from_rows(X[:1], [np.nan], ["q"]), {}, "row 0: the label is not finite"),
        (RankingData.from_rows(X[:1], [0], ["a b"]), {}, "query id 'a b'"),
        (RankingData.from_rows(X[:1], [0], [""]), {}, "query id ''"),
        (small(document_ids=np.array(["a#", "b"], dtype=object)), {}, "document id 'a#'"),
        (small(comments=np.array([b"x", b""], dtype=object)), {}, "begin with '#'"),
        (small(comments=np.array([b"#x\n", b""], dtype=object)), {}, "line feed"),
        (small(comments=np.array([b"", b"#x\r"], dtype=object)), {}, "ends in CR"),
    ]
    for rows, options, reason in refused:
        with pytest.raises(InputError, match=reason.replace("(", r"\(")):
            write_letor(rows, path, **options)
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["o.txt"]


def test_threads_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letor.writing, "_BLOCK_BYTES", 1000)
    X = np.random.default_rng(0).normal(size=(300, 5))
    data = RankingData.from_rows(X, np.zeros(300), [str(i % 7) for i in range(300)])
    files = []
    for threads in (1, 2):
        write_letor(data, tmp_path / "o.txt", threads=threads)
        files.append((tmp_path / "o.txt").read_bytes())
    assert files[0] == files[1]
    assert files[0].count(b"\n") == 300


SOURCE = (
    b"# head\r\n"
    b"1 qid:a 1:0.50 3:7\t#docid = x # y\r\n"
    b"\n"
    b"0   qid:b 2:NULL   \n"
    b"0 qid:b#c\n"
    b"2 qid:c 2:nan 3:1#docid=z"
)


@pytest.mark.parametrize("read_bytes", [1 << 24, 1, 50])
def test_appended_columns_leave_the_rest_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_bytes: int
) -> None:
    monkeypatch.setattr(letor.writing, "_READ_BYTES", read_bytes)
    source, target = tmp_path / "s.txt", tmp_path / "t.txt"
    source.write_bytes(SOURCE)
    values = np.array([[1, 0.5], [2, np.nan], [np.nan, np.nan], [4, 1e-3]], dtype=np.float32)
    assert append_columns(source, target, values) == [4, 5]
    assert target.read_bytes() == (
        b"# head\r\n"
        b"1 qid:a 1:0.50 3:7\t4:1 5:0.5 #docid = x # y\r\n"
        b"\n"
        b"0   qid:b 2:NULL   4:2\n"
        b"0 qid:b#c\n"
        b"2 qid:c 2:nan 3:1 4:4 5:0.001 #docid=z"
    )
    assert append_columns(source, source, values, first_id=47) == [47, 48]
    assert b"\t47:1 48:0.5 #docid = x # y\r\n" in source.read_bytes()


def test_appending_checks_before_it_writes(tmp_path: Path) -> None:
    source, target = tmp_path / "s.txt", tmp_path / "t.txt"
    source.write_bytes(SOURCE)
    for values, options, reason in [
        (np.ones((3, 1)), {}, r"shape \(3, 1\), but .* has 4 rows"),
        (np.ones(4), {}, r"shape \(4,\)"),
        (np.ones((4, 1)), {"first_id": 3}, "has a column 3 already"),
        (np.full((4, 1), np.inf), {}, "row 0, column 4: LETOR text cannot hold inf"),
    ]:
        with pytest.raises(InputError, match=reason):
            append_columns(source, target, values, **options)
    source.write_bytes(SOURCE + b"\n\nbad line\n")
    with pytest.raises(InputError, match="line 8: the label 'bad' is not a number"):
        append_columns(source, target, np.ones((4, 1)))
    assert not target.exists()


def test_packed_strings_behave_like_an_object_array() -> None:
    values = np.array(["a", "", "ünï", "\udcff"], dtype=object)
    packed = StringArray.from_values(values)
    assert len(packed) == 4
    assert packed[2] == "ünï"
    assert packed[-1] == "\udcff"
    assert list(packed[np.array([True, False, True, False])]) == ["a", "ünï"]
    assert list(packed[[3, 0]]) == ["\udcff", "a"]
    assert packed[1:].tolist() == values[1:].tolist()
    assert np.asarray(packed).dtype == object
    assert (packed == values).all()
    assert np.array(packed, dtype="U3")[0] == "a"
    assert "of 4: ['a', '', 'ünï'], ..." in repr(packed)


@pytest.mark.data
@pytest.mark.parametrize("part", ["S1", "S2", "S3", "S4", "S5"])
def test_mq2008_round_trips_byte_for_byte(data_folder: Path, tmp_path: Path, part: str) -> None:
    path = data_folder / "letor4_mq2008" / f"{part}.txt"
    data = read_letor(path)
    write_letor(data, tmp_path / "again.txt", digits=6, line_end="\r\n")
    assert (tmp_path / "again.txt").read_bytes() == path.read_bytes()
    append_columns(path, tmp_path / "same.txt", np.empty((len(data), 0), dtype=np.float32))
    assert (tmp_path / "same.txt").read_bytes() == path.read_bytes()
    assert append_columns(path, tmp_path / "more.txt", data.X[:, :2]) == [47, 48]
    more = read_letor(tmp_path / "more.txt")
    assert np.array_equal(more.X, np.hstack([data.X, data.X[:, :2]]))
    assert list(more.comments) == list(data.comments)
