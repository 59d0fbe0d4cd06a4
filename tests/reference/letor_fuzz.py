"""Mutate LETOR files and compare the reader with its slow twin.

Run as a script for long campaigns: ``python tests/reference/letor_fuzz.py 100000 --seed 1``.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import letor_lines
import numpy as np

from letor.errors import InputError
from letor.svmlight import BadLine, read_letor

MAX_COLUMNS = 60
SEEDS = [
    b"0 qid:10 1:0.5 2:0.25 3:1.000000 #docid = GX1 inc = 1 prob = 0.08\r\n"
    b"2 qid:10 1:0.1 2:NULL 3:1e-3 #docid = GX2 inc = 1 prob = 0.9\r\n"
    b"1 qid:11 1:NULL 2:-7.25 3:.5\t#docid = GX3 inc = -1 prob = 0.5\r\n",
    b"# header\n\n1 qid:a 2:1 7:3.25\n0 qid:b 1:12 3:0.123456789\n-1 qid:a 59:1.797e308\n",
    b"3 qid:q-1 1:16777217 2:16777217.0 3:3.4028235e38 4:1e-46 5:nan #docid = 1 docno = d9\n"
    b"3.5 qid:q-1 1:0.1234567890123456789 2:0.5000000298023224 3:-inf # free text\n",
    b"0 qid:1 1:1\n0 qid:2 1:2\n0 qid:1 1:3\n0 qid:3\n0 qid:2 1:4 2:5 #\n1 qid:1 1:1e",
]
WORDS = [
    *(b" ", b"\t", b"\n", b"\r\n", b"\r", b"#", b":", b"-", b"+", b".", b"e", b"0", b"9", b"\0"),
    *(b"qid:", b"1:", b"NULL", b"nan", b"-inf", b"Infinity", b"1e400", b"1e-400", b"\xff", b"1_0"),
    *(b"00000000001", b"99999999999999999999999", b"0.00000000000000000000000001234567890123"),
    *(b"docid = ", b"docno=", b"2:", b"3:", b"60:", b"61:", b"0:", b"-1:", b"8388608.5", b"1.5e+2"),
    *(b"1e99999999999999999999999", b"123456789.123456789e-20", b"\xef\xbb\xbf", b"0x1p3"),
]


def mutate(data: bytes, rng: np.random.Generator) -> bytes:
    """A few random edits: bytes changed, cut, repeated, moved; words inserted."""
    for _ in range(rng.integers(1, 5)):
        a, b = sorted(rng.integers(0, len(data) + 1, 2).tolist())
        b = min(b, a + int(rng.integers(1, 12)))
        piece = data[a:b]
        edits = [
            bytes([int(rng.integers(0, 256))]),
            b"",
            piece + piece,
            piece[::-1],
            piece + WORDS[rng.integers(len(WORDS))],
            WORDS[rng.integers(len(WORDS))],
        ]
        data = data[:a] + edits[rng.integers(len(edits))] + data[b:]
        if rng.random() < 0.2:
            lines = data.split(b"\n")
            data = b"\n".join(lines[i] for i in rng.permutation(len(lines)))
    return data


def check(path: Path, data: bytes, rng: np.random.Generator) -> None:
    """Read ``data`` with random options and compare everything with the twin."""
    path.write_bytes(data)
    missing, null = (0.0, np.nan)[rng.integers(2)], ("min", "nan")[rng.integers(2)]
    allow = bool(rng.integers(2))
    expected = letor_lines.read(data, allow_non_finite=allow, max_columns=MAX_COLUMNS)
    options = {
        "missing": missing,
        "null": null,
        "non_finite": "nan" if allow else "raise",
        "max_columns": MAX_COLUMNS,
        "threads": int(rng.integers(1, 3)),
    }
    rejected: list[BadLine] = []
    try:
        result = read_letor(path, on_error="skip", rejected=rejected, **options)
    except InputError:
        result = None
    assert (result is None) == (not expected.rows), data
    if result is None:
        return
    assert [line.number for line in rejected] == expected.bad_lines, data
    assert result.y.tolist() == [row.label for row in expected.rows], data
    queries = [result.query_ids[i] for i in result.query_index]
    assert queries == [row.query for row in expected.rows], data
    assert list(result.query_ids) == list(dict.fromkeys(queries)), data
    X = letor_lines.table(expected, missing, null)
    assert np.array_equal(result.X.view(np.uint32), X.view(np.uint32)), data
    comments = [row.comment for row in expected.rows]
    assert list(result.comments if result.comments is not None else []) in (comments, []), data
    assert (result.comments is None) == (not any(comments)), data
    documents = [row.document for row in expected.rows]
    assert (result.document_ids is None) == (not any(documents)), data
    if result.document_ids is not None:
        assert list(result.document_ids) == documents, data
    message = ""
    try:
        read_letor(path, **options)
    except InputError as error:
        message = str(error)
    assert bool(message) == bool(expected.bad_lines), data
    assert not message or f"line {expected.bad_lines[0]}:" in message, data


def fuzz(path: Path, mutations: int, seed: int) -> None:
    """Check the seeds, then ``mutations`` mutants of seeds and of earlier mutants."""
    rng = np.random.default_rng(seed)
    pool = list(SEEDS)
    for data in SEEDS:
        check(path, data, rng)
    for i in range(mutations):
        data = mutate(pool[rng.integers(len(pool))], rng)
        check(path, data, rng)
        if i % 3 == 0 and len(data) < 2000:
            if len(pool) < 200:
                pool.append(data)
            else:
                pool[rng.integers(len(SEEDS), len(pool))] = data


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mutations", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chunk-bytes", type=int, default=64)
    arguments = parser.parse_args()
    import letor.parser

    letor.parser.CHUNK_BYTES = arguments.chunk_bytes
    with tempfile.TemporaryDirectory() as folder:
        fuzz(Path(folder) / "mutant.txt", arguments.mutations, arguments.seed)
    print(f"{arguments.mutations} mutations, seed {arguments.seed}: no difference")
