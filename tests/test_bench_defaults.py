"""The experiment on default parameters: its fits are kept, and its table compares them."""

import gzip
import json

import bench_defaults as bench
import debian_collections
import numpy as np
import pytest
import ranking_tasks
from scipy.sparse import csr_matrix

MODELS = ("diagonal", "cl-lsa", "bltm")


@pytest.fixture
def task():
    """Queries and documents of words of five topics; the documents of its topic are relevant."""
    rng, topic, words = np.random.default_rng(0), np.arange(30) % 5, np.arange(40)
    of_topic = (words[None] % 5 == topic[:, None]) * 0.4 + 0.1
    Q, D = (csr_matrix((rng.random((30, 40)) < of_topic).astype(np.float32)) for _ in "qd")
    weigh = ranking_tasks.TfIdf().fit(D).transform
    query, document = np.nonzero(topic[:, None] == topic[None])
    preferences = ranking_tasks.pairs((Q, D), query, document)
    splits = ranking_tasks.in_parts(preferences.queries, 2)
    return ranking_tasks.Task("made up", (weigh(Q), weigh(D)), (Q, D), preferences, splits)


def test_fits_are_kept_and_compared(task, tmp_path, monkeypatch):
    monkeypatch.setitem(bench.OF_OTHERS, "rank", (2, 3))
    monkeypatch.setitem(bench.OF_OTHERS, "n_topics", (2, 3))
    monkeypatch.setattr(bench, "OF_EPOCHS", {"margin": (0.1, 0.3)})
    store = bench.Store(tmp_path)
    bench.compute(task, store, MODELS, grid=False)
    (row, *_) = bench.rows_of(store, ["made up"], MODELS)
    assert row.start
    assert not row.tuned
    assert "not tuned yet" in bench.report_of(bench.table_of([row]))

    bench.compute(task, store, MODELS, grid=True)
    table = bench.table_of(bench.rows_of(store, ["made up"], MODELS))
    assert table["model"].tolist() == list(MODELS)
    assert (table["queries"] == 30).all()
    assert table[["start", "default", "tuned"]].notna().to_numpy().all()
    assert np.allclose(table["default"] - table["start"], table["- start"])
    assert "made up" in bench.report_of(table)

    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    spoilt = tmp_path / "made up/bltm/default@1.json"
    spoilt.write_text("{")
    assert store.get(bench.Fit("made up", "bltm", {}, "1")) is None
    bench.compute(task, store, MODELS, grid=False)
    bench.compute(task, store, MODELS, grid=True)
    changed = [path for path, time in times.items() if path.stat().st_mtime_ns != time]
    assert changed == [spoilt]
    again = bench.table_of(bench.rows_of(store, ["made up"], MODELS))
    assert again.drop(columns="seconds").equals(table.drop(columns="seconds"))


def test_marks_need_a_sure_difference():
    def row(name, model, gain):
        rng = np.random.default_rng(0)
        start = rng.random(200)
        values = start + gain + 0.01 * rng.standard_normal(200)
        record = {"queries": list(range(200)), "kept_start": False, "seconds": 1.0}
        return bench.Row(
            name, model, [record | {"values": start}], [record | {"values": values}],
            [record | {"values": values}],
        )  # fmt: skip

    rows = [row("npl", "ssi", 0.1), row("cisi", "ssi", -0.1), row("npl", "psi", 0.0)]
    table = bench.table_of(rows)
    assert table["vs start"].tolist() == ["above", "below", ""]
    assert table["vs tuned"].tolist() == ["", "", ""]
    summary = bench.summary_of(table)
    assert summary["below start"].tolist() == ["1 of 2", "0 of 1"]
    assert summary["goals"].tolist() == ["missed", "missed"]
    report = bench.report_of(table)
    assert "Influenced the defaults: cisi. Checked once: npl." in report
    assert report.count("▲ |") == report.count("▼ |") == 1


def test_a_folder_of_one_s_own_is_a_task_of_links_or_of_judgements(tmp_path):
    documents = {f"d{i}": (f"title{i}", f"word{i % 3} word{i}") for i in range(9)}
    links = {(f"d{i}", f"d{(i + 3) % 9}") for i in range(9)}
    debian_collections.write(tmp_path / "links", documents, links, {})
    task = ranking_tasks.of_folder(tmp_path / "links")
    assert task.name == "links"
    assert np.array_equal(task.excluded, np.arange(9))  # no document is found for itself
    assert task.preferences.documents_of(1).tolist() == [4]
    tested = np.concatenate([split.test for split in task.splits])
    assert sorted(tested.tolist()) == list(range(9))

    debian_collections.write(tmp_path / "judged", documents, {("q2", "d2"), ("q5", "d5")}, {
        "q2": "word2", "q5": "word5",
    })  # fmt: skip
    task = ranking_tasks.of_folder(tmp_path / "judged")
    assert task.excluded is None
    assert task.preferences.documents_of(1).tolist() == [5]
    assert task.rows[0].shape[0] == 2


def test_pages_and_dictionaries_of_debian_are_read(tmp_path):
    pages, words = tmp_path / "usr/share/man/man1", tmp_path / "usr/share/dictd"
    pages.mkdir(parents=True)
    words.mkdir()
    see = ".SH SEE ALSO\n.BR sort (1),\n.BR gone (1)\n"
    texts = {"cat": f".TH CAT 1\n\\fBcat\\fR joins\n{see}", "sort": "sorts", "c": ".so man1/cat.1"}
    for name, text in texts.items():
        (pages / f"{name}.1.gz").write_bytes(gzip.compress(text.encode()))
    documents, links = debian_collections.manuals(tmp_path)
    assert documents == {"cat.1": ("cat.1", "CAT 1 cat joins"), "sort.1": ("sort.1", "sorts")}
    assert links == {("cat.1", "sort.1")}

    entries = ["bit\n   A {binary digit} of a\n   {byte}.\n", "byte\n   Eight of {bit}, {Byte}.\n"]
    (words / "foldoc.dict.dz").write_bytes(gzip.compress("".join(entries).encode()))
    digits, size = debian_collections._DIGITS, len(entries[0])
    (words / "foldoc.index").write_text(
        f"00database\tA\tB\nbit\tA\t{digits[size]}\n"
        f"Byte\t{digits[size]}\t{digits[len(entries[1])]}\n"
    )
    documents, links = debian_collections.dictionary(tmp_path, "foldoc")
    assert documents["0"] == ("bit", "A binary digit of a byte.")
    assert links == {("0", str(size)), (str(size), "0")}


def test_the_rfcs_that_later_ones_cite_are_graded_by_the_kind_of_reference(tmp_path):
    folder = tmp_path / "usr/share/doc/RFC/links"
    folder.mkdir(parents=True)
    contents = "Contents\n 9. References\n" + "words\n" * 50
    lists = "9. Normative References\n [RFC3001] [RFC2119]\n9.1. Informative References\n [RFC3002]"
    texts = {"3001": "", "3002": "", "3003": "", "7001": contents + lists, "7002": "[RFC3001]"}
    for number, text in texts.items():
        about = {"title": f"Title {number}", "abstract": "An <br> abstract", "source": "A Group"}
        (folder / f"rfc{number}.json").write_text(json.dumps(about))
        (folder / f"rfc{number}.txt.gz").write_bytes(gzip.compress(f"{text} end\n".encode()))
    documents, grades, queries, groups = debian_collections.rfcs(tmp_path, n_queries=1)
    assert sorted(documents) == ["rfc3001", "rfc3002", "rfc3003"]
    assert documents["rfc3001"] == ("Title 3001", "An abstract")
    assert grades == {("rfc7001", "rfc3001"): 2, ("rfc7001", "rfc3002"): 1}
    assert queries == {"rfc7001": "Title 7001"}
    assert groups == {"rfc7001": "A Group"}
