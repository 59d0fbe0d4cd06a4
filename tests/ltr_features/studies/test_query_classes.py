"""Kinds of queries, and the documents that moved."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from dumps import page_xml
from knowledge import make_knowledge

from letor.errors import InputError
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.entities import EntityOverlap
from ltr_features.columns.letor46 import Letor46
from ltr_features.entities.linker import Mention
from ltr_features.entities.replay import save_annotations
from ltr_features.studies.statistics.query_classes import (
    entity_source,
    judged_properties,
    query_class_table,
    query_classes,
    query_properties,
)
from ltr_features.studies.statistics.significance import TestSettings
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection import Collection, Judgements
from ltr_features.text.index import TermIndex

TEST = TestSettings(n_permutations=500, n_resamples=200)


def test_properties_count_words_relevant_documents_and_what_they_share():
    rows = np.array([0, 0, 0, 1, 2])
    collection = Collection(
        name="c",
        document_ids=["a", "b", "c"],
        fields={"body": ["red green blue", "red cat", "dog"]},
        query_ids=["q1", "q2", "q3"],
        query_texts=["red green cat red", "dog unknownword", "blue"],
        judgements=Judgements(rows, np.array([0, 1, 2, 2, 0]), np.array([1, 2, 0, 1, 0])),
    )
    index = TermIndex.build(collection, Analyzer())
    table = query_properties(ColumnContext(collection, index))
    assert table.index.tolist() == ["q1", "q2"]  # q3 has no relevant document
    assert table["words"].tolist() == [3, 1]
    assert table["relevant documents"].tolist() == [2, 1]
    assert table["overlap"].tolist() == pytest.approx([(2 / 3 + 2 / 3) / 2, 1.0])


def test_classes_are_of_about_equal_size_and_equal_values_stay_together():
    queries = [f"q{i}" for i in range(90)]
    properties = pd.DataFrame({"words": np.repeat([1, 2, 3, 4, 5, 6], 15)}, index=queries)
    baseline = pd.Series(0.5, index=queries)
    system = baseline + 0.1 * (properties["words"] >= 5)
    pair = (system, baseline)
    table = query_class_table(query_classes(properties), "a - b", pair, settings=TEST)
    assert table["class"].tolist() == ["1 to 2", "3 to 4", "5 to 6"]
    assert table["n_queries"].tolist() == [30, 30, 30]
    assert table["gain"].tolist() == pytest.approx([0, 0, 0.1])
    assert (table["p"] < 0.01).tolist() == [False, False, True]
    constant = query_class_table(
        query_classes(properties.assign(words=7)), "a - b", pair, settings=TEST
    )
    assert constant["class"].tolist() == ["7"]
    assert constant["n_queries"].tolist() == [90]
    with pytest.raises(InputError, match="no value for some query"):
        query_class_table(
            query_classes(properties), "a - b", (system[:-1], baseline), settings=TEST
        )


def test_classes_that_would_read_alike_show_all_digits():
    values = [0.3301, 0.3302, 0.3303, 0.3304, 0.3401, 0.3402]
    kinds = query_classes(pd.DataFrame({"overlap": values}))["overlap"]
    assert kinds.cat.categories.tolist() == [
        "0.3301 to 0.3302", "0.3303 to 0.3304", "0.3401 to 0.3402",
    ]  # fmt: skip
    assert kinds.cat.codes.tolist() == [0, 0, 1, 1, 2, 2]


def test_queries_are_classed_by_the_entities_that_the_experiment_s_linker_finds(tmp_path):
    texts = ["light", "fox", "fox and owl", "the fox, a fox", "owl fox stone"]
    fox, owl, stone = Mention(0, 3, "Fox", 0.4, 0.5), Mention(4, 7, "Owl", 0.2, 0.5), "Stone"
    mentions = [[], [fox], [fox, owl], [fox, fox], [owl, fox, Mention(8, 13, stone, 0.3, 0.4)]]
    pages = [page_xml(t, "thing", page_id=i) for i, t in enumerate(("Fox", "Owl", "Stone"), 1)]
    save_annotations(tmp_path / "notes.jsonl", texts, mentions)
    overlap = EntityOverlap(
        knowledge=make_knowledge(tmp_path, pages),
        linker="stored",
        annotations=tmp_path / "notes.jsonl",
    )
    first = np.zeros(5, dtype=np.int64)
    collection = Collection(
        name="c",
        document_ids=["a"],
        fields={"body": ["fox"]},
        query_ids=[f"q{i}" for i in range(5)],
        query_texts=texts,
        judgements=Judgements(np.arange(5), first, first + 1),
    )
    context = ColumnContext(collection, TermIndex.build(collection, Analyzer()))
    source = entity_source([Letor46(), overlap])
    assert source is overlap
    properties = query_properties(context, source)
    assert properties["entities"].tolist() == [0, 1, 2, 1, 3]
    kinds = query_classes(properties)["entities"]
    assert kinds.tolist() == ["none", "one", "two or more", "one", "two or more"]
    assert query_classes(properties[1:2])["entities"].cat.categories.tolist() == ["one"]

    assert entity_source([SimpleNamespace(parts=[Letor46(), overlap])]) is overlap
    assert entity_source([Letor46()]) is None
    assert "entities" not in query_properties(context)


def test_kinds_of_judged_queries_without_their_collection():
    qrels = pd.DataFrame(
        {"qid": ["b", "b", "a", "a", "c"], "docno": list("vwxyz"), "label": [1, 2, 0, 3, 0]}
    )
    bare = judged_properties(qrels, {"a": "one text only"})
    assert bare.to_dict("list") == {"relevant documents": [2, 1]}
    assert bare.index.tolist() == ["b", "a"]
    full = judged_properties(qrels, {"a": "Fox and fox", "b": "owl"})
    assert full["words"].tolist() == [1, 2]
    none = judged_properties(qrels[qrels["label"] == 0], {})
    assert query_classes(none).empty
    one = pd.Series(0.5, index=["a"])
    assert query_class_table(query_classes(none), "x - y", (one, one)).empty
