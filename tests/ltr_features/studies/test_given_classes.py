"""Classes of queries that users give: how they are read, tested and shown."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_experiment import config_of, judged, write_beir
from small_studies import write_letor

from letor.errors import InputError
from letor.fold_files import read_folds
from ltr_features.sources.query_files import read_query_classes
from ltr_features.studies.kinds.compare import CompareConfig, CompareStudy
from ltr_features.studies.kinds.given_files import read_classes
from ltr_features.studies.kinds.ranking import RankingStudy
from ltr_features.studies.kinds.ranking_config import ExperimentConfig
from ltr_features.studies.run import run_file
from ltr_features.studies.statistics.query_classes import (
    query_class_table,
    query_classes,
    with_given,
)
from ltr_features.studies.statistics.significance import TestSettings

TEST = TestSettings(n_permutations=200, n_resamples=200)
TABLE = "qid,language,wanted\nq0,de,page\nq1,en, fact \nq2,de,\nq9,fr,page\n"


def classes_in(path: Path, text: str) -> dict[str, list[str]]:
    path.write_text(text, encoding="utf-8")
    frame = read_query_classes(path)
    return {"qid": list(frame.index), **frame.to_dict("list")}


def test_classes_are_read_from_tables_and_from_two_columns(tmp_path):
    found = {"qid": ["q0", "q1", "q2", "q9"], "language": ["de", "en", "de", "fr"]}
    found["wanted"] = ["page", "fact", "", "page"]
    assert classes_in(tmp_path / "a.csv", TABLE) == found
    assert classes_in(tmp_path / "a.tsv", TABLE.replace(",", "\t")) == found
    lines = pd.DataFrame(found).to_dict("records")
    text = "\n".join(json.dumps({k: v for k, v in line.items() if v}) for line in lines)
    assert classes_in(tmp_path / "a.jsonl", text) == found
    for name in ("b.txt", "b.tsv"):
        lines = "7\tnew\n\n8\told one\n7\tnew\n"
        assert classes_in(tmp_path / name, lines) == {
            "qid": ["7", "8"],
            "class": ["new", "old one"],
        }
    # Left out is the column without a name that pandas writes, of numbers of rows.
    numbers = classes_in(tmp_path / "c.csv", ",query_id,year\n0,007,2020\n1,8,2021\n")
    assert numbers == {"qid": ["007", "8"], "year": ["2020", "2021"]}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.csv",
            TABLE + "q0,de,fact\n",
            "line 6: query 'q0' has the wanted 'fact' here, but 'page'",
        ),
        ("a.csv", "qid,language\n,de\n", "line 2: expected a query id"),
        ("a.csv", "qid\nq0\n", "the only column is qid; add a column with classes"),
        ("a.csv", "topic,language\nq0,de\n", "none has a usual name for id or class: call"),
        ("a.tsv", "topic\tlanguage\twanted\n", "line 1: expected query id, tab, class; where"),
        ("a.txt", "qid\tlanguage\twanted\n", r"\(qid\) in the first line of a \.tsv or \.csv"),
        ("a.txt", "q0 de\n", "line 1: expected query id, tab, class"),
        ("a.csv", "qid,words\nq0,few\n", "kinds of queries by words of their own"),
        ("a.csv", "qid,query\nq0,an apple\n", "reports have a column query of their own; give"),
        ("a.csv", "qid,study\nq0,first\n", "reports have a column study of their own; give"),
        ("a.csv", "qid,text\n" + "".join(f"q{i},t{i}\n" for i in range(31)), "text: more than 30"),
        ("a.csv", "qid,language\nQ-0,de\n", "query_classes .*a.csv: none of its ids"),
        ("a.csv", "qid,language\n", "query_classes .*a.csv: no rows"),
    ],
)
def test_files_that_give_no_classes_are_refused(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_classes(tmp_path / name, ["q0", "q1"])


def test_ids_that_a_spreadsheet_wrote_are_no_queries_without_classes(tmp_path):
    (tmp_path / "a.csv").write_text("qid,market\n7,at\n12,de\n8,ch\n")
    with pytest.raises(InputError, match=r"1 of the queries under another id, '7' for '007'"):
        read_classes(tmp_path / "a.csv", ["007", "12", "13"])
    assert read_classes(tmp_path / "a.csv", ["007", "7", "12"])["market"]["7"] == "at"


def test_given_classes_stand_beside_those_of_every_report(tmp_path):
    (tmp_path / "a.csv").write_text(TABLE)
    own = query_classes(pd.DataFrame({"words": [1, 2, 3, 3]}, index=["q3", "q2", "q1", "q0"]))
    given = read_classes(tmp_path / "a.csv")
    texts = given.assign(text=[*"abcd"]).reindex([f"q{i}" for i in range(40)], fill_value="")
    texts["text"] = [f"text {i}" for i in range(40)]
    found, note = with_given(own, texts.assign(market="at"))
    assert found.columns.tolist() == ["words", "language", "wanted", "market"]
    assert found["language"].tolist() == ["not given", "de", "en", "de"]
    assert found["language"].cat.categories.tolist() == ["de", "en", "not given"]  # no q9
    assert found["wanted"].tolist() == ["not given", "not given", "fact", "page"]
    assert note == ("text: more than 30 values, so no classes. market: the same for all queries.")
    assert with_given(own) == (own, "")


def test_classes_may_have_any_names_and_be_given_for_some_queries(tmp_path):
    own = query_classes(pd.DataFrame({"words": [1, 2, 3]}, index=["q0", "q1", "q2"]))
    lines = [f"q{i},{('not given', '', 'de')[i % 3]},c{i},\n" for i in range(30)]
    (tmp_path / "a.csv").write_text(f"qid,self,other,none\nq90,,,x\nq91,,,\n{''.join(lines)}")
    found, note = with_given(own, read_classes(tmp_path / "a.csv", ["q0"]))
    assert found.columns.tolist() == ["words", "self", "other", "none"]
    assert found["self"].tolist() == ["not given", "not given", "de"]
    assert found["self"].cat.categories.tolist() == ["de", "not given"]
    assert found["other"].tolist() == ["c0", "c1", "c2"]  # 30 classes, and queries that have none
    assert note == "none: none of the queries has one."


def test_p_values_of_classes_are_corrected_over_all_classes():
    queries = [f"q{i}" for i in range(24)]
    rng = np.random.default_rng(0)
    baseline = pd.Series(rng.random(24), queries)
    system = baseline + np.repeat([0.1, 0.0, 0.02], 8) + 0.01 * rng.random(24)
    kinds = pd.DataFrame(
        {
            "wanted": pd.Categorical(np.repeat(["page", "fact", "place"], 8)),
            "market": pd.Categorical(["at"] * 24),
            "words": pd.Categorical(np.tile(["1", "2"], 12)),
        },
        queries,
    )
    table = query_class_table(kinds, "a - b", (system, baseline), settings=TEST)
    assert table["property"].tolist() == ["wanted"] * 3 + ["market"] + ["words"] * 2
    assert np.isnan(table["p_corrected"][3])  # all queries: no further test
    tested = table.drop(index=3)
    order = tested["p"].sort_values(kind="stable")
    holm = np.maximum.accumulate(order.to_numpy() * np.arange(5, 0, -1)).clip(max=1)
    assert tested["p_corrected"][order.index].tolist() == pytest.approx(holm.tolist())
    assert tested["significant"].tolist() == (tested["p_corrected"] < 0.05).tolist()
    assert tested["significant"].any()


def test_a_comparison_shows_gains_by_given_class(tmp_path):
    qrels, folder = "".join(f"{q} 0 {d} 1\n" for q, d in judged()), tmp_path
    runs = {
        "one": [f"{q} Q0 {d} 1 {1 if n % 2 else 2} t\n" for n, (q, d) in enumerate(judged())],
        "two": [f"{q} Q0 x{n} 1 {3 if n % 4 < 2 else 0} t\n" for n, (q, _) in enumerate(judged())],
    }
    runs["two"] += runs["one"]
    (folder / "qrels").write_text(qrels)
    for name, lines in runs.items():
        (folder / f"{name}.run").write_text("".join(lines))
    # Every other query has one or two documents before its relevant ones.
    (folder / "classes.csv").write_text(
        "qid,parity\n" + "".join(f"q{i},{'odd' if i % 2 else 'even'}\n" for i in range(12))
    )
    config = CompareConfig(
        runs=(Path("one.run"), Path("two.run")),
        qrels=Path("qrels"),
        query_classes=Path("classes.csv"),
        measures=("MRR",),
        test=TEST,
    )
    report = CompareStudy(config, folder / "out", folder).run()
    table = pd.read_csv(report / "tables" / "query_classes.csv").set_index("class")
    assert set(table["property"]) == {"parity", "relevant documents"}
    values = pd.read_csv(report / "tables" / "per_query.csv").set_index("query")
    two = values[values["system"] == "two"]["MRR"]
    one = values[values["system"] == "one"]["MRR"]
    for name, rest in (("even", 0), ("odd", 1)):
        mine = [q for q in two.index if int(q[1:]) % 2 == rest]
        assert table["gain"][name] == pytest.approx((two[mine] - one[mine]).mean())
    assert table["gain"]["even"] < table["gain"]["odd"] == 0
    assert "the classes by parity are given; else the classes of a property" in html_of(report)

    (folder / "classes.csv").write_text("qid,parity\nq0,other\n")  # another file, another report
    report = CompareStudy(config, folder / "out", folder).run()
    again = pd.read_csv(report / "tables" / "query_kinds.csv")
    assert again["parity"].value_counts().to_dict() == {"not given": 11, "other": 1}


def html_of(report: Path) -> str:
    return " ".join((report / "report.html").read_text(encoding="utf-8").split())


def ranking(folder: Path, classes: str) -> RankingStudy:
    (folder / "data").mkdir()
    options, _ = write_beir(folder / "data")
    described = config_of(options).model_dump() | {"query_classes": "../classes.txt"}
    (folder / "classes.txt").write_text(classes)
    config = ExperimentConfig.model_validate(described)
    return RankingStudy(config, folder / "out", folder / "data")


def test_a_ranking_experiment_shows_gains_by_given_class(tmp_path):
    study = ranking(tmp_path, "".join(f"q{i}\tkind{i % 2}\n" for i in range(12)))
    report = study.run()
    table = pd.read_csv(report / "tables" / "query_classes.csv")
    mine = table[table["property"] == "class"]
    assert dict(zip(mine["class"], mine["n_queries"], strict=True)) == {"kind0": 6, "kind1": 6}
    made = {stage.name: stage.key for stage in study.stages()}
    (tmp_path / "classes.txt").write_text("q0\tone\nq1\ttwo\n")
    other = RankingStudy(study.config, tmp_path / "out", study.data)
    assert {stage.name: stage.key for stage in other.stages()} == made  # only the report is new
    kinds = pd.read_csv(other.run() / "tables" / "query_kinds.csv")
    assert kinds["class"].value_counts().to_dict() == {"not given": 10, "one": 1, "two": 1}


def test_a_ranking_experiment_refuses_classes_of_other_queries_before_columns(tmp_path):
    with pytest.raises(InputError, match=r"classes\.txt: none of its ids"):
        ranking(tmp_path, "Q-0\tone\n").run()
    assert not (tmp_path / "out" / "columns").exists()


def test_a_letor_experiment_shows_gains_by_given_class(tmp_path):
    study = write_letor(tmp_path)
    rows, _ = read_folds(tmp_path / "toy")
    lines = [f"{query}\t{'a' if i % 3 else 'b'}\n" for i, query in enumerate(rows.query_ids)]
    (tmp_path / "classes.tsv").write_text("".join(lines))
    (tmp_path / "study.toml").write_text('query_classes = "classes.tsv"\n' + study)
    report = run_file(tmp_path / "study.toml", out=tmp_path / "out", data=tmp_path)
    table = pd.read_csv(report / "query_classes.csv")
    assert {"a", "b"} == set(table.loc[table["property"] == "class", "class"])
    (tmp_path / "classes.tsv").write_text("nobody\ta\n")
    with pytest.raises(InputError, match=r"classes\.tsv: none of its ids"):
        run_file(tmp_path / "study.toml", out=tmp_path / "out", data=tmp_path)
