"""``columns build``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from folders import different
from toys import done, refused, run

from letor.column_names import read_rows
from letor.errors import InputError
from letor.evaluation import evaluate, side_by_side
from letor.folds import k_fold
from letor.trec import run_of
from ltr_base.machine import temporary_paths
from ltr_features.columns.context import open_workspace
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.term_space import VectorSpace
from ltr_features.commands.options import settings
from ltr_features.feature_builder import FeatureBuilder


def test_recipes_of_columns_are_given_by_model(workspace, tmp_path):
    build = ("columns", "build", "--workspace", workspace, "--family", "vsm", "--out",
             tmp_path / "folds", "--model", "letters=vsm", "--model", "lsi", "--param",
             "lsi.rank=4", "--folds", 4, "--depth", 20)  # fmt: skip
    done(
        *build, "--option", "vsm.terms=letter-trigrams", "--option", "vsm.min_document_frequency=2",
        "--recipe", "letters.terms=letter-trigrams", "--recipe", "letters.min_document_frequency=2",
        "--recipe", "lsi.terms=both", "--recipe", "lsi.field=title",
    )  # fmt: skip
    rows = read_rows(tmp_path / "folds" / "Fold1" / "test.txt")
    assert rows.column_names == ["vsm", "letters", "lsi"]
    np.testing.assert_array_equal(rows.X[:, 0], rows.X[:, 1])
    assert np.ptp(rows.X[:, 2]) > 0
    said = [rows.provenance[name]["description"] for name in rows.column_names]
    assert [text.partition("; terms: ")[2] for text in said] == [
        "letter trigrams", "letter trigrams", "words and letter trigrams"
    ]  # fmt: skip
    for setting, message in {
        "lsi.terms=letters": "--recipe lsi: terms must be 'words' or 'letter-trigrams' or 'both'",
        "lsi.min_document_frequency=0": "column 'lsi': min_document_frequency must be 1 or more",
        "lsi.min_document_frequency=x": "--recipe lsi: min_document_frequency must be a whole",
        "lsi.rank=4": "--recipe lsi has no setting 'rank'",
        "ssi.terms=both": "--recipe ssi.terms=both: no --model ssi is given; did you mean 'lsi'",
    }.items():
        assert message in refused(*build, "--recipe", setting)
    assert "vsm': terms must be" in refused(*build, "--option", "vsm.terms=letters")


def test_what_a_killed_build_left_is_no_part_of_the_folds(workspace, tmp_path):
    build = ("columns", "build", "--workspace", workspace, "--model", "lsi", "--folds", 4, "--out")
    done(*build, tmp_path / "whole")
    (tmp_path / "folds" / "models").mkdir(parents=True)
    for target in (tmp_path / "folds" / "build.json", tmp_path / "folds" / "models" / "gone"):
        temporary_paths(target)[0].write_text("cut off")  # of a process that runs: this one
    done(*build, tmp_path / "folds")
    assert not different(tmp_path / "whole", tmp_path / "folds")


def test_columns_of_one_name_are_refused_before_the_work(workspace, tmp_path):
    twice = ("--family", "vsm", "--family", "vsm")
    said = refused("columns", "build", "--workspace", "nowhere", *twice, "--out", tmp_path / "a")
    assert "two columns are called vsm" in said


@pytest.mark.parametrize(
    ("option", "setting", "told"),
    [
        ("recipe", "field=nosuch", " has no field 'nosuch'; it has body, title, and 'whole'"),
        ("recipe", "min_document_frequency=999", "is 999, but no word occurs in more than "),
        ("param", "hold_out=pairs", "a fold holds out its training queries in parts"),
        ("param", "validation_share=.3", "a fold holds out its training queries in parts"),
    ],
)
def test_what_no_model_can_learn_from_is_told_before_columns_are_computed(
    workspace, tmp_path, monkeypatch, option, setting, told
):
    monkeypatch.setattr(VectorSpace, "compute", None)
    built = ("--workspace", workspace, "--family", "vsm", "--model", "ssi")
    asked = (f"--{option}", f"ssi.{setting}", "--out", tmp_path / "folds")
    assert told in refused("columns", "build", *built, *asked)
    given = settings([setting], option)
    column = LearnedColumn("ssi", "ssi", **(given if option == "recipe" else {"params": given}))
    collection = open_workspace(workspace).collection
    builder = FeatureBuilder(["vsm"], [column])
    with pytest.raises(InputError, match=told):
        builder.folds(collection, k_fold(collection.query_ids, 5, seed=0))


@pytest.mark.parametrize(
    "name",
    ["a.csv", "a.csv.gz", "a.json", "a.txt.xz", "a.parquet.gz", "a.CSV", "a.Parquet", "a.txt.GZ"],
)
def test_letor_text_is_not_written_under_the_name_of_another_format(workspace, tmp_path, name):
    text = tmp_path / "a.txt"
    text.write_text("1 qid:1 1:1\n")
    build = ("--workspace", workspace, "--family", "vsm", "--out", tmp_path / name)
    for command in (
        ("convert", text, tmp_path / name),
        ("columns", "build", *build),
        ("columns", "append", text, *build),
    ):
        told = (
            "rows are written as .parquet" if name.islower() else "write the suffix in lower case"
        )
        assert told in refused(*command)
    assert not (tmp_path / name).exists()


def test_ids_that_letor_text_cannot_hold_are_refused_before_the_work(beir, tmp_path):
    for file in ("corpus.jsonl", "queries.jsonl"):
        lines = (beir / file).read_text()
        (tmp_path / file).write_text(lines.replace('"d7"', '"d 7"'))
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td 7\t1\n")
    done("index", "beir", f"folder={tmp_path}", "--out", tmp_path / "w")
    build = ("columns", "build", "--workspace", tmp_path / "w", "--family", "vsm", "--out")
    assert "document id 'd 7': LETOR text and TREC files need" in refused(
        *build, tmp_path / "a.txt"
    )
    done(*build, tmp_path / "a.parquet")  # which can hold any id
    assert "d 7" in set(read_rows(tmp_path / "a.parquet").document_ids)


@pytest.mark.parametrize("name", ["rows.txt", "rows.txt.zst", "rows.parquet"])
def test_measures_of_built_columns_are_those_of_a_report_of_the_same_ranking(gaps, tmp_path, name):
    """By every judgement of the collection, through ranx."""
    path = tmp_path / name
    built = run("columns", "build", "--workspace", gaps, "--family", "letor46", "--depth", 5,
                "--out", path)  # fmt: skip
    said = "1 query without candidates; without a row: "
    assert said in built.stderr
    rows = read_rows(path)
    column = rows.column_names.index("bm25_whole")
    collection = open_workspace(gaps).collection
    judged = collection.judgements
    qrels = pd.DataFrame(
        {
            "qid": np.array(collection.query_ids)[judged.query],
            "docno": np.array(collection.document_ids)[judged.document],
            "label": judged.grade,
        }
    )
    values = rows.X[:, column].astype(float)
    distinct = values - 1e-9 * np.arange(len(values))  # in the order that both agree on
    scores = tmp_path / "scores.txt"
    scores.write_text("".join(f"{v!r}\n" for v in distinct.tolist()))
    reported = evaluate(qrels, run_of(rows, distinct), ["NDCG@10", "MAP", "P@10", "MRR"]).mean()
    text = done("measure", path, "--scores", scores)
    found = side_by_side(rows, distinct)
    for measure, value in reported.items():
        kind = "MAP" if measure == "MAP" else measure
        row = found[(found["measure"] == kind) & ~found["known_as"].str.contains("LETOR|MSLR")]
        row = row[row["known_as"] != "empty queries dropped"].iloc[0]
        assert row["value"] == pytest.approx(value, abs=1e-12), measure
        assert row["queries"] == 41  # of the 42 that there are, one is not judged
        assert f"{value:.4f}" in text
    overstated = side_by_side(replace(rows, missing=None), distinct)
    assert (overstated["value"] > found["value"] + 0.001).any()
    lost = rows.missing.n_relevant
    assert (
        f"without a row: {lost:,} of 401 relevant documents, 1 query; measures count them" in text
    )
    assert "leave out queries without judgement: 1" in text
