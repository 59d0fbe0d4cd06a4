"""Count the terms of texts over one vocabulary: few texts in Python, many by a numba kernel over
UTF-8, with blocks on threads.

The result depends neither on the number of threads nor on the division into blocks: words are
sorted by code point, and columns increase within a row.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, compress, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from letor.errors import InputError
from letor.mapped import GrowingArray
from ltr_base.parallel import map_blocks, thread_count
from ltr_features.kernels.text import (
    IGNORED,
    NOT_SURELY_NFC,
    TOKEN,
    count_words,
    fill_slots,
    merge_words,
    sort_columns,
)
from ltr_features.text.analyzer import Analyzer, character_class

#: Characters of text per block: small enough to bound memory, large enough to share words.
BLOCK_CHARACTERS = 1 << 22

#: Fewer characters are counted in Python, which takes less time than making the kernels' tables.
KERNELS_FROM_CHARACTERS = 1 << 22

#: A field and some of its texts, in order.
Unit: TypeAlias = tuple[str, Sequence[str]]

#: Case folding leaves all code points from here on unchanged (checked by a test).
_FOLDED_LIMIT = 1 << 17


def count_terms(
    texts: Sequence[str], analyzer: Analyzer | None = None, *, threads: int | None = None
) -> tuple[list[str], csr_matrix]:
    """Count the tokens of each text.

    Args:
        texts: raw texts.
        analyzer: the recipe; None for the default one.
        threads: number of worker threads; None for one per core. The result does not depend on it.

    Returns:
        The distinct tokens in code point order, and int32 counts [len(texts), n words].
    """
    words, (counts,) = count_fields(({"text": texts},), ("text",), analyzer, threads=threads)
    return words, counts


def renumbered(matrix: csr_matrix, columns: NDArray[np.integer], width: int) -> csr_matrix:
    """A matrix [n, width] in which column j of the given one becomes column ``columns[j]``. The
    order within a row is kept. Columns with number -1 are dropped; columns with the same number
    stay separate entries until ``sum_duplicates``."""
    numbers = columns.astype(np.int32)[matrix.indices]
    kept = numbers >= 0
    ends = np.concatenate([[0], np.cumsum(kept)])[matrix.indptr]
    return csr_matrix((matrix.data[kept], numbers[kept], ends), shape=(matrix.shape[0], width))


def count_fields(
    blocks: Iterable[Mapping[str, Sequence[str]]],
    fields: Sequence[str],
    analyzer: Analyzer | None = None,
    *,
    threads: int | None = None,
) -> tuple[list[str], list[csr_matrix]]:
    """Count the tokens of documents that come in blocks, over one vocabulary of all fields.

    Memory is bounded by the counts; only a few blocks of texts are held at a time.

    Args:
        blocks: for each block of documents, the texts of every field, one per document.
        fields: the fields to count; each block has all of them.
        analyzer: the recipe; None for the default one.
        threads: number of worker threads; None for one per core.

    Returns:
        The distinct tokens in code point order, and for each field int32 counts [n, n words].

    Raises:
        InputError: a block lacks a field, has fields of unequal length, or a text is not a string.
    """
    analyzer = analyzer or Analyzer()
    threads = thread_count(threads)
    units, ahead, characters = units_of(blocks, fields), [], 0
    for unit in units:
        ahead.append(unit)
        characters += sum(map(len, unit[1]))
        if characters >= KERNELS_FROM_CHARACTERS:
            counted = count_units(chain(ahead, units), analyzer, threads)
            return merge_counted(counted, fields, analyzer, threads=threads)
    return _count_plainly(ahead, fields, analyzer)


def _count_plainly(
    units: Iterable[Unit], fields: Sequence[str], analyzer: Analyzer
) -> tuple[list[str], list[csr_matrix]]:
    rows: dict[str, list[Counter[str]]] = {field: [] for field in fields}
    for field, texts in units:
        rows[field] += [Counter(analyzer.tokens(text)) for text in texts]
    words = sorted({word for counts in rows.values() for row in counts for word in row})
    number = {word: column for column, word in enumerate(words)}
    matrices = []
    for field in fields:
        entries = [sorted((number[word], n) for word, n in row.items()) for row in rows[field]]
        columns, counts = np.array(list(chain(*entries)), dtype=np.int32).reshape(-1, 2).T.copy()
        matrices.append(_csr(counts, columns, [len(row) for row in entries], len(words)))
    return words, matrices


class CountedBlock(NamedTuple):
    """Word counts of some texts of a field, over their own words; see ``count_words``."""

    pool: NDArray[np.uint8]
    ends: NDArray[np.int64]
    keys: NDArray[np.uint64]
    row_ends: NDArray[np.int64]
    entry_words: NDArray[np.int32]
    entry_counts: NDArray[np.int32]


def count_units(
    units: Iterable[Unit], analyzer: Analyzer, threads: int | None
) -> Iterator[tuple[str, CountedBlock]]:
    """Yield the field and the counts of each unit, in the order of the units."""
    tables = _character_tables(analyzer.lowercase)
    yield from map_blocks(
        lambda unit: (unit[0], _count_block([*map(analyzer.prepared, unit[1])], tables)),
        units,
        threads,
    )


def merge_counted(
    blocks: Iterable[tuple[str, CountedBlock]],
    fields: Sequence[str],
    analyzer: Analyzer,
    *,
    threads: int | None = None,
) -> tuple[list[str], list[csr_matrix]]:
    """Merge the counts of blocks over one vocabulary; returns the same as :func:`count_fields`.

    Args:
        blocks: each with its field; the blocks of a field in the order of its texts.
        fields, analyzer, threads: as for :func:`count_fields`.
    """
    counted = {field: _Counted() for field in fields}
    merged = _Words()
    for field, block in blocks:
        counted[field].add(block, merged.add(block))
    words, columns = _columns(merged.decoded(), analyzer)
    return words, [_matrix(counted.pop(field), columns, len(words), threads) for field in fields]


class _Counted:
    """The concatenated entries of a field's counted blocks, and the numbers of each block's words
    in the merged table. Long arrays are held on disk."""

    def __init__(self) -> None:
        self.row_ends: list[NDArray[np.int64]] = []  # for each block, starting from 0
        self.n_words: list[int] = []
        self.words, self.counts, self.numbers = (GrowingArray(np.int32) for _ in range(3))

    def add(self, block: CountedBlock, numbers: NDArray[np.int32]) -> None:
        self.row_ends.append(block.row_ends)
        self.n_words.append(len(numbers))
        self.words.append(block.entry_words)
        self.counts.append(block.entry_counts)
        self.numbers.append(numbers)


def units_of(
    blocks: Iterable[Mapping[str, Sequence[str]]], fields: Sequence[str]
) -> Iterator[Unit]:
    """Cut blocks into (field, texts) units of about BLOCK_CHARACTERS characters."""
    for number, block in enumerate(blocks):
        missing = [field for field in fields if field not in block]
        if missing:
            raise InputError(f"block {number} of documents lacks the fields {', '.join(missing)}")
        sizes = {field: len(block[field]) for field in fields}
        if len(set(sizes.values())) > 1:
            raise InputError(f"block {number} of documents has fields of unequal length: {sizes}")
        for field in fields:
            texts = block[field]
            if isinstance(texts, str):
                raise InputError(f"field {field!r}: expected a sequence of texts, got a string")
            begin = characters = 0
            for row, text in enumerate(texts):
                if not isinstance(text, str):
                    raise InputError(
                        f"text {row} of field {field!r} in block {number} is "
                        f"{type(text).__name__}, not a string; use '' for a missing text"
                    )
                characters += len(text) + 1
                if characters >= BLOCK_CHARACTERS:
                    yield field, texts[begin : row + 1]
                    begin, characters = row + 1, 0
            if begin < len(texts):
                yield field, texts[begin:]


def _count_block(
    texts: Sequence[str],
    tables: tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint64]],
) -> CountedBlock:
    *block, suspects = count_words(*_encode(texts), *tables)
    rows = np.flatnonzero(suspects).tolist()
    composed = {row: unicodedata.normalize("NFC", texts[row]) for row in rows}
    if any(texts[row] != text for row, text in composed.items()):
        # Rare: only texts with marks or compatibility letters can differ from their NFC.
        texts = [composed.get(row, text) for row, text in enumerate(texts)]
        *block, _ = count_words(*_encode(texts), *tables)
    return CountedBlock(*block)


def _encode(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    encoded = [text.encode("utf-8", "surrogatepass") + b"\0" for text in texts]
    ends = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=ends[1:])
    # A bytearray gives a writable array, as elsewhere: the kernel is compiled for one type only.
    return np.frombuffer(bytearray().join(encoded), dtype=np.uint8), ends


@cache
def _character_tables(
    fold: bool,
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint64]]:
    """The tables ``ascii_folded``, ``classes`` and ``folded`` of the kernel ``count_words``."""
    bits = {"separator": 0, "token": TOKEN, "ignored": IGNORED}
    classes = np.zeros(0x110000, dtype=np.uint8)
    folded = np.zeros(_FOLDED_LIMIT, dtype=np.uint64)
    for point in range(0x110000):
        character = chr(point)
        kind = bits[character_class(character)]
        if kind and point >= 128 and _may_compose(character):
            kind |= NOT_SURELY_NFC
        classes[point] = kind
        if fold and kind and (image := character.casefold()) != character:
            utf8 = image.encode("utf-8")
            folded[point] = int.from_bytes(utf8, "little") | len(utf8) << 56
    ascii_folded = np.zeros(256, dtype=np.uint8)
    for point in np.flatnonzero(classes[:128]).tolist():
        ascii_folded[point] = ord(chr(point).casefold()) if fold else point
    return ascii_folded, classes, folded


def _may_compose(character: str) -> bool:
    """Whether a text with this character can differ from its NFC: a superset of the code points
    with NFC_Quick_Check = No or Maybe, namely marks, Hangul vowels and finals, and characters that
    NFC replaces on their own."""
    return (
        unicodedata.category(character)[0] == "M"
        or "\u1160" <= character <= "\u11ff"
        or not unicodedata.is_normalized("NFC", character)
    )


class _Words:
    """A word table (see kernels.text) that grows as blocks are added."""

    def __init__(self) -> None:
        self._pool = np.empty(1 << 16, dtype=np.uint8)
        self._ends = np.zeros(1 << 12, dtype=np.int64)
        self._keys = np.empty(1 << 12, dtype=np.uint64)
        self._slots = np.full(1 << 13, -1, dtype=np.int32)
        self._size = 0

    def add(self, block: CountedBlock) -> NDArray[np.int32]:
        """int32 [n words of the block]: the number of each word in this table."""
        most = self._size + len(block.keys)
        self._pool = _with_room(self._pool, int(self._ends[self._size]) + len(block.pool))
        self._ends = _with_room(self._ends, most + 1)
        self._keys = _with_room(self._keys, most)
        if 2 * most > len(self._slots):
            self._slots = np.full(1 << (4 * most).bit_length(), -1, dtype=np.int32)
            fill_slots(self._keys, self._size, self._slots)
        numbers, self._size = merge_words(
            block.pool,
            block.ends,
            block.keys,
            self._pool,
            self._ends,
            self._keys,
            self._slots,
            self._size,
        )
        return numbers

    def decoded(self) -> list[str]:
        """The words in order of first appearance."""
        ends = self._ends[: self._size + 1].tolist()
        pool = self._pool[: ends[-1]].tobytes()
        return [pool[begin:end].decode("utf-8") for begin, end in pairwise(ends)]


def _with_room(array: NDArray, size: int) -> NDArray:
    if size <= len(array):
        return array
    larger = np.empty(max(size, 2 * len(array)), dtype=array.dtype)
    larger[: len(array)] = array
    return larger


def _columns(runs: list[str], analyzer: Analyzer) -> tuple[list[str], NDArray[np.int32]]:
    """The distinct tokens of the runs, sorted, and the column of each run's token, or -1."""
    terms = analyzer.terms(runs)
    kept = [run for run, term in enumerate(terms) if term is not None]
    kept.sort(key=terms.__getitem__)  # type: ignore[arg-type]
    ordered = [str(terms[run]) for run in kept]
    # Runs with the same stem are neighbours.
    new = [True, *(a != b for a, b in pairwise(ordered))] if ordered else []
    columns = np.full(len(terms), -1, dtype=np.int32)
    columns[kept] = np.cumsum(new) - 1
    return list(compress(ordered, new)), columns


def _matrix(
    counted: _Counted, columns: NDArray[np.int32], n_words: int, threads: int | None
) -> csr_matrix:
    words, counts, numbers = (part.taken() for part in
                              (counted.words, counted.counts, counted.numbers))  # fmt: skip
    firsts = np.cumsum([0, *(ends[-1] for ends in counted.row_ends)])
    first_words = np.cumsum([0, *counted.n_words])

    def finish(block: int) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
        word_columns = columns[numbers[first_words[block] : first_words[block + 1]]]
        order = np.argsort(word_columns, kind="stable")
        entries = slice(firsts[block], firsts[block + 1])
        sizes, sorted_columns, sums = sort_columns(
            counted.row_ends[block], words[entries], counts[entries], word_columns, order
        )
        return sizes, sorted_columns, sums

    # Columns overwrite words in place: a block has no more entries than before.
    row_sizes, n = [np.zeros(0, np.int64)], 0
    for sizes, sorted_columns, sums in map_blocks(finish, range(len(counted.row_ends)), threads):
        end = n + len(sums)
        words[n:end], counts[n:end] = sorted_columns, sums
        row_sizes.append(sizes)
        n = end
    return _csr(counts[:n], words[:n], np.concatenate(row_sizes), n_words)


def _csr(
    counts: NDArray[np.int32],
    columns: NDArray[np.int32],
    sizes: Sequence[int] | NDArray[np.integer],
    width: int,
) -> csr_matrix:
    """A matrix whose rows have these sizes, with columns in ascending order."""
    ends = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    matrix = csr_matrix((counts, columns, ends), shape=(len(sizes), width))
    matrix.has_canonical_format = True
    return matrix
