"""Count tokens in UTF-8 bytes, and merge the words of several blocks into one table.

A word table consists of ``pool`` uint8, the concatenated bytes of the words; ``ends`` int64
[n + 1], word w is ``pool[ends[w]:ends[w + 1]]``; ``keys`` uint64 [n]; ``slots`` int32 [power of
two], open addressing with linear probing: -1 or the number of a word.

The key of a word of at most 8 bytes is the word itself, so equal keys mean equal words. The key of
a longer word is a hash with the top byte 0xFF, which UTF-8 never has; equal ones need comparison.
"""

from __future__ import annotations

import numpy as np

from ltr_base.compiled import kernel

# FNV-1a (64 bits) for long words; 2 ** 64 / golden ratio spreads keys over slots.
_OFFSET_BASIS = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_LONG = np.uint64(0xFF00000000000000)
_BYTE = np.uint64(8)

#: Bits of the class of a code point.
TOKEN, IGNORED, NOT_SURELY_NFC = 1, 2, 4


@kernel()
def _first_slot(key, slots):
    spread = key * _SPREAD
    return np.int64(spread ^ (spread >> np.uint64(32))) & (len(slots) - 1)


@kernel()
def _long_key(pool, begin, end):
    key = _OFFSET_BASIS
    for k in range(begin, end):
        key = (key ^ np.uint64(pool[k])) * _PRIME
    return key | _LONG


@kernel()
def _find_slot(slots, keys, ends, pool, source, begin, end, key):
    """The slot of the word ``source[begin:end]``, or the free slot where it belongs."""
    at = _first_slot(key, slots)
    while True:
        word = slots[at]
        if word < 0:
            return at
        if keys[word] == key:
            if key < _LONG:
                return at
            first = ends[word]
            if ends[word + 1] - first == end - begin:
                k = 0
                while k < end - begin and pool[first + k] == source[begin + k]:
                    k += 1
                if k == end - begin:
                    return at
        at = (at + 1) & (len(slots) - 1)


@kernel()
def fill_slots(keys, n_words, slots):
    """Enter the distinct words 0..n_words-1 into empty slots (all -1)."""
    for word in range(n_words):
        at = _first_slot(keys[word], slots)
        while slots[at] >= 0:
            at = (at + 1) & (len(slots) - 1)
        slots[at] = word


@kernel()
def _decode(text, at):
    """The code point that starts at a byte of 128 or more, and the number of its bytes."""
    lead = np.int64(text[at])
    if lead < 0xE0:
        width = 2
        point = lead & 0x1F
    elif lead < 0xF0:
        width = 3
        point = lead & 0x0F
    else:
        width = 4
        point = lead & 0x07
    for k in range(1, width):
        point = (point << 6) | (np.int64(text[at + k]) & 0x3F)
    return point, width


@kernel()
def _append_folded(pool, tail, key, folded, point, text, at, width):
    """Append the folded code point to the pool; returns the pool's new end and the word's key."""
    image = folded[point] if point < len(folded) else np.uint64(0)
    if image == 0:
        for k in range(width):
            pool[tail] = text[at + k]
            key = (key << _BYTE) | np.uint64(pool[tail])
            tail += 1
    else:
        for _ in range(np.int64(image >> np.uint64(56))):
            pool[tail] = np.uint8(image & np.uint64(0xFF))
            key = (key << _BYTE) | np.uint64(pool[tail])
            image >>= _BYTE
            tail += 1
    return tail, key


@kernel()
def count_words(text, text_ends, ascii_folded, classes, folded):
    """Count the folded runs of each text.

    Args:
        text: uint8, the UTF-8 bytes of all texts, each followed by a zero byte.
        text_ends: int64 [m + 1], text i is ``text[text_ends[i]:text_ends[i + 1]]``, zero included.
        ascii_folded: uint8 [256], the folded byte; 0 for separators and for bytes from 128 on.
        classes: uint8 [0x110000], bits TOKEN, IGNORED, NOT_SURELY_NFC of each code point.
        folded: uint64 [2 ** 17], UTF-8 of the folded code point, first byte lowest, at most 6
            bytes, their number in the top byte; 0 if unchanged, like all code points from there on.

    Returns:
        pool, ends, keys: the distinct runs in order of first appearance.
        row_ends: int64 [m + 1], text i owns entries ``row_ends[i]:row_ends[i + 1]``.
        entry_words, entry_counts: int32, in order of first appearance within the text.
        suspects: bool [m], texts with a code point that may not occur in NFC text.
    """
    n_texts = len(text_ends) - 1
    most = len(text) // 2 + 1
    # Sizes are upper bounds; the system only provides memory that is touched.
    pool = np.empty(3 * len(text) + 8, np.uint8)
    ends = np.zeros(most + 1, np.int64)
    keys = np.empty(most, np.uint64)
    last_entry = np.empty(most, np.int64)
    entry_words = np.empty(most, np.int32)
    entry_counts = np.empty(most, np.int32)
    row_ends = np.zeros(n_texts + 1, np.int64)
    suspects = np.zeros(n_texts, np.bool_)
    slots = np.full(1 << 14, -1, np.int32)
    n_words = 0
    n_entries = 0
    begin = 0
    tail = 0
    key = np.uint64(0)
    for row in range(n_texts):
        at = text_ends[row]
        while at < text_ends[row + 1]:
            byte = ascii_folded[text[at]]
            if byte != 0:
                pool[tail] = byte
                key = (key << _BYTE) | np.uint64(byte)
                tail += 1
                at += 1
                continue
            if text[at] < 128:
                at += 1
            else:
                point, width = _decode(text, at)
                kind = classes[point]
                if kind & NOT_SURELY_NFC:
                    suspects[row] = True
                if kind & TOKEN:
                    tail, key = _append_folded(pool, tail, key, folded, point, text, at, width)
                at += width
                if kind & (TOKEN | IGNORED):
                    continue
            if tail == begin:
                continue
            # A run ends here: count it, and drop its bytes unless it is a new word.
            if tail - begin > 8:
                key = _long_key(pool, begin, tail)
            slot = _find_slot(slots, keys, ends, pool, pool, begin, tail, key)
            word = slots[slot]
            if word < 0:
                word = n_words
                slots[slot] = word
                keys[word] = key
                last_entry[word] = -1
                n_words += 1
                ends[n_words] = tail
                begin = tail
                if 2 * n_words > len(slots):
                    slots = np.full(2 * len(slots), -1, np.int32)
                    fill_slots(keys, n_words, slots)
            tail = begin
            key = np.uint64(0)
            entry = last_entry[word]
            if entry >= row_ends[row]:
                entry_counts[entry] += 1
            else:
                last_entry[word] = n_entries
                entry_words[n_entries] = word
                entry_counts[n_entries] = 1
                n_entries += 1
        row_ends[row + 1] = n_entries
    return (
        pool[:begin].copy(),
        ends[: n_words + 1].copy(),
        keys[:n_words].copy(),
        row_ends,
        entry_words[:n_entries].copy(),
        entry_counts[:n_entries].copy(),
        suspects,
    )


@kernel()
def merge_words(pool, ends, keys, all_pool, all_ends, all_keys, all_slots, n_words):
    """Enter the words of a block into a larger table, which has room for all of them.

    Returns:
        numbers: int32 [n], the number of each word of the block in the larger table.
        n_words: the number of words in the larger table now.
    """
    numbers = np.empty(len(keys), np.int32)
    for i in range(len(keys)):
        begin = ends[i]
        end = ends[i + 1]
        slot = _find_slot(all_slots, all_keys, all_ends, all_pool, pool, begin, end, keys[i])
        if all_slots[slot] < 0:
            all_slots[slot] = n_words
            all_keys[n_words] = keys[i]
            first = all_ends[n_words]
            for k in range(end - begin):
                all_pool[first + k] = pool[begin + k]
            n_words += 1
            all_ends[n_words] = first + end - begin
        numbers[i] = all_slots[slot]
    return numbers, n_words


@kernel()
def sort_columns(row_ends, words, counts, columns, order):
    """Replace words by columns, drop words without a column, and sort and sum within each row.

    This is a counting sort: entries go from rows to words, and word by word back to rows.

    Args:
        row_ends, words, counts: rows of entries, as ``count_words`` returns them.
        columns: int32 [n words], column of each word, -1 to drop it.
        order: int64 [n words], the words in order of increasing columns.

    Returns:
        sizes: int64 [m]; columns, counts: int32, row by row, columns strictly increasing.
    """
    n_rows = len(row_ends) - 1
    frequency = np.zeros(len(columns), np.int64)
    for entry in range(len(words)):
        frequency[words[entry]] += 1
    cursor = np.empty(len(columns), np.int64)
    n = 0
    for word in order:
        cursor[word] = n
        if columns[word] >= 0:
            n += frequency[word]
    word_rows = np.empty(n, np.int32)
    word_counts = np.empty(n, np.int32)
    row_begins = np.zeros(n_rows + 1, np.int64)
    for row in range(n_rows):
        row_begins[row + 1] = row_begins[row]
        for entry in range(row_ends[row], row_ends[row + 1]):
            word = words[entry]
            if columns[word] >= 0:
                word_rows[cursor[word]] = row
                word_counts[cursor[word]] = counts[entry]
                cursor[word] += 1
                row_begins[row + 1] += 1
    row_stops = row_begins[:-1].copy()
    out_columns = np.empty(n, np.int32)
    out_counts = np.empty(n, np.int32)
    k = 0
    for word in order:
        if columns[word] < 0:
            continue
        while k < cursor[word]:
            row = word_rows[k]
            at = row_stops[row]
            if at > row_begins[row] and out_columns[at - 1] == columns[word]:
                out_counts[at - 1] += word_counts[k]
            else:
                out_columns[at] = columns[word]
                out_counts[at] = word_counts[k]
                row_stops[row] = at + 1
            k += 1
    # Close the gaps left by words that share a column.
    n = 0
    for row in range(n_rows):
        for at in range(row_begins[row], row_stops[row]):
            out_columns[n] = out_columns[at]
            out_counts[n] = out_counts[at]
            n += 1
    return row_stops - row_begins[:-1], out_columns[:n], out_counts[:n]
