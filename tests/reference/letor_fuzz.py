"""Mutate LETOR files and compare the reader with its slow twin.

Run as a script for long campaigns: ``python tests/reference/letor_fuzz.py 100000 --seed 1``.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import letor_lines
import numpy as np
from mutations import LETOR_WORDS, mutate_bytes

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
        data = mutate_bytes(pool[rng.integers(len(pool))], rng, LETOR_WORDS)
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
