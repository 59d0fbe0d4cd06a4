import bz2
import gzip
import lzma

import numpy as np
import pyarrow as pa
import pytest
from gensim.models import KeyedVectors
from hypothesis import given, settings
from hypothesis import strategies as st

from letor.errors import InputError
from ltr_features.embeddings.vector_files import read_vectors

ROWS = np.array([[0.5, -1.25, 3.0], [1e-3, 2.0, -0.0], [7.0, 0.125, 1e10]], dtype=np.float32)
WORDS = ["apple", "naïve", "東京"]


def numbered(words, rows):
    return zip(words, rows, strict=True)


def as_text(words, rows, header=True, end="\n"):
    lines = [f"{len(words)} {rows.shape[1]}"] if header else []
    lines += [f"{w} " + " ".join(repr(float(x)) for x in row) for w, row in numbered(words, rows)]
    return (end.join(lines) + end).encode()


def as_binary(words, rows, newline=b"\n"):
    body = [
        w.encode() + b" " + row.astype("<f4").tobytes() + newline
        for w, row in numbered(words, rows)
    ]
    return f"{len(words)} {rows.shape[1]}\n".encode() + b"".join(body)


@pytest.mark.parametrize(
    "content",
    [
        as_text(WORDS, ROWS),
        as_text(WORDS, ROWS, header=False),
        as_text(WORDS, ROWS, end=" \r\n"),
        as_text(WORDS, ROWS).rstrip(b"\n"),
        as_binary(WORDS, ROWS),
        as_binary(WORDS, ROWS, newline=b""),
        b"\xef\xbb\xbf" + as_text(WORDS, ROWS),
        as_text(WORDS, ROWS, header=False) + b"\n\r\n",
        gzip.compress(as_text(WORDS, ROWS), mtime=0),
        gzip.compress(as_binary(WORDS, ROWS), mtime=0),
        bz2.compress(as_text(WORDS, ROWS)),
        pa.compress(as_binary(WORDS, ROWS), "zstd", asbytes=True),
    ],
)
def test_every_layout_gives_words_and_numbers(tmp_path, content):
    path = tmp_path / "vectors"
    path.write_bytes(content)
    words, rows = read_vectors(path)
    assert words == WORDS
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, ROWS)
    words, rows = read_vectors(path, {"東京", "banana", "apple"}.__contains__)
    assert words == ["apple", "東京"]
    np.testing.assert_array_equal(rows, ROWS[[0, 2]])


@pytest.mark.parametrize("binary", [False, True])
def test_files_that_gensim_writes_are_read_as_gensim_reads_them(tmp_path, binary):
    rng = np.random.default_rng(0)
    vectors = KeyedVectors(7)
    vectors.add_vectors([f"w{i}" for i in range(1500)], rng.normal(size=(1500, 7)).astype("f4"))
    path = str(tmp_path / "v")
    vectors.save_word2vec_format(path, binary=binary)
    again = KeyedVectors.load_word2vec_format(path, binary=binary)
    words, rows = read_vectors(path)
    assert words == again.index_to_key
    np.testing.assert_array_equal(rows, again.vectors)


def test_words_with_spaces_and_repeated_words(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_bytes(b"a 1 2\n. . 3 4\na 5 6\n")
    words, rows = read_vectors(path)
    assert words == ["a", ". ."]
    assert rows.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"2 3\na 1 2 3\nb 1 2\n", "line 3: 2 numbers, expected 3"),
        (b"2 3\na 1 2 3\nb 1 2 3 4\n", "line 3: 4 numbers, expected 3"),
        (b"3 3\na 1 2 3\nb 1 2 3\n", "promises 3 words, the file has 2; it is truncated"),
        (b"1 3\na 1 x 3\n", "line 2: b'x' is not a number"),
        (b"1 3\na 1 nan 3\n", "line 2: a number is not finite"),
        (b"2 3\na 1 2 3\n 1 2 3\n", "line 3: no word"),
        (b"1 0\na\n", "a dimension that is not 1 to"),
        (b"1 " + b"9" * 5000 + b"\na 1\n", "line 1: b.9+. is not a number"),
        (b"", "line 1: expected 'words dimension'"),
        (b"hello\n", "line 1: expected 'words dimension'"),
        (b"1 2\n\xff\xfe 1 2\n", "line 2: the word .* is not UTF-8"),
        (as_binary(WORDS, ROWS)[:-6], "record 3: the file ends here"),
        (as_binary(WORDS, ROWS) + b"more", "data after the 3 words"),
        (as_binary(["x"], ROWS[:1]).replace(b"x", b"\xff"), "record 1: the word .* is not UTF-8"),
        (as_binary(["x"], np.array([[np.inf, 0, 0]])), "record 1: a number is not finite"),
        (gzip.compress(as_text(WORDS, ROWS), mtime=0)[:-20], "damaged or truncated gzip"),
        (bz2.compress(as_text(WORDS, ROWS))[:-9], "damaged or truncated bz2"),
    ],
)
def test_bad_files_are_refused_with_their_place(tmp_path, content, message):
    path = tmp_path / "vectors.vec"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_vectors(path)
    assert "vectors.vec" in str(caught.value)


def test_words_that_are_not_utf8_can_be_skipped(tmp_path):
    path = tmp_path / "v"
    path.write_bytes(b"2 2\n\xff\xfe 1 2\nb 3 4\n")
    for skipped in ({"undecodable": "skip"}, {"wanted": lambda word: True}):
        words, rows = read_vectors(path, **skipped)
        assert words == ["b"]
        assert rows.tolist() == [[3, 4]]


def test_files_of_other_programs_are_told_apart(tmp_path):
    vectors = KeyedVectors(3)
    vectors.add_vectors(WORDS, ROWS)
    vectors.save(str(tmp_path / "v.kv"))
    np.save(tmp_path / "v.npy", ROWS)
    np.savez(tmp_path / "v.npz", ROWS)
    (tmp_path / "v.bin").write_bytes(b"\xba\x16\x4f\x2f\x0c\0\0\0 d\n")
    (tmp_path / "v.xz").write_bytes(lzma.compress(as_text(WORDS, ROWS)))
    for name, said in (
        ("v.kv", "a file of Python or NumPy.* gensim"),
        ("v.npy", "a file of Python or NumPy"),
        ("v.npz", "a zip archive .* unpack it"),
        ("v.bin", r"a model of fastText: name the \.vec file"),
        ("v.xz", r"an xz file: decompress it"),
    ):
        with pytest.raises(InputError, match=rf"{name}: {said}"):
            read_vectors(tmp_path / name, lambda word: True)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="no such vector file"):
        read_vectors(tmp_path / "none.vec")


@settings(max_examples=150, deadline=None)
@given(data=st.data(), binary=st.booleans(), zipped=st.booleans())
def test_damaged_files_are_read_or_refused_never_crash(tmp_path_factory, data, binary, zipped):
    content = bytearray(as_binary(WORDS, ROWS) if binary else as_text(WORDS, ROWS))
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    content = bytes(content[: data.draw(st.integers(0, len(content)))])
    path = tmp_path_factory.mktemp("fuzz") / "v"
    path.write_bytes(gzip.compress(content, mtime=0) if zipped else content)
    try:
        words, rows = read_vectors(path)
    except InputError:
        return
    assert rows.shape[0] == len(words) == len(set(words))
    assert np.isfinite(rows).all()
