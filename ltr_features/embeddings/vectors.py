"""WordVectors: words with unit vectors, from published files, training, or memory-mapped files."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from letor.checked_arrays import check_finite
from letor.errors import InputError, reading
from letor.files import atomic_path
from ltr_features.embeddings.vector_files import read_vectors
from ltr_features.text.analyzer import Analyzer
from ssi_models.persistence import FORMAT, pack_vocabulary, save_tensors, unpack_vocabulary
from ssi_models.vocabulary import Vocabulary

#: Suffix of our own format: one safetensors file, whose vectors are memory-mapped.
SUFFIX = ".safetensors"

_KIND = "word-vectors"


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words and their unit vectors.

    Attributes:
        words: the words; row i of ``units`` belongs to word i.
        units: float32 [n, dimension], rows of length 1, or 0 for a word whose vector in the file
            is 0; such a word counts as unknown.
        source: where the vectors come from, for provenance.
    """

    words: Vocabulary
    units: NDArray[np.float32]
    source: str

    @property
    def dimension(self) -> int:
        return int(self.units.shape[1])

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        tokens: Collection[str] | None = None,
        analyzer: Analyzer | None = None,
        *,
        layout: Literal["auto", "text", "binary"] = "auto",
        undecodable: Literal["raise", "skip"] = "raise",
    ) -> WordVectors:
        """Read vectors: our own ``.safetensors``, word2vec text or binary, GloVe, fastText, .gz.

        Args:
            path: the file.
            tokens: the words to load; others are skipped quickly. None loads all, and memory-maps
                our own format instead of reading it.
            analyzer: the recipe that made ``tokens``. With it, a word of the file also serves the
                token that the recipe makes of it (``Paris`` serves ``paris``; with a stemmer
                ``running`` serves ``run``): a token takes the word that is spelled like it, if
                there is one, otherwise the first in the file, which by custom is the most frequent.
            layout: see :func:`ltr_features.embeddings.vector_files.read_vectors`.
            undecodable: see there.

        Raises:
            InputError: see there; or a file of our own format is damaged.
        """
        path = Path(path)
        if path.suffix == SUFFIX:
            stored = cls._open(path)
            return stored if tokens is None else stored.restricted(tokens, analyzer)
        wanted = _serves_one_of(tokens, analyzer)
        found, rows = read_vectors(path, wanted, layout=layout, undecodable=undecodable)
        chosen = _chosen(found, tokens, analyzer)
        rows = rows[np.fromiter(chosen.values(), dtype=np.int64, count=len(chosen))]
        return cls(Vocabulary(chosen), unit_rows(rows), f"file {path.name}")

    def restricted(self, tokens: Collection[str], analyzer: Analyzer | None = None) -> WordVectors:
        """The vectors of the given tokens, by the same rules as in :meth:`load`."""
        chosen = _chosen(self.words, tokens, analyzer)
        rows = self.units[np.fromiter(chosen.values(), dtype=np.int64, count=len(chosen))]
        return WordVectors(Vocabulary(chosen), np.array(rows), self.source)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write our own format (``.safetensors``); the file appears when it is complete.

        Raises:
            InputError: the name has another suffix.
        """
        path = Path(path)
        if path.suffix != SUFFIX:
            raise InputError(f"{path}: the name of a file of word vectors must end in {SUFFIX}")
        with atomic_path(path) as partial:
            save_tensors(
                partial,
                {"kind": _KIND, "source": self.source},
                {**pack_vocabulary(self.words), "units": self.units},
            )

    @classmethod
    def _open(cls, path: Path) -> WordVectors:
        header, tensors = open_tensors(path, _KIND, mapped=("units",))
        with reading(path):
            words = unpack_vocabulary(tensors)
            check_finite(f"{path}: units", tensors["units"], np.float32, (len(words), None))
            return cls(words, tensors["units"], str(header["source"]))

    def rows_for(self, words: Sequence[str]) -> NDArray[np.float32]:
        """float32 [len(words), dimension]: the unit vector of each word, 0 for an unknown one."""
        rows = self.words.rows(words)
        if not len(self.words):
            return np.zeros((len(rows), self.dimension), dtype=np.float32)
        result = self.units[np.maximum(rows, 0)]
        result[rows < 0] = 0.0
        return np.ascontiguousarray(result)


def served_tokens(words: Iterable[str], analyzer: Analyzer | None = None) -> dict[str, int]:
    """Map each token that the words serve, by the rules of :meth:`WordVectors.load`, to the row of
    its word."""
    spelled = {word: row for row, word in enumerate(words)}
    first: dict[str, int] = {}
    if analyzer is not None:
        for word, row in spelled.items():
            made = analyzer.tokens(word)
            if len(made) == 1:
                first.setdefault(made[0], row)
    return first | spelled


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """float32 [n, d]: rows divided by their length, computed in float64; zero rows stay 0."""
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    norms[norms == 0] = 1.0
    return (vectors / norms[:, None]).astype(np.float32)


def open_tensors(
    path: Path, kind: str, *, mapped: tuple[str, ...] = ()
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and tensors of a file of ours; tensors in ``mapped`` are memory-mapped, read-only.

    Raises:
        InputError: the file does not exist, is damaged, or is of another kind.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    with reading(path, "it is not a readable safetensors file of this program"):
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {}).get(FORMAT, "{}"))
            names = [name for name in file.keys() if name not in mapped]  # noqa: SIM118
            tensors = {name: file.get_tensor(name) for name in names}
        if header.get("kind") != kind:
            raise InputError(f"{path}: holds {header.get('kind')!r}, expected {kind!r}")
        tensors.update((name, _mapped(path, name)) for name in mapped)
    return header, tensors


def _mapped(path: Path, name: str) -> NDArray[np.float32]:
    """Memory-map a float32 matrix of a safetensors file, which has 8 bytes with the length of a
    JSON header, the header with the place of each tensor, and the tensors."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        entry = json.loads(file.read(length))[name]
    if entry["dtype"] != "F32":
        raise InputError(f"{path}: {name} holds {entry['dtype']}, expected F32")
    shape = tuple(entry["shape"])
    if 0 in shape:
        return np.zeros(shape, dtype=np.float32)
    begin = 8 + length + entry["data_offsets"][0]
    return np.asarray(np.memmap(path, "<f4", "r", begin, shape))


def _serves_one_of(
    tokens: Collection[str] | None, analyzer: Analyzer | None
) -> Callable[[str], bool] | None:
    """A test whether a word of the file may serve one of the tokens; None if all are wanted."""
    if tokens is None:
        return None
    known = frozenset(tokens)

    def serves(word: str) -> bool:
        if word in known:
            return True
        made = [] if analyzer is None else analyzer.tokens(word)
        return len(made) == 1 and made[0] in known

    return serves


def _chosen(
    words: Iterable[str], tokens: Collection[str] | None, analyzer: Analyzer | None
) -> dict[str, int]:
    """Map each token to the row of the word that serves it; without tokens, all words serve."""
    if tokens is None:
        return served_tokens(words)
    served = served_tokens(words, analyzer)
    return {token: served[token] for token in dict.fromkeys(tokens) if token in served}
