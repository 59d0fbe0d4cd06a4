"""Counting tokens in UTF-8 bytes, and merging the words of several blocks into one table.

A word table is: ``pool`` uint8, the bytes of the words one after the other; ``ends`` int64 [n + 1],
word w is ``pool[ends[w]:ends[w + 1]]``; ``hashes`` uint64 [n]; ``slots`` int64 [power of two], open
addressing with linear probing: -1, or the upper half of the word's hash above the word's number.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# FNV-1a, 64 bits.
_OFFSET_BASIS = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_LOW = np.int64(0xFFFFFFFF)
_HIGH = np.int64(0x7FFFFFFF00000000)

#: Bits of a code point's class.
TOKEN, IGNORED, NOT_SURELY_NFC = 1, 2, 4


@njit(cache=True, nogil=True)
def grow_slots(hashes, n_words, slots):
    """Enter words 0..n_words-1 into empty slots (all -1)."""
    mask = len(slots) - 1
    for word in range(n_words):
        h = np.int64(hashes[word])
        at = (h ^ (h >> 29)) & mask
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = (h & _HIGH) | word


@njit(cache=True, nogil=True)
def find_word(slots, hashes, ends, pool, source, begin, length, word_hash):
    """Slot of the word ``source[begin:begin + length]``, or of the free place where it belongs."""
    mask = len(slots) - 1
    h = np.int64(word_hash)
    at = (h ^ (h >> 29)) & mask
    while True:
        entry = slots[at]
        if entry < 0:
            return at
        if (entry & _HIGH) == (h & _HIGH):
            word = entry & _LOW
            first = ends[word]
            if ends[word + 1] - first == length:
                k = 0
                while k < length and pool[first + k] == source[begin + k]:
                    k += 1
                if k == length:
                    return at
        at = (at + 1) & mask


@njit(cache=True, nogil=True)
def count_words(text, text_ends, ascii_folded, classes, folded):
    """Count the folded runs of each text.

    Args:
        text: uint8, the UTF-8 bytes of all texts, one after the other.
        text_ends: int64 [m + 1], text i is ``text[text_ends[i]:text_ends[i + 1]]``.
        ascii_folded: uint8 [128], the folded byte, 0 for a separator.
        classes: uint8 [0x110000], bits TOKEN, IGNORED, NOT_SURELY_NFC of each code point.
        folded: uint64 [2 ** 17], UTF-8 of the folded code point, first byte lowest, at most 6
            bytes, their number in the top byte; 0 = the code point itself, as from 2 ** 17 on.

    Returns:
        pool, ends, hashes: the distinct runs in order of first appearance.
        row_ends: int64 [m + 1], text i owns entries ``row_ends[i]:row_ends[i + 1]``.
        entry_words, entry_counts: int32, in order of first appearance within the text.
        suspects: bool [m], texts with a code point that may not stand in NFC text.
    """
    n_texts = len(text_ends) - 1
    most = len(text) // 2 + n_texts + 1
    pool = np.empty(3 * len(text) + 16, np.uint8)
    ends = np.empty(most + 1, np.int64)
    hashes = np.empty(most, np.uint64)
    last_text = np.empty(most, np.int32)
    last_entry = np.empty(most, np.int64)
    entry_words = np.empty(most, np.int32)
    entry_counts = np.empty(most, np.int32)
    row_ends = np.zeros(n_texts + 1, np.int64)
    suspects = np.zeros(n_texts, np.bool_)
    slots = np.full(1 << 14, -1, np.int64)
    n_words = 0
    n_entries = 0
    ends[0] = 0
    for row in range(n_texts):
        at = text_ends[row]
        stop = text_ends[row + 1]
        begin = ends[n_words]
        tail = begin
        h = _OFFSET_BASIS
        seen = 0
        while at <= stop:
            separator = False
            if at == stop:
                separator = True
                at += 1
            elif text[at] < 128:
                byte = ascii_folded[text[at]]
                at += 1
                if byte == 0:
                    separator = True
                else:
                    pool[tail] = byte
                    tail += 1
                    h = (h ^ np.uint64(byte)) * _PRIME
            else:
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
                kind = classes[point]
                seen |= kind
                if kind & TOKEN:
                    image = folded[point] if point < len(folded) else np.uint64(0)
                    if image == 0:
                        for k in range(width):
                            pool[tail] = text[at + k]
                            h = (h ^ np.uint64(pool[tail])) * _PRIME
                            tail += 1
                    else:
                        for _ in range(np.int64(image >> np.uint64(56))):
                            pool[tail] = np.uint8(image & np.uint64(0xFF))
                            h = (h ^ np.uint64(pool[tail])) * _PRIME
                            image >>= np.uint64(8)
                            tail += 1
                elif not kind & IGNORED:
                    separator = True
                at += width
            if separator and tail > begin:
                slot = find_word(slots, hashes, ends, pool, pool, begin, tail - begin, h)
                if slots[slot] >= 0:
                    word = slots[slot] & _LOW
                else:
                    word = n_words
                    slots[slot] = (np.int64(h) & _HIGH) | word
                    hashes[word] = h
                    last_text[word] = -1
                    n_words += 1
                    ends[n_words] = tail
                    begin = tail
                    if 2 * n_words > len(slots):
                        slots = np.full(4 * len(slots), -1, np.int64)
                        grow_slots(hashes, n_words, slots)
                if last_text[word] == row:
                    entry_counts[last_entry[word]] += 1
                else:
                    last_text[word] = row
                    last_entry[word] = n_entries
                    entry_words[n_entries] = word
                    entry_counts[n_entries] = 1
                    n_entries += 1
                tail = begin
                h = _OFFSET_BASIS
        row_ends[row + 1] = n_entries
        suspects[row] = (seen & NOT_SURELY_NFC) != 0
    return (
        pool[: ends[n_words]].copy(),
        ends[: n_words + 1].copy(),
        hashes[:n_words].copy(),
        row_ends,
        entry_words[:n_entries].copy(),
        entry_counts[:n_entries].copy(),
        suspects,
    )


@njit(cache=True, nogil=True)
def merge_words(pool, ends, hashes, all_pool, all_ends, all_hashes, all_slots, n_words):
    """Enter the words of a block into a larger table, which has room for all of them.

    Returns:
        numbers: int64 [n], the number of each word of the block in the larger table.
        n_words: how many words the larger table has now.
    """
    numbers = np.empty(len(hashes), np.int64)
    for i in range(len(hashes)):
        begin = ends[i]
        length = ends[i + 1] - begin
        slot = find_word(all_slots, all_hashes, all_ends, all_pool, pool, begin, length, hashes[i])
        if all_slots[slot] < 0:
            all_slots[slot] = (np.int64(hashes[i]) & _HIGH) | n_words
            all_hashes[n_words] = hashes[i]
            first = all_ends[n_words]
            for k in range(length):
                all_pool[first + k] = pool[begin + k]
            n_words += 1
            all_ends[n_words] = first + length
        numbers[i] = all_slots[slot] & _LOW
    return numbers, n_words
