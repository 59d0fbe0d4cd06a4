"""Parse columns of a click log: numbers, clicks, ids."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_features.sources.table_blocks import Block, ColumnName, refuse_empty, texts

_TRUE, _FALSE = ("1", "true", "True", "TRUE"), ("0", "false", "False", "FALSE")


def whole_numbers(block: Block, column: ColumnName, least: int) -> NDArray[np.int64]:
    """int64 [n]: a column of whole numbers.

    Raises:
        InputError: a value is not a whole number, or less than ``least``.
    """
    values, index = texts(block, column)
    parsed = np.array([_whole(value) for value in values], np.float64)
    bad = ~(parsed >= least)
    if bad.any():
        row = int(np.argmax(bad[index]))
        what = "missing" if not values[index[row]].strip() else f"not a whole number >= {least}"
        raise InputError(f"{block.where(row)}: {column} is {what}")
    return np.asarray(parsed.astype(np.int64)[index])


def _whole(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return float("nan")
    return value if value.is_integer() and abs(value) < 2**53 else float("nan")


def clicks(block: Block, column: ColumnName) -> NDArray[np.int64]:
    """int64 [n]: a column of clicks, 0 or 1 (false, true), or numbers of clicks.

    Raises:
        InputError: another value.
    """
    values, index = texts(block, column)
    plain = {**dict.fromkeys(_TRUE, 1.0), **dict.fromkeys(_FALSE, 0.0)}
    parsed = np.array([plain[v] if v in plain else _whole(v) for v in values], np.float64)
    bad = ~(parsed >= 0)
    if bad.any():
        row = int(np.argmax(bad[index]))
        raise InputError(
            f"{block.where(row)}: {column} is neither 0 or 1, true or false, nor a number of clicks"
        )
    return np.asarray(parsed.astype(np.int64)[index])


def hashes(block: Block, column: ColumnName) -> NDArray[np.uint64]:
    """uint64 [n]: hashes of texts, the same in every file and on every machine.

    Raises:
        InputError: an empty text.
    """
    values, index = texts(block, column)
    refuse_empty(block, column, values, index)
    hashed = pd.util.hash_array(np.array(values, dtype=object), categorize=False)
    return np.asarray(hashed)[index]
