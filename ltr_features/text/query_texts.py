"""How texts of queries are compared, and ids that are made from them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError

#: Characters by which a text is recognised within a longer one.
_BEGINNING = 50


def normalised(query: str) -> str:
    """The normalised text of a query: Unicode NFKC, case folded, spaces at the ends removed and
    spaces within merged."""
    return " ".join(unicodedata.normalize("NFKC", query).casefold().split())


def begins_within(query: str, texts: Iterable[str]) -> bool:
    """Whether the first 50 characters of a query (all of a shorter one) occur in one of the texts,
    normalised; False for an empty query."""
    beginning = normalised(query[: 10 * _BEGINNING])[:_BEGINNING]
    return bool(beginning) and any(beginning in normalised(text) for text in texts)


def ids_of_texts(texts: Iterable[str]) -> list[str]:
    """An id for each of some distinct query texts, the same in every collection: q (so that no
    program takes it for a number) and 16 hexadecimal digits of its SHA-256.

    Raises:
        InputError: two texts have the same id (by chance, one in a million for 6 million texts).
    """
    ids = [f"q{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}" for text in texts]
    if len(set(ids)) < len(ids):
        raise InputError("two query texts happen to have the same id; give queries ids of your own")
    return ids


def same_text_remark(labels: Sequence[str] | NDArray[np.int64]) -> str:
    """How many queries have the same text as another one, given labels that queries of the same
    text share; the beginning of a remark."""
    _, code, sizes = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    n = int((sizes[code] > 1).sum())
    return (
        f"{n:,} of {len(code):,} queries have the same text as another one, up to case and spaces"
    )
