"""LETOR's columns as features of a search engine: the file that tells its learning-to-rank plug-in
what to compute under the columns' names, and whether its numbers agree with ours.

The templates follow the engines' documentation: ``match_explorer`` and ``term_stat`` of the plug-in
of OpenSearch and Elasticsearch (``term_stat`` from its version 1.5.2), Solr's feature classes. In
both, counts of documents are per shard, and deleted documents count until their segment is merged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from letor.errors import InputError
from ltr_base.names import listed, nearest, repeated
from ltr_features.columns.letor46 import LETOR46_COLUMNS, LETOR_FIELDS
from ltr_features.text.index import WHOLE

Node: TypeAlias = dict[str, Any]
Agreement: TypeAlias = Literal["same number", "another formula", "cannot"]

SAME: Final = "same number"
VARIANT: Final = "another formula"
CANNOT: Final = "cannot"

_BM25 = (
    "Lucene's BM25: idf ln(1 + (N - df + 0.5) / (df + 0.5)), without the factor k1 + 1, k1 and b "
    "of the field (1.2 and 0.75 unless set; ours are 2.5 and 0.8), lengths rounded to a byte, a "
    "word twice in the query counts twice"
)
_OUTSIDE = (
    "only the toolkit computes it, unless it is a number of the document, such as a price (name "
    "its field, --field price=price), or the engine's own value, given as scores or logged: then "
    "the query that gave it is the feature"
)
_NO_MODEL = "the engine has no query for this language model"
_LACKING = (
    "unless the engine has features of its own with these names, as it has if it logged them, it "
    "cannot evaluate a ranker that uses them: train one without, or score the engine's candidates "
    "outside, by ScoringPipeline"
)
_WITHOUT = "; one without it counts as 0 there: if our columns have another number, send that"
_NOT_NEGATIVE = (
    "; the engine refuses queries for values below 0: if there are any, add a constant to all, in "
    "the table of numbers, too"
)
_SINGLE_TERMS = "Solr's termfreq takes a single term, a feature cannot go through the query's"

#: The columns that depend on the document alone, which the engine stores as fields.
_OF_DOCUMENTS = tuple(c.name for c in LETOR46_COLUMNS if (c.letor_id or 0) > 40)
#: (kind of statistic, field) of each term column.
_OF_TERMS = {
    c.name: (c.name.removesuffix(f"_{c.field}"), str(c.field))
    for c in LETOR46_COLUMNS
    if c.name not in _OF_DOCUMENTS
}
_LENGTHS = tuple(name for name, (kind, _) in _OF_TERMS.items() if kind == "dl")


@dataclass(frozen=True)
class EngineFeature:
    """A column as a feature of an engine.

    Attributes:
        column: the name of the column and of the feature.
        agreement: "same number" (if texts are analysed alike), "another formula" or "cannot".
        note: the formula, what the engine needs for it, or why it cannot compute the column.
        definition: the feature in the engine's form; None if it cannot compute the column.
    """

    column: str
    agreement: Agreement
    note: str
    definition: Node | None = None


@dataclass(frozen=True)
class FeatureSet:
    """The features of an engine for some columns, see :func:`featureset`.

    Attributes:
        target: the engine.
        features: one for each column, in order.
        index: the index on which the plug-in tests the features when they are stored, or None.
    """

    target: str
    features: tuple[EngineFeature, ...]
    index: str | None = None

    def body(self) -> Any:
        """The request body with the features that the engine can compute: for ``POST
        _ltr/_featureset/NAME`` (OpenSearch, Elasticsearch) or ``PUT schema/feature-store`` (Solr).
        """
        made = [f.definition for f in self.features if f.definition is not None]
        if self.target == "solr":
            return made
        body: Node = {"featureset": {"features": made}}
        if self.index is not None:
            body["validation"] = {"params": {"keywords": "test"}, "index": self.index}
        return body

    def notes(self) -> str:
        """Text for users about the agreement of the numbers, with advice."""
        made = sum(f.definition is not None for f in self.features)
        lines = [f"{self.target}: {made} of {len(self.features)} columns"]
        for agreement in (SAME, VARIANT, CANNOT):
            by_note: dict[str, list[str]] = {}
            for feature in self.features:
                if feature.agreement == agreement:
                    by_note.setdefault(feature.note, []).append(feature.column)
            if by_note:
                lines += ["", f"{agreement}:"]
                lines += [f"  {', '.join(names)}: {note}" for note, names in by_note.items()]
        return "\n".join([*lines, *self._advice()]) + "\n"

    def _advice(self) -> list[str]:
        found = {f.agreement for f in self.features}
        of_terms = [f for f in self.features if f.definition and f.column in _OF_TERMS]
        advice = []
        if of_terms:
            advice.append(
                "Fields must be analysed into the words that the toolkit counts (lower case; stop "
                "words, stemmer and least length of words as the index has them)."
            )
        if any(_OF_TERMS[f.column][1] == WHOLE for f in of_terms):
            copied = "copyField" if self.target == "solr" else "copy_to"
            advice.append(f"The whole document is one field of all its texts ({copied}).")
        if VARIANT in found:
            advice.append(
                "Thresholds of a ranker trained on our columns are wrong for those of another "
                "formula: train it on the features that the engine logs (ltr-features convert)."
            )
        if CANNOT in found:
            advice.append(f"Some columns have no feature here; {_LACKING}.")
        return ["", *advice] if advice else []


def featureset(
    columns: Sequence[str],
    target: str,
    *,
    fields: Mapping[str, str] | None = None,
    index: str | None = None,
) -> FeatureSet:
    """Define columns as features of an engine; it can compute some of LETOR's 46.

    Args:
        columns: names of columns, in the order of the features.
        target: "opensearch" or "elasticsearch" (both for the learning-to-rank plug-in, whose
            request parameter is ``keywords``), or "solr" (whose request parameter is
            ``efi.text``). Elasticsearch's built-in learning to rank does not read such a file.
        fields: names of fields in the engine, by the toolkit's names: text fields
            (``{"body": "description"}``) and numeric fields (``pagerank``, ``dl_whole``, ...; and
            others of the columns that are numbers of documents, such as ``price``). By default the
            names are the same; the length of a text is its sub-field ``length``.
        index: an index on which the plug-in tests each feature before it stores them.

    Raises:
        InputError: an unknown target, no column that the engine can compute, a column named twice,
            or a field that the toolkit does not have.
    """
    if target not in TARGETS:
        raise InputError(f"target {target!r} is unknown; use one of {', '.join(TARGETS)}")
    if index is not None and target == "solr":
        raise InputError("index: Solr tests features at the first query only; leave it out")
    if index == "":
        raise InputError("index is empty: name the engine's index, or leave it out")
    if twice := repeated(columns):
        raise InputError(f"column {', '.join(twice)} is named twice; an engine knows each once")
    named = _checked_fields(fields or {}, columns)
    features = tuple(_feature(name, target, named) for name in columns)
    if all(f.definition is None for f in features):
        raise InputError(
            f"we define no {target} feature for any of the columns {listed(list(columns), 5)}, "
            "only for some of the family letor46; if the engine logged them, it has their features "
            "and needs the ranker alone (rank export)"
        )
    return FeatureSet(target, features, index)


def remark_on(columns: Sequence[str], target: str) -> str | None:
    """A remark on the columns of a ranker for which :func:`featureset` defines no features of an
    engine, or None if there are none."""
    lacking = [name for name in columns if _feature(name, target, {}).definition is None]
    if not lacking:
        return None
    return f"we define no {target} features for the columns {listed(lacking, 50)}; {_LACKING}"


def _feature(name: str, target: str, fields: Mapping[str, str]) -> EngineFeature:
    return (_solr_feature if target == "solr" else _plugin_feature)(name, fields)


def _checked_fields(given: Mapping[str, str], columns: Sequence[str]) -> dict[str, str]:
    others = (name for name in columns if name not in _OF_TERMS)
    known = dict.fromkeys([*LETOR_FIELDS, *_OF_DOCUMENTS, *_LENGTHS, *others])
    for name, field in given.items():
        if name not in known:
            raise InputError(
                f"field {name!r} is none of the toolkit's, nor a column that is a number of "
                f"documents; {nearest(name, known)}"
            )
        if not re.fullmatch(r"[\w.-]+", field):
            raise InputError(f"field {name}={field!r}: use letters, digits, '_', '.' and '-'")
    return dict(given)


def _sent(name: str, fields: Mapping[str, str]) -> str:
    called = f"the field {fields[name]!r}" if name in fields else "a field of that name"
    without = "" if name in (*_OF_DOCUMENTS, *_OF_TERMS) else _WITHOUT
    return f"a number that you send with each document, as {called}{without}"


def _plugin_feature(name: str, fields: Mapping[str, str]) -> EngineFeature:
    """A feature of the OpenSearch and Elasticsearch plug-in: a query whose score is its value."""

    def feature(agreement: Agreement, note: str, query: Node, *params: str) -> EngineFeature:
        definition = {
            "name": name,
            "params": list(params),
            "template_language": "mustache",
            "template": query,
        }
        return EngineFeature(name, agreement, note, definition)

    def number(field: str, note: str) -> EngineFeature:
        value = {"field_value_factor": {"field": field, "missing": 0}}
        query = {"query": {"match_all": {}}, "functions": [value], "boost_mode": "replace"}
        return feature(SAME, note, {"function_score": query})

    if name not in _OF_TERMS:
        if name in _OF_DOCUMENTS:
            return number(fields.get(name, name), _sent(name, fields))
        if name in fields:
            return number(fields[name], _sent(name, fields) + _NOT_NEGATIVE)
        return EngineFeature(name, CANNOT, _OUTSIDE)
    kind, part = _OF_TERMS[name]
    field = fields.get(part, part)
    match: Node = {"match": {field: "{{keywords}}"}}
    if kind == "dl":
        if name in fields or part == WHOLE:  # token_count counts each of several copied texts alone
            return number(fields.get(name, name), _sent(name, fields))
        return number(
            f"{field}.length",
            "the sub-field length, of type token_count with the field's analyser and "
            "enable_position_increments false",
        )
    if kind == "tf":
        query = {"match_explorer": {"type": "sum_raw_tf", "query": match}}
        return feature(SAME, "sum of the counts of the query's distinct words", query, "keywords")
    if kind == "idf":
        query = {"match_explorer": {"type": "sum_classic_idf", "query": match}}
        note = (
            "sum of 1 + ln((N + 1) / (df + 1)), N the documents that have the field; like ours the "
            "same for all documents of a query"
        )
        return feature(VARIANT, note, query, "keywords")
    if kind == "tfidf":
        query = {"term_stat": {"expr": "tf * (idf - 1)", "aggr": "sum",
                               "terms": ["{{keywords}}"], "fields": [field]}}  # fmt: skip
        note = "its idf is ln((N + 1) / (df + 1)), N the documents that have the field"
        return feature(VARIANT, note, query, "keywords")
    if kind == "bm25":
        return feature(VARIANT, _BM25, match, "keywords")
    return EngineFeature(name, CANNOT, _NO_MODEL)


def _solr_feature(name: str, fields: Mapping[str, str]) -> EngineFeature:
    """A feature of Solr: a class and its parameters, in the store that exported rankers use."""

    def feature(agreement: Agreement, note: str, kind: str, **params: Any) -> EngineFeature:
        definition = {
            "store": "_DEFAULT_",
            "name": name,
            "class": f"org.apache.solr.ltr.feature.{kind}",
            "params": params,
        }
        return EngineFeature(name, agreement, note, definition)

    if name in _OF_DOCUMENTS or name in fields:
        field = fields.get(name, name)
        return feature(SAME, _sent(name, fields), "FieldValueFeature", field=field)
    if name not in _OF_TERMS:
        return EngineFeature(name, CANNOT, _OUTSIDE)
    kind, part = _OF_TERMS[name]
    field = fields.get(part, part)
    if kind in ("tf", "tfidf"):
        return EngineFeature(name, CANNOT, _SINGLE_TERMS)
    if kind == "idf":
        note = "you send it with each request, as efi.NAME: it is the query's alone"
        return feature(SAME, note, "ValueFeature", value=f"${{{name}}}", required=True)
    if kind == "dl":
        note = "exact up to 40 words; more are rounded down, by less than an eighth"
        return feature(VARIANT, note, "FieldLengthFeature", field=field)
    if kind == "bm25":
        q = f"{{!dismax qf={field} mm=0}}${{text}}"
        return feature(VARIANT, _BM25, "SolrFeature", q=q)
    return EngineFeature(name, CANNOT, _NO_MODEL)


#: Engines that :func:`featureset` supports.
TARGETS = ("opensearch", "elasticsearch", "solr")
