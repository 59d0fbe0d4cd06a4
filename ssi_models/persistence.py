"""Model files: one safetensors file whose header is JSON. Loading runs no code."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from ltr_base.machine import temporary_paths
from ltr_base.outputs import remove, replacement
from ssi_models.parameters import digest_of
from ssi_models.stored_tensors import Tensor, check_tensors
from ssi_models.vocabulary import Vocabulary

FORMAT = "ssi-models/1"
#: The entry of a header with the digest of the rest and of the tensors.
_DIGEST = "digest"


def save_tensors(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    tensors: Mapping[str, NDArray[Any]],
) -> None:
    """Write tensors and a JSON-compatible header; the file appears only when it is complete. It has
    a digest of both, by which readers tell a damaged file.

    Raises:
        OSError: it cannot be written.
    """
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    # Parameters may be numpy's numbers, and keys numbers, which JSON turns into strings.
    plain = json.loads(json.dumps(header, default=np.generic.item))
    text = json.dumps({**plain, _DIGEST: _digest(plain, arrays)}, sort_keys=True)
    with replacement(path) as partial:
        partial.touch()
        rights = partial.stat().st_mode  # of any new file; save_file lets nobody else read
        # save_file first writes beside the file, by a name of its own, which a killed process would
        # leave for good: in a folder that has a name of ours it is removed.
        folder, _ = temporary_paths(partial.with_name(Path(path).name))
        try:
            folder.mkdir()
            # One entry: safetensors writes several in random order; equal models must give equal
            # bytes.
            save_file(arrays, folder / "tensors", metadata={FORMAT: text})
            os.replace(folder / "tensors", partial)
        except SafetensorError as error:  # a full disk raises it, too
            number = re.search(r"os error (\d+)", str(error))
            code = int(number[1]) if number else errno.EIO
            raise OSError(code, os.strerror(code) if number else str(error), str(path)) from None
        finally:
            remove(folder)
        partial.chmod(rights)


def _digest(header: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> str:
    names = sorted(tensors)
    known = [json.dumps(header, sort_keys=True), names]
    return digest_of(known, (tensors[name] for name in names))


def load_tensors(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the header and the tensors of a model file.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not a model file of this package, another format version, or damaged.
    """
    with _opened(path) as (file, header):
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    digest = header.pop(_DIGEST, None)
    if digest not in (None, _digest(header, tensors)):  # earlier versions wrote none
        raise ValueError(f"{path}: is damaged, it is not the file that was written; fit it again")
    return header, tensors


def load_checked(
    path: str | os.PathLike[str], expected: Mapping[str, Tensor], **sizes: int
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the header and the tensors of a file, and check that the tensors are as expected, see
    :func:`ssi_models.stored_tensors.check_tensors`.

    Raises:
        FileNotFoundError: no such file.
        ValueError: as :func:`load_tensors`, or a tensor is not as expected.
    """
    with reading(path):
        header, tensors = load_tensors(path)
        check_tensors(tensors, expected, **sizes)
        return header, tensors


def load_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the header alone. Raises: as :func:`load_tensors`."""
    with _opened(path) as (_, header):
        return header


def load_rows(
    path: str | os.PathLike[str], name: str, count: int
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Read a tensor ``count`` rows at a time: yields (number of the first row, rows).

    Raises:
        FileNotFoundError, ValueError: as :func:`load_tensors`.
    """
    with _opened(path) as (file, _):
        rows = file.get_slice(name)
        total = rows.get_shape()[0]
        for start in range(0, total, count):
            yield start, rows[start : min(start + count, total)]


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn any exception that a damaged file raises in the block into a ValueError that names the
    file.

    Raises:
        FileNotFoundError: no such file.
        ValueError: see above.
    """
    if not Path(path).is_file():
        found = "a folder, not a" if Path(path).is_dir() else "no such"
        raise FileNotFoundError(f"{path}: {found} model file")
    try:
        yield
    except ImportError:  # the installation's fault, never the file's
        raise
    except Exception as error:
        if isinstance(error, ValueError) and str(path) in str(error):
            raise
        cause = f"{type(error).__name__}: {error}"
        raise ValueError(f"{path}: not a readable model file ({cause}); fit it again") from error


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The open file, and its header."""
    with reading(path), safe_open(path, framework="numpy") as file:
        metadata = file.metadata() or {}
        if FORMAT not in metadata:
            found = ", ".join(sorted(metadata)) or "none"
            raise ValueError(f"{path}: model format is {found}, not {FORMAT}; fit it again")
        yield file, json.loads(metadata[FORMAT])


def count(header: Mapping[str, Any], name: str) -> int:
    """Read a size from a header.

    Raises:
        KeyError, ValueError: it is missing, or not a whole number of 0 or more.
    """
    value = header[name]
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} is {value!r}, must be a whole number of 0 or more")
    return value


def numbers(values: Any) -> Any:
    """Return a list or mapping from a header, whose values must all be numbers.

    Raises:
        ValueError: a value is not a number.
    """
    for value in values.values() if isinstance(values, Mapping) else values:
        if not isinstance(value, int | float):
            raise ValueError(f"{value!r} must be a number")
    return values


_VOCABULARY = {
    "vocabulary.bytes": Tensor(("letters",), "uint8"),
    "vocabulary.offsets": Tensor(("offsets",), "int64", ends="letters"),
}


def pack_vocabulary(vocabulary: Vocabulary) -> dict[str, NDArray[Any]]:
    """A vocabulary as two tensors: UTF-8 bytes of all words and int64 [V + 1] offsets."""
    encoded = [word.encode("utf8", "surrogatepass") for word in vocabulary]
    offsets = np.concatenate([[0], np.cumsum([len(word) for word in encoded])]).astype(np.int64)
    return {
        "vocabulary.bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        "vocabulary.offsets": offsets,
    }


def unpack_vocabulary(tensors: Mapping[str, NDArray[Any]]) -> Vocabulary:
    """The inverse of :func:`pack_vocabulary`.

    Raises:
        ValueError: the arrays do not encode a vocabulary, or a word occurs twice.
    """
    letters = {"letters": len(tensors["vocabulary.bytes"])}
    check_tensors(tensors, _VOCABULARY, **letters)
    text = tensors["vocabulary.bytes"].tobytes()
    offsets = tensors["vocabulary.offsets"].tolist()
    return Vocabulary(
        text[start:stop].decode("utf8", "surrogatepass") for start, stop in pairwise(offsets)
    )
