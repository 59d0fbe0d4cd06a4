"""Features for engines: by a small twin of what an engine computes for each template, those that
are said to be our numbers are, and the others follow the formula that is said."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from toys import context_of, done, refused, run, toy

from letor.column_names import write_rows
from letor.errors import InputError
from letor.rankers import LambdaMART
from letor.rankers.export import export
from ltr_features import FeatureBuilder, ScoringPipeline, get_family
from ltr_features.feature_table import build_columns
from ltr_features.featuresets import CANNOT, SAME, TARGETS, VARIANT, featureset
from ltr_features.text.collection import Judgements, Links, Pairs

LETOR46 = get_family("letor46").column_names
FIELDS = ("body", "anchor", "title", "url")
N, M = 30, 6


@pytest.fixture(scope="module")
def context():
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(12)]
    texts = {
        field: [" ".join(rng.choice(words, size=n)) for n in rng.integers(longest, size=N)]
        for field, longest in zip(FIELDS, (90, 9, 7, 5), strict=True)
    }
    texts["url"] = [f"http://a.b/{text.replace(' ', '/')}" for text in texts["url"]]
    query, document = np.divmod(np.arange(N * M), N)
    queries = [" ".join(rng.choice([*words, "nowhere"], size=4)) for _ in range(M)]
    judged = Judgements(query, document, rng.integers(0, 2, size=N * M))
    links = Links(rng.integers(N, size=80), rng.integers(N, size=80))
    return context_of(toy(texts, queries, judged, links))


class Engine:
    """What the documentation of the engines says that a query scores, over our own index."""

    def __init__(self, context, numbers):
        self.context, self.numbers = context, numbers

    def words(self, query, field):
        index = self.context.index
        tokens = index.analyzer.tokens(self.context.collection.query_texts[query])
        column = {word: i for i, word in enumerate(index.vocabulary)}
        df = index.field(field).document_frequency
        return [column[t] for t in dict.fromkeys(tokens) if t in column and df[column[t]]]

    def idf(self, field, word):  # Lucene's ClassicSimilarity
        with_field = int((self.context.index.field(field).lengths > 0).sum())
        df = int(self.context.index.field(field).document_frequency[word])
        return math.log((with_field + 1) / (df + 1)) + 1

    def tf(self, field, document, word):
        return int(self.context.index.counts(field)[document, word])

    def number(self, field, document):
        name, _, part = field.partition(".")
        if part == "length":
            return self.context.index.field(name).lengths[document]
        return self.numbers[field][document]

    def plugin(self, template, query, document):
        ((kind, body),) = template.items()
        if kind == "function_score":
            assert body["boost_mode"] == "replace"
            (factor,) = (of["field_value_factor"] for of in body["functions"])
            assert factor["missing"] == 0  # of documents without it; else the engine has an error
            return self.number(factor["field"], document)
        if kind == "term_stat":
            assert (body["expr"], body["aggr"]) == ("tf * (idf - 1)", "sum")
            (field,) = body["fields"]
            found = self.words(query, field)
            return sum(self.tf(field, document, w) * (self.idf(field, w) - 1) for w in found)
        assert kind == "match_explorer"
        ((field, text),) = body["query"]["match"].items()
        assert text == "{{keywords}}"
        found = self.words(query, field)
        if body["type"] == "sum_raw_tf":
            return sum(self.tf(field, document, w) for w in found)
        assert body["type"] == "sum_classic_idf"
        return sum(self.idf(field, w) for w in found)

    def solr(self, kind, params, document):
        if kind == "FieldValueFeature":
            return self.number(params["field"], document)
        assert kind == "FieldLengthFeature"
        return byte4(int(self.context.index.field(params["field"]).lengths[document]))


def byte4(length):
    """Lucene's SmallFloat: a length as four leading bits, those below 24 as they are."""
    beyond = length - 24
    shift = max(beyond.bit_length() - 4, 0)
    return length if beyond < 0 else 24 + (beyond >> shift << shift)


def all_pairs():
    query, document = np.divmod(np.arange(N * M), N)
    return Pairs(query, document)


def of_terms(name):
    return name.rpartition("_")[0]


@pytest.fixture(scope="module")
def ours(context):
    values = get_family("letor46").compute(context, all_pairs())
    return {name: values[:, j].reshape(M, N) for j, name in enumerate(LETOR46)}


@pytest.fixture(scope="module")
def engine(context, ours):
    return Engine(context, {name: column[0] for name, column in ours.items()})


def test_the_plug_in_s_numbers_are_what_is_said_of_them(context, ours, engine):
    features = featureset(LETOR46, "opensearch").features
    assert [f.column for f in features] == LETOR46
    for feature in features:
        name = feature.column
        if feature.agreement == CANNOT:
            assert feature.definition is None
            assert name.startswith("lmir_")
            continue
        assert feature.definition["name"] == name
        assert feature.definition["template_language"] == "mustache"
        template = feature.definition["template"]
        needs = "{{keywords}}" in json.dumps(template)
        assert feature.definition["params"] == ["keywords"] * needs
        if name.startswith("bm25"):
            assert (feature.agreement, list(template)) == (VARIANT, ["match"])
            continue
        found = [[engine.plugin(template, q, d) for d in range(N)] for q in range(M)]
        if feature.agreement == SAME:
            np.testing.assert_array_equal(np.float32(found), ours[name])
        else:
            assert np.abs(np.float32(found) - ours[name]).max() > 1e-3
            if name.startswith("idf"):  # "the same for all documents of a query"
                assert (np.ptp(found, axis=1) == 0).all()
                assert (np.ptp(ours[name], axis=1) == 0).all()


def test_solr_s_numbers_are_what_is_said_of_them(ours, engine):
    for feature in featureset(LETOR46, "solr").features:
        name = feature.column
        if feature.agreement == CANNOT:
            assert of_terms(name) in ("tf", "tfidf", "lmir_abs", "lmir_dir", "lmir_jm")
            continue
        made = feature.definition
        assert (made["name"], made["store"]) == (name, "_DEFAULT_")
        kind = made["class"].removeprefix("org.apache.solr.ltr.feature.")
        if of_terms(name) == "bm25":
            field = name.removeprefix("bm25_")
            assert feature.agreement == VARIANT
            assert made["params"] == {"q": f"{{!dismax qf={field} mm=0}}${{text}}"}
            continue
        if of_terms(name) == "idf":
            assert (feature.agreement, kind) == (SAME, "ValueFeature")
            assert made["params"] == {"value": f"${{{name}}}", "required": True}
            continue
        found = np.float32([engine.solr(kind, made["params"], d) for d in range(N)])
        if feature.agreement == SAME:
            np.testing.assert_array_equal(found, ours[name][0])
        else:  # "exact up to 40 words; more are rounded down, by less than an eighth"
            exact = ours[name][0]
            assert (found[exact <= 40] == exact[exact <= 40]).all()
            assert (found <= exact).all()
    assert (ours["dl_body"][0] > 41).any()
    assert all(byte4(n) == n for n in range(41))
    assert all(n * 7 / 8 < byte4(n) <= n for n in range(1, 100_000))


def test_fields_are_called_as_the_engine_calls_them():
    fields = {"body": "text_en", "pagerank": "rank", "dl_whole": "words"}
    columns = ["bm25_body", "dl_body", "pagerank", "dl_whole", "bm25_title"]
    made = [
        f.definition["template"] for f in featureset(columns, "opensearch", fields=fields).features
    ]
    factor = [t["function_score"]["functions"][0]["field_value_factor"] for t in made[1:4]]
    assert made[0] == {"match": {"text_en": "{{keywords}}"}}
    assert [f["field"] for f in factor] == ["text_en.length", "rank", "words"]
    assert made[4] == {"match": {"title": "{{keywords}}"}}
    solr = [f.definition["params"] for f in featureset(columns, "solr", fields=fields).features]
    assert solr == [
        {"q": "{!dismax qf=text_en mm=0}${text}"}, {"field": "text_en"}, {"field": "rank"},
        {"field": "words"}, {"q": "{!dismax qf=title mm=0}${text}"},
    ]  # fmt: skip


def test_numbers_of_documents_are_fields_if_these_are_named():
    for target in TARGETS:
        price, ssi, _ = featureset(
            ["price", "ssi", "dl_body"], target, fields={"price": "cost"}
        ).features
        assert "a number that you send with each document, as the field 'cost'" in price.note
        assert "one without it counts as 0 there" in price.note
        assert '"field": "cost"' in json.dumps(price.definition)
        assert ("refuses queries for values below 0" in price.note) == (target != "solr")
        assert ssi.definition is None
        assert "name its field, --field price=price" in ssi.note


def test_notes_name_every_column_once_and_say_what_follows():
    columns = [*LETOR46, "ssi", "w2v_word_avg_body"]
    for target in TARGETS:
        made = featureset(columns, target)
        notes = made.notes()
        words = notes.replace(",", " ").replace(":", " ").split()
        assert all(words.count(name) == 1 for name in columns if name != "dl_whole")
        assert (
            "ssi, w2v_word_avg_body: only the toolkit computes it, unless it is a number" in notes
        )
        assert "wrong for those of another formula" in notes
        assert "stemmer and least length of words as the index has them" in notes
        assert "score the engine's candidates outside, by ScoringPipeline" in notes
        body = made.body()
        listed = body if target == "solr" else body["featureset"]["features"]
        assert notes.startswith(f"{target}: {len(listed)} of {len(columns)} columns\n")
    alone = featureset(["pagerank"], "solr").notes()
    assert "Thresholds" not in alone
    assert "cannot" not in alone
    assert "analysed" not in alone


def test_the_plug_in_tries_the_features_on_an_index():
    body = featureset(["bm25_body"], "elasticsearch", index="shop").body()
    assert body["validation"] == {"params": {"keywords": "test"}, "index": "shop"}


@pytest.mark.parametrize(
    ("columns", "target", "options", "message"),
    [
        (["bm25_body"], "vespa", {}, "target 'vespa' is unknown; use one of opensearch, elastic"),
        (["tf_body"], "solr", {}, "no solr feature for any of the columns tf_body"),
        (["bm25_body", "bm25_body"], "solr", {}, "column bm25_body is named twice"),
        (["bm25_body"], "solr", {"fields": {"boddy": "x"}}, "did you mean 'body'"),
        (["bm25_body"], "solr", {"fields": {"body": "a b}"}}, "field body='a b}': use letters"),
        (["bm25_body"], "solr", {"index": "shop"}, "Solr tests features at the first query"),
        (["bm25_body"], "opensearch", {"index": ""}, "index is empty: name the engine's index"),
    ],
)
def test_what_cannot_be_written_is_refused(columns, target, options, message):
    with pytest.raises(InputError, match=message):
        featureset(columns, target, **options)


def test_columns_are_those_of_a_ranker_a_pipeline_a_file_a_family_or_named(context, tmp_path):
    data = build_columns(context, all_pairs(), [get_family("letor46"), get_family("vsm")])
    write_rows(data, tmp_path / "rows.txt")
    write_rows(data, tmp_path / "rows.parquet")
    ranker = LambdaMART(n_estimators=3, min_data_in_leaf=5, normalise="none").fit(data)
    ranker.save(tmp_path / "ranker")
    features = FeatureBuilder(["letor46", "vsm"]).fit(context)
    ScoringPipeline(features, ranker).save(tmp_path / "pipeline")
    written = set()
    for source in ("rows.txt", "rows.parquet", "ranker", "pipeline"):
        out = tmp_path / f"{source}.json"
        said = done("columns", "export", tmp_path / source, "--target", "opensearch", "--out", out)
        assert "opensearch: 31 of 47 columns" in said
        assert out.with_suffix(".txt").read_text() in said
        written.add(out.read_text())
    assert len(written) == 1
    out = tmp_path / "more.json"
    done("columns", "export", "vsm", "bm25_title", "--target", "opensearch", "--out", out,
        "--field", "title=name", "--index", "shop")  # fmt: skip
    body = json.loads(out.read_text())
    assert [f["name"] for f in body["featureset"]["features"]] == ["bm25_title"]
    assert body["featureset"]["features"][0]["template"] == {"match": {"name": "{{keywords}}"}}
    assert body["validation"]["index"] == "shop"


def test_names_of_fields_are_taken_as_written(tmp_path):
    """With a dot, and where they would be another kind of value."""
    (tmp_path / "rows.txt").write_text("1 qid:a 1:3 2:4 #docid = d\n")
    columns = [{"name": name, "family": "numbers"} for name in ("stars.mean", "price")]
    (tmp_path / "rows.columns.json").write_text(json.dumps(columns))
    out = tmp_path / "out.json"
    export = ("columns", "export", tmp_path / "rows.txt", "--target", "solr", "--out", out)
    done(*export, "--field", "stars.mean=stars.x", "--field", "price=1_0")
    assert [f["params"]["field"] for f in json.loads(out.read_text())] == ["stars.x", "1_0"]
    told = refused(*export, "--field", "price=a", "--field", "price=b")
    assert "field 'price' is given twice" in told


@pytest.mark.parametrize(
    ("names", "target", "lacking"),
    [
        (["bm25_body", "lmir_dir_body", "vsm", "tf_body"], "opensearch", "lmir_dir_body, vsm"),
        (["bm25_body", "lmir_dir_body", "vsm", "tf_body"], "elasticsearch", "lmir_dir_body, vsm"),
        (["bm25_body", "vsm", "tf_body"], "solr", "vsm, tf_body"),
        (["bm25_body", "vsm"], "vespa", None),  # its features are defined by hand
        (["bm25_body", "pagerank"], "solr", None),
        (["vsm"], "opensearch", "vsm"),
    ],
)
def test_exporting_a_ranker_names_what_the_engine_cannot_compute(
    context, tmp_path, names, target, lacking
):
    rows = build_columns(context, all_pairs(), [get_family("letor46"), get_family("vsm")])
    ranker = LambdaMART(n_estimators=3, min_data_in_leaf=5, normalise="none")
    ranker.fit(rows.select_columns(names)).save(tmp_path / "ranker")
    out = tmp_path / "model.json"
    told = run("rank", "export", tmp_path / "ranker", "--target", target, "--out", out).stderr
    if lacking is None:
        assert told == ""
    else:
        assert told.startswith(f"we define no {target} features for the columns {lacking}; unless")


def test_the_files_of_a_ranker_are_not_replaced_by_what_is_made_of_them(context, tmp_path):
    rows = build_columns(context, all_pairs(), [get_family("letor46")])
    rows = rows.select_columns(["bm25_body"])
    ranker, text = tmp_path / "ranker", tmp_path / "rows.txt"
    LambdaMART(n_estimators=3, min_data_in_leaf=5, normalise="none").fit(rows).save(ranker)
    write_rows(rows, text)
    before = {path.name: path.read_bytes() for path in ranker.iterdir()}
    for command, name, lost in (
        (("rank", "export", ranker, "--target", "solr"), "ranker.json", "ranker.json"),
        (("columns", "export", ranker, "--target", "solr"), "digests.json", "digests.json"),
        (("columns", "export", ranker, "--target", "solr"), "model.json", "model.txt"),
        (("rank", "score", ranker, text), "model.txt", "model.txt"),
        (("clicks", "simulate", text, "--ranker", ranker), "model.txt", "model.txt"),
    ):
        told = refused(*command, "--out", ranker / name)
        assert f"{ranker / lost} is a file of {ranker}, which is read" in told
    assert {path.name: path.read_bytes() for path in ranker.iterdir()} == before
    for _ in range(2):  # files of its own are no hindrance
        done("rank", "export", ranker, "--target", "solr", "--out", ranker / "solr.json")


@pytest.mark.parametrize("target", ["opensearch", "solr"])
def test_an_exported_ranker_finds_its_features(context, target):
    """Model and features go together: names, order and Solr's store."""
    names = ["bm25_body", "idf_title", "dl_body", "pagerank"]
    rows = build_columns(context, all_pairs(), [get_family("letor46")]).select_columns(names)
    ranker = LambdaMART(n_estimators=9, min_data_in_leaf=5, normalise="none").fit(rows)
    body, model = featureset(names, target).body(), json.loads(export(ranker, target))
    if target == "solr":
        assert [f["name"] for f in body] == [f["name"] for f in model["features"]] == names
        assert {f["store"] for f in body} == {model.get("store", "_DEFAULT_")}
        return
    assert [f["name"] for f in body["featureset"]["features"]] == names
    split = set(re.findall(r'"split": "(.+?)"', model["model"]["model"]["definition"]))
    assert split
    assert split <= set(names)


def test_a_source_of_columns_that_is_none_is_named(tmp_path):
    (tmp_path / "plain.txt").write_text("1 qid:1 1:0.5\n")
    for source, out, message in (
        (
            "bm25_tittle",
            "f.json",
            "'bm25_tittle' is not a file, ranker, .*; did you mean 'bm25_title'",
        ),
        ("zzz", "f.json", "'zzz' is not a file, ranker, pipeline, family, or column of letor46$"),
        (tmp_path / "plain.txt", "f.json", r"its columns have no names \(plain.columns.json is"),
        ("letor46", "f.txt", "must end in .json"),
    ):
        told = refused("columns", "export", source, "--target", "solr", "--out", tmp_path / out)
        assert re.search(message, told)
