"""Model files: one safetensors file whose header is JSON. Loading runs no code."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from ssi_models.vocabulary import Vocabulary

FORMAT = "ssi-models/1"


def save_tensors(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    tensors: Mapping[str, NDArray[Any]],
) -> None:
    """Write tensors and a JSON-compatible header; the file appears only when it is complete."""
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    contiguous = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    # One entry: safetensors writes several in random order, and equal models give equal bytes.
    metadata = {FORMAT: json.dumps(header, sort_keys=True)}
    try:
        save_file(contiguous, partial, metadata=metadata)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def load_tensors(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the header and the tensors of a model file.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not a model file of this package, of another format version, or damaged.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such model file")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if FORMAT not in metadata:
                found = ", ".join(sorted(metadata)) or "none"
                raise ValueError(f"{path}: model format is {found}, not {FORMAT}; fit it again")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path}: not a readable model file ({error})") from error
    return json.loads(metadata[FORMAT]), tensors


def pack_vocabulary(vocabulary: Vocabulary) -> dict[str, NDArray[Any]]:
    """A vocabulary as two tensors: UTF-8 bytes of all words and int64 [V + 1] offsets."""
    encoded = [word.encode("utf8", "surrogatepass") for word in vocabulary]
    offsets = np.concatenate([[0], np.cumsum([len(word) for word in encoded])]).astype(np.int64)
    return {
        "vocabulary.bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        "vocabulary.offsets": offsets,
    }


def unpack_vocabulary(tensors: Mapping[str, NDArray[Any]]) -> Vocabulary:
    """The inverse of :func:`pack_vocabulary`."""
    text = tensors["vocabulary.bytes"].tobytes()
    offsets = tensors["vocabulary.offsets"].tolist()
    return Vocabulary(
        text[start:stop].decode("utf8", "surrogatepass") for start, stop in pairwise(offsets)
    )
