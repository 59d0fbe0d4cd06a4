"""``ltr-features clicks`` and the source ``clicks``, as a stranger uses them."""

import json
from hashlib import sha256

import numpy as np
import pandas as pd
import pytest
from toys import refused, run

from letor.dataset import RankingData
from letor.errors import InputError
from letor.trec import read_qrels
from letor.writing import write_letor
from ltr_features.clicks.simulation import Simulation
from ltr_features.sources.registry import read_collection

SECRET = "secret words"


def said(*arguments):
    """All that a command prints."""
    return run(*arguments).output


@pytest.fixture
def rows(tmp_path):
    """Judged rows with one useful column, as LETOR text with document ids."""
    rng = np.random.default_rng(0)
    n = 12 * 15
    y = rng.integers(0, 3, n)
    X = np.stack([y + rng.normal(size=n), rng.random(n)], axis=1).astype(np.float32)
    queries = np.repeat([f"{q + 1}" for q in range(12)], 15)
    ids = np.array([f"d{i}" for i in range(n)], dtype=object)
    comments = np.array([f"#docid = d{i}".encode() for i in range(n)], dtype=object)
    data = RankingData.from_rows(X, y, queries, document_ids=ids, comments=comments)
    write_letor(data, tmp_path / "rows.txt")
    return data


@pytest.fixture
def log(rows, tmp_path):
    simulation = Simulation(rows, rows.X[:, 0], exploration=1.0)
    simulation.write(20_000, tmp_path / "log.tsv")
    return tmp_path / "log.tsv"


def test_a_file_that_comes_while_a_log_is_judged_is_not_said_to_be_in_it(
    log, tmp_path, monkeypatch
):
    (tmp_path / "logs").mkdir()
    log.rename(tmp_path / "logs" / "1.tsv")
    late = tmp_path / "logs" / "2.tsv"
    monkeypatch.setattr("ltr_features.clicks.output.check_ids", lambda read: late.write_text(""))
    run("clicks", "judge", tmp_path / "logs", "--out", tmp_path / "judged")
    files = json.loads((tmp_path / "judged" / "clicks.json").read_text())["files"]
    assert [file["name"] for file in files] == ["1.tsv"]
    assert late.exists()


def test_simulate_judge_compare(rows, tmp_path):
    output = said(
        "clicks", "simulate", tmp_path / "rows.txt", "--column", "1", "--sessions", 20_000,
        "--exploration", 1, "--out", tmp_path / "log.tsv.gz",
    )  # fmt: skip
    assert output.startswith("20,000 pages, 200,000 rows")
    qrels = "".join(
        f"{rows.query_ids[q]} 0 {d} {int(y)}\n"
        for q, d, y in zip(rows.query_index, rows.document_ids, rows.y, strict=True)
    )
    (tmp_path / "qrels.txt").write_text(qrels)
    output = said(
        "clicks", "judge", tmp_path / "log.tsv.gz", "--rule", "queries=id", "--grades", 3,
        "--scale", 1.0, "--labels", tmp_path / "qrels.txt", "--out", tmp_path / "judged",
    )  # fmt: skip
    assert "positions: from 1" in output
    assert "12 queries" in output
    folder = tmp_path / "judged"
    table = pd.read_csv(folder / "judgements.tsv", sep="\t", dtype={"query": str})
    truth = dict(zip(rows.document_ids, rows.y, strict=True))
    expected = table["document"].map(truth).map({0: 0.1, 1: 0.4, 2: 1.0})
    assert np.abs(table["relevance"] - expected).mean() < 0.05
    judged = read_qrels(folder / "qrels.txt")
    assert len(judged) == (table["grade"] >= 0).sum()
    assert set(judged["qid"]) <= set(rows.query_ids)
    examination = pd.read_csv(folder / "examination.tsv", sep="\t")
    np.testing.assert_allclose(examination["examination"], 1 / examination["position"], atol=0.05)
    np.testing.assert_allclose(examination["weight"], 1 / examination["examination"])
    pairs = pd.read_csv(folder / "pairs.tsv", sep="\t")
    assert pairs["weight"].mean() == pytest.approx(1, rel=1e-4)
    description = json.loads((folder / "clicks.json").read_text())
    assert description["model"] == "pbm"
    assert description["log"]["pages"] == 20_000
    assert description["converged"]
    lines = [line.split() for line in output.splitlines()]
    means = [float(line[3]) for line in lines if line and line[0] in "012" and len(line) == 4]
    assert means == sorted(means)
    assert len(means) == 3


def test_the_same_log_gives_the_same_bytes(log, tmp_path):
    for name in ("a", "b"):
        said("clicks", "judge", log, "--out", tmp_path / name)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    output = said("clicks", "judge", log, "--out", tmp_path / "a", "--model", "ctr")
    assert f"note: the former {tmp_path / 'a'} is replaced" in output
    facts = json.loads((tmp_path / "a" / "clicks.json").read_text())
    assert facts["model"] == "ctr"
    (file,) = facts["files"]
    assert (file["name"], file["size"]) == (log.name, log.stat().st_size)
    assert file["sha256"] == sha256(log.read_bytes()).hexdigest()


def test_files_of_one_name_are_told_apart(log, tmp_path):
    lines = log.read_text().splitlines(keepends=True)
    for day, half in (("1", lines[:100_001]), ("2", [lines[0], *lines[100_001:]])):
        (tmp_path / "logs" / day).mkdir(parents=True)
        (tmp_path / "logs" / day / "part.tsv").write_text("".join(half))
    said("clicks", "judge", tmp_path / "logs", "--out", tmp_path / "judged")
    facts = json.loads((tmp_path / "judged" / "clicks.json").read_text())
    assert [file["name"] for file in facts["files"]] == ["1/part.tsv", "2/part.tsv"]
    assert facts["log"]["pages"] == 20_000


def test_query_texts_stay_out_of_what_is_printed(tmp_path):
    lines = ["session,query,document,position,clicked"]
    for i in range(60):
        first, second = ("a", "b") if i % 2 else ("b", "a")
        lines += [f"s{i},{SECRET},{first},1,1", f"s{i},{SECRET},{second},2,{i % 3 == 0:d}"]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    output = said("clicks", "judge", tmp_path / "log.csv", "--out", tmp_path / "judged")
    assert SECRET not in output
    files = {p.name for p in (tmp_path / "judged").iterdir() if SECRET in p.read_text()}
    assert files == {"queries.tsv"}


def test_texts_are_no_ids(tmp_path):
    """TREC files cannot hold them; they are not quoted, and no model is fitted first."""
    lines = ["session,query,document,position,clicked", f"s,{SECRET},a,1,1", f"s,{SECRET},b,2,0"]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    arguments = ("clicks", "judge", tmp_path / "log.csv", "--out", tmp_path / "judged")
    message = refused(*arguments, "--rule", "queries=id")
    assert message.startswith("1 of 1 query ids have blanks, as texts do; leave out the rule")
    (tmp_path / "log.csv").write_text("\n".join(lines).replace("b,2", "b c,2"))
    assert "document id 'b c' has blanks" in refused(*arguments)


def test_models_are_compared_on_later_pages(tmp_path, rows):
    Simulation(rows, rows.X[:, 0], exploration=1.0).write(6_000, tmp_path / "log.csv")
    frame = pd.read_csv(tmp_path / "log.csv")
    frame["time"] = frame["session"]
    frame.to_csv(tmp_path / "log.csv", index=False)
    output = said(
        "clicks", "models", tmp_path / "log.csv", "--column", "time=time", "--split", 4001,
        "--model", "pbm", "--model", "ctr",
    )  # fmt: skip
    assert "pages: 4,000" in output
    assert "pages: 2,000" in output
    assert "Prediction of pages that were not fitted" in output
    lines = [line.split() for line in output.splitlines()]
    found = {
        line[0]: float(line[2])
        for line in lines
        if line[:1] in (["pbm"], ["ctr"]) and len(line) > 2
    }
    assert found["pbm"] < found["ctr"]
    log = ["clicks", "models", tmp_path / "log.csv", "--column", "time=time"]
    assert r"since, until (--split) or other rules leave out all" in refused(*log, "--split", -1)


def test_dates_are_dates_of_toml_too(tmp_path):
    lines = ["time,query,document,position,clicked"]
    for day in ("01", "02", "03"):
        lines += [f"2024-05-{day}T10:{i:02}:00,q{i},a,1,1" for i in range(20)]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    output = said(
        "clicks", "judge", tmp_path / "log.csv", "--column", "time=time", "--column", "session=",
        "--rule", "since=2024-05-02", "--model", "ctr", "--min-evidence", 1, "--out",
        tmp_path / "judged",
    )  # fmt: skip
    assert "pages: 40" in output
    assert "pages of another time, left out: 20" in output


def test_a_log_of_clicked_results_alone_is_told_of(tmp_path):
    lines = ["session,query,document,position,clicked"]
    lines += [f"s{i},q,{d},{1 + i % 2},1" for i in range(40) for d in "ab"[i % 2]]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    (tmp_path / "documents.csv").write_text("id,text\na,sea\nb,wood\n")
    remark = "every result that was shown was clicked"
    assert f"note: {remark}" in said(
        "clicks", "judge", tmp_path / "log.csv", "--out", tmp_path / "j"
    )
    assert remark in json.loads((tmp_path / "j" / "clicks.json").read_text())["remarks"][0]
    output = said("clicks", "models", tmp_path / "log.csv")
    assert f"note: ctr, pbm, cascade, dcm, dbn: {remark}" in output
    assert output.count(remark) == 1
    refusal = refused(
        "index", "clicks", f"log={tmp_path / 'log.csv'}", f"documents={tmp_path}/documents.csv",
        "--out", tmp_path / "ws",
    )  # fmt: skip
    assert "no document would be relevant" in refusal
    assert remark in refusal


def test_index_prints_a_line_for_each_fact(log, rows, tmp_path):
    documents = "id,text\n" + "".join(f"{d},sea\n" for d in rows.document_ids)
    (tmp_path / "documents.csv").write_text(documents)
    index = ("index", "clicks", f"log={log}", f"documents={tmp_path}/documents.csv")
    lines = said(*index, "--out", tmp_path / "a").splitlines()
    assert "  log, pages: 20,000" in lines
    assert "  remarks: none" in lines
    lines = said(
        *index, "columns.time=session", "cuts=[8000]", "--out", tmp_path / "b"
    ).splitlines()
    n_pages = [line for line in lines if "pages: " in line]
    assert n_pages == ["  period 1, log, pages: 7,999", "  period 2, log, pages: 12,001"]
    (grades,) = (line for line in lines if line.startswith("  period 2, pairs by grade: "))
    assert len(grades.split(",")) == 6
    assert not any(sign in line for line in lines for sign in "{}[]")


def test_a_split_by_a_date_of_milliseconds(tmp_path):
    lines = ["session,query,document,position,clicked,time"]
    for i in range(40):
        lines += [f"s{i},q,{d},{k + 1},{k},{1_780_271_000_000 + i * 50_000}"
                  for k, d in enumerate("ab")]  # fmt: skip
    (tmp_path / "log.csv").write_text("\n".join(lines))
    output = said(
        "clicks", "models", tmp_path / "log.csv", "--column", "time=time", "--split", "2026-06-01",
    )  # fmt: skip
    # 1,780,272,000 is 2026-06-01T00:00:00Z.
    assert "pages: 20" in output
    assert output.count("times: milliseconds since 1970") == 2


def test_counts_keep_their_ids(tmp_path):
    text = "query,document,position,shown,clicked\nq7,a,1,50,20\nq7,b,2,50,5\n"
    (tmp_path / "counts.csv").write_text(text)
    judge = ("clicks", "judge", tmp_path / "counts.csv", "--layout", "counts", "--model", "ctr")
    run(*judge, "--rule", "queries=id", "--out", tmp_path / "ids")
    assert set(read_qrels(tmp_path / "ids" / "qrels.txt")["qid"]) == {"q7"}
    run(*judge, "--out", tmp_path / "texts")
    made = f"q{sha256(b'q7').hexdigest()[:16]}"
    assert set(read_qrels(tmp_path / "texts" / "qrels.txt")["qid"]) == {made}


def test_models_of_pages_are_left_out_for_counts(tmp_path):
    text = "query,document,position,shown,clicked\nq,a,1,90,30\nq,a,2,90,15\nq,b,1,90,9\n"
    (tmp_path / "counts.csv").write_text(text)
    output = said("clicks", "models", tmp_path / "counts.csv", "--layout", "counts")
    assert "dbn: left out, the log has only counts" in output
    message = refused(
        "clicks", "models", tmp_path / "counts.csv", "--layout", "counts", "--model", "dbn"
    )
    assert "only counts" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["judge", "none.tsv", "--out", "j"], "no such file"),
        (["judge", "LOG", "--out", "j", "--model", "ubm"], "no click model 'ubm'"),
        (["judge", "none.tsv", "--out", "j", "--model", "pmb"], "did you mean 'pbm'"),
        (
            ["judge", "LOG", "--out", "j", "--param", "alpha=1"],
            "click model 'pbm' has no option 'alpha'",
        ),
        (["judge", "LOG", "--out", "j", "--rule", "bots=1"], "rules has no rule 'bots'"),
        (["judge", "LOG", "--out", "j", "--rule", "depth=x"], "rules: depth must be a whole"),
        (["judge", "LOG", "--out", "j", "--layout", "logs"], "layout must be 'rows' or"),
        (["judge", "LOG", "--out", "j", "--events", "e.jsonl"], "with layout 'ubi' only"),
        (["judge", "LOG", "--out", "j", "--layout", "ubi"], "needs the file of UBI events"),
        (["judge", "LOG", "--out", "j", "--labels", "others.tsv"], "no pair of the labels"),
        (["judge", "LOG", "--out", "j", "--min-evidence", "1e9"], "lower min_evidence"),
        (["judge", "none.tsv", "--out", "j", "--min-evidence", "0"], "must be above 0, got 0"),
        (["judge", "none.tsv", "--out", "j", "--grades", "1"], "n_grades (--grades) must lie"),
        (["judge", "none.tsv", "--out", "j", "--scale", "2"], "scale must be in (0, 1], got 2"),
        (["judge", "none.tsv", "--out", "j", "--param", "prior=[-1, 1]"], "two numbers >= 0"),
        (["judge", "LOG", "--out", "mine"], "holds no click judgements"),
        (["judge", "LOG", "--out", "."], "is the current folder"),
        (["models", "LOG", "--split", "3"], "since and until need times"),
        (["models", "LOG", "--test", "LOG"], "which is fitted: its pages do not show"),
        (["models", "none.csv", "--split", "x"], "--split is neither a number nor a time"),
        (["models", "none.csv", "--layout", "counts", "--split", "3"], "--split needs pages"),
        (["models", "none.jsonl", "--layout", "ubi", "--test", "b.jsonl"], "split UBI's by time"),
        (["simulate", "rows.txt", "--out", "x.tsv"], "either --column or --ranker"),
        (["simulate", "rows.txt", "--out", "x.tsv", "--column", "9"], "the data has no column 9"),
        (["simulate", "rows.txt", "--out", "x.tsv", "--column", "1", "--users", "me"], "users mu"),
    ],
)
def test_mistakes_are_told(arguments, message, log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    (tmp_path / "others.tsv").write_text("query\tdocument\tgrade\nsea\tnobody\t1\n")
    found = [str(log) if a == "LOG" else a for a in arguments]
    assert message in refused("clicks", *found)
    assert not (tmp_path / "j").exists()


def test_the_source_makes_a_collection(log, rows, tmp_path):
    documents = pd.DataFrame(
        {"id": rows.document_ids, "text": [f"t{d}" for d in rows.document_ids]}
    )
    documents.to_csv(tmp_path / "documents.csv", index=False)
    collection = read_collection(
        "clicks", log=str(log), documents=str(tmp_path / "documents.csv"),
        document_columns={"id": "id", "body": "text"}, n_grades=3, scale=1.0,
    )  # fmt: skip
    assert collection.n_documents == 180
    assert sorted(collection.query_texts) == sorted(rows.query_ids)
    label = rows.y[collection.judgements.document]
    assert np.corrcoef(label, collection.judgements.grade)[0, 1] > 0.85
    query = [collection.query_texts[q] for q in collection.judgements.query]
    of = {d: rows.query_ids[q] for d, q in zip(rows.document_ids, rows.query_index, strict=True)}
    assert query == [of[collection.document_ids[d]] for d in collection.judgements.document]
    assert collection.description["click model"] == "pbm"


def test_a_query_has_the_same_id_in_every_log_and_the_judged_are_counted(tmp_path):
    (tmp_path / "documents.csv").write_text("id,text\na,sea\nb,wood\n")
    found = {}
    for name, queries in (("first", ["Red  shoes", "rare", "hat"]), ("second", ["hat", "coat"])):
        lines = ["session,query,document,position,clicked"]
        for query in queries:
            for i in range(1 if query == "rare" else 40):
                lines += [f"{query}{i},{query},{d},{k + 1},{(i + k) % 3 // 2}"
                          for k, d in enumerate("ab"[:: 1 - i % 2 * 2])]  # fmt: skip
        log = tmp_path / f"{name}.csv"
        log.write_text("\n".join(lines))
        read = read_collection("clicks", log=str(log), documents=str(tmp_path / "documents.csv"))
        found[name] = dict(zip(read.query_texts, read.query_ids, strict=True))
        said("clicks", "judge", log, "--out", tmp_path / name)
        judged = pd.read_csv(tmp_path / name / "queries.tsv", sep="\t")
        assert (
            found[name].items() <= dict(zip(judged["text"], judged["query"], strict=True)).items()
        )
        told = read.description
        assert (told["queries"], told["queries without judgement, left out"]) == (
            2, len(queries) - 2
        )  # fmt: skip
    assert found["first"]["hat"] == found["second"]["hat"]
    assert found["first"]["red shoes"] == "q" + sha256(b"red shoes").hexdigest()[:16]
    assert set(found["second"]) == {"hat", "coat"}


def test_commands_and_the_source_leave_out_bad_rows(log, rows, tmp_path):
    bad = tmp_path / "bad.tsv"
    bad.write_text(log.read_text() + "20001\tq\td1\t\t0\n20001\tq\td")
    judge = ("clicks", "judge", bad, "--out", tmp_path / "judged")
    assert "bad.tsv, line 200003: 3 values, the first line has 5" in refused(*judge)
    output = said(*judge, "--on-bad-row", "skip")
    assert f"bad rows, left out, position is missing: 1, the first in {bad}, line 200002" in output
    assert "it has another number of values than the first line: 1, the first in" in output
    documents = pd.DataFrame({"id": rows.document_ids, "text": "sea"})
    documents.to_csv(tmp_path / "documents.csv", index=False)
    given = {"log": str(bad), "documents": str(tmp_path / "documents.csv")}
    read = read_collection("clicks", **given, on_bad_row="skip")
    assert len(read.description["log"]["bad rows, left out"]) == 2


def test_the_source_tells_of_documents_that_are_not_there(log, rows, tmp_path):
    text = "id,text\n" + "".join(f"{d},x\n" for d in rows.document_ids[:100])
    (tmp_path / "documents.csv").write_text(text)
    options = {"log": str(log), "documents": str(tmp_path / "documents.csv"),
               "document_columns": {"id": "id", "body": "text"}}  # fmt: skip
    with pytest.raises(InputError, match=r"have a document that is not there, .*; add it, or skip"):
        read_collection("clicks", **options)
    # Most are gone, but one is written in another way, and would be lost if all were skipped.
    (tmp_path / "documents.csv").write_text(text + "D150,x\n")
    with pytest.raises(InputError, match="example 'd150'; there is 'D150': write ids alike"):
        read_collection("clicks", **options)
    (tmp_path / "documents.csv").write_text(text)
    collection = read_collection("clicks", **options, on_unknown="skip")
    assert collection.description["judgements of documents that are not there, left out"] > 0
    assert collection.judgements.document.max() < 100
    with pytest.raises(InputError, match="queries need their texts"):
        read_collection("clicks", **options, rules={"queries": "id"})
    (tmp_path / "documents.csv").write_text(text + f"{rows.document_ids[0]},y\n")
    with pytest.raises(InputError, match="which text counts: on_other_text=first"):
        read_collection("clicks", **options, on_unknown="skip")
    collection = read_collection("clicks", **options, on_unknown="skip", on_other_text="last")
    assert collection.fields["body"][0] == "y"


def test_judgements_stay_out_of_the_folder_of_the_log(log, tmp_path):
    inside = tmp_path / "judged"
    message = refused("clicks", "judge", tmp_path, "--out", inside)
    assert f"{inside} is in {tmp_path}, whose files are the log" in message
