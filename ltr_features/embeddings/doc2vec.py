"""PV-DBOW document vectors (Le and Mikolov 2014): a model's frozen parts, and inference.

gensim's ``infer_vector`` runs stochastic gradient ascent on one text, with random negative samples
and randomly dropped frequent words, so that two calls differ. Here the same ascent is followed in
expectation, and so a text always has the same vector. With v the vector, u the output vectors, f_w
the count of word w times the probability that subsampling keeps it, k the negative samples,

    g(v) = sum_w f_w ((1 - s(v . u_w)) u_w  -  k E_noise[s(v . u_n) u_n; n other than w])

(hierarchical softmax: g(v) = sum_w f_w sum_b (1 - code_wb - s(v . u_wb)) u_wb over the word's path)
and v follows dv/dt = g(v) from 0 for the time sum over epochs of the learning rate, which is what
the passes add up to. s is the logistic function as gensim has it: the place in its table is found
by whole numbers (as in word2vec), which in the mean makes it logistic(0.996 x - 0.03). The flow is
stiff, the more so the longer the text, and is followed by a stabilised explicit method; the noise
distribution is represented by a systematic sample, shifted from gradient to gradient by the golden
ratio.

The flow does not know the order of the words; of gensim's passes, the last words of a long text
have the last say. Of 2,500 words out of ten articles (hierarchical softmax, 100 dimensions, 20
epochs), two runs of gensim over the same order have a cosine of .9993, two over random orders
.9984, one over the articles in turn and one over a random order .9935; ours has .9940 with the
first kind, .9991 with the second, and .9998 with the mean of gensim's vectors over random orders.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from letor.errors import InputError
from letor.files import atomic_path
from ltr_features.embeddings.vectors import SUFFIX, open_tensors
from ltr_features.kernels.embeddings import FrozenModel, infer_documents
from ltr_features.kernels.row_sums import LANES
from ltr_features.parallel import map_blocks
from ssi_models.persistence import pack_vocabulary, save_tensors, unpack_vocabulary
from ssi_models.vocabulary import Vocabulary

_KIND = "doc2vec-pv-dbow"

# Rows that stand for the noise distribution in a block, and blocks after which they repeat.
_NOISE_ROWS = 64
_NOISE_BLOCKS = 64

# Fewer steps lengthen the vectors by some percent and hardly turn them; columns are cosines.
_FEWEST_STEPS = 4

# Greatest numbers of texts and of words that one call of the kernel is for.
_BLOCK = 1024
_BLOCK_WORDS = 1 << 14

_CACHE_LINE = 64
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True, eq=False)
class Doc2Vec:
    """The frozen part of a PV-DBOW model.

    Attributes:
        words: the words it knows.
        output: float32 [R, d]: output vectors, of the words (negative sampling, R = V) or of the
            inner nodes of the Huffman tree (hierarchical softmax, R = V - 1).
        kept: float32 [V], probability that an occurrence survives subsampling.
        noise: float64 [V], cumulative noise distribution; empty with hierarchical softmax.
        path_ends, path_nodes, path_codes: int64 [V + 1], int64 and uint8: word w predicts the
            inner nodes ``path_nodes[path_ends[w]:path_ends[w + 1]]`` with the bits of its code;
            empty with negative sampling.
        negative: negative samples per prediction, 0 with hierarchical softmax.
        duration: sum of the learning rates over the epochs of inference.
        source: where the model comes from, for provenance.
    """

    words: Vocabulary
    output: NDArray[np.float32]
    kept: NDArray[np.float32]
    noise: NDArray[np.float64]
    path_ends: NDArray[np.int64]
    path_nodes: NDArray[np.int64]
    path_codes: NDArray[np.uint8]
    negative: int
    duration: float
    source: str

    @property
    def dimension(self) -> int:
        return int(self.output.shape[1])

    def infer(self, bags: csr_matrix, threads: int | None = None) -> NDArray[np.float32]:
        """The vectors of texts.

        Args:
            bags: [n, V], counts of the model's words in each text; order does not matter to
                PV-DBOW.
            threads: worker threads; the vectors do not depend on them, nor on the other texts.

        Returns:
            float32 [n, dimension]; 0 for a text without known words.

        Raises:
            InputError: the bags do not have one column per word.
        """
        if bags.shape[1] != len(self.words):
            raise InputError(f"bags over {bags.shape[1]} words for a model of {len(self.words)}")
        bags = csr_matrix(bags)
        if not bags.has_canonical_format:
            bags = bags.copy()
            bags.sum_duplicates()
        ends, words = bags.indptr.astype(np.int64), bags.indices.astype(np.int32)
        counts, model = bags.data.astype(np.float32), self._frozen
        out = np.empty((bags.shape[0], self.dimension), dtype=np.float32)

        def compute(block: tuple[int, int]) -> None:
            infer_documents(*block, ends, words, counts, model, self.duration, _FEWEST_STEPS, out)

        for _ in map_blocks(compute, _blocks(ends), threads):
            pass
        return out

    @cached_property
    def _frozen(self) -> FrozenModel:
        """What the kernel reads, in its layout."""
        n = len(self.words)
        output = _aligned(self.output)
        if self.negative:
            chances = np.diff(self.noise, prepend=0.0)
            # Each word is its own path. A negative sample that is the word itself is skipped.
            ends, nodes, codes = np.arange(n + 1), np.arange(n), np.zeros(n, dtype=np.uint8)
            shares = 1.0 - self.negative * chances
            curvature, direction = _greatest(output, chances)
            noise_rows = self._noise_rows(_NOISE_BLOCKS)
            errors = chances @ self.output.astype(np.float64) - np.stack(
                [self.output[rows].mean(axis=0, dtype=np.float64) for rows in noise_rows]
            )
        else:
            ends, nodes, codes = self.path_ends, self.path_nodes, self.path_codes
            shares = np.ones(n)
            # Huffman's code is as long as the word is rare: 2^-length for its frequency.
            lengths = np.diff(ends)
            passing = np.repeat(self.kept * 0.5**lengths, lengths)
            passed = np.bincount(nodes, passing, len(output)).astype(np.float64)
            _, direction = _greatest(output, passed)
            curvature, noise_rows = 0.0, np.zeros((1, 0), dtype=np.int64)
            errors = np.zeros((1, self.dimension))
        likely = ((output @ direction) ** 2).astype(np.float32)
        # The kernel is compiled for one type, and mapped files are read-only.
        return FrozenModel(
            kept=np.require(self.kept, np.float32, ["C", "W"]),
            path_ends=np.require(ends, np.int64, ["C", "W"]),
            path_nodes=np.require(nodes, np.int64, ["C", "W"]),
            path_codes=np.require(codes, np.uint8, ["C", "W"]),
            shares=shares.astype(np.float32),
            output=output,
            squares=np.einsum("ij,ij->i", output, output),
            likely=likely,
            negative=self.negative,
            noise_curvature=curvature,
            noise_rows=noise_rows,
            noise_labels=np.zeros(_NOISE_ROWS, np.float32),
            noise_weights=np.ones(_NOISE_ROWS, np.float32),
            noise_likely=likely[noise_rows],
            noise_errors=_aligned(errors.astype(np.float32)),
        )

    def _noise_rows(self, blocks: int) -> NDArray[np.int64]:
        shifts = (0.5 + _GOLDEN * np.arange(blocks)) % 1.0
        points = (np.arange(_NOISE_ROWS) + shifts[:, None]) / _NOISE_ROWS
        rows = np.searchsorted(self.noise, points.ravel(), side="right").reshape(points.shape)
        return np.minimum(rows, len(self.noise) - 1).astype(np.int64)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model (``.safetensors``); it appears when it is complete.

        Raises:
            InputError: the name ends otherwise.
        """
        path = Path(path)
        if path.suffix != SUFFIX:
            raise InputError(f"{path}: document models are saved under a name in {SUFFIX}")
        header = {
            "kind": _KIND,
            "negative": self.negative,
            "duration": self.duration,
            "source": self.source,
        }
        tensors = {name: getattr(self, name) for name in _TENSORS}
        with atomic_path(path) as partial:
            save_tensors(partial, header, {**pack_vocabulary(self.words), **tensors})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Doc2Vec:
        """Open a saved model. Files of gensim are converted once, by :meth:`from_gensim_file`.

        Raises:
            InputError: no such file, damaged, or not a model of this kind.
        """
        path = Path(path)
        if path.suffix != SUFFIX:
            raise InputError(
                f"{path}: a document model ends in {SUFFIX}; convert a gensim file once by "
                "Doc2Vec.from_gensim_file(path, trust_pickle=True).save(...)"
            )
        header, tensors = open_tensors(path, _KIND)
        return cls(
            words=unpack_vocabulary(tensors),
            **{name: tensors[name] for name in _TENSORS},
            negative=int(header["negative"]),
            duration=float(header["duration"]),
            source=str(header["source"]),
        )

    @classmethod
    def from_gensim_file(
        cls, path: str | os.PathLike[str], *, trust_pickle: bool = False
    ) -> Doc2Vec:
        """Convert a file that gensim's ``Doc2Vec.save`` wrote.

        Args:
            path: the file.
            trust_pickle: such a file is a pickle, and loading it runs whatever code is in it: say
                True for files from people that you trust, only.

        Raises:
            InputError: ``trust_pickle`` is not True, the file is missing or no PV-DBOW model.
        """
        if trust_pickle is not True:
            raise InputError(
                f"{path}: a gensim model is a pickle, and loading it runs the code in it; pass "
                "trust_pickle=True if you trust where it comes from, then save it as safetensors"
            )
        if not Path(path).is_file():
            raise InputError(f"{path}: no such file")
        from gensim.models import Doc2Vec as GensimDoc2Vec

        try:
            model = GensimDoc2Vec.load(str(path))
        except Exception as error:  # whatever a pickle raises
            raise InputError(f"{path}: gensim cannot load it ({error})") from error
        return cls.from_gensim(model, source=f"file {Path(path).name}")

    @classmethod
    def from_gensim(cls, model: Any, *, source: str) -> Doc2Vec:
        """Take over the frozen part of a ``gensim.models.Doc2Vec``.

        Raises:
            InputError: not a PV-DBOW model (``dm=0``), or one without output vectors.
        """
        if not getattr(model, "sg", 0) or not hasattr(model, "dv"):
            raise InputError("not a PV-DBOW model: train it with dm=0")
        if bool(model.hs) == bool(model.negative):
            raise InputError("a model with both or neither of hs and negative is not supported")
        keys = range(len(model.wv))
        empty = np.zeros(0, dtype=np.int64)
        path_ends, nodes, codes = np.zeros(1, dtype=np.int64), empty, empty.astype(np.uint8)
        noise = np.zeros(0)
        if model.hs:
            points = [np.asarray(model.wv.get_vecattr(row, "point")) for row in keys]
            bits = [np.asarray(model.wv.get_vecattr(row, "code")) for row in keys]
            path_ends = np.cumsum([0, *map(len, points)]).astype(np.int64)
            nodes = np.concatenate([empty, *points]).astype(np.int64)
            codes = np.concatenate([empty, *bits]).astype(np.uint8)
        else:
            noise = np.asarray(model.cum_table, dtype=np.float64) / float(model.cum_table[-1])
        kept = [model.wv.get_vecattr(row, "sample_int") / 2.0**32 for row in keys]
        subsampled = np.minimum(kept, 1.0) if model.sample else np.ones(len(kept))
        rates = np.linspace(model.alpha, model.min_alpha, model.epochs)
        return cls(
            words=Vocabulary(model.wv.index_to_key),
            output=np.array(model.syn1 if model.hs else model.syn1neg, dtype=np.float32),
            kept=subsampled.astype(np.float32),
            noise=noise,
            path_ends=path_ends,
            path_nodes=nodes,
            path_codes=codes,
            negative=int(model.negative),
            duration=float(rates.sum()),
            source=source,
        )


_TENSORS = ("output", "kept", "noise", "path_ends", "path_nodes", "path_codes")


def _blocks(ends: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """First and last of texts that are inferred in one call."""
    first = 0
    while first < len(ends) - 1:
        full = int(np.searchsorted(ends, ends[first] + _BLOCK_WORDS))
        last = min(max(full, first + 1), first + _BLOCK, len(ends) - 1)
        yield first, last
        first = last


def _aligned(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """A matrix with columns of 0 up to a multiple of LANES, where no vector of the processor lies
    across cache lines."""
    rows, width = len(matrix), -(-matrix.shape[1] // LANES) * LANES
    room = np.zeros(4 * rows * width + _CACHE_LINE, dtype=np.uint8)
    first = -room.ctypes.data % _CACHE_LINE
    out = room[first : first + 4 * rows * width].view(np.float32).reshape(rows, width)
    out[:, : matrix.shape[1]] = matrix
    return out


def _greatest(
    output: NDArray[np.float32], weights: NDArray[np.float64]
) -> tuple[float, NDArray[np.float32]]:
    """Greatest eigenvalue, and its vector, of sum over r of weights_r u_r u_r'."""
    moments = np.zeros((output.shape[1], output.shape[1]))
    for first in range(0, len(output), 1 << 16):  # bounds the memory of large vocabularies
        rows = output[first : first + (1 << 16)].astype(np.float64)
        moments += (rows.T * weights[first : first + (1 << 16)]) @ rows
    values, vectors = np.linalg.eigh(moments)
    return float(values[-1]), vectors[:, -1].astype(np.float32)
