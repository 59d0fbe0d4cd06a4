"""Checks of parameters, and a digest of everything that a result depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_choice(name: str, value: Any, choices: Any) -> None:
    """Raise ValueError if a parameter is none of its choices."""
    if value not in choices:
        raise ValueError(f"{name} {value!r} is unknown; use one of {tuple(choices)}")


def digest_of(parameters: Sequence[Any], given: Iterable[NDArray[Any]]) -> str:
    """SHA-256 (hex) of parameters and arrays."""
    digest = hashlib.sha256(repr(parameters).encode())
    for array in given:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
