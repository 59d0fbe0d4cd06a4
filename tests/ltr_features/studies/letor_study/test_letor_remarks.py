"""What an experiment on LETOR data tells with its answer: doubtful columns, labels, few queries."""

from dataclasses import replace

from folders import unwrapped
from small_studies import write_letor

from letor.column_names import write_rows
from letor.dataset import GIVEN
from letor.fold_files import read_folds
from ltr_features.studies.run import run_file


def test_columns_that_give_the_labels_away_are_told_with_the_answer(tmp_path):
    write_letor(tmp_path)
    for part in (tmp_path / "toy").iterdir():
        lines = part.read_text().splitlines()
        part.write_text("".join(f"{line} 4:{line[0]}\n" for line in lines))
    (tmp_path / "study.toml").write_text(
        """kind = "letor"
title = "Leak"
folder = "toy"
[[rankers]]
label = "three"
ranker = "coordinate-ascent"
without = ["4"]
grid = {}
"""
    )
    told = "! columns (4) order the rows of every query exactly as the labels do"
    report = run_file(tmp_path / "study.toml", data=tmp_path, out=tmp_path / "out")
    assert told not in (report / "verdict.txt").read_text()
    with (tmp_path / "study.toml").open("a") as file:
        file.write("[[rankers]]\nlabel = 'four'\nranker = 'coordinate-ascent'\ngrid = {}\n")
    report = run_file(tmp_path / "study.toml", data=tmp_path, out=tmp_path / "out")
    assert told in unwrapped(report / "verdict.txt")
    assert told[2:] in unwrapped(report / "report.html")


def test_labels_that_are_not_whole_numbers_are_told(tmp_path):
    write_letor(tmp_path)
    text = 'kind = "letor"\ntitle = "Labels"\nfolder = "toy"\n'
    text += "".join(
        f"[[rankers]]\nlabel = '{columns}'\nranker = 'coordinate-ascent'\ngrid = {{}}\n"
        f"columns = ['{columns}']\n"
        for columns in (1, 2)
    )
    (tmp_path / "study.toml").write_text(text)
    told = "! labels that are not whole numbers: "
    report = run_file(tmp_path / "study.toml", data=tmp_path, out=tmp_path / "out")
    assert told not in unwrapped(report / "verdict.txt")
    for part in (tmp_path / "toy").iterdir():
        lines = part.read_text().splitlines()
        part.write_text("".join(f"{int(line[0]) / 4:g}{line[1:]}\n" for line in lines))
    report = run_file(tmp_path / "study.toml", data=tmp_path, out=tmp_path / "out")
    assert told in unwrapped(report / "verdict.txt")


def test_what_becomes_known_of_the_columns_is_told(tmp_path):
    """It is in the file beside the rows, which themselves stay the same."""
    write_letor(tmp_path)
    rows, _ = read_folds(tmp_path / "toy")
    write_rows(rows, tmp_path / "rows.txt")
    ranker = "[[rankers]]\nlabel = 'all'\nranker = 'coordinate-ascent'\ngrid = {}\n"
    scheme = "[[schemes]]\nname = 'new'\nk = 3\n"
    study = tmp_path / "one.toml"
    study.write_text(f"kind = 'letor'\ntitle = 'T'\nfolder = 'rows.txt'\n{ranker}{scheme}")
    found = []
    for provenance in ({}, {"trained on": GIVEN}):
        known = dict.fromkeys(rows.column_names, provenance)
        write_rows(replace(rows, provenance=known), tmp_path / "rows.txt")
        report = run_file(study, data=tmp_path, out=tmp_path / "out")
        found.append("given columns" in unwrapped(report / "tables.txt"))
    assert found == [False, True]


def one_fold(folder, rows, measures="", **parts):
    """The file of a study of two rankers, r1 and r2, which see a column each, on one fold.

    Args:
        rows: label and two values, of each query. parts: letters, the queries of each part.
    """
    (folder / "one").mkdir()
    for part, queries in parts.items():
        lines = (f"{y} qid:{q} 1:{one} 2:{two}\n" for q in queries for y, one, two in rows)
        (folder / "one" / f"{part}.txt").write_text("".join(lines))
    ranker = "[[rankers]]\nlabel = 'r{0}'\nranker = 'coordinate-ascent'\ncolumns = ['{0}']\n"
    text = "".join(ranker.format(column) + "grid = {}\n" for column in (1, 2))
    file = folder / "one.toml"
    file.write_text(f"kind = 'letor'\ntitle = 'T'\nfolder = 'one'\n{measures}{text}")
    return file


def test_too_few_queries_for_any_significance_are_told(tmp_path):
    rows = ((0, 0, 1), (1, 1, 0))
    file = one_fold(tmp_path, rows, train="abcdefgh", vali="ij", test="kl")
    report = run_file(file, data=tmp_path, out=tmp_path / "out")
    verdict = unwrapped(report / "verdict.txt")
    assert "nothing differs significantly from r1, and none could, as they differ in" in verdict
    (tmp_path / "one/test.txt").write_text("0 qid:k 1:0 2:1\n1 qid:k 1:1 2:0\n")
    report = run_file(file, data=tmp_path, out=tmp_path / "out")
    assert "nan" not in (report / "tables.txt").read_text()  # one query has no standard error


def test_what_other_measures_find_is_in_the_answer(tmp_path):
    """Column 1 puts a relevant document first, and the other one last; column 2 both first."""
    rows = ((2, 3, 3), (1, 0, 2), (0, 2, 1), (0, 1, 0))
    measures = "[measures]\n'NDCG@1' = 'ndcg@1'\nMAP = 'map'\n'P@2' = 'p@2'\n"
    file = one_fold(tmp_path, rows, measures, train="abcd", vali="ef", test="ghijklmnop")
    report = run_file(file, data=tmp_path, out=tmp_path / "out")
    verdict = unwrapped(report / "verdict.txt")
    assert verdict.startswith(
        "Official folds, NDCG@1: nothing differs significantly from r1. MAP: r2 (+0.2500) "
        "significantly better than r1. P@2: r2 (+0.5000) significantly better than r1. NDCG@1"
    )
