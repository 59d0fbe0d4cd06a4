"""Qrels and runs: round trips, strictly decreasing scores, errors with file and line."""

import bz2
import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from letor.dataset import RankingData
from letor.errors import InputError
from letor.trec import qrels_of, read_qrels, read_run, run_of, write_qrels, write_run


def run_frame(scores, query=None):
    query = ["q"] * len(scores) if query is None else query
    return pd.DataFrame(
        {"qid": query, "docno": [f"d{i}" for i in range(len(scores))], "score": scores}
    )


def test_run_as_written(tmp_path):
    """Queries in order of appearance, ties in row order, the later tied score one float lower."""
    path = tmp_path / "run.txt"
    frame = run_frame([1.0, 0.25, 1.0, 3.0, -0.5], ["b", "a", "b", "b", "a"])
    write_run(frame, path, tag="mine")
    assert path.read_text() == (
        "b Q0 d3 1 3.0 mine\n"
        "b Q0 d0 2 1.0 mine\n"
        "b Q0 d2 3 0.99999994 mine\n"
        "a Q0 d1 1 0.25 mine\n"
        "a Q0 d4 2 -0.5 mine\n"
    )


scores = st.lists(
    st.one_of(st.sampled_from([0.0, -0.0, 1.0, -1.0]), st.floats(-1e30, 1e30)),
    min_size=1, max_size=30,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(scores)
def test_written_scores_strictly_decrease_and_stay_close(tmp_path_factory, scores):
    path = tmp_path_factory.mktemp("run") / "run.txt"
    write_run(run_frame(scores), path)
    run = read_run(path)
    single = run["score"].to_numpy(np.float32)
    assert (np.diff(single) < 0).all(), "in the precision of trec_eval"
    assert (np.diff(run["score"]) < 0).all()
    order = np.argsort(-np.array(scores), kind="stable")
    assert run["docno"].tolist() == [f"d{i}" for i in order]
    assert run["rank"].tolist() == list(range(1, len(scores) + 1))
    # Lowered by no more than one float32 step per tied or nearly tied document.
    given_ = np.array(scores, dtype=np.float32)[order]
    lowest = given_.copy()
    for _ in scores:
        lowest = np.nextafter(lowest, np.float32(-np.inf))
    assert ((single <= given_) & (single >= lowest)).all()


def test_scores_that_differ_only_in_float64_keep_their_order(tmp_path):
    write_run(run_frame([1.0, 1.0 + 1e-12]), tmp_path / "run.txt")
    assert read_run(tmp_path / "run.txt")["docno"].tolist() == ["d1", "d0"]


def test_ranks_without_scores_are_a_run(tmp_path):
    """As MS MARCO has them."""
    (tmp_path / "run.tsv").write_text("7\td1\t2\n7\td0\t1\n\n9\td1\t1\n")
    run = read_run(tmp_path / "run.tsv")
    assert list(zip(run["qid"], run["docno"], run["rank"], run["score"], strict=True)) == [
        ("7", "d1", 2, 0.5),
        ("7", "d0", 1, 1.0),
        ("9", "d1", 1, 1.0),
    ]


OPEN = {".gz": gzip.open, ".bz2": bz2.open, ".zst": zstandard.open}


@pytest.mark.parametrize("name", ["qrels.txt", "qrels.txt.gz", "qrels.bz2", "qrels.txt.zst"])
def test_qrels_round_trip(tmp_path, name):
    qrels = pd.DataFrame({"qid": ["7", "7", "ä"], "docno": ["x", "y", "x"], "label": [2, 0, -1]})
    write_qrels(qrels, tmp_path / name)
    again = read_qrels(tmp_path / name)
    assert again.to_dict("list") == qrels.to_dict("list")
    assert again["label"].dtype == np.int64
    with OPEN.get(Path(name).suffix, open)(tmp_path / name, "rb") as file:
        text = file.read()
    assert text.decode() == "7 0 x 2\n7 0 y 0\nä 0 x -1\n"


def test_bytes_that_are_not_utf8_survive(tmp_path):
    path = tmp_path / "qrels"
    path.write_bytes(b"1 0 caf\xe9 1\n")
    write_qrels(read_qrels(path), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_gz_bytes_repeat(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_run(run_frame([1.0, 2.0]), tmp_path / name)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_reading_accepts_tabs_blank_lines_and_crlf(tmp_path):
    path = tmp_path / "run.txt"
    path.write_bytes(b"1\tQ0\td1\t1\t2.5\tt\r\n\r\n1 Q0  d2 2 1e-3 t\n")
    run = read_run(path)
    assert run["score"].tolist() == [2.5, 0.001]
    assert run["docno"].tolist() == ["d1", "d2"]


RUN_TEXTS = st.lists(
    st.sampled_from(
        ["1 Q0 a 1 2 t", "\t1 Q0 b 2 1.5 t ", '2 Q0 #\u00e9 1 -1e3 "t', "", " \t", "x"]
    ),
    max_size=6,
)


@given(RUN_TEXTS, st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
def test_runs_are_read_as_line_by_line(tmp_path_factory, lines, end, ended):
    path = tmp_path_factory.mktemp("run") / "a.run"
    path.write_bytes((end.join(lines) + end * ended).encode())
    expected, seen = [], {}
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if len(fields) == 1:
            with pytest.raises(InputError, match=f"a.run:{number}: 1 field instead of 6"):
                read_run(path)
            return
        if fields:
            expected.append([fields[0], fields[2], float(fields[4]), int(fields[3]), fields[5]])
    for number, line in enumerate(lines, start=1):
        if line.strip() and seen.setdefault(line, number) != number:
            with pytest.raises(InputError, match=f"a.run:{number}: .*already in line {seen[line]}"):
                read_run(path)
            return
    assert read_run(path).to_numpy().tolist() == expected


def test_judgements_of_three_fields_with_tabs(tmp_path):
    (tmp_path / "qrels").write_text("q 1\td 1\t2\nq 1\t d2 \t0\n")
    assert read_qrels(tmp_path / "qrels").to_numpy().tolist() == [
        ["q 1", "d 1", 2],
        ["q 1", "d2", 0],
    ]


@pytest.mark.parametrize("line", ["\td\t1", "q\t \t1", "q\td\t"])
def test_judgements_with_an_empty_field_are_refused(tmp_path, line):
    (tmp_path / "qrels").write_text(f"q\td\t1\n{line}\n")
    with pytest.raises(InputError, match="qrels:2: 2 fields instead of 4"):
        read_qrels(tmp_path / "qrels")


def test_labels_may_be_whole_numbers_with_a_point(tmp_path):
    (tmp_path / "qrels").write_text("q 0 a 1.0\nq 0 b 2.00\nq 0 c 1e0\nq 0 d -1.0\nq 0 e 3\n")
    labels = read_qrels(tmp_path / "qrels")["label"]
    assert (labels.tolist(), labels.dtype) == ([1, 2, 1, -1, 3], np.int64)


def test_ranks_may_have_a_point(tmp_path):
    (tmp_path / "run").write_text("q Q0 a 1.0 3 t\nq Q0 b 2.0 1 t\n")
    assert read_run(tmp_path / "run")["rank"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("reader", "text", "message"),
    [
        (read_qrels, "1 0 d 1\n1 0 d\n", r":2: 3 fields instead of 4 .*'1 0 d'"),
        (read_qrels, "1 0 d 1.5\n", ":1: label '1.5' is not a whole number"),
        (read_qrels, "1 0 d 1\n\n1 0 e nan\n", ":3: label 'nan' is not a whole number"),
        (read_qrels, "1 0 d 1e30\n", ":1: label '1e30' is not a whole number"),
        (read_qrels, "1 0 d 1\n1 0 e 1_0\n", ":2: label '1_0' is not a whole number"),
        (read_qrels, "1 0 d \u0661\n", ":1: label .* is not a whole number"),
        (read_qrels, "1\td\t1\n1\t\t1\n", ":2: 2 fields instead of 4"),
        (read_qrels, " \td\t1\n", ":1: 2 fields instead of 4"),
        (read_run, "1 Q0 d 1 1_0 t\n", ":1: score '1_0' is not a number"),
        (read_qrels, "1 0 d 1\n\n1 0 d 0\n", ":3: document 'd' of query '1' is already in line 1"),
        (read_run, "1 Q0 d 1 x t\n", ":1: score 'x' is not a number"),
        (read_run, "1 Q0 d 1 nan t\n", ":1: score 'nan' is not finite"),
        (read_run, "1 Q0 d first 1 t\n", ":1: rank 'first' is not a whole number"),
        (read_run, "1 Q0 d 1 1 t\n1 Q0 d 2 0 t\n", ":2: document 'd' of query '1'"),
        (read_run, "1 Q0 d 1 1 t\n".encode("utf-16"), ":1: null bytes, as in UTF-16"),
        (read_run, "1\td\t1\n1\te\t0\n", ":2: '0' is no rank of query '1'"),
        (read_run, "1\td\t1\n2\td\t1\n1\te\t1\n", ":3: '1' is no rank of query '1'"),
        (read_run, "1\td\t1.5\n", ":1: rank '1.5' is not a whole number"),
        (read_run, "1\td\t1\n1\td\t2\n", ":2: document 'd' of query '1'"),
        (read_run, "1\td\t1\n1 Q0 d 1 1 t\n", r":2: 6 fields instead of 3 \(qid docno rank"),
        (read_run, "1 0 d 1\n", r"fields instead of 6 \(qid Q0 docno rank score tag\)"),
    ],
)
def test_bad_lines_are_named(tmp_path, reader, text, message):
    path = tmp_path / "file.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=message) as raised:
        reader(path)
    assert str(path) in str(raised.value)


def test_damaged_files_are_named(tmp_path):
    path = tmp_path / "qrels.gz"
    path.write_bytes(gzip.compress(b"1 0 d 1\n" * 1000)[:-12])
    with pytest.raises(InputError, match=r"qrels\.gz: damaged \.gz file"):
        read_qrels(path)
    path.write_bytes(b"1 0 d 1\n")
    with pytest.raises(InputError, match="damaged"):
        read_qrels(path)


def test_frames_that_no_file_can_hold_are_refused(tmp_path):
    path = tmp_path / "out"
    good = run_frame([1.0, 2.0])
    with pytest.raises(InputError, match="document id 'd 1'"):
        write_run(good.assign(docno=["d 1", "d2"]), path)
    with pytest.raises(InputError, match="query id ''"):
        write_run(good.assign(qid=["", "q"]), path)
    with pytest.raises(InputError, match="once; the first is query 'q', document 'd'"):
        write_run(good.assign(docno="d"), path)
    with pytest.raises(InputError, match="document 'd1' has a score that is NaN"):
        write_run(run_frame([1.0, np.nan]), path)
    with pytest.raises(InputError, match="document d0 is 1e"):
        write_run(run_frame([1e39, 1.0]), path)
    with pytest.raises(InputError, match=r"document d0 is -3.4e\+38: .* within 3e\+38"):
        write_run(run_frame([-3.4e38, -3.4e38]), path)  # the second could be lowered to infinity
    with pytest.raises(InputError, match="run, score: could not convert string to float: 'x'"):
        write_run(good.assign(score=["x", "1"]), path)
    with pytest.raises(InputError, match="tag 'a b'"):
        write_run(good, path, tag="a b")
    with pytest.raises(InputError, match="qrels lacks the column label"):
        write_qrels(good, path)
    with pytest.raises(InputError, match="whole numbers"):
        write_qrels(good.assign(label=[0.5, 1]), path)
    with pytest.raises(InputError, match=r"has the label 1e\+300; .* below 2\^53"):
        write_qrels(good.assign(label=[1e300, 1]), path)
    assert not path.exists()


def test_runs_and_judgements_without_rows(tmp_path):
    write_run(run_frame([]), tmp_path / "run")
    write_qrels(run_frame([]).assign(label=[]), tmp_path / "qrels")
    assert (tmp_path / "run").read_bytes() == (tmp_path / "qrels").read_bytes() == b""


def test_frames_of_rows(tmp_path):
    ids = np.array(["x", "y", "z"], dtype=object)
    data = RankingData.from_rows(np.zeros((3, 1)), [1, 0, 2], ["a", "b", "a"], document_ids=ids)
    assert qrels_of(data).to_dict("list") == {
        "qid": ["a", "b", "a"], "docno": ["x", "y", "z"], "label": [1, 0, 2],
    }  # fmt: skip
    halves = RankingData.from_rows(np.zeros((3, 1)), [1, 1.5, 2], ["a"] * 3, document_ids=ids)
    with pytest.raises(InputError, match=r"query 'a', document 'y' has the label 1\.5; judgements"):
        qrels_of(halves)
    run = run_of(data, [0.5, 0.1, 0.7])
    assert run.columns.tolist() == ["qid", "docno", "score"]
    with pytest.raises(InputError, match=r"\(1,\) for 3 rows"):
        run_of(data, [1.0])
    with pytest.raises(InputError, match="document ids"):
        run_of(RankingData.from_rows([[0]], [1], ["a"]), [1.0])
