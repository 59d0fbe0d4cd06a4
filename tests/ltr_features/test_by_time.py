"""Earlier clicks train, later ones are tested: the source ``clicks`` with cuts, splits by time, and
that nothing of a later period is seen in an earlier one."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from toys import run as command

from letor import read_letor
from letor.dataset import RankingData
from letor.errors import InputError
from ltr_features.sources.registry import read_collection
from ltr_features.studies.kinds.ranking import RankingStudy
from ltr_features.text.collection_files import load_collection, save_collection

N_QUERIES, N_DOCUMENTS, N_PERIODS = 24, 40, 4
CUTS = [100, 200, 300]
EXPERIMENT = """
kind = "ranking"
title = "Do models of last month's clicks help with this month's queries?"
candidate_depth = 15
[collection]
source = "clicks"
log = "log.csv"
documents = "documents.csv"
document_columns = { id = "id", body = "text" }
columns = { time = "time" }
cuts = [100, 200, 300]
min_evidence = 1.0
n_grades = 3
[[columns]]
family = "letor46"
[[models]]
name = "ssi"
model = "ssi"
params = { rank = 4, max_epochs = 2 }
[[rankers]]
name = "steps"
ranker = "rankboost"
params = { n_rounds = 5 }
[[splits]]
name = "later"
by = "time"
folds = 4
[[systems]]
name = "words"
columns = ["letor46"]
[[systems]]
name = "everything"
columns = ["letor46", "ssi"]
[evaluation]
measures = ["NDCG@10"]
comparisons = [["everything", "words"]]
n_permutations = 99
n_resamples = 100
"""


def clicks(folder: Path, *, last_period_clicks: int = 0) -> None:
    """Documents of four topics, and a log of 400 time steps: queries come and go; users click what
    has the query's topic. ``last_period_clicks``: which topic the last period clicks instead."""
    rng = np.random.default_rng(0)
    topics = [[f"{topic}{i}" for i in range(8)] for topic in ("sea", "wood", "iron", "moon")]
    texts = [" ".join(rng.choice(topics[d % 4], 12)) for d in range(N_DOCUMENTS)]
    pd.DataFrame({"id": [f"d{d}" for d in range(N_DOCUMENTS)], "text": texts}).to_csv(
        folder / "documents.csv", index=False
    )
    lines = ["session,time,query,document,position,clicked"]
    for time in range(400):
        # Of each period's twelve queries six were asked in the period before.
        number = (6 * (time // 100) + int(rng.integers(12))) % N_QUERIES
        words = topics[number % 4][number % 7 : number % 7 + 2]
        liked = (number + last_period_clicks * (time >= 300)) % 4
        for position, d in enumerate(rng.permutation(N_DOCUMENTS)[:8].tolist()):
            click = int(d % 4 == liked and rng.random() < 0.8)
            lines.append(f"s{time},{time},{' '.join(words)},d{d},{position + 1},{click}")
    (folder / "log.csv").write_text("\n".join(lines) + "\n")
    (folder / "study.toml").write_text(EXPERIMENT)


def read(folder: Path, **options):
    given = {"columns": {"time": "time"}, "cuts": CUTS, "min_evidence": 1.0, "n_grades": 3}
    files = {"log": str(folder / "log.csv"), "documents": str(folder / "documents.csv")}
    described = {"id": "id", "body": "text"}
    return read_collection("clicks", **files, document_columns=described, **{**given, **options})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("clicks")
    clicks(made)
    return made


def test_each_period_has_queries_of_its_own(folder, tmp_path):
    whole = read(folder)
    assert sorted(set(whole.query_times)) == [1, 2, 3, 4]
    for period in range(1, N_PERIODS + 1):
        since = {} if period == 1 else {"since": CUTS[period - 2]}
        until = {} if period == N_PERIODS else {"until": CUTS[period - 1]}
        alone = read(folder, cuts=(), rules=since | until)
        assert (alone.query_times, alone.query_groups) == (None, None)
        rows = np.flatnonzero(whole.query_times == period)
        assert [whole.query_texts[row] for row in rows] == list(alone.query_texts)
        own = np.isin(whole.judgements.query, rows)
        np.testing.assert_array_equal(whole.judgements.grade[own], alone.judgements.grade)
        np.testing.assert_array_equal(whole.judgements.document[own], alone.judgements.document)
    groups = dict(zip(whole.query_ids, whole.query_groups, strict=True))
    texts = dict(zip(whole.query_ids, whole.query_texts, strict=True))
    again = [query for query in whole.query_ids if query.endswith("-2")]
    assert all(groups[query] == query.removesuffix("-2") for query in again)
    known = [query for query in again if groups[query] in texts]
    assert 3 <= len(known) < len(again)
    assert all(texts[query] == texts[groups[query]] for query in known)
    assert len(whole.description["periods"]) == N_PERIODS
    save_collection(whole, tmp_path)
    np.testing.assert_array_equal(load_collection(tmp_path).query_times, whole.query_times)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cuts": [200, 100]}, "cuts must be ascending numbers or times .*, got 200, 100"),
        ({"cuts": ["soon"]}, "cuts must be ascending"),
        ({"cuts": [100], "rules": {"since": 150}}, "within since and until"),
        ({"cuts": [100], "columns": None}, "period 1 of cuts: since and until need times"),
        ({"cuts": [10_000]}, "period 2 of cuts: .*no result was shown"),
    ],
)
def test_cuts_that_cannot_be(folder, options, message):
    with pytest.raises(InputError, match=message):
        read(folder, **options)


def test_a_study_by_time_from_a_log(folder, tmp_path):
    command("run", folder / "study.toml", "--data", folder, "--out", tmp_path)
    whole = read(folder)
    time = dict(zip(whole.query_ids, whole.query_times.tolist(), strict=True))
    values = pd.read_csv(tmp_path / "systems" / "later" / "everything" / "per_query.csv")
    assert set(values["qid"]) == {query for query, at in time.items() if at == N_PERIODS}
    run = pd.read_csv(
        tmp_path / "systems" / "later" / "everything" / "run.txt.gz", sep=" ", header=None
    )
    assert set(run[0]) <= set(values["qid"])
    page = (tmp_path / "report" / "report.html").read_text()
    assert "Rankers learn from earlier queries; later ones test" in page
    assert "belong to a group that was also trained on" in page
    assert "period 4, log, pages" in page
    assert "&#x27;pages&#x27;" not in page
    assert "'pages'" not in page


def test_grades_are_refused_only_where_they_are_used(folder, tmp_path):
    """Queries of the last period are tested by measures, rankers learn from those before."""
    text = EXPERIMENT.replace("NDCG@10", "ERR@10").replace("rankboost", "lambdamart")
    (tmp_path / "study.toml").write_text(text.replace("n_rounds", "n_estimators"))
    config, whole = RankingStudy.read(tmp_path / "study.toml", folder), read(folder)
    judged, large = whole.judgements, 31
    last = whole.query_times[judged.query] == N_PERIODS
    for tested, check, message in (
        (last, RankingStudy.check_grades, "measure ERR@10: label 31 is above 4"),
        (~last, RankingStudy.check_folds, "label 31 is too large for the exponential gain"),
    ):
        for used in (False, True):
            grade = np.where((tested == used) & (judged.grade > 0), large, judged.grade)
            study = RankingStudy(config, tmp_path / "out", folder)
            study.collection = replace(whole, judgements=replace(judged, grade=grade))
            queries = [whole.query_ids[row] for row in judged.query.tolist()]
            study.base = RankingData.from_rows(np.zeros((len(queries), 1)), grade, queries)
            with pytest.raises(InputError, match=message) if used else nullcontext():
                check(study)


def test_nothing_of_the_last_period_is_seen_before_it(folder, tmp_path):
    """Users of the last period click other documents: of all that is trained and stopped before,
    columns, models and rankers, nothing changes."""
    made = []
    for name, liked in (("a", 0), ("b", 1)):
        data, out = tmp_path / name, tmp_path / f"out-{name}"
        data.mkdir()
        clicks(data, last_period_clicks=liked)
        command("run", data / "study.toml", "--data", data, "--out", out)
        made.append(out)
    first, second = (out / "systems" / "later" for out in made)
    for system in ("words", "everything"):
        run = first / system / "run.txt.gz"
        assert run.read_bytes() == (second / system / "run.txt.gz").read_bytes()
        values = first / system / "per_query.csv"
        assert values.read_bytes() != (second / system / "per_query.csv").read_bytes()


def test_times_from_a_file_for_any_collection(tmp_path):
    """And the folds of ``columns build`` are the same."""
    command("sample", tmp_path / "sample")
    beir = tmp_path / "sample" / "beir"
    ids = [json.loads(line)["_id"] for line in (beir / "queries.jsonl").read_text().splitlines()]
    text = EXPERIMENT[: EXPERIMENT.index("[collection]")] + 'times = "times.tsv"\n'
    text += '[collection]\nsource = "beir"\nfolder = "beir"\n'
    text += EXPERIMENT[EXPERIMENT.index("[[columns]]") :]
    (tmp_path / "sample" / "study.toml").write_text(text)
    days = [f"{query}\t2026-01-{1 + i % 28:02}\n" for i, query in enumerate(ids)]
    (tmp_path / "sample" / "times.tsv").write_text("".join(days))
    study = ("run", tmp_path / "sample" / "study.toml", "--data", tmp_path / "sample")
    command(*study, "--out", tmp_path / "out")
    tested = pd.read_csv(tmp_path / "out" / "systems" / "later" / "words" / "per_query.csv")
    day = {query: i % 28 for i, query in enumerate(ids)}
    others = set(map(str, tested["qid"])) ^ set(ids)
    days_tested = [day[str(query)] for query in tested["qid"]]
    assert max(day[query] for query in others) < min(days_tested)
    page = (tmp_path / "out" / "report" / "report.html").read_text()
    first, last = (1 + end(days_tested) for end in (min, max))
    assert f"still later test queries, of 2026-01-{first:02} to 2026-01-{last:02})" in page
    (tmp_path / "sample" / "times.tsv").write_text("".join(days[1:]))
    with pytest.raises(InputError, match=r"times.tsv: no time of 1 query"):
        command(*study, "--out", tmp_path / "again")
    (tmp_path / "sample" / "times.tsv").write_text(f"{ids[0]}\tsoon\n")
    with pytest.raises(InputError, match=r"times.tsv, line 1: 'soon' is neither a number"):
        command(*study, "--out", tmp_path / "again")


def test_columns_build_by_time(folder, tmp_path):
    command(
        "index", "clicks", f"log={folder / 'log.csv'}", f"documents={folder / 'documents.csv'}",
        "document_columns.id=id", "document_columns.body=text", "columns.time=time",
        "cuts=[100, 200, 300]", "min_evidence=1", "--out", tmp_path / "workspace",
    )  # fmt: skip
    build = ("columns", "build", "--workspace", tmp_path / "workspace", "--family", "letor46")
    said = command(*build, "--folds", 4, "--by-time", "--out", tmp_path / "folds").stdout
    sizes = re.search(r"Fold1: 46 columns; (\d+) training, (\d+) validation and (\d+) test", said)
    parts = [tmp_path / "folds" / "Fold1" / f"{part}.txt" for part in ("train", "vali", "test")]
    assert [int(n) for n in sizes.groups()] == [len(read_letor(p).all_query_ids) for p in parts]
    assert [path.name for path in (tmp_path / "folds").glob("Fold*")] == ["Fold1"]
    test = (tmp_path / "folds" / "Fold1" / "test.txt").read_text()
    assert {line.split()[1].rpartition("-")[2] for line in test.splitlines() if "qid" in line} == {
        "4"
    }
    with pytest.raises(InputError, match="--by-group, --by-time: give one of them"):
        command(*build, "--folds", 4, "--by-time", "--by-group", "--out", tmp_path / "x")
    times = tmp_path / "times.tsv"
    ids = ("index", "collection", f"folder={tmp_path / 'workspace' / 'collection'}")
    queries = load_collection(tmp_path / "workspace" / "collection").query_ids
    times.write_text("".join(f"{q}\t2024-01-{n % 28 + 1:02}\n" for n, q in enumerate(queries)))
    said = command(*ids, "--times", times, "--groups", times, "--out", tmp_path / "dated").stdout
    assert "groups of queries: 28\n  times of queries: 2024-01-01 to 2024-01-28\n" in said
    dated = load_collection(tmp_path / "dated" / "collection")
    assert np.diff(dated.query_times[:4]).tolist() == [86400] * 3
    assert dated.query_groups[:2] == ["2024-01-01", "2024-01-02"]
    times.write_text("q\t2024-01-01\n")
    with pytest.raises(InputError, match=r"times\.tsv: no time of \d+ queries, e\.g\. "):
        command(*ids, "--times", times, "--out", tmp_path / "dated")
    with pytest.raises(InputError, match=r"absent\.tsv: no such file"):
        command(
            "index",
            "beir",
            "folder=nowhere",
            "--groups",
            tmp_path / "absent.tsv",
            "--out",
            tmp_path / "w",
        )
    with pytest.raises(InputError, match="--by-time: there are no folds"):
        command(*build, "--by-time", "--out", tmp_path / "x.txt")
