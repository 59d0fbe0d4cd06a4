"""Count how often the phrases of a knowledge base occur in the dump's texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from letor.files import save_array
from ltr_base.parallel import map_blocks
from ltr_features.entities.knowledge import BaseArrays, bucket_index
from ltr_features.entities.spool import Arrays, Spool, read_arrays
from ltr_features.kernels.entities import LONGEST_PHRASE, count_phrases

#: Words whose phrases are counted at a time, and the most pieces of work, which may make it more.
_WORDS, _PIECES = 1 << 24, 32


def count_occurrences(
    spool: Spool, base: BaseArrays, n_words: NDArray[np.int64], threads: int
) -> None:
    """Write how often each phrase occurs; at least as often as it is a link.

    Args:
        base: arrays that include the phrases and their links.
        n_words: int64 [parts]: the number of words in each part.
    """
    hashes = np.load(base.path("phrase_hash"))
    first, shift = bucket_index(hashes)
    save_array(base.path("first"), first)
    piece = (np.cumsum(n_words) - n_words) // max(_WORDS, -(-int(n_words.sum()) // _PIECES))
    calls = []
    for parts in np.split(np.arange(len(piece)), np.flatnonzero(np.diff(piece)) + 1):
        files = [spool.parts[part] for part in parts.tolist()]
        calls.append((f"counts-{parts[0]}-{parts[-1]}", files, base.folder, shift, threads))
    total = np.zeros(len(hashes), dtype=np.int64)
    for path in spool.made(_occurrences_in, calls):
        total += read_arrays(path, "counts")[0]
    base.path("first").unlink()
    base.save("phrase_count", np.maximum(total, np.load(base.path("phrase_links"))))


def _occurrences_in(parts: Sequence[Path], base: Path, shift: np.uint64, threads: int) -> Arrays:
    """Count how often each phrase occurs in some parts."""
    # Memory-mapped to be shared by a machine's workers; "c" because kernels want writable arrays.
    hashes, first = (np.asarray(np.load(base / f"{n}.npy", "c")) for n in ("phrase_hash", "first"))
    counts = np.zeros((threads, len(hashes)), dtype=np.uint32)

    def count(words: NDArray[np.uint64]) -> None:
        """Each thread counts the phrases that start in its share of the words."""
        bounds = np.linspace(0, len(words), threads + 1).astype(np.int64)

        def share(thread: int) -> None:
            begin, stop = bounds[thread : thread + 2]
            seen = words[begin : stop + LONGEST_PHRASE - 1]
            count_phrases(seen, stop - begin, hashes, first, shift, counts[thread])

        list(map_blocks(share, range(threads), threads))

    for part in parts:
        count(*read_arrays(part, "words"))
    return {"counts": counts.sum(axis=0, dtype=np.uint32)}
