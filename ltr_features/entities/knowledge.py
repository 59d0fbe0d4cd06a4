"""The knowledge base made from a Wikipedia dump: memory-mapped arrays in one folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.checked_arrays import check_array
from letor.errors import InputError, reading
from letor.files import append_array, read_json, save_array
from letor.string_array import StringArray
from ltr_features.entities.words import WORD_RULE, hash_titles, title_lines

MARK = "knowledge.json"
VERSION = 1
_COPIED = 1 << 24  # bytes at a time

#: Every array of the folder and its type.
ARRAYS = {
    "page_id": np.int64,
    "title_bytes": np.uint8,
    "title_ends": np.int64,
    "abstract_bytes": np.uint8,
    "abstract_ends": np.int64,
    "name_hash": np.uint64,
    "name_entity": np.int32,
    "link_ends": np.int64,
    "link_sources": np.int32,
    "phrase_hash": np.uint64,
    "phrase_links": np.int64,
    "phrase_count": np.int64,
    "sense_ends": np.int64,
    "sense_entity": np.int32,
    "sense_links": np.int64,
}


@dataclass(frozen=True, eq=False)
class KnowledgeBase:
    """Articles, abstracts, names, anchors and in-links of a Wikipedia.

    Attributes:
        path: the folder.
        titles, abstracts: n strings; the abstract is the article's lead.
        page_id: int64 [n].
        name_hash, name_entity: uint64 (ascending) and int32 [m]: titles and redirects, by hash.
        link_ends, link_sources: int64 [n + 1], int32: the distinct articles that link to each
            article, ascending.
        phrase_hash: uint64 [p], ascending: anchor texts, titles and redirects as phrases.
        phrase_links, phrase_count: int64 [p]: links with that anchor, occurrences in all texts.
        sense_ends, sense_entity, sense_links: int64 [p + 1], int32, int64: the articles that the
            links of a phrase lead to, and the number of these links, most first.
        source: file name of the dump.
        withheld: the parts of articles that were left out, see
            :attr:`ltr_features.text.collection.Collection.withheld`; None if nothing was.
        language: code of the dump's language, such as ``de``; None if the dump does not name it.
        word_rule: the rule by which texts were split into words, see
            :mod:`ltr_features.entities.words`.
    """

    path: Path
    titles: StringArray
    abstracts: StringArray
    page_id: NDArray[np.int64]
    name_hash: NDArray[np.uint64]
    name_entity: NDArray[np.int32]
    link_ends: NDArray[np.int64]
    link_sources: NDArray[np.int32]
    phrase_hash: NDArray[np.uint64]
    phrase_links: NDArray[np.int64]
    phrase_count: NDArray[np.int64]
    sense_ends: NDArray[np.int64]
    sense_entity: NDArray[np.int32]
    sense_links: NDArray[np.int64]
    source: str
    withheld: str | None = None
    language: str | None = None
    word_rule: int = WORD_RULE

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> KnowledgeBase:
        """Memory-map a folder that ``ltr-features wikipedia`` wrote.

        Raises:
            InputError: the folder is not a knowledge base, has another version, or is damaged.
        """
        folder = Path(folder)
        try:
            facts = read_json(folder / MARK)
            version, source, sizes = facts["version"], facts["source"], facts["sizes"]
        except (OSError, ValueError, KeyError, TypeError):
            dump, out = (folder, "kb") if folder.is_file() else ("DUMP.xml.bz2", folder)
            raise InputError(
                f"{folder} is not a knowledge base; make one with: "
                f"ltr-features wikipedia {dump} --out {out}"
            ) from None
        if version != VERSION:
            raise InputError(
                f"{folder} is a knowledge base of version {version}, this program reads version "
                f"{VERSION}: make it again with ltr-features wikipedia"
            )
        with reading(folder, "it is a damaged knowledge base; make it again"):
            arrays = {name: _mapped(folder / f"{name}.npy", sizes[name]) for name in ARRAYS}
            _check(folder, arrays)
        titles = _strings(arrays.pop("title_bytes"), arrays.pop("title_ends"))
        abstracts = _strings(arrays.pop("abstract_bytes"), arrays.pop("abstract_ends"))
        return cls(
            path=folder,
            titles=titles,
            abstracts=abstracts,
            source=str(source),
            withheld=facts.get("withheld"),
            language=facts.get("language"),
            word_rule=facts.get("word rule", 1),
            **arrays,
        )

    def __len__(self) -> int:
        return len(self.page_id)

    def rows(self, names: Sequence[str]) -> NDArray[np.int64]:
        """int64 [len(names)]: the entities of titles or redirects, -1 for unknown names."""
        wanted = hash_titles(title_lines(name.replace("_", " ") for name in names))
        at, known = look_up(wanted, self.name_hash)
        return np.where(known, self.name_entity[at] if len(self.name_hash) else -1, -1)


class BaseArrays:
    """Writes the arrays of a new knowledge base into its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.npy"

    def save(self, name: str, values: NDArray) -> None:
        """Write a whole array."""
        save_array(self.path(name), values.astype(ARRAYS[name], copy=False))

    def append(self, name: str, values: NDArray) -> None:
        """Append to an array that is written in parts."""
        append_array(self.folder / f"{name}.raw", values.astype(ARRAYS[name], copy=False))

    def close(self, *names: str) -> None:
        """Finish arrays that were written in parts: put a header before their values."""
        for name in names:
            raw, dtype = self.folder / f"{name}.raw", np.dtype(ARRAYS[name])
            size = raw.stat().st_size // dtype.itemsize
            header = {"descr": dtype.str, "fortran_order": False, "shape": (size,)}
            with self.path(name).open("wb") as out, raw.open("rb") as source:
                np.lib.format.write_array_header_1_0(out, header)
                shutil.copyfileobj(source, out, _COPIED)
            raw.unlink()


def look_up(
    wanted: NDArray[np.uint64], stored: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The positions of hashes in an ascending array, and which of them it contains."""
    if not len(stored):
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=np.bool_)
    at = np.minimum(np.searchsorted(stored, wanted), len(stored) - 1)
    return at, (stored[at] == wanted) & (wanted != 0)


def bucket_index(hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], np.uint64]:
    """Where each value of the leading bits begins in an ascending array, and the shift to get them.

    A bucket has two to four hashes; adjacent in memory, they cost one access, as a single one does.
    """
    bits = max(1, len(hashes).bit_length() - 2)
    shift = np.uint64(64 - bits)
    bounds = np.arange(1 << bits, dtype=np.uint64) << shift
    return np.append(np.searchsorted(hashes, bounds), len(hashes)).astype(np.int64), shift


def _mapped(path: Path, size: int) -> NDArray:
    with reading(path):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    return np.asarray(check_array(str(path), array, ARRAYS[path.stem], (size,)))


def _check(folder: Path, arrays: Mapping[str, NDArray]) -> None:
    """Raise InputError for arrays that the kernels cannot handle safely."""
    n = len(arrays["page_id"])
    many = np.iinfo(np.int64).max

    def check(name: str, **limits: Any) -> None:
        array = arrays[name]
        check_array(str(folder / f"{name}.npy"), array, array.dtype, (None,), **limits)

    pieces_of = (
        ("title_ends", n, "title_bytes"),
        ("abstract_ends", n, "abstract_bytes"),
        ("link_ends", n, "link_sources"),
        ("sense_ends", len(arrays["phrase_hash"]), "sense_entity"),
    )
    for name, pieces, values in pieces_of:
        ends, whole = arrays[name], len(arrays[values])
        check(name, least=0, most=whole, ascending=True)
        if len(ends) != pieces + 1 or (ends[0], ends[-1]) != (0, whole):
            raise InputError(f"{folder / name}.npy: {pieces} pieces must go from 0 to {whole}")
    for name in ("name_entity", "link_sources", "sense_entity"):
        check(name, least=0, most=n - 1)
    for name in ("name_hash", "phrase_hash"):
        check(name, ascending=True)
    check("phrase_links", least=0, most=many)
    check("phrase_count", least=1, most=many)
    check("sense_links", least=0, most=many)
    for name, of in (("name_entity", "name_hash"), ("sense_links", "sense_entity"),
                     ("phrase_links", "phrase_hash"), ("phrase_count", "phrase_hash")):  # fmt: skip
        if len(arrays[name]) != len(arrays[of]):
            raise InputError(f"{folder / name}.npy: must have one value for each of {of}.npy")


def _strings(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> StringArray:
    return StringArray(data, ends[:-1], ends[1:], is_text=True)
