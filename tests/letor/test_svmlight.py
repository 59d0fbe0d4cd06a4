"""Reading LETOR text: values, options, refusals; mutants; scikit-learn on MQ2008."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Iterator
from pathlib import Path

import letor_fuzz
import letor_lines
import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import letor.parser
import letor.svmlight
from letor.errors import InputError
from letor.kernels.numbers import MALFORMED, NUMBER, read_number
from letor.kernels.numbers_fast import read_common_number
from letor.line import nearest_float32
from letor.svmlight import BadLine, LetorWarning, read_letor

LINES = (
    b"2 qid:10 1:0.5 3:-1e-2 #docid = GX1 inc = 1 prob = 0.5\r\n"
    b"\r\n"
    b"# a comment line\n"
    b"0 qid:x-7 2:NULL 3:3\n"
    b"-1 qid:10 1:.25\t2:1. 3:4 # free form\n"
    b"0 qid:x-7 2:-8 3:1#docid = 5 docno = d5"
)


@pytest.fixture(autouse=True, params=[0, letor.parser.KERNELS_FROM_BYTES], scope="module")
def _both_ways(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test, by the kernels and without them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(letor.parser, "KERNELS_FROM_BYTES", request.param)
        patch.setattr(letor.svmlight, "KERNELS_FROM_BYTES", request.param)
        yield


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.txt"
    path.write_bytes(LINES)
    return path


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "written.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_rows_by_hand(file: Path) -> None:
    data = read_letor(file)
    assert data.X.dtype == np.float32
    assert data.X.tolist() == [
        [0.5, 0, float(np.float32(-0.01))],
        [0, -8, 3],  # NULL: the least value of column 2 in query x-7
        [0.25, 1, 4],
        [0, -8, 1],
    ]
    assert data.y.tolist() == [2, 0, -1, 0]
    assert data.query_ids == ["10", "x-7"]
    assert data.query_index.tolist() == [0, 1, 0, 1]
    assert data.column_names == ["1", "2", "3"]
    assert list(data.document_ids) == ["GX1", "", "", "d5"]
    assert list(data.comments) == [
        b"#docid = GX1 inc = 1 prob = 0.5",
        b"",
        b"# free form",
        b"#docid = 5 docno = d5",
    ]


def test_missing_and_null_as_nan(file: Path) -> None:
    X = read_letor(file, missing=np.nan, null="nan").X
    assert np.isnan(X).tolist() == [
        [False, True, False],
        [True, True, False],
        [False, False, False],
        [True, False, False],
    ]


def test_query_of_nulls_only_is_zero(tmp_path: Path) -> None:
    data = read_letor(write(tmp_path, "0 qid:1 1:NULL\n1 qid:1 1:NULL\n1 qid:2 1:-3\n"))
    assert data.X.ravel().tolist() == [0, 0, -3]


@pytest.mark.parametrize(
    ("comment", "document"),
    [
        ("#docid=a docid=b", "a"),
        ("# docid = a docno = b docno = c", "b"),
        ("#docid = docno=b", "b"),
        ("#docno = ", ""),
        ("#docid\t=\ta#b", "a#b"),
        ("# xdocid = a; docid = b", "b"),
    ],
)
def test_document_ids_in_comments(tmp_path: Path, comment: str, document: str) -> None:
    other = "0 qid:1 1:1 #docid = other\n"
    data = read_letor(write(tmp_path, f"1 qid:1 1:1 {comment}\n{other}"))
    assert data.document_ids is not None
    assert list(data.document_ids) == [document, "other"]


def test_comments_on_request(file: Path, tmp_path: Path) -> None:
    data = read_letor(file, comments=False)
    assert data.comments is None
    assert data.document_ids is None
    bare = read_letor(write(tmp_path, "1 qid:1 1:1\n"))
    assert bare.comments is None
    free = read_letor(write(tmp_path, "1 qid:1 1:1 # mydocid = 3\n"))
    assert free.document_ids is None
    assert free.comments is not None


def test_wider_later_rows_and_fixed_width(tmp_path: Path) -> None:
    narrow = "1 qid:1 1:1\n" * 50_000
    path = write(tmp_path, narrow + "1 qid:1 9:1\n" + narrow)
    data = read_letor(path)
    assert data.X.shape == (100_001, 9)
    assert data.X.sum() == 100_001
    assert read_letor(path, n_columns=12).X.shape == (100_001, 12)
    with pytest.raises(InputError, match=r"line 50001: '9:1': the id is above max_columns=8"):
        read_letor(path, n_columns=8)


def test_absent_values_of_rows_before_a_wider_one(tmp_path: Path) -> None:
    path = write(tmp_path, "1 qid:1 1:1\n" * 5_000 + "1 qid:1 3:1\n")
    X = read_letor(path, missing=np.nan).X
    assert np.isnan(X).sum(axis=0).tolist() == [1, 5_001, 5_000]


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzip.compress), (".bz2", bz2.compress), (".zst", zstandard.compress)],
)
def test_compressed_files(tmp_path: Path, suffix: str, compress) -> None:
    path = tmp_path / f"rows.txt{suffix}"
    path.write_bytes(compress(LINES[:100]) + compress(LINES[100:]))  # two frames
    plain = read_letor(write(tmp_path, LINES))
    data = read_letor(path)
    assert np.array_equal(data.X, plain.X)
    assert list(data.comments) == list(plain.comments)
    path.write_bytes(compress(LINES)[:-9])
    with pytest.raises(InputError, match=f"damaged {suffix} file"):
        read_letor(path)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("x qid:1 1:1", "label 'x' is not a number"),
        ("1,1,0.5", "`ltr-features convert` and RankingData.from_frame make rows of a table"),
        ("1:2 qid:1 1:1", "label '1:2' is not a number"),
        ("nan qid:1 1:1", "label 'nan' is not a number"),
        ("1e99 qid:1 1:1", "label '1e99' is beyond float32"),
        ("1", "no qid after the label, the line ends there"),
        ("1 1:2 2:3", "no qid after the label, found '1:2'"),
        ("1 qid: 1:2", "query id in 'qid:' is empty"),
        ("1 qid:1 2", "'2' is not `id:value`"),
        ("1 qid:1 a:2", "'a:2' is not `id:value`"),
        ("1 qid:1 0:2", "'0:2': column ids start at 1"),
        ("1 qid:1 -3:2", "'-3:2': column ids start at 1"),
        ("1 qid:1 2:1 1:1", "'1:1': id 1 follows id 2"),
        ("1 qid:1 2:1 2:1", "'2:1': id 2 is given twice"),
        ("1 qid:1 10001:1", "'10001:1': the id is above max_columns=10000"),
        ("1 qid:1 99999999999999999999:1", "above max_columns"),
        ("1 qid:1 1:", "'1:' has no number after the colon"),
        ("1 qid:1 1:2x", "'1:2x' has no number"),
        ("1 qid:1 1:1_0", "'1:1_0' has no number"),
        ("1 qid:1 1:0x10", "'1:0x10' has no number"),
        ("1 qid:1 1:1e", "'1:1e' has no number"),
        ("1 qid:1 1:-NULL", "'1:-NULL' has no number"),
        ("1 qid:1 1:nan", "'1:nan' is not a number; read with non_finite="),
        ("1 qid:1 1:-Infinity", "'1:-Infinity' is infinite"),
        ("1 qid:1 1:1.797e308", "'1:1.797e308' is beyond float32"),
        ("1 qid:1 1:1\r2:2", "carriage return inside the line"),
        ("1 qid:1 1:1\0", r"'1:1\\x00' has no number"),
        ("1 qid:1 1:\x1b[2J", r"'1:\\x1b[2J' has no number"),  # clears the screen
    ],
)
def test_refusals_name_line_text_and_reason(tmp_path: Path, line: str, reason: str) -> None:
    path = write(tmp_path, f"1 qid:1 1:1 2:2\r\n\r\n{line}\r\n1 qid:1 1:1\r\n")
    with pytest.raises(InputError, match=r"written\.txt, line 3: ") as caught:
        read_letor(path)
    assert reason.replace("\\\\", "\\") in str(caught.value)
    assert line[:10].rstrip("\0\r") in str(caught.value)
    rejected: list[BadLine] = []
    data = read_letor(path, on_error="skip", rejected=rejected)
    assert [bad.number for bad in rejected] == [3]
    assert len(data) == 2
    with pytest.warns(LetorWarning, match="1 bad line left out; the first is line 3"):
        read_letor(path, on_error="skip")


def test_very_long_numbers_are_refused_in_files_of_any_size(tmp_path: Path) -> None:
    digits = "1" * 997
    path = tmp_path / "a.txt"
    path.write_text(f"1 qid:1 1:-0.{digits}\n")
    assert read_letor(path).X.tolist() == [[np.float32(-1 / 9)]]
    path.write_text(f"1 qid:1 1:-0.{digits}1\n")
    with pytest.raises(InputError, match=r"has no number \(of at most 1,000 characters\) after"):
        read_letor(path)


def test_skipped_rows_take_their_query_along(tmp_path: Path) -> None:
    path = write(tmp_path, "1 qid:b 1:x\n1 qid:a 1:1\n1 qid:b 1:2\n1 qid:c 1:1 1:2\n")
    rejected: list[BadLine] = []
    data = read_letor(path, on_error="skip", rejected=rejected)
    assert data.query_ids == ["a", "b"]
    assert data.query_index.tolist() == [0, 1]
    assert [bad.number for bad in rejected] == [1, 4]


@pytest.mark.parametrize("n", [2, 9000])  # short texts are read without the kernels
@pytest.mark.parametrize("begin", ["", "# a header\r"])
@pytest.mark.parametrize("comment", ["", " #docid = a"])
def test_lines_that_end_with_cr_alone(tmp_path: Path, n: int, begin: str, comment: str) -> None:
    line = f"1 qid:1 1:1{comment}"
    for end in ("", "\r", "\n"):
        with pytest.raises(InputError, match=r"written\.txt: the lines end with CR alone"):
            read_letor(write(tmp_path, begin + "\r".join([line] * n) + end))
    assert len(read_letor(write(tmp_path, f"{line}\r\n" * n))) == n
    assert len(read_letor(write(tmp_path, f"{line}\r"))) == 1


@pytest.mark.parametrize("text", ["", "\n\n", "# only\n", "\xef\xbb\xbf"])
def test_files_without_rows(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="no rows"):
        read_letor(write(tmp_path, text.encode("latin1")))


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_letor(tmp_path / "absent.txt")
    for folder in (tmp_path, "."):
        with pytest.raises(InputError, match="a folder"):
            read_letor(folder)


def test_options_out_of_range(file: Path) -> None:
    for option in ({"missing": 1.0}, {"n_columns": 0}, {"max_columns": 10**9}):
        with pytest.raises(InputError, match=next(iter(option))):
            read_letor(file, **option)


def test_byte_order_mark_and_one_long_line(tmp_path: Path) -> None:
    pairs = " ".join(f"{j}:{j}" for j in range(1, 9001))
    data = read_letor(write(tmp_path, b"\xef\xbb\xbf1 qid:q " + pairs.encode()))
    assert data.X[0].tolist() == list(range(1, 9001))


def test_threads_and_chunks_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=(400, 3))
    text = "".join(
        f"{i % 3} qid:{rng.integers(30)} 1:{a!r} 2:{b:.3e} 3:{c:.4f} #docid = d{i}\n\n"
        for i, (a, b, c) in enumerate(values.tolist())
    )
    path = write(tmp_path, text)
    whole = read_letor(path, threads=1)
    assert np.array_equal(whole.X[:, 0], values[:, 0].astype(np.float32))
    monkeypatch.setattr(letor.parser, "CHUNK_BYTES", 1000)
    for threads in (1, 2, 3):
        data = read_letor(path, threads=threads)
        assert np.array_equal(data.X, whole.X)
        assert np.array_equal(data.query_index, whole.query_index)
        assert list(data.document_ids) == [f"d{i}" for i in range(400)]


def number(text: str) -> tuple[int, np.float32, int]:
    return read_number(np.frombuffer(text.encode() + b" 1", dtype=np.uint8), 0)


def common_number(text: str) -> tuple[bool, np.float32, int]:
    return read_common_number(np.frombuffer(text.encode() + b" " * 40, dtype=np.uint8), 0)


def check_number(text: str) -> None:
    """The kernels, the slow path and the exact twin agree on a decimal number."""
    exact = letor_lines.float32(text)
    wanted = np.float32(np.copysign(np.inf, float(text[:1] + "1"))) if exact is None else exact
    assert nearest_float32(text).view(np.uint32) == wanted.view(np.uint32)
    kind, value, stop = number(text)
    if kind != MALFORMED:
        assert (kind == NUMBER) == (exact is not None)
        assert stop == len(text)
        assert exact is None or np.float32(value).view(np.uint32) == exact.view(np.uint32)
    is_common, value, stop = common_number(text)
    if is_common:
        assert stop == len(text)
        assert np.float32(value).view(np.uint32) == wanted.view(np.uint32)


@settings(max_examples=400, deadline=None)
@given(
    st.from_regex(
        r"[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?", fullmatch=True
    )
)
def test_any_decimal_is_rounded_correctly(text: str) -> None:
    check_number(text if text[0] in "+-" else "+" + text)
    check_number(text)


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 0x7F7FFFFE), st.integers(-3, 3), st.integers(8, 45))
def test_decimals_near_the_middle_of_two_float32(bits: int, step: int, digits: int) -> None:
    low, high = np.array([bits, bits + 1], dtype=np.uint32).view(np.float32).astype(float)
    middle = (low + high) / 2  # exact in double
    check_number(f"{middle:.{digits}e}")
    check_number(f"{np.nextafter(middle, np.inf * (step or 1)):.{digits}e}")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "0",
            "-0",
            "0.0",
            "-0.0",
            "-12.5",
            "16777217",
            "16777217.0",
            "16777219.000",
            "33554434.5",
            "1e-45",
        ),
        *("7.006492321624085e-46", "7.006492321624086e-46", "1.17549435e-38", "1e39", "1e-400"),
        *("3.4028235677973366e38", "3.4028235677973365e38", "3.4028234663852886e38", "9" * 50),
        *("0." + "0" * 60 + "1", "1" + "0" * 50 + "e-50", "123456789012345678901234567890e-20"),
        *("0.12345678", "0.123456789012345", "0.1234567890123456", "1234567.123456789012345"),
    ],
)
def test_decimals_at_the_edges(text: str) -> None:
    check_number(text)


@pytest.mark.filterwarnings("error")
def test_mutants_read_as_the_slow_twin_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letor.parser, "CHUNK_BYTES", 64)
    letor_fuzz.fuzz(tmp_path / "mutant.txt", 2500, seed=17)
    assert (tmp_path / "mutant.txt").exists()


@pytest.mark.data
@pytest.mark.parametrize("part", ["S1", "S2", "S3", "S4", "S5"])
def test_mq2008_equals_scikit_learn(data_folder: Path, part: str) -> None:
    from sklearn.datasets import load_svmlight_file

    path = data_folder / "letor4_mq2008" / f"{part}.txt"
    X, y, queries = load_svmlight_file(str(path), n_features=46, zero_based=False, query_id=True)
    data = read_letor(path)
    assert np.array_equal(data.X, X.toarray().astype(np.float32))
    assert np.array_equal(data.y, y)
    assert [data.query_ids[i] for i in data.query_index] == [str(q) for q in queries]
    lines = path.read_bytes().splitlines()
    assert list(data.comments) == [line[line.index(b"#") :] for line in lines]
    assert list(data.document_ids) == [line.split()[50].decode() for line in lines]


@pytest.mark.parametrize(
    "option", [{"null": "zero"}, {"on_error": "ignore"}, {"non_finite": "zero"}]
)
def test_unknown_choices_are_refused_by_name(tmp_path, option):
    (tmp_path / "x.txt").write_text("1 qid:1 1:2\n")
    with pytest.raises(InputError, match=next(iter(option))):
        read_letor(tmp_path / "x.txt", **option)
