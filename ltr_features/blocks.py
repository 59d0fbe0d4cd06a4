"""Feature tables larger than memory, built and written as Parquet in blocks of whole queries.

The file is byte for byte the same as for a table built at once, whatever the blocks, on one machine
or on the workers of a cluster (:mod:`ltr_features.cluster`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from letor.arrow_rows import ArrowRows
from letor.errors import InputError
from letor.missing import Missing
from letor.parquet_rows import ParquetRows
from ltr_base.slices import slices
from ltr_base.source_code import code_of_others
from ltr_features.candidates import Candidates, candidate_sources, find_candidates
from ltr_features.columns.base import ColumnFamily
from ltr_features.columns.context import ColumnContext
from ltr_features.feature_table import N_MISSING, build_columns, family_provenance
from ltr_features.text.collection import Pairs

#: Default memory for a block, in bytes.
MEMORY = 2**30
#: Bytes of a row besides its columns, and copies of each value while a block is made and written.
_ROW_BYTES, _COPIES = 400, 6
_UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "MB": 10**6, "GB": 10**9}


@dataclass(frozen=True)
class Block:
    """Some queries and their candidates.

    Attributes:
        first, last: rows of the collection's queries, from ``first`` up to but excluding ``last``.
        pairs: their candidates, as rows of the whole collection; None where BM25 finds them query
            by query.
        origins: the sources of the pairs, or None.
    """

    first: int
    last: int
    pairs: Pairs | None = None
    origins: Sequence[str] | None = None


@dataclass
class BlockWork:
    """How the rows of a block are computed.

    Attributes:
        candidates: settings of candidate sources, see :func:`~.candidates.candidate_sources`.
        families: column families. code: digests of their code, as far as others wrote it.
    """

    candidates: Mapping[str, Mapping[str, Any]]
    families: Sequence[ColumnFamily]
    code: Sequence[str] = field(init=False)

    def __post_init__(self) -> None:
        self.code = [code_of_others(type(family)) for family in self.families]

    def rows(
        self, context: ColumnContext, block: Block, on_family: OnFamily | None = None
    ) -> ArrowRows:
        """The rows of a block's queries; queries without candidates are ``missing``."""
        pairs = block.pairs
        if pairs is None:
            part = context.of_queries(block.first, block.last)
            found = find_candidates(part, candidate_sources(self.candidates)).pairs
            pairs = Pairs(found.query + block.first, found.document)
        queries = range(block.first, block.last)

        def begins(family: str, done: int, total: int) -> None:
            if on_family is not None:
                on_family(family, block.first + len(queries) * done / total)

        rows = build_columns(
            context, pairs, self.families,
            origins=block.origins, queries=queries, on_progress=begins,
        )  # fmt: skip
        return ArrowRows.of(rows)


#: Called from any thread when a family begins, with its name and the number of queries done: the
#: queries of the block count by the share of families that have begun.
OnFamily: TypeAlias = Callable[[str, float], None]
#: Computes the rows of blocks and yields them in order.
MakeBlocks: TypeAlias = Callable[[BlockWork, Iterable[Block]], Iterator[ArrowRows]]


@dataclass
class Written:
    """Statistics of the rows that were written.

    Attributes:
        n_rows, n_queries: number of rows, and of queries with rows. width: number of columns.
        missing: relevant documents and judged queries without rows.
        n_relevant: number of relevant rows. n_without_rows: number of judged queries without rows.
        n_missing: for each column the number of rows with a substitute. provenance: of all columns.
        candidates: of all queries, where they were found before the blocks; else None.
    """

    n_rows: int = 0
    n_queries: int = 0
    width: int = 0
    n_relevant: int = 0
    n_without_rows: int = 0
    missing: Missing = field(default_factory=lambda: Missing({}))
    n_missing: Counter[str] = field(default_factory=Counter)
    provenance: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    candidates: Candidates | None = None

    def add(self, rows: ArrowRows) -> None:
        """Count the rows of a block."""
        self.n_rows += len(rows)
        self.n_queries += len(rows.query_ids)
        self.width = len(rows.names)
        self.n_relevant += rows.n_relevant
        self.n_without_rows += rows.n_without_rows
        for name, notes in rows.provenance.items():
            self.n_missing[name] += notes.get(N_MISSING, 0)

    @property
    def coverage(self) -> str:
        """One line on the missing documents and queries that measures take into account."""
        return self.missing.summary(self.n_relevant, self.n_without_rows)


def write_columns(
    context: ColumnContext,
    candidates: Mapping[str, Mapping[str, Any]] | Candidates,
    families: Sequence[ColumnFamily],
    path: Path,
    *,
    memory: int = MEMORY,
    made_by: MakeBlocks | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    on_family: OnFamily | None = None,
) -> Written:
    """Write the rows of all candidates with their columns as Parquet, the same rows as
    :func:`~.feature_table.build_columns` with :func:`letor.parquet.write_parquet`.

    Args:
        context: the collection and its index.
        candidates: candidates, or settings of sources. If BM25 is the only source, candidates are
            found block by block; otherwise they are found beforehand and held in memory (about 40
            bytes a pair).
        families: column families.
        path: the file to write.
        memory: approximate number of bytes for the rows of a block. What families hold about the
            documents comes on top, and a block holds at least all rows of one query.
        made_by: computes the rows of the blocks, in order; by default this process does.
        on_progress: called with (queries done, all queries) after each block.
        on_family: called when a family begins on a block that this process computes.

    Raises:
        InputError: wrong settings, or no query has a candidate.
    """
    found, settings = _found_before(context, candidates)
    work = BlockWork(settings, families)
    blocks = _blocks(context.collection.n_queries, work, found, memory)
    written = Written(candidates=found)
    here = (work.rows(context, block, on_family) for block in blocks)
    made = made_by(work, blocks) if made_by else here
    with ParquetRows(path) as file:
        for block, rows in zip(blocks, made, strict=True):
            file.add(rows)
            written.add(rows)
            if on_progress is not None:
                on_progress(block.last, context.collection.n_queries)
        if not written.n_rows:
            sources = work.candidates if found is None else found.sources
            raise InputError(f"no query has a candidate from {', '.join(sources)}")
        written.provenance = family_provenance(context, families, written.n_missing, written.n_rows)
        file.provenance = written.provenance
    written.missing = file.missing or Missing({})
    return written


def _found_before(
    context: ColumnContext, candidates: Mapping[str, Mapping[str, Any]] | Candidates
) -> tuple[Candidates | None, Mapping[str, Mapping[str, Any]]]:
    """(Candidates of all queries, or None if BM25 finds them block by block; settings given)."""
    if isinstance(candidates, Candidates):
        return candidates, {}
    sources = candidate_sources(candidates)
    if set(candidates) == {"bm25"} and "source" not in candidates["bm25"]:
        return None, candidates
    return find_candidates(context, sources), candidates


def _blocks(n: int, work: BlockWork, found: Candidates | None, memory: int) -> list[Block]:
    """``n`` queries in blocks whose rows take about ``memory`` bytes."""
    width = sum(len(family.columns) for family in work.families)
    most = max(1, memory // (_ROW_BYTES + 4 * _COPIES * width))
    if found is None:
        depth = int(work.candidates["bm25"].get("depth", 100))
        size = max(1, most // depth)
        return [Block(rows.start, rows.stop) for rows in slices(n, size)]
    origins = found.origins
    ends = np.searchsorted(found.pairs.query, np.arange(n + 1))  # pairs are ordered by query
    blocks, first = [], 0
    while first < n:
        last = int(np.searchsorted(ends, ends[first] + most, side="right")) - 1
        last = min(max(last, first + 1), n)
        rows = slice(int(ends[first]), int(ends[last]))
        blocks.append(Block(first, last, found.pairs.select(rows), origins and origins[rows]))
        first = last
    return blocks


def memory_size(text: str) -> int:
    """Parse a number of bytes from text such as "2GiB" or "500MB".

    Raises:
        InputError: the text cannot be parsed, or is less than 1 MiB.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if not match or match[2] not in _UNITS:
        raise InputError(f"memory {text!r}: write a number and a unit, 2GiB or 500MB")
    size = int(float(match[1]) * _UNITS[match[2]])
    if size < 2**20:
        raise InputError(f"memory {text!r}: less than 1MiB, which no block fits in")
    return size
