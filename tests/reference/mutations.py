"""Damage to files, drawn from a seed: bytes, lines, words, and what is inside of known formats."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import re
import sqlite3
import struct
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import load, save

from letor.digests import DIGESTS, write_digests

#: Written between and over what a LETOR file holds, ...
LETOR_WORDS = [
    *(b" ", b"\t", b"\n", b"\r\n", b"\r", b"#", b":", b"-", b"+", b".", b"e", b"0", b"9", b"\0"),
    *(b"qid:", b"1:", b"NULL", b"nan", b"-inf", b"Infinity", b"1e400", b"1e-400", b"\xff", b"1_0"),
    *(b"00000000001", b"99999999999999999999999", b"0.00000000000000000000000001234567890123"),
    *(b"docid = ", b"docno=", b"2:", b"3:", b"60:", b"61:", b"0:", b"-1:", b"8388608.5", b"1.5e+2"),
    *(b"1e99999999999999999999999", b"123456789.123456789e-20", b"\xef\xbb\xbf", b"0x1p3"),
]
#: ... and what any text file holds.
WORDS = [
    *LETOR_WORDS,
    *(b'"', b"'", b",", b"\\", b"{", b"}", b"[", b"]", b"[]", b"{}", b"null", b"true", b"=", b"|"),
    *(b"]]>", b"<!--", b'"\\ud800"', b"\xed\xa0\x80", b"<", b">", b"</", b"&#99999999999;"),
    *(b"9999-99-99", b"0001-01-01T00:00:00+23:59", b"\xe2\x80\xae", b"4294967296", b"-2147483649"),
    *(b"9223372036854775808", b"1" * 5000, b"[" * 20000, b'{"a":' * 20000, b"a=[" * 3000),
    *(b"a." * 3000, b"<a>" * 5000, b"9" * 40000, b"10000:1", b"100000000:1", b"\n" * 3000),
]  # fmt: skip
#: Put in the place of any value of JSON.
VALUES = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**70, -(2**62), 1e308, float("nan"), float("inf"),
    1.5, "", "x", "\ud800", "a/../../b", "é" * 300, [], {}, [[1]], [None], {"a": 1}, "1e999",
]  # fmt: skip
NUMBERS = (-1, 1, 2**31 - 1, 2**40, -(2**62), 0, 255, float("nan"), float("inf"), 1e308, -0.5)
DTYPES = ("int8", "int32", "int64", "uint8", "uint64", "float16", "float32", "float64", "bool")


def mutate_bytes(data: bytes, rng: np.random.Generator, words: Sequence[bytes] = WORDS) -> bytes:
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
            piece + words[rng.integers(len(words))],
            words[rng.integers(len(words))],
        ]
        data = data[:a] + edits[rng.integers(len(edits))] + data[b:]
        if rng.random() < 0.2:
            lines = data.split(b"\n")
            data = b"\n".join(lines[i] for i in rng.permutation(len(lines)))
    return data


def mutate_array(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Other values, another length, another shape or another type."""
    change = rng.integers(5)
    flat = array.reshape(-1).copy()
    with np.errstate(all="ignore"):
        if change <= 1 and flat.size:
            value = np.float64(NUMBERS[rng.integers(len(NUMBERS))]).astype(array.dtype)
            flat[rng.integers(flat.size)] = value
            return flat.reshape(array.shape)
        if change == 2:
            return flat[: rng.integers(flat.size + 1)]
        if change == 3:
            return array.astype(str(rng.choice(DTYPES)))
        return rng.permutation(flat).reshape(array.shape) if flat.size else array[..., None]


def mutate_json(found: Any, rng: np.random.Generator) -> Any:
    """The same with another value somewhere, or without it."""
    places = []

    def walk(value: Any) -> None:
        for key in value if isinstance(value, dict) else range(len(value)):
            places.append((value, key))
            if isinstance(value[key], dict | list):
                walk(value[key])

    if not isinstance(found, dict | list) or not found:
        return VALUES[rng.integers(len(VALUES))]
    walk(found)
    place, key = places[rng.integers(len(places))]
    change = rng.integers(8)
    if change == 0:
        del place[key]
    elif change == 1 and isinstance(place, dict):
        place[str(VALUES[rng.integers(len(VALUES))])] = place.pop(key)
    elif change == 2 and isinstance(place[key], int | float):
        place[key] = place[key] + int(rng.choice([-1, 1, 1000]))
    else:
        place[key] = VALUES[rng.integers(len(VALUES))]
    return found


def _json(data: bytes, rng: np.random.Generator) -> bytes:
    return json.dumps(mutate_json(json.loads(data), rng)).encode()


def _json_lines(data: bytes, rng: np.random.Generator) -> bytes:
    lines = data.splitlines()
    at = int(rng.integers(len(lines)))
    lines[at] = _json(lines[at], rng)
    return b"\n".join(lines) + b"\n"


def _npy(data: bytes, rng: np.random.Generator) -> bytes:
    out = io.BytesIO()
    np.save(out, mutate_array(np.load(io.BytesIO(data)), rng))
    return out.getvalue()


def _npz(data: bytes, rng: np.random.Generator) -> bytes:
    with np.load(io.BytesIO(data)) as found:
        arrays = {name: found[name] for name in found.files}
    name = str(rng.choice(sorted(arrays)))
    if arrays[name].dtype.kind in "OSU":
        del arrays[name]
    else:
        arrays[name] = mutate_array(arrays[name], rng)
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def _safetensors(data: bytes, rng: np.random.Generator) -> bytes:
    """A tensor changed, or the metadata, or the raw header (which may lie about places); without
    the digest that would tell any change."""
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(re.sub(rb'\\"digest\\": \\"\w+\\",? ?', b"", data[8 : 8 + size]))
    part = rng.integers(8)
    if part == 0:
        text = json.dumps(mutate_json(header, rng)).encode()
        return struct.pack("<Q", len(text)) + text + data[8 + size :]
    metadata = header.get("__metadata__")
    arrays = dict(load(data))
    if part <= 3 and metadata:
        key = sorted(metadata)[0]
        metadata[key] = _json(metadata[key].encode(), rng).decode()
    else:
        name = sorted(arrays)[rng.integers(len(arrays))]
        if rng.random() < 0.1:
            del arrays[name]
        else:
            arrays[name] = np.ascontiguousarray(mutate_array(arrays[name], rng))
    return save(arrays, metadata=metadata)


def _parquet(data: bytes, rng: np.random.Generator) -> bytes:
    """A column of another type, with a null, another value, other names; other metadata."""
    table = pq.read_table(io.BytesIO(data))
    at = int(rng.integers(table.num_columns))
    column, name = table.column(at), table.column_names[at]
    change = rng.integers(7)
    if change == 0:
        table = table.remove_column(at)
    elif change == 1:
        table = table.rename_columns(
            [n if i != at else "" for i, n in enumerate(table.column_names)]
        )
    elif change == 2:
        kinds = [pa.string(), pa.int8(), pa.float64(), pa.bool_(), pa.list_(pa.int64()), pa.null()]
        kind = kinds[rng.integers(len(kinds))]
        table = table.set_column(at, name, pa.nulls(table.num_rows, kind))
    elif change == 3:
        values = [str(value) for value in column.to_pylist()]
        table = table.set_column(at, name, pa.array(values))
    elif change == 4:
        values = column.to_pylist()
        values[rng.integers(len(values))] = None
        table = table.set_column(at, name, pa.array(values))
    elif change == 5:
        table = table.append_column(name, column)
    else:
        metadata = dict(table.schema.metadata or {b"letor": b"{}"})
        key = sorted(metadata)[0]
        try:
            metadata[key] = _json(metadata[key], rng)
        except ValueError:
            metadata[key] = mutate_bytes(metadata[key], rng)
        table = table.replace_schema_metadata(metadata)
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def _gzip(data: bytes, rng: np.random.Generator) -> bytes:
    return gzip.compress(mutate_bytes(gzip.decompress(data), rng), 1, mtime=0)


def _bz2(data: bytes, rng: np.random.Generator) -> bytes:
    return bz2.compress(mutate_bytes(bz2.decompress(data), rng), 1)


def _sqlite(data: bytes, rng: np.random.Generator) -> bytes:
    with closing(sqlite3.connect(":memory:")) as store:
        store.deserialize(data)
        for key, answer in store.execute("SELECT key, answer FROM answers").fetchall():
            changed = _json(answer.encode(), rng).decode()
            store.execute("UPDATE answers SET answer = ? WHERE key = ?", (changed, key))
        store.commit()
        return store.serialize()


INSIDE = {
    ".json": _json,
    ".jsonl": _json_lines,
    ".npy": _npy,
    ".npz": _npz,
    ".safetensors": _safetensors,
    ".parquet": _parquet,
    ".gz": _gzip,
    ".bz2": _bz2,
    ".sqlite": _sqlite,
}


def mutate_folder(folder: Path, rng: np.random.Generator) -> str:
    """Damage one file of a folder, and say which and how."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if not files:
        return "nothing left"
    path = files[rng.integers(len(files))]
    data, draw = path.read_bytes(), rng.random()
    inside = INSIDE.get(path.suffix)
    if draw < 0.03:
        path.unlink()
        what = "removed"
    elif draw < 0.05:
        path.unlink()
        path.mkdir()
        what = "a folder"
    elif draw < 0.08:
        path.write_bytes(data[: rng.integers(len(data) + 1)])
        what = "cut"
    elif draw < 0.1:
        path.write_bytes(files[rng.integers(len(files))].read_bytes())
        what = "another file"
    else:
        changed, what = None, "changed inside"
        if inside is not None and draw < 0.75:
            with suppress(Exception):  # it was damaged before
                changed = inside(data, rng)
        if changed is None:
            changed, what = mutate_bytes(data, rng), "changed bytes"
        path.write_bytes(changed)
    return f"{path.name} {what}"


def write_digests_anew(folder: Path) -> None:
    """Make digests those of the files as they are, as who damages files on purpose does."""
    for model in [*folder.rglob("model.txt"), *folder.rglob("model.json")]:
        with suppress(Exception):  # what it is described in is damaged, too
            path = model.with_name("ranker.json")
            description = json.loads(path.read_bytes())
            description["fitted"]["model_sha256"] = hashlib.sha256(model.read_bytes()).hexdigest()
            path.write_text(json.dumps(description))
    for path in sorted(folder.rglob(DIGESTS), key=lambda path: -len(path.parts)):
        if path.is_file():
            write_digests(path.parent)
