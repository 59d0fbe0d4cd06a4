"""What a terminal shows at the end of a run."""

import re
from dataclasses import replace

import pytest
from toys import run

from ltr_features.studies.page.ending import WIDTH, report_ending, rows_ending
from ltr_features.studies.page.html import render
from ltr_features.studies.page.verdicts import second_sentence, verdict_sentence


@pytest.fixture
def runs(tmp_path):
    """Judgements and ten runs; every other one finds all relevant documents."""
    (tmp_path / "qrels").write_text("".join(f"q{i} 0 d{i} 1\n" for i in range(30)))
    files = []
    for number in range(10):
        good = number % 2
        lines = (
            f"q{i} Q0 d{(i + j) % 30} {j + 1 if good else 3 - j} {9 - j if good else j} t\n"
            for i in range(30)
            for j in range(3)
        )
        files.append(tmp_path / f"run{number}")
        files[-1].write_text("".join(lines))
    return files


def test_the_verdict_and_a_short_table_come_last(runs, tmp_path):
    names = [f"--name=a system with a long name, number {number}" for number in range(10)]
    options = ("--out", tmp_path / "out", "--permutations", 500, "--measure", "MAP")
    command = ("compare", *runs, "--qrels", tmp_path / "qrels", *names, *options)
    lines = run(*command).output.splitlines()
    remarks = [line for line in lines if line.startswith(("! ", "  "))]
    assert len(lines) - len(remarks) <= 17
    assert len(remarks) <= 8
    assert "number 1 did significantly better than" in " ".join(lines[:2])
    table = [line for line in lines if re.search(r"number \d +\d", line)]
    assert len(table) == 8
    assert table[1].endswith("1.0000 ▲")
    numbers = re.findall(r"number (\d)", "\n".join(table))
    assert numbers == list("01234579")  # all that are better
    assert "… and 2 more" in lines
    texts = (tmp_path / "out" / "report" / "verdict.txt").read_text(encoding="utf-8")
    assert all(len(line) <= WIDTH for line in texts.splitlines())
    assert any(line.endswith("summary.txt") for line in lines[-2:])


def test_the_second_verdict_follows_the_first(make_report):
    report = make_report(n_queries=20, n_systems=5)
    study = report.studies[0]
    first, second, third, *_ = (system.name for system in study.systems)
    study = replace(study, pairs=[(second, first), (third, second)], second=(third, second))
    report = replace(report, studies=[study])
    told = " ".join(report_ending(report).split())
    assert told.startswith(f"{verdict_sentence(report)} {second_sentence(report)} ")
    assert second_sentence(report).count(study.label_of(third)) == 1


def test_what_a_table_leaves_out_is_counted(make_report):
    """Ten of eleven systems are significantly worse: two of them are left out."""
    report = make_report(n_queries=20, n_systems=5)
    first, second = report.studies[0].systems[:2]
    systems, same = [replace(first, label="base")], first.per_query
    measure = report.studies[0].measures[0]
    for i in range(11):
        values = same if i == 5 else same.assign(**{measure: same[measure] / (3 + i)})
        systems.append(replace(second, name=f"s{i}", label=f"s{i}", per_query=values, fits=()))
    pairs = [(system.name, systems[0].name) for system in systems[1:]]
    study = replace(
        report.studies[0], systems=systems, pairs=pairs, second=None, hard_queries=None,
        measures=[measure],
    )  # fmt: skip
    lines = report_ending(replace(report, studies=[study])).splitlines()
    rows = [line.split()[0] for line in lines if re.match(r"(base|s\d+) +\d", line)]
    assert rows == ["base", "s0", "s1", "s2", "s3", "s4", "s6", "s7"]
    assert "… and 4 more, 3 significantly worse, in the report" in lines


def test_long_labels_and_many_rows_fit():
    rows = {f"{'very ' * 20}long {i}": i / 20 for i in range(20)}
    text = rows_ending("Expectations met: 3 of 4.", {"A table " * 20: rows}, "MAP")
    lines = text.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert lines[0] == "Expectations met: 3 of 4."
    assert lines[-1] == "… and 12 more"


def test_a_remark_says_which_study_it_is_of_unless_it_is_of_all(make_report):
    report = make_report(n_queries=20, n_systems=5)
    first = report.studies[0]
    of_both = "one query was dropped"
    studies = [
        replace(first, name="Unseen queries", remarks=["column ssi kept its start", of_both]),
        replace(first, name="Unseen articles", remarks=[of_both]),
    ]
    lines = report_ending(replace(report, studies=studies)).splitlines()
    assert lines[-2:] == [
        "! Unseen queries: column ssi kept its start",
        "! one query was dropped",
    ]
    page = render(replace(report, studies=studies))
    assert re.findall(r'<p class="remark">(.*?)</p>', page) == [
        "<b>Unseen queries:</b> column ssi kept its start.",
        "one query was dropped.",
    ]
    alone = report_ending(replace(report, studies=studies[:1])).splitlines()
    assert alone[-2] == "! column ssi kept its start"


def test_what_is_not_as_expected_is_told(make_report):
    report = make_report(n_queries=20, n_systems=5)
    missed = [f"Not as expected: MAP of system {i} is 0.1." for i in range(4)]
    told = report_ending(replace(report, warnings=missed))
    assert f"! {missed[0]}\n" in told
    hidden = len(missed) - told.count("Not as expected") + len(report.remarks)
    assert f"! {hidden} more in the report" in told
