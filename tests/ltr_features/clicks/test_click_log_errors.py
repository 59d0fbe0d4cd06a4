"""Rows and files that are left out or refused, and that no query's text is told."""

import numpy as np
import pandas as pd
import pytest
from click_logs import EXPECTED, HEADER, ROWS, SECRET, as_counts, page, write_log
from hypothesis import given, settings
from hypothesis import strategies as st

from letor.errors import InputError
from ltr_features.clicks.reading import read_click_counts, read_click_rows
from ltr_features.clicks.rules import LogRules

GOOD = [row for i in range(60) for row in page(f"s{i}", "q", ["a", "b"], ["a"])]


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".jsonl", ".parquet"])
def test_bad_rows_are_left_out_and_counted_by_reason(tmp_path, suffix):
    rows = [*GOOD[:3], ("s1", "", "b", 2, 0), *GOOD[3:], (None, "q", "a", 1, 0)]
    rows += [("s", "q", "a", None, 0), ("s", "q", "a", None, 0)]
    path = write_log(tmp_path / f"x{suffix}", rows)
    header = int(suffix in (".tsv", ".csv"))
    word = "row" if suffix == ".parquet" else "line"
    reasons = {
        "query is missing": f"1, the first in {path}, {word} {4 + header}",
        "session is missing": f"1, the first in {path}, {word} {122 + header}",
        "position is missing": f"2, the first in {path}, {word} {123 + header}",
    }
    if suffix != ".parquet":  # a line that was cut off, and the last one
        lines = path.read_text().splitlines()
        lines[10] = lines[10][:7]
        path.write_text("\n".join(lines))
        what = "not a JSON object"
        if header:
            what = "it has another number of values than the first line"
        reasons = {what: f"1, the first in {path}, line 11", **reasons}
    with pytest.raises(InputError):
        read_click_rows(path)
    log = read_click_rows(path, on_bad_row="skip")
    n = len(GOOD) - (suffix != ".parquet")
    assert (log.description["rows"], int(log.shown.sum())) == (n, n)
    assert log.description["bad rows, left out"] == reasons


def test_too_many_bad_rows_are_refused(tmp_path):
    path = write_log(tmp_path / "x.tsv", [*GOOD[:60], *[("s", "q", "a", None, 0)] * 4])
    with pytest.raises(
        InputError, match=r"4 of 64 rows .* more than 5 % \(position is missing: 4, "
    ):
        read_click_rows(path, on_bad_row="skip")
    with pytest.raises(InputError, match="on_bad_row must be 'raise' or 'skip'"):
        read_click_rows(path, on_bad_row="drop")
    header = ("query", "document", "position", "shown", "clicked")
    counts = write_log(
        tmp_path / "c.tsv", [("q", "a", 1, 9, 3)] * 20 + [("q", "a", 1, 2, 3)], header
    )
    log = read_click_counts(counts, on_bad_row="skip")
    assert as_counts(log) == {("q", "a", 0): (180, 60)}
    told = {"more clicks than showings": f"1, the first in {counts}, line 22"}
    assert log.description["bad rows, left out"] == told


def test_mixed_pages_are_refused(tmp_path):
    a, b = page("s", SECRET, ["a", "b"]), page("t", SECRET, ["c", "d"])
    path = write_log(tmp_path / "x.tsv", [a[0], b[0], a[1], b[1]])
    with pytest.raises(InputError, match=r"x\.tsv, line 4: goes on with a page that ended") as e:
        read_click_rows(path)
    assert SECRET not in str(e.value)
    halves = [write_log(tmp_path / f"{i}.tsv", [row]) for i, row in enumerate(a)]
    with pytest.raises(InputError, match=r"1\.tsv, line 2: .* must be adjacent, in one file"):
        read_click_rows(halves)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("s", SECRET, "a", 1, 0), ("s", SECRET, "b", "x", 0)], "line 3: position is 'x', not a"),
        (
            [("s", SECRET, "a", 1, 0), ("s", SECRET, "b", 2, "maybe")],
            "line 3: clicked is 'maybe', ne",
        ),
        ([("s", SECRET, "a", 1, -1)], "line 2: clicked is '-1', neither"),
        ([("s", SECRET, "a", 1, 0), ("s", SECRET, "b", None, 1)], "line 3: position is missing"),
        ([("s", SECRET, "a", 7, 0)], "line 2: the least position of the log is 7"),
        ([("s", SECRET, "a", 1, 0), ("s", SECRET, "b", 1002, 0)], "line 3: position 1002 is beyon"),
        ([("s", SECRET, "", 1, 0)], "line 2: document is empty"),
        ([("s", "  ", "a", 1, 0)], "line 2: query is empty"),
        ([("", SECRET, "a", 1, 0)], "line 2: session is empty"),
    ],
)
@pytest.mark.parametrize("name", ["x.tsv", "x.csv"])
def test_bad_rows_are_refused_by_line(tmp_path, rows, message, name):
    with pytest.raises(InputError, match=message) as e:
        read_click_rows(write_log(tmp_path / name, rows))
    assert SECRET not in str(e.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", f"session,query,document,position,clicked\ns,{SECRET},a,1,0,extra\n"),
        ("x.tsv", f"session\tquery\tdocument\tposition\tclicked\ns\t{SECRET}\ta\n"),
        ("x.jsonl", f'{{"query": "{SECRET}"\n'),
        ("x.jsonl", f'{{"query": ["{SECRET}"], "position": {{"a": "{SECRET}"}}}}\n'),
        ("x.jsonl", f'["{SECRET}"]\n'),
        ("x.parquet", SECRET),
        ("x.txt", SECRET),
    ],
)
def test_damaged_files_are_refused_without_their_content(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as e:
        read_click_rows(tmp_path / name)
    assert name in str(e.value)
    assert SECRET not in str(e.value)


def test_columns_of_other_types(tmp_path):
    frame = pd.DataFrame(ROWS, columns=list(HEADER))
    moments = pd.Timestamp("2024-05-01T10:00:00") + pd.to_timedelta(range(len(frame)), unit="h")
    typed = frame.assign(
        query=frame["query"].astype("category"), position=frame["position"].astype(float),
        clicked=frame["clicked"].astype("int8"), time=moments,
    )  # fmt: skip
    typed.to_parquet(tmp_path / "x.parquet")
    log = read_click_rows(tmp_path / "x.parquet", columns={"time": "time"})
    assert as_counts(log) == EXPECTED
    since = LogRules(since="2024-05-01T13:00:00Z")
    late = read_click_rows(tmp_path / "x.parquet", columns={"time": "time"}, rules=since)
    assert late.n_pages == 3
    frame.assign(document=[["a", "b"]] * len(frame)).to_parquet(tmp_path / "y.parquet")
    with pytest.raises(InputError, match=r"y\.parquet: column document holds list"):
        read_click_rows(tmp_path / "y.parquet")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_columns_are_found_by_their_usual_names(tmp_path, suffix):
    names = ("Session_ID", "query", "product_id", "rank", "click")
    path = write_log(tmp_path / f"x{suffix}", ROWS, names)
    log = read_click_rows(path)
    assert as_counts(log) == EXPECTED
    assert log.description["columns, by their usual names"] == (
        "document 'product_id', position 'rank', clicked 'click', session 'Session_ID'"
    )
    plain = read_click_rows(write_log(tmp_path / f"y{suffix}", ROWS))
    assert "columns, by their usual names" not in plain.description
    assert "columns left out" not in plain.description
    more = [(*row, "new", 1) for row in ROWS]
    filtered = read_click_rows(write_log(tmp_path / f"w{suffix}", more, (*names, "facet", "hour")))
    assert filtered.description["columns left out"] == "'facet', 'hour'"
    counted = pd.DataFrame(
        [(*key, *value) for key, value in EXPECTED.items()],
        columns=["search_term", "sku", "position", "impressions", "clicks"],
    )
    counts = read_click_counts(write_log(tmp_path / f"z{suffix}", counted, counted.columns))
    assert as_counts(counts) == EXPECTED


def test_missing_columns_and_names_are_told(tmp_path):
    unusual = write_log(tmp_path / "y.csv", ROWS, ("visit", "query", "doc", "rank", "click"))
    with pytest.raises(
        InputError, match=r"name for document, session: name it .* columns.document="
    ):
        read_click_rows(unusual)
    path = write_log(tmp_path / "x.tsv", ROWS)
    with pytest.raises(InputError, match="no column rank"):
        read_click_rows(path, columns={"position": "rank"})
    with pytest.raises(InputError, match="columns: rank unknown"):
        read_click_rows(path, columns={"rank": "position"})
    with pytest.raises(InputError, match="query must have a name"):
        read_click_rows(path, columns={"query": ""})
    with pytest.raises(InputError, match=r"read from files: save the frame, frame\.to_parquet"):
        read_click_rows(pd.DataFrame({"query": ["x"], "document": ["a"]}))
    with pytest.raises(InputError, match="at least one file"):
        read_click_rows([])
    empty = write_log(tmp_path / "empty.tsv", [])
    for rules in (LogRules(), LogRules(max_pages=3)):
        with pytest.raises(InputError, match="no result was shown"):
            read_click_rows(empty, rules=rules)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((SECRET, "a", 1, 3, 4), "line 2: 4 clicks on a result that was shown 3 times"),
        ((SECRET, "a", 1, -3, 0), "line 2: shown is '-3', not a whole number"),
        ((SECRET, "a", 1, 3, 0.5), "line 2: clicked is '0.5', not a whole number"),
    ],
)
def test_bad_counts_are_refused(tmp_path, row, message):
    header = ("query", "document", "position", "shown", "clicked")
    with pytest.raises(InputError, match=message) as e:
        read_click_counts(write_log(tmp_path / "x.tsv", [row], header))
    assert SECRET not in str(e.value)
    with pytest.raises(InputError, match="neither pages nor times"):
        read_click_counts(tmp_path / "x.tsv", rules=LogRules(max_clicks=3))


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_broken_logs_are_read_or_refused_by_line(tmp_path_factory, data):
    """A log with a few fields replaced: either it is read, or an InputError names the file; never
    anything else, and never a query."""
    rows = [
        list(row) for row in [*page("s", SECRET, list("abc"), "b"), *page("t", "q", list("ab"))]
    ]
    for _ in range(data.draw(st.integers(1, 3))):
        row = data.draw(st.integers(0, len(rows) - 1))
        column = data.draw(st.integers(0, 4))
        values = st.sampled_from(
            ["", "-1", "0", "2", "x", "1e9", "nan", "é\u00a0", "true", "99999"]
        )
        rows[row][column] = data.draw(values)
    name = data.draw(st.sampled_from(["x.tsv", "x.jsonl"]))
    path = write_log(tmp_path_factory.mktemp("log") / name, rows)
    log, message = None, ""
    try:
        log = read_click_rows(path)
    except InputError as error:
        message = str(error)
    if log is None:
        assert str(path) in message or "no result was shown" in message
        assert SECRET not in message
        return
    assert (log.clicked <= log.shown).all()
    assert np.isin(log.result_pair, np.arange(log.n_pairs)).all()


@pytest.mark.parametrize("rule", ["raise", "skip"])
def test_files_without_a_row_are_told(tmp_path, rule):
    log = write_log(tmp_path / "log.csv", GOOD)
    empty = write_log(tmp_path / "empty.csv", [])
    described = read_click_rows([log, empty], on_bad_row=rule).description
    assert described["files without a row"] == str(empty)
    assert "files without a row" not in read_click_rows(log, on_bad_row=rule).description


def test_a_file_of_bad_rows_is_not_said_to_have_none(tmp_path):
    log, bad = (write_log(tmp_path / name, GOOD) for name in ("log.csv", "bad.csv"))
    bad.write_text(bad.read_text().partition("\n")[0] + "\ns1,q\n")
    described = read_click_rows([log, bad], on_bad_row="skip").description
    assert "files without a row" not in described
    assert "bad.csv, line 2" in str(described["bad rows, left out"])
