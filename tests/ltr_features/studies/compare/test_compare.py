"""Runs made elsewhere: TREC runs, scores of LETOR rows, RankLib's score files."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from comparisons import TEST, command, compare_files, compared, summary, told
from folders import different, unwrapped
from toys import refused, run

from letor.column_names import write_rows
from letor.errors import InputError
from letor.evaluation import evaluate
from letor.judged_runs import unjudged_queries
from letor.lock import locked
from letor.missing import Missing
from letor.trec import qrels_of, run_of, write_qrels, write_run
from ltr_features.sources.files import (
    judged_ranking,
    read_judgements,
    read_ranking,
    read_row_scores,
)
from ltr_features.studies.run import run_file
from ltr_features.studies.stages import NOTE


def test_what_is_missing_of_the_rows_counts_whenever_it_changes(files, tmp_path):
    """It is in the file beside the rows, which themselves stay the same."""
    folder, rows, scores = files
    runs, data = [folder / f"{name}.run" for name in scores], tmp_path / "rows.txt"
    found = []
    for relevant in ({}, {"q0": {1: 9}}):
        write_rows(replace(rows, missing=Missing(relevant)), data)
        report = compare_files(runs, tmp_path / "out", test=TEST, data=data)
        found.append(summary(report)["system_mean"][0])
    assert found[1] < found[0]


@pytest.mark.parametrize("suffix", ["run", "scores", "ranklib"])
def test_every_format_gives_the_same_comparison(files, tmp_path, suffix):
    folder, rows, scores = files
    data = {"qrels": folder / "qrels.txt"} if suffix == "run" else {"data": folder / "rows.txt"}
    report = compare_files(
        [folder / f"bad.{suffix}", folder / f"good.{suffix}"], tmp_path, test=TEST, **data
    )
    table = summary(report).set_index("measure")
    assert (table["system"] == "good").all()
    assert (table["baseline"] == "bad").all()
    for measure in ("NDCG@10", "MAP"):
        for name, column in (("good", "system_mean"), ("bad", "baseline_mean")):
            expected = evaluate(qrels_of(rows), run_of(rows, scores[name]), [measure])
            assert table.loc[measure, column] == pytest.approx(expected[measure].mean())
    assert table.loc["NDCG@10", "significant"]


def test_runs_and_scores_can_be_mixed_and_have_several_baselines(files, tmp_path):
    folder = files[0]
    other = tmp_path / "third.run"
    other.write_text((folder / "bad.run").read_text())
    report = compare_files(
        [folder / "bad.run", other, folder / "good.scores"],
        tmp_path / "out",
        data=folder / "rows.txt",
        baselines=["bad", "third"],
        measures=["MAP"],
        test=TEST,
    )
    pairs = set(map(tuple, summary(report)[["system", "baseline"]].to_numpy()))
    assert pairs == {("good", "bad"), ("good", "third"), ("third", "bad")}


def test_unjudged_queries_are_left_out_and_counted_missing_ones_count_0(files, tmp_path):
    folder, rows, _ = files
    qrels = qrels_of(rows)
    write_qrels(qrels[qrels["qid"] != "q3"], tmp_path / "qrels.txt")
    lines = (folder / "good.run").read_text().splitlines(keepends=True)
    (tmp_path / "good.run").write_text("".join(li for li in lines if not li.startswith("q5 ")))
    report = compare_files(
        [folder / "bad.run", tmp_path / "good.run"],
        tmp_path / "out",
        qrels=tmp_path / "qrels.txt",
        test=TEST,
    )
    assert (summary(report)["n_queries"] == 19).all()
    values = pd.read_csv(report / "tables" / "per_query.csv")
    assert values[(values["query"] == "q5") & (values["system"] == "good")]["MAP"].tolist() == [0]
    html = (report / "report.html").read_text()
    assert "queries without any judgement" in html
    assert "1, left out of every mean" in html
    lacking = "good lacks 1 of 19 judged queries, which count 0"
    assert lacking in html.partition("<nav")[0]  # beside the verdict
    assert f"! {lacking}\n" in (report / "verdict.txt").read_text(encoding="utf-8")
    verdict = unwrapped(report / "verdict.txt")
    assert (
        "! 1 query of the runs without judgement left out; the first is 'q3' in bad "
        "(check its spelling)"
    ) in verdict
    with (tmp_path / "qrels.txt").open("a") as file:
        file.write("Q3 0 d1 1\n")
    *_, remarks = judged_ranking(folder / "bad.run", read_judgements(tmp_path / "qrels.txt"))
    assert remarks[-1].startswith("1 query without any judgement left out; for 'q3' there is 'Q3'")
    run = read_ranking(folder / "bad.run", None)
    assert unjudged_queries(qrels[qrels["qid"] != "q3"], run) == ["q3"]


def test_bad_input_is_named(files, tmp_path):
    folder, rows, _ = files
    runs = [folder / "bad.scores", folder / "good.scores"]
    with pytest.raises(InputError, match=r"is neither a run.*--data"):
        compare_files(runs, tmp_path, qrels=folder / "qrels.txt")
    with pytest.raises(InputError, match=r"x: no such file; .*no run 'god'; did you mean"):
        compare_files([*runs, Path("x")], tmp_path, data=folder / "rows.txt", baselines=["god"])
    with pytest.raises(InputError, match="two runs or more; give the judgements"):
        compare_files(runs[:1], tmp_path)
    short = tmp_path / "short"
    short.write_text("1\n2\n")
    with pytest.raises(InputError, match="2 scores, the data has 100 rows"):
        read_row_scores(short, rows)
    short.write_text("1\nx\n")
    with pytest.raises(InputError, match="line 2: 'x' is not a finite number"):
        read_row_scores(short, rows)
    short.write_text("q9\t0\t1.5\n")
    with pytest.raises(InputError, match=r"line 1: query 'q9', but row 1 .* is of query 'q0'"):
        read_row_scores(short, rows)


def test_the_command_takes_names_texts_and_measures(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = (json.dumps({"_id": f"q{i}", "text": f"text {i}"}) + "\n" for i in range(20))
    Path("queries.jsonl").write_text("".join(lines))
    names = ["--name", "Old", "--name", "New", "--queries", "queries.jsonl"]
    options = (*names, "--measure", "NDCG@5", "--permutations", "100")
    assert "New did significantly better than Old" in run(*command(files[0], *options)).output
    assert "text 7" in Path("out/report/report.html").read_text()


def test_names_with_colons_are_no_emoji(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ("--name", "depth:100:x", "--name", "bm25:b:1", "--permutations", "100")
    assert "bm25:b:1 did significantly better than depth:100:x" in run(
        *command(files[0], *names)
    ).output.replace("\n", " ")


def test_what_moved_has_the_ranks_that_the_measures_take_and_no_columns(files, tmp_path):
    folder, rows, _ = files
    titles = tmp_path / "documents.jsonl"
    records = [{"_id": f"d{i:03d}", "title": f"Title <{i}>", "text": "x"} for i in range(60)]
    records[7] = {"_id": "d007", "title": " ", "text": "begins  like this"}
    titles.write_text("".join(json.dumps(r) + "\n" for r in [*records, {"_id": "z", "text": ""}]))
    report = compared(folder, tmp_path / "out", documents=titles)
    moves = pd.read_csv(report / "tables" / "moves.csv", keep_default_na=False)
    label = dict(zip(rows.document_ids, rows.y, strict=True))
    ranks = [
        run.assign(rank=run.groupby("qid")["score"].rank(ascending=False)).set_index("docno")[
            "rank"
        ]
        for run in (read_ranking(folder / f"{n}.run", None) for n in ("bad", "good"))
    ]
    assert len(moves) > 20
    for move in moves.to_dict("records"):
        found = (ranks[0][move["document"]], ranks[1][move["document"]])
        assert (move["before"], move["after"]) == found
        assert found[0] != found[1]
        assert move["label"] == label[move["document"]]
        number = int(move["document"][1:])
        title = "begins like this" if number == 7 else f"Title <{number}>" if number < 60 else ""
        assert move["title"] == title
    assert set(moves["columns"]) == {""}
    assert "System & NDCG@10 & MAP" in (report / "tables.tex").read_text()
    html = (report / "report.html").read_text()
    assert "Documents that moved" in html
    assert "ranked documents without a title" in html
    assert "40, shown by their ids" in html
    for absent in ("Pushed by", "TreeSHAP", "Title <"):
        assert absent not in html
    known, unknown = (
        moves[(moves["title"] == "") == empty]["document"].iloc[0] for empty in (0, 1)
    )
    assert f'<th scope="row">Title &lt;{int(known[1:])}&gt;<small>{known}</small></th>' in html
    assert f'<th scope="row">{unknown}</th>' in html


def test_a_shared_name_is_named_alone(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    qrels = Path("qrels")
    qrels.write_text("q 0 x 1\n")
    for name in ("one.run", "two.run"):
        Path(name).write_text("q Q0 x 1 1 t\n")
    runs = [Path("one.run"), Path("two.run"), Path("one.run")]
    with pytest.raises(InputError, match=r"two runs share a name: one; give other names by --name"):
        compare_files(runs, tmp_path / "out", qrels=qrels, test=TEST)


def test_ties_are_ranked_as_the_measures_rank_them(tmp_path):
    (tmp_path / "a.run").write_text("q Q0 x 1 1 t\nq Q0 b 2 1 t\nq Q0 a 3 1 t\n")
    (tmp_path / "b.run").write_text("q Q0 x 1 3 t\nq Q0 b 2 2 t\nq Q0 a 3 1 t\n")
    (tmp_path / "qrels").write_text("q 0 x 1\n")
    runs = [tmp_path / "a.run", tmp_path / "b.run"]
    report = compare_files(runs, tmp_path / "out", qrels=tmp_path / "qrels", test=TEST)
    moves = pd.read_csv(report / "tables" / "moves.csv").set_index("document")
    assert moves[["before", "after"]].to_dict("index") == {
        "x": {"before": 3, "after": 1},
        "a": {"before": 1, "after": 3},
    }


def test_several_raters_are_told_which_command_takes_one_grade_of_them(files, tmp_path):
    (tmp_path / "qrels").write_text("q1 0 d005 0\nq1 0 d005 2\n")
    told = (
        r"line 2: .* judged 0 before, now 2; .*; the workspace's collection/qrels\.tsv then has one"
    )
    with pytest.raises(InputError, match=told):
        compared(files[0], tmp_path / "out", qrels=tmp_path / "qrels")


def test_judgements_without_a_relevant_document_are_refused(files, tmp_path):
    (tmp_path / "qrels").write_text("q1 0 d005 0\nq2 0 d010 -1\n")
    with pytest.raises(InputError, match="none of the 2 judgements has a grade of 1 or more"):
        compared(files[0], tmp_path / "out", qrels=tmp_path / "qrels")


@pytest.mark.parametrize("option", ["queries", "documents"])
def test_texts_that_fit_nothing_are_an_error(files, tmp_path, option):
    path = tmp_path / "texts.jsonl"
    path.write_text('{"_id": "other", "text": "t"}\n')
    shown = r" \('other'\)" if option == "queries" else ""  # titles are kept of ranked documents
    told = rf"--{option} .*texts.jsonl: none of its ids{shown} is among those .*same ids"
    with pytest.raises(InputError, match=told):
        compared(files[0], tmp_path / "out", **{option: path})
    path.write_text('{"_id": "q1", "text": "t"}\n["q2"]\n')
    with pytest.raises(InputError, match=r"line 2: not a JSON object"):
        compared(files[0], tmp_path / "out", **{option: path})
    assert not (tmp_path / "out" / "report").exists()


def test_queries_without_a_text_are_counted(files, tmp_path):
    path = tmp_path / "texts.tsv"
    path.write_text("q1\tone\nq2\ttwo\n")
    html = (compared(files[0], tmp_path / "out", queries=path) / "report.html").read_text()
    assert "judged queries without a text" in html
    assert "18, shown by their ids" in html
    path.write_text("q1 one\n")
    with pytest.raises(InputError, match=r"line 1: 'q1 one' is not a topic; .* id, tab, text"):
        compared(files[0], tmp_path / "out", queries=path)


def test_the_folder_is_held_before_anything_is_read(files, tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("not a line of judgements\n")
    with locked(tmp_path), pytest.raises(InputError, match="a run is going on there"):
        compared(files[0], tmp_path, qrels=broken)
    with pytest.raises(InputError, match="broken"):
        compared(files[0], tmp_path, qrels=broken)


def test_rows_that_say_what_they_lack_are_compared_as_by_all_judgements(files, tmp_path):
    _, rows, scores = files
    kept = rows.select_rows(np.flatnonzero(np.arange(100) % 5 < 3))  # three rows of each query
    lost = rows.y[np.arange(100) % 5 >= 3].reshape(20, 2)
    missing = {
        f"q{i}": {int(label): 1 for label in labels if label}
        for i, labels in enumerate(lost)
        if i > 0
    }
    missing["q20"] = {1: 3}
    kept = replace(kept, missing=Missing(missing, frozenset(["q0"])))
    write_rows(kept, tmp_path / "rows.txt")
    every = qrels_of(rows)
    every = every[every["qid"] != "q0"]
    more = pd.DataFrame({"qid": ["q20"] * 3, "docno": ["a", "b", "c"], "label": [1] * 3})
    write_qrels(pd.concat([every, more]), tmp_path / "qrels.txt")
    runs = []
    for name, values in scores.items():
        runs.append(tmp_path / f"{name}.run")
        write_run(run_of(kept, values[np.arange(100) % 5 < 3]), runs[-1])
    by_rows, by_qrels = (
        compare_files(runs, tmp_path / option, test=TEST, **{option: tmp_path / file})
        for option, file in (("data", "rows.txt"), ("qrels", "qrels.txt"))
    )
    pd.testing.assert_frame_equal(summary(by_rows), summary(by_qrels))
    page = (by_rows / "report.html").read_text()
    assert kept.missing.n_relevant > 3
    assert f"{kept.missing.n_relevant} of " in page


def groups_file(folder: Path, n: int = 20, size: int = 4) -> Path:
    path = folder / "groups.tsv"
    path.write_text("".join(f"q{i}\tarticle {i // size}\n" for i in range(n)), encoding="utf-8")
    return path


def test_queries_that_belong_together_are_tested_together(files, tmp_path):
    groups = groups_file(tmp_path)
    report = compared(files[0], tmp_path / "out", groups=groups)
    table = summary(report).set_index("measure")
    assert (table["n_groups"] == 5).all()
    assert (table["smallest_p"] >= 2 / 32).all()
    assert not table["significant"].any()
    assert "The 20 queries belong to 5 groups and are tested by group" in told(report)
    assert "No difference could have been significant" in told(report)
    assert "! No difference could have been significant" in (report / "verdict.txt").read_text()
    page = (report / "report.html").read_text(encoding="utf-8")
    assert '<p class="remark">No difference could have been significant' in page
    assert summary(compared(files[0], tmp_path / "alone"))["significant"].any()
    values = pd.read_csv(report / "tables" / "per_query.csv")
    assert set(values.loc[values["query"] == "q7", "group"]) == {"article 1"}
    # Another file of groups makes another report.
    groups_file(tmp_path, size=1)
    again = compared(files[0], tmp_path / "out", groups=groups)
    assert (summary(again)["n_groups"] == 20).all()


def test_queries_of_the_same_text_are_tested_as_one_unless_there_are_groups(files, tmp_path):
    texts = tmp_path / "texts.tsv"
    texts.write_text("".join(f"q{i}\t{'Red  shoes' if i < 4 else i}\n" for i in range(18)))
    texts.write_text(texts.read_text() + "q18\tred shoes\n")  # q19 has no text
    report = compared(files[0], tmp_path / "out", queries=texts)
    assert (summary(report)["n_groups"] == 16).all()
    same = "! 5 of 20 queries have the same text as another one, up to case and spaces: "
    assert f"{same}they are tested as one" in told(report)
    assert "they are tested as one" in unwrapped(report / "verdict.txt")
    grouped = compared(files[0], tmp_path / "own", queries=texts, groups=groups_file(tmp_path))
    assert (summary(grouped)["n_groups"] == 5).all()
    assert f"{same}groups are given for them" in told(grouped)
    texts.write_text("".join(f"q{i}\ttext {i}\n" for i in range(20)))
    apart = compared(files[0], tmp_path / "apart", queries=texts)
    assert (summary(apart)["n_groups"] == 20).all()
    assert "same text" not in told(apart)


def test_hard_queries_are_chosen_by_a_third_run(files, tmp_path):
    folder, rows, _ = files
    third = np.random.default_rng(3).random(100)
    write_run(run_of(rows, third), tmp_path / "third.run")
    report = compared(folder, tmp_path / "out", tmp_path / "third.run", hard_by="third")
    table = pd.read_csv(report / "tables" / "hard_queries.csv")
    estimate = table[table["estimate"]]
    assert estimate[["system", "chosen_by"]].to_numpy().tolist() == [["good", "third"]]
    values = evaluate(qrels_of(rows), run_of(rows, third), ["NDCG@10"])["NDCG@10"]
    assert estimate["n_queries"].tolist() == [(values < 0.5).sum()]
    assert "on which a third ranking, third, does poorly" in told(report)
    assert "The rule selects all" not in (report / "report.html").read_text("utf-8")
    reverse = (folder / "good.run").read_text().replace(" Q0 d", " Q0 x")
    (tmp_path / "none.run").write_text(f"{reverse}q0 Q0 d000 9 -9 t\n")
    every = compared(folder, tmp_path / "all", tmp_path / "none.run", hard_by="none")
    page = (every / "report.html").read_text("utf-8")
    assert "The rule selects all 20 queries, so these differences are those of all." in page
    without = compared(folder, tmp_path / "none", tmp_path / "third.run")
    assert "There is no estimate on hard queries, as no third ranking" in told(without)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--hard-by", "god"], "--hard-by: no run 'god'; did you mean 'good'"),
        (["--hard-by", "bad"], "--hard-by bad: a baseline cannot choose the hard queries"),
        (["--hard-by", "good"], "--hard-by good: besides it and the baselines no run is left"),
        (["--baseline=bad", "--baseline=bad"], "--baseline bad is given twice: leave one out"),
        (["--measure=MAP", "--measure=map"], "measures 'MAP' and 'map' are the same: leave one"),
        (["--measure=MAPP"], "with @k for a cut-off; did you mean MAP?"),
        (["--groups", "none.tsv"], "none.tsv: no such file"),
        (["--queries", os.devnull], "a pipe or a device, not a file: files are read more than"),
        (["--documents", "."], ".: a folder, not a file"),
        (["--groups", "short.tsv"], "no group of 16 queries, e.g. 'q4'"),
        (["--data", "rows.txt"], "--data: no run has scores of its rows"),
        (["--correction", "bonf"], "no method 'bonf'; did you mean 'bonferroni'"),
    ],
)
def test_options_that_do_not_fit_are_named(files, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    groups_file(tmp_path, n=4).rename(tmp_path / "short.tsv")
    (tmp_path / "rows.txt").write_text("1 qid:q0 1:1\n")
    assert message in refused(*command(files[0], *options))
    assert not Path("out/report").exists()


def test_a_file_of_the_kind_compare_says_what_the_command_does(files, tmp_path):
    folder = files[0]
    toml = tmp_path / "x.toml"
    toml.write_text(
        'kind = "compare"\nruns = ["bad.run", "good.run"]\nqrels = "qrels.txt"\n'
        "[test]\nn_permutations = 200\nn_resamples = 200\n"
    )
    by_file = run_file(toml, data=folder, out=tmp_path / "file")
    by_call = compared(folder, tmp_path / "call")
    assert different(by_file, by_call) <= {NOTE}
    toml.write_text('kind = "compare"\nruns = ["bad.run"]\nqrels = "qrel.txt"\n')
    with pytest.raises(InputError, match=r"qrel\.txt: no such file; a comparison needs two ru"):
        run_file(toml, data=folder, out=tmp_path / "bad")
    assert not (tmp_path / "bad").exists()
