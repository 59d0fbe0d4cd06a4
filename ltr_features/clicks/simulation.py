"""Simulate click logs from judged rows, a production ranker, and users with known behaviour."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import ArrayLike, NDArray

from letor.compression import COMPRESSED, open_output
from letor.dataset import RankingData, distinct
from letor.errors import InputError
from letor.files import atomic_path
from ltr_features.clicks.log import MAX_POSITIONS, ClickLog, LogBuilder
from ltr_features.parameters import check_choice, check_range

#: Sessions per random stream; the first n sessions are the same, however many follow.
_SESSIONS = 4096
USERS = ("pbm", "cascade", "dcm", "dbn")
#: The models of users that have a parameter, where not all have it.
USERS_WITH = {"eta": ("pbm",), "continuation": ("dcm", "dbn")}

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Users:
    """How users click on a page.

    Attributes:
        model: "pbm": the result at rank r (from 1) is examined with probability (1 / r)^eta,
            whatever else happens; "cascade": from the top until the first click; "dcm": from the
            top, continuing after a click with probability ``continuation``; "dbn": from the top,
            leaving when satisfied by a clicked result, else continuing with ``continuation``.
        eta: steepness of examination, >= 0 (pbm).
        noise: probability of clicking an examined result of grade 0, in [0, 1].
        continuation: probability of continuing, in [0, 1] (dcm, dbn).

    An examined result of grade y is clicked with probability noise + (1 - noise) (2^y - 1) /
    (2^y_max - 1); a click satisfies with the same probability without noise.

    Source: Ai et al., "Unbiased learning to rank with unbiased propensity estimation", SIGIR 2018,
    section 5.1 (grades, noise); Joachims, Swaminathan, Schnabel, "Unbiased learning-to-rank with
    biased feedback", WSDM 2017, section 6 (examination).

    Raises:
        InputError: a value out of range.
    """

    model: str = "pbm"
    eta: float = 1.0
    noise: float = 0.1
    continuation: float = 0.9

    def __post_init__(self) -> None:
        check_choice("users", self.model, USERS)
        check_range("eta", self.eta, 0.0)
        for name in ("noise", "continuation"):
            check_range(name, getattr(self, name), 0.0, 1.0)

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters that the model has, by name."""
        values = {"eta": self.eta, "noise": self.noise, "continuation": self.continuation}
        return {n: x for n, x in values.items() if self.model in USERS_WITH.get(n, USERS)}

    def examination(self, n: int) -> Array:
        """float64 [n]: examination of each position (pbm)."""
        return np.asarray((1.0 / np.arange(1, n + 1)) ** self.eta)

    def clicks(
        self, attraction: Array, satisfaction: Array, rng: np.random.Generator
    ) -> NDArray[np.bool_]:
        """bool [sessions, n]: random clicks on pages, given the probabilities of their results.

        Args:
            attraction, satisfaction: float64 [sessions, n]; attraction is 0 below a page's end.
        """
        draws = rng.random((3, *attraction.shape))
        if self.model == "pbm":
            return draws[0] < attraction * self.examination(attraction.shape[1])
        clicked = np.zeros(attraction.shape, dtype=bool)
        reading = np.ones(len(attraction), dtype=bool)
        for r in range(attraction.shape[1]):
            clicked[:, r] = reading & (draws[0, :, r] < attraction[:, r])
            continues = draws[1, :, r] < self.continuation
            if self.model == "cascade":
                reading &= ~clicked[:, r]
            elif self.model == "dcm":
                reading &= ~clicked[:, r] | continues
            else:
                satisfied = clicked[:, r] & (draws[2, :, r] < satisfaction[:, r])
                reading &= ~satisfied & continues
        return clicked


@dataclass(frozen=True)
class _Block:
    """Pages: query int64 [s]; row int64 [s, n], rows of the data, -1 below a page's end; click
    bool [s, n]."""

    query: NDArray[np.int64]
    row: NDArray[np.int64]
    click: NDArray[np.bool_]


@dataclass(frozen=True)
class Simulation:
    """Simulates sessions of users with a production ranker.

    Each session is one page for a query drawn uniformly; the ranker's best ``depth`` results are
    shown. With ``exploration``, the ranking varies between sessions: scores, standardised within
    each query, get independent Gumbel noise of that scale, so that rankings are draws from the
    Plackett-Luce model with weights exp(score / exploration). Without any variation, the effects of
    positions and of documents cannot be separated.

    Attributes:
        data: judged rows (labels >= 0); documents without ids get their row number, from 0.
        scores: float64 [n], scores of the production ranker.
        users: the behaviour of the users.
        depth: number of results on a page, 1 or more.
        exploration: scale of the variation of rankings, >= 0.
        seed: the same seed gives the same sessions, whatever their number.

    Raises:
        InputError: unusable labels or scores, or a value out of range.
    """

    data: RankingData
    scores: ArrayLike
    users: Users = Users()
    depth: int = 10
    exploration: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        scores = np.asarray(self.scores, np.float64)
        if scores.shape != (len(self.data),):
            raise InputError(f"scores have shape {scores.shape} for {len(self.data)} rows")
        if not np.isfinite(scores).all():
            raise InputError(f"score of row {int(np.argmin(np.isfinite(scores)))} is not finite")
        if not len(self.data) or not (self.data.y >= 0).all():
            raise InputError("simulation needs rows with labels of 0 or more; drop unjudged rows")
        check_range("depth", self.depth, 1, MAX_POSITIONS)
        check_range("exploration", self.exploration, 0.0)
        object.__setattr__(self, "scores", scores)

    @property
    def attraction(self) -> Array:
        """float64 [n]: probability of a click on each row if it is examined."""
        return self.users.noise + (1 - self.users.noise) * self.satisfaction

    @property
    def satisfaction(self) -> Array:
        """float64 [n]: (2^y - 1) / (2^y_max - 1)."""
        y = self.data.y.astype(np.float64)
        gain = np.exp2(y) - 1
        return gain / max(float(gain.max()), 1.0)

    @property
    def document_ids(self) -> list[str]:
        """The document id of each row."""
        ids = self.data.document_ids
        return [str(row) if ids is None else str(ids[row]) for row in range(len(self.data))]

    def log(self, n_sessions: int) -> ClickLog:
        """Simulate ``n_sessions`` sessions as an aggregated log.

        Raises:
            InputError: fewer than one session.
        """
        builder, (names, document) = LogBuilder(), distinct(self.document_ids)
        for block in self._blocks(n_sessions):
            shown = block.row >= 0
            sizes = shown.sum(axis=1)
            builder.add_pages(
                np.repeat(block.query, sizes),
                document[block.row[shown]],
                np.broadcast_to(np.arange(block.row.shape[1]), shown.shape)[shown],
                block.click[shown],
                np.concatenate([[0], np.cumsum(sizes)]),
            )
        description = {
            "source": "simulation",
            "users": asdict(self.users),
            "depth": self.depth,
            "exploration": self.exploration,
            "seed": self.seed,
            "queries": "ids",
        }
        return builder.finish(list(self.data.query_ids), names, description)

    def write(self, n_sessions: int, path: str | os.PathLike[str]) -> int:
        """Write a log of ``n_sessions`` sessions with a row per shown result: session (from 1),
        query, document, position (from 1), clicked (0 or 1). The suffix is the format (.tsv, .csv,
        also .gz, .bz2, .zst; .parquet).

        Returns:
            The number of rows.

        Raises:
            InputError: another suffix, or fewer than one session.
        """
        target = Path(path)
        compressed = target.suffix if target.suffix in COMPRESSED else ""
        kind = target.with_suffix("").suffix if compressed else target.suffix
        if kind not in (".tsv", ".csv", ".parquet") or (compressed and kind == ".parquet"):
            raise InputError(f"{path}: the name must end in .tsv, .csv or .parquet")
        queries = pa.array(self.data.query_ids, pa.string())
        documents = pa.array(self.document_ids, pa.string())
        n_rows, first = 0, 1
        with atomic_path(target) as temporary, open_output(temporary, compressed) as stream:
            writer = None
            for block in self._blocks(n_sessions):
                table = _table(block, queries, documents, first)
                first, n_rows = first + len(block.query), n_rows + table.num_rows
                if writer is None:
                    writer = _writer(stream, kind, table.schema)
                writer.write_table(table)
            if writer is not None:
                writer.close()
        return n_rows

    def _blocks(self, n_sessions: int) -> Iterator[_Block]:
        check_range("n_sessions", n_sessions, 1)
        candidates, scores = self._candidates()
        attraction = np.append(self.attraction, 0.0)
        satisfaction = np.append(self.satisfaction, 0.0)
        for number, start in enumerate(range(0, n_sessions, _SESSIONS)):
            rng = np.random.default_rng([self.seed, number])
            query = rng.integers(len(candidates), size=_SESSIONS)
            noise = rng.gumbel(size=(_SESSIONS, candidates.shape[1])) * self.exploration
            noisy = scores[query] + noise
            order = np.argsort(-noisy, axis=1, kind="stable")[:, : self.depth]
            row = np.take_along_axis(candidates[query], order, axis=1)
            click = self.users.clicks(attraction[row], satisfaction[row], rng) & (row >= 0)
            size = min(_SESSIONS, n_sessions - start)
            yield _Block(query[:size], row[:size], click[:size])

    def _candidates(self) -> tuple[NDArray[np.int64], Array]:
        """Rows of each query, int64 [m, longest], -1 below the end; their standardised scores."""
        data, scores = self.data, np.asarray(self.scores)
        longest = int(data.group_sizes.max())
        rows = np.full((data.n_queries, longest), -1, np.int64)
        place = np.arange(len(data)) - np.repeat(data.offsets[:-1], data.group_sizes)
        rows[data.query_index[data.order], place] = data.order
        values = np.where(rows >= 0, scores[rows], np.nan)
        with np.errstate(invalid="ignore"):
            spread = np.nanstd(values, axis=1, keepdims=True)
            values = (values - np.nanmean(values, axis=1, keepdims=True)) / np.where(
                spread > 0, spread, 1.0
            )
        return rows, np.where(rows >= 0, values, -np.inf)


def _table(block: _Block, queries: pa.Array, documents: pa.Array, first: int) -> pa.Table:
    shown = block.row >= 0
    session, position = np.nonzero(shown)
    return pa.table(
        {
            "session": pa.array(session + first, pa.int64()),
            "query": queries.take(pa.array(block.query[session])),
            "document": documents.take(pa.array(block.row[shown])),
            "position": pa.array(position + 1, pa.int64()),
            "clicked": pa.array(block.click[shown].astype(np.int64)),
        }
    )


def _writer(
    stream: IO[bytes], kind: str, schema: pa.Schema
) -> pyarrow.csv.CSVWriter | pyarrow.parquet.ParquetWriter:
    if kind == ".parquet":
        return pyarrow.parquet.ParquetWriter(stream, schema)
    separator = "\t" if kind == ".tsv" else ","
    stream.write((separator.join(schema.names) + "\n").encode())  # Arrow would quote the names
    options = pyarrow.csv.WriteOptions(
        include_header=False, delimiter=separator, quoting_style="needed"
    )
    return pyarrow.csv.CSVWriter(stream, schema, write_options=options)
