"""PV-DBOW document vectors (Le and Mikolov 2014): a model's frozen parts, and inference.

Inference is gensim's ``infer_vector`` (see :mod:`ltr_features.kernels.doc2vec`) except for the
random numbers: gensim starts from a hash of the text that differs between processes, and draws from
the model's generator, so that two calls differ. Here a text's draws depend on its words alone, so
that a text always has the same vector. The order of its words, which PV-DBOW ignores, is drawn too:
the last words of a long text influence its vector most, and they should be any of its words.
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

from letor.checked_arrays import check_array, check_finite
from letor.errors import InputError, reading
from letor.files import atomic_path
from ltr_base.parallel import map_blocks
from ltr_features.embeddings.vectors import SUFFIX, open_tensors
from ltr_features.kernels.doc2vec import NOISE_WHOLE, FrozenModel, guide_of, infer_documents
from ssi_models.persistence import pack_vocabulary, save_tensors, unpack_vocabulary
from ssi_models.vocabulary import Vocabulary

_KIND = "doc2vec-pv-dbow"

# Most texts and words in one call of the kernel; a longer text is a call of its own.
_BLOCK = 256
_BLOCK_WORDS = 1 << 12

#: gensim's logistic function: 1,000 numbers from -6 to 6.
_LOGISTIC = (1 / (1 + np.exp(-(np.arange(1000) / 1000 * 2 - 1) * 6))).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Doc2Vec:
    """The frozen part of a PV-DBOW model.

    Attributes:
        words: the V words that the model knows.
        output: float32 [R, d]: output vectors of the words (negative sampling, R = V) or of the
            inner nodes of the Huffman tree (hierarchical softmax, R = V - 1).
        kept: float32 [V], probability that an occurrence survives subsampling.
        noise: float64 [V], cumulative noise distribution; empty with hierarchical softmax.
        path_ends, path_nodes, path_codes: int64 [V + 1], int64 and uint8: word w predicts the
            inner nodes ``path_nodes[path_ends[w]:path_ends[w + 1]]`` with the bits of its code;
            empty with negative sampling.
        negative: negative samples per prediction, 0 with hierarchical softmax.
        alpha, min_alpha, epochs: for inference: the learning rates of the first and the last pass,
            and the number of passes.
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
    alpha: float
    min_alpha: float
    epochs: int
    source: str

    @property
    def dimension(self) -> int:
        return int(self.output.shape[1])

    def infer(self, bags: csr_matrix, threads: int | None = None) -> NDArray[np.float32]:
        """Infer the vectors of texts.

        Args:
            bags: [n, V], counts of the model's words in each text; PV-DBOW ignores their order.
            threads: number of worker threads. The vector of a text depends neither on it nor on
                the other texts.

        Returns:
            float32 [n, dimension]; 0 for a text without known words.

        Raises:
            InputError: the bags do not have one column per word.
        """
        if bags.shape[1] != len(self.words):
            raise InputError(f"bags over {bags.shape[1]} words for a model of {len(self.words)}")
        bags = csr_matrix(bags, copy=not bags.has_canonical_format)
        bags.sum_duplicates()  # the draws depend on the words in ascending order
        ends, words = bags.indptr.astype(np.int64), bags.indices.astype(np.int32)
        counts, model = bags.data.astype(np.int32), self._frozen
        out = np.empty((bags.shape[0], self.dimension), dtype=np.float32)

        def compute(block: tuple[int, int]) -> None:
            infer_documents(*block, ends, words, counts, model, out)

        occurrences = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])[ends]
        for _ in map_blocks(compute, _blocks(occurrences), threads):
            pass
        return out

    @cached_property
    def _frozen(self) -> FrozenModel:
        """The kernel's input, in its types; arrays of mapped files are read-only, so are copied."""
        dropped = bool((self.kept < 1).any())
        noise = np.rint(self.noise * NOISE_WHOLE).astype(np.int64)
        return FrozenModel(
            output=np.require(self.output, np.float32, ["C", "W"]),
            kept=self.kept.astype(np.float64) * 2.0**32 if dropped else np.zeros(0),
            noise=noise,
            guide=guide_of(noise),
            path_ends=np.require(self.path_ends, np.int64, ["C", "W"]),
            path_nodes=np.require(self.path_nodes, np.int64, ["C", "W"]),
            path_codes=np.require(self.path_codes, np.uint8, ["C", "W"]),
            longest_path=int(np.diff(self.path_ends).max(initial=0)),
            negative=self.negative,
            rates=np.linspace(self.alpha, self.min_alpha, self.epochs).astype(np.float32),
            logistic=_LOGISTIC,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model (``.safetensors``); the file appears when it is complete.

        Raises:
            InputError: the name has another suffix.
        """
        path = Path(path)
        if path.suffix != SUFFIX:
            raise InputError(f"{path}: the name of a document model must end in {SUFFIX}")
        header = {
            "kind": _KIND,
            "negative": self.negative,
            "alpha": self.alpha,
            "min_alpha": self.min_alpha,
            "epochs": self.epochs,
            "source": self.source,
        }
        tensors = {name: getattr(self, name) for name in _TENSORS}
        with atomic_path(path) as partial:
            save_tensors(partial, header, {**pack_vocabulary(self.words), **tensors})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Doc2Vec:
        """Open a saved model. Convert files of gensim first, with :meth:`from_gensim_file`.

        Raises:
            InputError: the file does not exist, is damaged, or is not such a model.
        """
        path = Path(path)
        if path.suffix != SUFFIX:
            raise InputError(
                f"{path}: a document model ends in {SUFFIX}; convert a gensim file once with "
                "Doc2Vec.from_gensim_file(path, trust_pickle=True).save(...)"
            )
        header, tensors = open_tensors(path, _KIND)
        with reading(path):
            model = cls(
                words=unpack_vocabulary(tensors),
                **{name: tensors[name] for name in _TENSORS},
                negative=int(header["negative"]),
                alpha=float(header["alpha"]),
                min_alpha=float(header["min_alpha"]),
                epochs=int(header["epochs"]),
                source=str(header["source"]),
            )
            model._check(path)
        return model

    def _check(self, path: Path) -> None:
        """Raise InputError for arrays that the kernel cannot handle safely."""
        n, tree = len(self.words), self.negative == 0
        if not (0 <= self.negative <= 1000 and 1 <= self.epochs <= 100_000):
            raise InputError(f"negative is {self.negative}, epochs {self.epochs}")
        if not (np.isfinite(self.alpha) and np.isfinite(self.min_alpha)):
            raise InputError(f"alpha is {self.alpha}, min_alpha {self.min_alpha}")
        sizes = (0, n + 1, None) if tree else (n, 1, 0)
        ends, nodes = self.path_ends, len(self.path_nodes)
        check_finite(f"{path}: output", self.output, np.float32, (None if tree else n, None))
        check_array(f"{path}: path_codes", self.path_codes, np.uint8, (nodes,), least=0, most=1)
        for name, dtype, size, most, ascending in (
            ("kept", np.float32, n, 1, False),
            ("noise", np.float64, sizes[0], 1, True),
            ("path_ends", np.int64, sizes[1], nodes, True),
            ("path_nodes", np.int64, sizes[2], len(self.output) - 1, False),
        ):
            limits: dict[str, Any] = {"least": 0, "most": most, "ascending": ascending}
            check_array(f"{path}: {name}", getattr(self, name), dtype, (size,), **limits)
        if (ends[0], ends[-1]) != (0, nodes) or (len(self.noise) and self.noise[-1] != 1):
            raise InputError("path_ends or noise do not reach their end")

    @classmethod
    def from_gensim_file(
        cls, path: str | os.PathLike[str], *, trust_pickle: bool = False
    ) -> Doc2Vec:
        """Convert a file that gensim's ``Doc2Vec.save`` wrote.

        Args:
            path: the file.
            trust_pickle: such a file is a pickle, and loading it runs any code in it: pass True
                only for files from people that you trust.

        Raises:
            InputError: ``trust_pickle`` is not True, or the file is missing or not a PV-DBOW model.
        """
        if trust_pickle is not True:
            raise InputError(
                f"{path}: a gensim model is a pickle, and loading it runs the code in it; pass "
                "trust_pickle=True if you trust its source, then save it as safetensors"
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
        """Copy the frozen part of a ``gensim.models.Doc2Vec``.

        Raises:
            InputError: not a PV-DBOW model (``dm=0``), or not exactly one of hs and negative.
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
        return cls(
            words=Vocabulary(model.wv.index_to_key),
            output=np.array(model.syn1 if model.hs else model.syn1neg, dtype=np.float32),
            kept=subsampled.astype(np.float32),
            noise=noise,
            path_ends=path_ends,
            path_nodes=nodes,
            path_codes=codes,
            negative=int(model.negative),
            alpha=float(model.alpha),
            min_alpha=float(model.min_alpha),
            epochs=int(model.epochs),
            source=source,
        )


_TENSORS = ("output", "kept", "noise", "path_ends", "path_nodes", "path_codes")


def _blocks(ends: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of texts (first, exclusive last) to infer in one call of the kernel."""
    first = 0
    while first < len(ends) - 1:
        full = int(np.searchsorted(ends, ends[first] + _BLOCK_WORDS))
        last = min(max(full, first + 1), first + _BLOCK, len(ends) - 1)
        yield first, last
        first = last
