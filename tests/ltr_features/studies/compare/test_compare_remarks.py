"""What comparisons tell of their runs: ties, depth, other ids, other queries, equal ranks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from comparisons import TEST, compare_files, compared, told
from folders import unwrapped

from letor.errors import InputError
from letor.trec import run_of, write_run
from ltr_features.studies.kinds.given_rankings import Given, run_remarks


def run_file_of(path: Path, rankings: dict[str, str], scores: str = "54321") -> Path:
    """A run that ranks the letters of each query's text, with these scores."""
    lines = (
        f"{query} Q0 {letter} 1 {score} t\n"
        for query, letters in rankings.items()
        for letter, score in zip(letters, scores, strict=False)
    )
    path.write_text("".join(lines))
    return path


def test_equal_scores_that_leave_the_value_open_are_told(tmp_path):
    """The ids of the relevant documents come first, so that the rule for ties favours the run."""
    (tmp_path / "qrels").write_text(
        "".join(f"q{i} 0 {d} {d < 'b':d}\n" for i in "123" for d in "abc")
    )
    rankings = {f"q{i}": "cba" for i in "123"}
    runs = [
        run_file_of(tmp_path / "strict.run", rankings),
        run_file_of(tmp_path / "coarse.run", rankings, scores="222"),
        run_file_of(tmp_path / "harmless.run", dict.fromkeys(rankings, "abc"), scores="211"),
    ]
    report = told(compare_files(runs, tmp_path / "out", qrels=tmp_path / "qrels", test=TEST))
    assert (
        "! coarse: gives equal scores to documents of different grades; its NDCG@10 is between "
        "0.5000 and 1.0000, depending on their order; here the smaller document id goes first."
    ) in report
    assert "harmless: gives" not in report
    assert "strict: gives" not in report


def test_runs_whose_ranks_order_equal_scores_are_told_how_these_count(tmp_path):
    (tmp_path / "qrels").write_text(
        "".join(f"q{i} 0 {d} {d < 'b':d}\n" for i in "123" for d in "abc")
    )
    ranked = [(f"q{i}", d, rank) for i in "123" for rank, d in enumerate("bca", 1)]
    for name, line in {"scores": "{} Q0 {} {} 2 t\n", "ranks": "{} {} {}\n"}.items():
        lines = "".join(line.format(*of) for of in ranked)
        (tmp_path / f"{name}.run").write_text(lines)
    runs = [tmp_path / f"{name}.run" for name in ("scores", "ranks")]
    report = told(compare_files(runs, tmp_path / "out", qrels=tmp_path / "qrels", test=TEST))
    assert (
        "scores: gives equal scores to documents of different grades; its NDCG@10 is between "
        "0.5000 and 1.0000, depending on their order; here the smaller document id goes first, as "
        "measures do not read the ranks of a run; if these are the order that was shown, leave out "
        "the scores: lines of query, document and rank."
    ) in report
    means = pd.read_csv(tmp_path / "out" / "report" / "tables" / "means.csv")
    assert means["NDCG@10"].tolist() == [1, 0.5]


def test_unequally_judged_rankings_are_told(tmp_path):
    """Judgements that one of two systems supplied find the other one worse."""
    pool = "".join(f"q{i} 0 {d} {d < 'b':d}\n" for i in "123" for d in "abc")
    runs = [
        run_file_of(tmp_path / "pooled.run", {f"q{i}": "abc" for i in "123"}),
        run_file_of(tmp_path / "other.run", {f"q{i}": "xya" for i in "123"}),
    ]
    remark = "of the first 10 documents, unequal shares are judged: pooled 100%, other 33%;"

    def of(qrels: str) -> str:
        (tmp_path / "qrels").write_text(qrels)
        return told(compare_files(runs, tmp_path / "out", qrels=tmp_path / "qrels", test=TEST))

    assert remark in of(pool)
    positive = "".join(line for line in pool.splitlines(keepends=True) if line[-2] == "1")
    assert "are judged" not in of(positive)  # the others may have been judged, too


def test_runs_on_different_queries_are_refused_or_the_verdict_says_so(files, tmp_path):
    folder = files[0]
    lines = (folder / "good.run").read_text().splitlines(keepends=True)
    of_query = [int(line.split()[0][1:]) for line in lines]

    def run(name: str, queries: range) -> Path:
        kept = [line for q, line in zip(of_query, lines, strict=True) if q in queries]
        (tmp_path / name).write_text("".join(kept))
        return tmp_path / name

    options = {"qrels": folder / "qrels.txt", "test": TEST}
    runs = run("one.run", range(12)), run("two.run", range(12, 20))
    expected = r"two and one have no judged query in common \('q12', .*; 'q0', .*same queries"
    with pytest.raises(InputError, match=expected):
        compare_files(runs, tmp_path / "out", **options)
    report = compare_files([folder / "bad.run", *runs], tmp_path / "three", **options)
    verdict = unwrapped(report / "verdict.txt")
    first = "! two lacks 12 of 20 judged queries, which count 0: the verdict says more about these"
    assert f"{first} than about rankings; to compare rankings, leave" in verdict
    assert "one lacks 8 of 20 judged queries, which count 0 " in verdict + " "


def test_queries_under_ids_that_are_written_otherwise_are_told():
    """Two of three queries have leading zeros in the runs alone: nothing is to be left out."""
    qrels = pd.DataFrame({"qid": ["1", "2", "3"], "docno": "d", "label": 1.0})
    run = pd.DataFrame({"qid": ["001", "002", "3"], "docno": "d", "score": 1.0})
    given = Given({"one": run, "two": run}, qrels, {}, {}, None, {})
    remark = next(iter(run_remarks(given, pd.Index(["1", "2", "3"]), ["NDCG@10"])))
    assert remark == (
        "one lacks 2 of 3 judged queries, which count 0; it has 2 of them under another id, '001' "
        "for '1': write ids alike in all files"
    )


def test_runs_of_different_depth_are_told_if_a_measure_looks_deeper(files, tmp_path):
    folder = files[0]
    lines = (folder / "good.run").read_text().splitlines(keepends=True)
    (tmp_path / "cut.run").write_text("".join(li for li in lines if int(li.split()[3]) <= 2))
    runs, options = [folder / "bad.run", tmp_path / "cut.run"], {"qrels": folder / "qrels.txt"}

    def of(*measures: str) -> str:
        out = tmp_path / measures[0]
        return told(compare_files(runs, out, test=TEST, measures=measures, **options))

    assert (
        "! runs of different depth are compared: cut 2 documents per query (median), bad 5. In "
        "MAP, P@3, what a run does not rank counts as not found, which favours deeper runs; "
        "compare runs of one depth, or up to rank 2."
    ) in of("MAP", "P@2", "P@3")
    assert "different depth" not in of("NDCG@2", "P@1")
    assert "different depth" not in told(compared(folder, tmp_path / "alike"))


@pytest.mark.parametrize(("depth", "told"), [(3, True), (4, False)])
def test_runs_of_half_the_depth_are_not_told(depth, told):
    def run(n: int) -> pd.DataFrame:
        documents = [f"d{i}" for i in range(n)]
        return pd.DataFrame({"qid": "1", "docno": documents, "score": np.arange(n, 0.0, -1)})

    qrels = run(8)[["qid", "docno"]].assign(label=1.0)
    remarks = run_remarks(Given({"a": run(depth), "b": run(8)}, qrels), pd.Index(["1"]), ["MAP"])
    assert any(f"a {depth} documents per query (median), b 8." in r for r in remarks) == told


def test_scores_that_contradict_the_ranks_are_told(files, tmp_path):
    folder = files[0]
    lines = [line.split() for line in (folder / "good.run").read_text().splitlines()]
    text = "".join(f"{q} Q0 {d} {rank} {rank} t\n" for q, _, d, rank, *_ in lines)
    (tmp_path / "turned.run").write_text(text)
    runs = [folder / "bad.run", tmp_path / "turned.run"]
    found = told(compare_files(runs, tmp_path / "out", qrels=folder / "qrels.txt", test=TEST))
    assert "! turned: scores order 20 of 20 queries (100%) the other way than the rank" in found
    assert "! bad: " not in found


def test_relevant_documents_under_another_id_are_told(files, tmp_path):
    """Not ids that are near a judged one while that was found, too, for this query or another."""
    folder = files[0]
    good = (folder / "good.run").read_text()
    relevant = [line.split()[2] for line in (folder / "qrels.txt").open() if line[-2] == "2"]
    capital = good.replace(f" {relevant[3]} ", f" D{relevant[3][1:]} ")
    first, last = good.splitlines()[0].split(), good.splitlines()[-1].split()
    texts = {
        "capital": capital,
        "both": f"{good}{first[0]} Q0 {first[2].upper()} 9 -9 t\n",
        "elsewhere": f"{capital}{last[0]} Q0 {relevant[3]} 9 -9 t\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.run").write_text(text)
    report = told(compared(folder, tmp_path / "out", *(tmp_path / f"{n}.run" for n in texts)))
    said = f"'D{relevant[3][1:]}' for '{relevant[3]}'"
    assert "! capital: 1 relevant document under another id than in the judgements" in report
    assert said in report
    assert "! both: 1 relevant" not in report
    assert "! elsewhere: 1 relevant" not in report


def test_runs_that_rank_alike_are_told(files, tmp_path):
    folder, rows, scores = files
    write_run(run_of(rows, 2 * scores["good"]), tmp_path / "twice.run")
    report = compared(folder, tmp_path / "out", tmp_path / "twice.run")
    assert "! good, twice have the same values for every query" in told(report)
