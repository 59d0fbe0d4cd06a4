"""PV-DBOW document vectors (Le and Mikolov 2014): a model's frozen parts, and inference.

gensim's ``infer_vector`` runs stochastic gradient ascent on one text, with random negative samples
and randomly dropped frequent words, so that two calls differ. Here the same ascent is followed in
expectation, and so a text always has the same vector. With v the vector, u the output vectors, f_w
the count of word w times the probability that subsampling keeps it, and s the logistic function,

    g(v) = sum_w f_w (1 - s(v . u_w)) u_w  -  k (sum_w f_w) E_noise[s(v . u_n) u_n]

(hierarchical softmax: g(v) = sum_w f_w sum_b (1 - code_wb - s(v . u_wb)) u_wb over the word's path)
and v follows dv/dt = g(v) from 0 for the time sum over epochs of the learning rate, which is what
the passes add up to. Euler's method, as many steps as the curvature asks for; the noise
distribution is represented by a systematic sample, shifted from step to step by the golden ratio.
"""

from __future__ import annotations

import os
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
from ltr_features.kernels.embeddings import infer_documents
from ltr_features.parallel import map_blocks
from ssi_models.persistence import pack_vocabulary, save_tensors, unpack_vocabulary
from ssi_models.vocabulary import Vocabulary

_KIND = "doc2vec-pv-dbow"

#: Rows that stand for the noise distribution in a step, and steps after which they repeat.
_NOISE_ROWS = 64
_NOISE_STEPS = 64

# Fewer steps lengthen the vectors by some percent and hardly turn them; columns are cosines.
_FEWEST_STEPS = 5

_BLOCK = 1024
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
        out = np.zeros((bags.shape[0], self.dimension), dtype=np.float32)

        def compute(first: int) -> None:
            block = slice(first, min(first + _BLOCK, len(out)))
            self._infer(bags[block], out[block])

        for _ in map_blocks(compute, range(0, len(out), _BLOCK), threads):
            pass
        return out

    def _infer(self, bags: csr_matrix, out: NDArray[np.float32]) -> None:
        frequencies = bags.astype(np.float64).multiply(self.kept.astype(np.float64)).tocsr()
        drawn = self.negative * np.asarray(frequencies.sum(axis=1)).ravel()
        rows, labels, weights = self._predictions(frequencies)
        pulled = csr_matrix((weights, rows.indices, rows.indptr), shape=rows.shape)
        curvature = (pulled @ self._squares + drawn * self._noise_curvature) / 4.0
        infer_documents(
            rows.indptr.astype(np.int64),
            rows.indices.astype(np.int64),
            labels.astype(np.float32),
            weights.astype(np.float32),
            drawn.astype(np.float32),
            curvature.astype(np.float64),
            float(self.duration),
            _FEWEST_STEPS,
            self._writable_output,
            self._noise_rows,
            self._noise_errors,
            out,
        )

    def _predictions(
        self, frequencies: csr_matrix
    ) -> tuple[csr_matrix, NDArray[np.float64], NDArray[np.float64]]:
        """Which output rows each text predicts (the pattern of a matrix [n, R]), the sums of their
        labels and of their weights."""
        if self.negative:
            frequencies.sort_indices()
            return frequencies, frequencies.data, frequencies.data
        # Two sums over one pattern: weights in the real part, bits of the code in the imaginary.
        paths = csr_matrix(
            (1.0 + 1j * self.path_codes, self.path_nodes, self.path_ends),
            shape=(len(self.words), len(self.output)),
        )
        summed = csr_matrix(frequencies @ paths)
        summed.sort_indices()
        return summed, summed.data.real - summed.data.imag, summed.data.real

    @cached_property
    def _writable_output(self) -> NDArray[np.float32]:
        # The kernel is compiled for one type, and mapped files are read-only.
        return np.require(self.output, np.float32, ["C", "W"])

    @cached_property
    def _squares(self) -> NDArray[np.float64]:
        return np.einsum("ij,ij->i", self.output, self.output, dtype=np.float64)

    @cached_property
    def _noise_curvature(self) -> float:
        """Greatest eigenvalue of E_noise[u u']."""
        if not self.negative:
            return 0.0
        chances = np.diff(self.noise, prepend=0.0)
        weighted = self.output * np.sqrt(chances)[:, None]
        return float(np.linalg.norm(weighted.astype(np.float64), 2) ** 2)

    @cached_property
    def _noise_rows(self) -> NDArray[np.int64]:
        if not self.negative:
            return np.zeros((1, 1), dtype=np.int64)
        shifts = (0.5 + _GOLDEN * np.arange(_NOISE_STEPS)) % 1.0
        points = (np.arange(_NOISE_ROWS) + shifts[:, None]) / _NOISE_ROWS
        rows = np.searchsorted(self.noise, points.ravel(), side="right").reshape(points.shape)
        return np.minimum(rows, len(self.noise) - 1).astype(np.int64)

    @cached_property
    def _noise_errors(self) -> NDArray[np.float32]:
        """float32 [steps, d]: the mean of the noise distribution less that of each step's rows."""
        if not self.negative:
            return np.zeros((1, self.dimension), dtype=np.float32)
        mean = np.diff(self.noise, prepend=0.0) @ self.output.astype(np.float64)
        sampled = np.stack(
            [self.output[rows].mean(axis=0, dtype=np.float64) for rows in self._noise_rows]
        )
        return (mean - sampled).astype(np.float32)

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
