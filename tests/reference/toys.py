"""What many tests begin with: collections by hand, their contexts and pairs, and commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from letor.errors import InputError
from ltr_features.cli import app
from ltr_features.columns.context import ColumnContext
from ltr_features.text.collection import Collection, Judgements, Links, Pairs
from ltr_features.text.index import TermIndex


def toy(
    fields: Mapping[str, Sequence[str]],
    queries: Sequence[str] = (),
    judgements: Judgements | None = None,
    links: Links | None = None,
    name: str = "toy",
) -> Collection:
    """Documents d0, d1, ... and queries q0, q1, ..., by default without judgements."""
    n = len(next(iter(fields.values())))
    return Collection(
        name,
        [f"d{i}" for i in range(n)],
        fields,
        [f"q{i}" for i in range(len(queries))],
        queries,
        judgements or Judgements.none(),
        links,
    )


def context_of(collection: Collection, threads: int | None = None, **index: Any) -> ColumnContext:
    return ColumnContext(collection, TermIndex.build(collection, **index), threads=threads)


def all_pairs(collection: Collection) -> Pairs:
    """Each query with every document, query by query."""
    m, n = collection.n_queries, collection.n_documents
    return Pairs(np.repeat(np.arange(m), n), np.tile(np.arange(n), m))


def topics(n_documents: int = 60) -> Collection:
    """Six topics and 24 queries, each with eight relevant documents of its topic, as far as they
    are among the first documents that are wanted, of 60."""
    rng = np.random.default_rng(0)
    bodies = [
        " ".join(
            [f"topic{d % 6}word{i}" for i in rng.integers(6, size=9)]
            + [f"common{i}" for i in rng.integers(9, size=rng.integers(2, 9))]
        )
        for d in range(60)
    ][:n_documents]
    query, document = np.divmod(np.arange(24 * 8), 8)
    document = document * 6 + query % 6
    kept = document < n_documents
    fields = {
        "body": bodies,
        "title": [body.split()[0] for body in bodies],
        "url": [f"http://a.b/{d % 7}/{d}" for d in range(n_documents)],
    }
    queries = [f"topic{q % 6}word{q % 6} common{q % 9} common{(q + 3) % 9}" for q in range(24)]
    judged = Judgements(query[kept], document[kept], np.ones(kept.sum(), np.int64))
    return toy(fields, queries, judged, Links(*rng.integers(n_documents, size=(2, 150))), "topics")


def run(*arguments: Any) -> Result:
    """A command that does its work."""
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def done(*arguments: Any) -> str:
    """What such a command prints."""
    return run(*arguments).stdout


def refused(*arguments: Any) -> str:
    """The error of a command that does not."""
    with pytest.raises(InputError) as caught:
        CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    return str(caught.value)
