"""Data for the page's script, embedded in the page."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from ltr_features.studies.page.charts.embedding_map import places
from ltr_features.studies.page.report import Study
from ltr_features.studies.statistics.embedding_map import EmbeddingMap

RANKINGS_SIZE = 400_000
"""Maximum number of characters of the packed rankings of all studies together."""


def embedded(content: Mapping[str, Any]) -> Markup:
    """JSON without characters that HTML would interpret."""
    text = _json(content)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def study_data(study: Study, rankings_size: int = RANKINGS_SIZE) -> Markup:
    """Per-query values and rankings of a study, as JSON.

    Values are integer millionths, as three little-endian bytes each, in base64: all queries of the
    first measure of the first system, then its next measure, then the next system. Kinds: for each
    property, the class of each query as one character, see :func:`class_letter`. Rankings: see
    :func:`packed_rankings`.

    Args:
        rankings_size: maximum number of characters of the packed rankings.
    """
    values = np.stack([[study.values(s.name, m) for m in study.measures] for s in study.systems])
    millionths = np.rint(values * 1e6).astype("<u4").reshape(-1, 1)
    packed = millionths.view(np.uint8)[:, :3].tobytes()
    return embedded(
        {
            "queries": study.queries,
            "texts": [study.text_of(q) if study.query_texts.get(q) else "" for q in study.queries],
            "systems": [s.name for s in study.systems],
            "measures": list(study.measures),
            "values": base64.b64encode(packed).decode("ascii"),
            "kinds": []
            if study.query_kinds is None
            else [
                "".join(map(class_letter, column.cat.codes))
                for _, column in study.query_kinds.reindex(study.queries).items()
            ],
            "pair": study.pairs[0],
            "rankings": packed_rankings(study, rankings_size),
        }
    )


def class_letter(code: int) -> str:
    """The character of a class of queries: "A" for the first, "-" for none (-1)."""
    return "-" if code < 0 else chr(ord("A") + code)


def map_data(found: EmbeddingMap) -> Markup:
    """Labels of a map, their positions in thousandths of the drawing, and nearest neighbours."""
    x, y = np.rint(1000 * places(found)).astype(int).T.tolist()
    return embedded(
        {
            "of": found.of,
            "labels": list(found.labels),
            "x": x,
            "y": y,
            "nearest": found.nearest.tolist(),
            "dimension": found.dimension,
        }
    )


def packed_rankings(study: Study, size: int) -> str:
    """The rankings of the headline comparison: JSON, compressed by zlib, in base64; "" if there are
    none. If not all fit, only the queries that changed most are included.

    ``documents``: title and id of each. ``columns``: names. ``queries``: by the query's number, a
    list for each document: its number, grade (null: not judged), rank before and after (0 for
    none), followed by the number and shift (in hundredths) of each column that pushed it.

    Args:
        size: maximum number of characters.
    """
    chosen = list(study.drill_down)
    while chosen:
        packed = base64.b64encode(zlib.compress(_rankings(study, chosen), 9)).decode("ascii")
        if len(packed) <= size:
            return packed
        chosen = chosen[: int(0.95 * len(chosen) * size / len(packed))]
    return ""


def _rankings(study: Study, chosen: Sequence[str]) -> bytes:
    documents: dict[tuple[str, str], int] = {}
    columns: dict[str, int] = {}
    number = {query: i for i, query in enumerate(study.queries)}
    queries = {}
    for query in chosen:
        rows = []
        for doc in study.drill_down[query]:
            shifts = ((columns.setdefault(c, len(columns)), round(100 * x)) for c, x in doc.columns)
            known = documents.setdefault((doc.title, doc.document), len(documents))
            ranks = (doc.before or 0, doc.after or 0)
            rows.append([known, doc.label, *ranks, *(part for pair in shifts for part in pair)])
        queries[number[query]] = rows
    content = {"documents": list(documents), "columns": list(columns), "queries": queries}
    return _json(content).encode("utf-8")


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
