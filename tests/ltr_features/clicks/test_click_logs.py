"""Click logs: what their rows come to, what is refused, and that no query's text is told."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letor.errors import InputError
from ltr_features.clicks.reading import read_click_counts, read_click_rows
from ltr_features.clicks.rules import LogRules
from ltr_features.clicks.ubi import read_ubi
from ltr_features.sources import table_blocks
from ltr_features.text.query_texts import normalised

HEADER = ("session", "query", "document", "position", "clicked")
SECRET = "my secret query"


def write_rows(path, rows, header=HEADER):
    frame = pd.DataFrame(rows, columns=list(header))
    name = path.name
    if name.endswith(".parquet"):
        frame.to_parquet(path)
    elif ".jsonl" in name:
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, sep="\t" if ".tsv" in name else ",", index=False)
    return path


def page(session, query, documents, clicked=(), first=1):
    return [(session, query, d, first + i, int(d in clicked)) for i, d in enumerate(documents)]


def as_counts(log):
    """{(query, document, position from 0): (shown, clicked)}."""
    return {
        (log.query_ids[log.pair_query[p]], log.document_ids[log.pair_document[p]], int(k)): (s, c)
        for p, k, s, c in zip(log.result_pair, log.result_position, log.shown.tolist(),
                              log.clicked.tolist(), strict=True)
    }  # fmt: skip


ROWS = [
    *page("s1", "  Red  SHOES ", ["a", "b", "c"], ["b"]),
    *page("s2", "red shoes", ["a", "b", "c"]),
    *page("s2", "blue", ["b", "d"], ["b", "d"]),
    *page("s3", "red shoes", ["b", "a"], ["b"]),
]
EXPECTED = {
    ("red shoes", "a", 0): (2, 0), ("red shoes", "b", 1): (2, 1), ("red shoes", "c", 2): (2, 0),
    ("blue", "b", 0): (1, 1), ("blue", "d", 1): (1, 1),
    ("red shoes", "b", 0): (1, 1), ("red shoes", "a", 1): (1, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", ["x.tsv", "x.csv", "x.jsonl", "x.parquet"])
def test_every_format_says_the_same(tmp_path, name):
    log = read_click_rows(write_rows(tmp_path / name, ROWS))
    assert as_counts(log) == EXPECTED
    assert log.query_ids == ["red shoes", "blue"]
    assert log.n_pages == 4
    assert len(log.pages) == 4
    assert log.description["positions"] == "from 1 (the least that occurs)"
    assert log.description["rows"] == 10
    n_clicks = int(log.clicked.sum())
    assert repr(log) == f"<ClickLog: 2 queries, {log.n_pairs} pairs shown, {n_clicks} clicks>"


def test_compressed_files_and_several_of_them(tmp_path):
    path = write_rows(tmp_path / "x.tsv", ROWS)
    later = write_rows(tmp_path / "y.tsv", [(f"{row[0]} later", *row[1:]) for row in ROWS])
    (tmp_path / "y.tsv.gz").write_bytes(gzip.compress(later.read_bytes()))
    log = read_click_rows([path, tmp_path / "y.tsv.gz"])
    assert as_counts(log) == {key: (2 * s, 2 * c) for key, (s, c) in EXPECTED.items()}
    assert log.n_pages == 8
    assert len(log.pages) == 4


def test_the_same_log_twice_is_refused(tmp_path):
    path = write_rows(tmp_path / "x.tsv", ROWS)
    copy = tmp_path / "copy.tsv"
    copy.write_bytes(path.read_bytes())
    for twice in (path, copy):
        with pytest.raises(InputError, match=rf"{twice.name}: the same log as .*x\.tsv, so clicks"):
            read_click_rows([path, twice])
    with pytest.raises(InputError, match="the same log as"):
        read_click_counts([path, copy])
    (tmp_path / "x.tsv.gz").write_bytes(gzip.compress(path.read_bytes().replace(b"\n", b"\r\n")))
    with pytest.raises(InputError, match=r"x\.tsv\.gz: an earlier file has all its 4 pages, by"):
        read_click_rows([path, tmp_path / "x.tsv.gz"])
    more = write_rows(tmp_path / "more.tsv", [*ROWS, *page("new", "q", ["a"])])
    said = read_click_rows([path, more]).description
    assert said["pages with the session and query of one in an earlier file"] == 4


def test_all_files_of_a_log_have_the_columns_of_the_first(tmp_path):
    path = write_rows(tmp_path / "x.tsv", ROWS)
    other = tmp_path / "y.tsv"
    other.write_text(path.read_text().replace("position", "rank", 1))
    lost = (
        r"y\.tsv: the columns are .*'rank'.*; 'position', the position in the first file, .*x\.tsv"
    )
    with pytest.raises(InputError, match=lost):
        read_click_rows([path, other])


def test_ids_are_not_normalised(tmp_path):
    path = write_rows(tmp_path / "x.tsv", [*page("s", "Q1", ["a"]), *page("t", "q1", ["a"])])
    assert read_click_rows(path, rules=LogRules(queries="id")).query_ids == ["Q1", "q1"]
    assert read_click_rows(path).query_ids == ["q1"]


def test_normalisation_folds_case_width_and_blanks():
    assert normalised(" Ｓｔraße\t  Ⅻ\n") == "strasse xii"


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_blocks_do_not_matter(tmp_path, monkeypatch, size):
    path = write_rows(tmp_path / "x.jsonl", ROWS)
    monkeypatch.setattr(table_blocks, "_JSON_LINES", size)
    log = read_click_rows(path)
    assert as_counts(log) == EXPECTED
    assert log.n_pages == 4
    rows_alone = read_click_rows(path, columns={"session": ""})
    assert as_counts(rows_alone) == EXPECTED
    assert as_counts(read_click_rows(path, rules=LogRules(max_pages=5))) == EXPECTED
    back = [*page("s", "q", ["a", "b"]), *page("s", "p", ["a"]), *page("s", "q", ["a", "b"])]
    assert read_click_rows(write_rows(tmp_path / "y.jsonl", back)).n_pages == 3
    mixed = write_rows(tmp_path / "z.jsonl", [back[0], back[2], back[1]])
    with pytest.raises(InputError, match=r"z\.jsonl, line 3: goes on with a page"):
        read_click_rows(mixed)


def test_positions_from_zero_are_detected(tmp_path):
    path = write_rows(tmp_path / "x.tsv", page("s", "q", ["a", "b"], first=0))
    log = read_click_rows(path)
    assert log.result_position.tolist() == [0, 1]
    assert log.description["positions"].startswith("from 0")


def test_a_page_seen_again_counts_once_if_it_is_reloaded(tmp_path):
    path = write_rows(
        tmp_path / "x.tsv", [*page("s", "q", ["a", "b"], ["a"]), *page("s", "q", ["a", "b"], ["b"])]
    )
    log = read_click_rows(path)
    assert log.n_pages == 1
    assert as_counts(log) == {("q", "a", 0): (1, 1), ("q", "b", 1): (1, 1)}
    assert log.description["duplicate rows of a page, counted once"] == 2


def test_another_look_at_a_query_is_another_page(tmp_path):
    rows = [
        *page("s", "q", ["a", "b", "c"], ["a"]),
        *page("s", "q", ["a", "c"]),
        *page("s", "q", ["d", "b"], ["b"]),
    ]
    path = write_rows(tmp_path / "x.tsv", [rows[0], *rows])  # the first row twice
    log = read_click_rows(path)
    assert as_counts(log) == {
        ("q", "a", 0): (2, 1), ("q", "b", 1): (2, 1), ("q", "c", 2): (1, 0), ("q", "c", 1): (1, 0),
        ("q", "d", 0): (1, 0),
    }  # fmt: skip
    assert log.description["pages of the session and query of the page before"] == 2
    assert log.description["duplicate rows of a page, counted once"] == 1
    with pytest.raises(InputError, match="all left out"):  # it counts them
        read_click_rows(path, rules=LogRules(max_pages=2))


@pytest.mark.parametrize(("later", "n_pages"), [(60, 1), (3600, 2)])
def test_the_same_results_half_an_hour_later_are_another_page(tmp_path, later, n_pages):
    look = page("s", "q", ["a", "b"], ["a"])
    rows = [(*row, SECONDS[0] + i) for i, row in enumerate(look)]
    rows += [(*row[:-1], row[-1] + later) for row in rows]
    path = write_rows(tmp_path / "x.tsv", rows, (*HEADER, "when"))
    assert read_click_rows(path).n_pages == 1
    assert read_click_rows(path, columns={"time": "when"}).n_pages == n_pages


@pytest.mark.parametrize(
    ("first", "remark"), [(1, "100 % of the pages have a single row"), (2, "below the first")]
)
def test_fragments_of_pages_are_told_of(tmp_path, first, remark):
    looks = [page(f"s{i}", "q", ["a", "b", "c"], ["a"]) for i in range(20)]
    rows = [row for look in looks for row in look]
    assert read_click_rows(write_rows(tmp_path / "x.tsv", rows)).remarks == []
    cut = [(f"{s}-{k // 2}", q, d, k + first, c) for k, (s, q, d, _, c) in enumerate(rows)]
    if first == 1:
        cut = [(f"row {i}", *row[1:]) for i, row in enumerate(rows)]
    else:
        cut = [(s, q, d, k + 1, c) for s, q, d, k, c in rows]
    (told,) = read_click_rows(
        write_rows(tmp_path / "y.tsv", cut), rules=LogRules(first_position=1)
    ).remarks
    assert remark in told


def test_pages_with_every_result_clicked_are_told_of(tmp_path):
    people = [page(f"s{i}", "q", list("abcde"), ["a", "b"][: i % 3]) for i in range(60)]
    robots = [page("robot", f"q{i}", list("abcde"), list("abcde")) for i in range(2)]
    for n, told in ((0, []), (1, ["8 % of all clicks are on pages (1) with 5 or more results"])):
        path = write_rows(tmp_path / f"{n}.tsv", [r for look in people + robots[:n] for r in look])
        remarks = read_click_rows(path).remarks
        assert [remark.split(" of which")[0] for remark in remarks] == told


def test_clicks_without_the_page_that_showed_them_are_told_of(tmp_path):
    looks = [page(f"s{i}", "q", list("abcde"), ["a", "b"][: i % 3]) for i in range(60)]
    alone = [[(f"x{i}", "q", "d", 4, 1)] for i in range(4)]
    for n, told in ((2, 0), (4, 1)):
        path = write_rows(tmp_path / f"{n}.tsv", [r for look in looks + alone[:n] for r in look])
        remarks = read_click_rows(path).remarks
        assert len(remarks) == told
    assert remarks[0].startswith("6 % of all clicks are on pages (4) of a single result below")


GOOD = [row for i in range(60) for row in page(f"s{i}", "q", ["a", "b"], ["a"])]


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".jsonl", ".parquet"])
def test_bad_rows_are_left_out_and_counted_by_reason(tmp_path, suffix):
    rows = [*GOOD[:3], ("s1", "", "b", 2, 0), *GOOD[3:], (None, "q", "a", 1, 0)]
    rows += [("s", "q", "a", None, 0), ("s", "q", "a", None, 0)]
    path = write_rows(tmp_path / f"x{suffix}", rows)
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
    path = write_rows(tmp_path / "x.tsv", [*GOOD[:60], *[("s", "q", "a", None, 0)] * 4])
    with pytest.raises(
        InputError, match=r"4 of 64 rows .* more than 5 % \(position is missing: 4, "
    ):
        read_click_rows(path, on_bad_row="skip")
    with pytest.raises(InputError, match="on_bad_row must be 'raise' or 'skip'"):
        read_click_rows(path, on_bad_row="drop")
    header = ("query", "document", "position", "shown", "clicked")
    counts = write_rows(
        tmp_path / "c.tsv", [("q", "a", 1, 9, 3)] * 20 + [("q", "a", 1, 2, 3)], header
    )
    log = read_click_counts(counts, on_bad_row="skip")
    assert as_counts(log) == {("q", "a", 0): (180, 60)}
    told = {"more clicks than showings": f"1, the first in {counts}, line 22"}
    assert log.description["bad rows, left out"] == told


def test_a_session_that_comes_back_to_a_query_sees_a_new_page(tmp_path):
    rows = [*page("s", "q", ["a", "b"]), *page("s", "p", ["a"]), *page("s", "q", ["a", "b"], "b")]
    assert read_click_rows(write_rows(tmp_path / "x.tsv", rows)).n_pages == 3


def test_mixed_pages_are_refused(tmp_path):
    a, b = page("s", SECRET, ["a", "b"]), page("t", SECRET, ["c", "d"])
    path = write_rows(tmp_path / "x.tsv", [a[0], b[0], a[1], b[1]])
    with pytest.raises(InputError, match=r"x\.tsv, line 4: goes on with a page that ended") as e:
        read_click_rows(path)
    assert SECRET not in str(e.value)
    halves = [write_rows(tmp_path / f"{i}.tsv", [row]) for i, row in enumerate(a)]
    with pytest.raises(InputError, match=r"1\.tsv, line 2: .* must be adjacent, in one file"):
        read_click_rows(halves)


def test_several_clicks_on_a_row_count_as_one(tmp_path):
    path = write_rows(tmp_path / "x.tsv", [("s", "q", "a", 1, 3), ("s", "q", "b", 2, 0)])
    log = read_click_rows(path)
    assert log.clicked.tolist() == [1, 0]
    assert log.description["rows with several clicks, counted as one"] == 1


def test_true_and_false_are_clicks(tmp_path):
    path = write_rows(tmp_path / "x.parquet", [("s", "q", "a", 1, True), ("s", "q", "b", 2, False)])
    assert read_click_rows(path).clicked.tolist() == [1, 0]


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
        read_click_rows(write_rows(tmp_path / name, rows))
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
    path = write_rows(tmp_path / f"x{suffix}", ROWS, names)
    log = read_click_rows(path)
    assert as_counts(log) == EXPECTED
    assert log.description["columns, by their usual names"] == (
        "document 'product_id', position 'rank', clicked 'click', session 'Session_ID'"
    )
    plain = read_click_rows(write_rows(tmp_path / f"y{suffix}", ROWS))
    assert "columns, by their usual names" not in plain.description
    counted = pd.DataFrame(
        [(*key, *value) for key, value in EXPECTED.items()],
        columns=["search_term", "sku", "position", "impressions", "clicks"],
    )
    counts = read_click_counts(write_rows(tmp_path / f"z{suffix}", counted, counted.columns))
    assert as_counts(counts) == EXPECTED


def test_missing_columns_and_names_are_told(tmp_path):
    unusual = write_rows(tmp_path / "y.csv", ROWS, ("visit", "query", "doc", "rank", "click"))
    with pytest.raises(
        InputError, match=r"name for document, session: name it .* columns.document="
    ):
        read_click_rows(unusual)
    path = write_rows(tmp_path / "x.tsv", ROWS)
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
    empty = write_rows(tmp_path / "empty.tsv", [])
    for rules in (LogRules(), LogRules(max_pages=3)):
        with pytest.raises(InputError, match="no result was shown"):
            read_click_rows(empty, rules=rules)


def test_depth_leaves_out_what_is_below(tmp_path):
    path = write_rows(tmp_path / "x.tsv", [*page("s", "q", list("abc")), ("s", "q", "z", 5000, 1)])
    log = read_click_rows(path, rules=LogRules(depth=2))
    assert as_counts(log) == {("q", "a", 0): (1, 0), ("q", "b", 1): (1, 0)}
    assert log.description["rows below the depth, left out"] == 2


def test_robots_are_left_out(tmp_path):
    rows = [
        *page("calm", "q", ["a", "b"], ["a"]),
        *page("greedy", "q", ["a", "b"], ["a", "b"]),
        *[row for i in range(4) for row in page("busy", f"q{i}", ["a", "b"], ["b"])],
    ]
    path = write_rows(tmp_path / "x.tsv", rows)
    log = read_click_rows(path, rules=LogRules(max_clicks=1, max_pages=3))
    assert as_counts(log) == {("q", "a", 0): (1, 1), ("q", "b", 1): (1, 0)}
    assert log.description["pages with too many clicks, left out"] == 1
    assert log.description["pages of sessions with too many pages, left out"] == 4
    assert read_click_rows(path, rules=LogRules(max_pages=4)).n_pages == 6


def test_time_chooses_pages_whatever_their_order(tmp_path):
    header = ("time", "query", "document", "position", "clicked")
    rows = [
        ("2024-03-02T10:00:00Z", "q", "a", 1, 1),
        ("2024-03-02T10:00:00Z", "q", "b", 2, 0),
        ("2024-03-01T09:00:00+00:00", "q", "b", 1, 0),
    ]
    path = write_rows(tmp_path / "x.tsv", rows, header)
    columns = {"session": "", "time": "time"}
    early = read_click_rows(path, columns=columns, rules=LogRules(until="2024-03-02"))
    assert as_counts(early) == {("q", "b", 0): (1, 0)}
    late = read_click_rows(path, columns=columns, rules=LogRules(since="2024-03-02"))
    assert as_counts(late) == {("q", "a", 0): (1, 1), ("q", "b", 1): (1, 0)}
    with pytest.raises(InputError, match="since and until need times"):
        read_click_rows(path, columns={"session": ""}, rules=LogRules(since=3))
    bad = write_rows(tmp_path / "y.tsv", [("noon", "q", "a", 1, 0)], header)
    with pytest.raises(InputError, match="line 2: time is 'noon', neither"):
        read_click_rows(bad, columns=columns)


#: 2025-10-09T08:53:20Z and 2026-09-21T14:13:20Z.
SECONDS = (1_760_000_000, 1_790_000_000)


def timed(path, times, header=("session", "time")):
    rows = [(f"s{i}", time, "q", d, 1 + k, k) for i, time in enumerate(times)
            for k, d in enumerate("ab")]  # fmt: skip
    return write_rows(path, rows, (*header, "query", "document", "position", "clicked"))


@pytest.mark.parametrize(
    ("per_second", "unit"),
    [(1, None), (1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds")],
)
@pytest.mark.parametrize("since", ["2026-06-01", 1_780_000_000, "1780000000000"])
def test_numbers_are_times_in_the_unit_of_their_size(tmp_path, per_second, unit, since):
    path = timed(tmp_path / "x.csv", [int(time * per_second) for time in SECONDS])
    late = read_click_rows(path, columns={"time": "time"}, rules=LogRules(since=since))
    early = read_click_rows(path, columns={"time": "time"}, rules=LogRules(until=since))
    assert (early.n_pages, late.n_pages) == (1, 1)
    assert late.description["pages of another time, left out"] == 1
    told = None if unit is None else f"{unit} since 1970, by their size"
    assert late.description.get("times") == told
    assert "times" not in read_click_rows(path, columns={"time": "time"}).description


def test_times_are_cut_at_the_moment_in_every_unit(tmp_path):
    """A log of numbers is divided like the same log of dates, to the millisecond."""
    moments = pd.Timestamp("2026-05-31T23:59:59.998Z") + pd.to_timedelta(range(4), unit="ms")
    texts = [moment.isoformat() for moment in moments]
    numbers = [moment.value // 1_000_000 for moment in moments]
    for times in (texts, numbers):
        path = timed(tmp_path / "x.csv", times)
        rules = LogRules(since="2026-06-01", until="2026-06-01T00:00:00.001")
        assert read_click_rows(path, columns={"time": "time"}, rules=rules).n_pages == 1


@pytest.mark.parametrize(
    ("times", "since", "message"),
    [
        ([1, 2], "2026-06-01", "line 2: the time 1 is not between 1990 and 2100 in seconds"),
        ([20260601, 20260602], "2026-06-01", "line 2: the time 20260601 is not between"),
        ([1_760_000_000_000, 0], "2026-06-01", "line 4: the time 0 is not between"),
        ([1_760_000_000_000] * 2, 20260601, "line 2: the time is in milliseconds since 1970, but"),
        (["2026-06-02"] * 2, 20260601, r"a date, but since=20260601 is neither a date .*; give a"),
        (
            [1_760_000_000, 1_790_000_000_000], "2026-06-01",
            "line 4: the time is in milliseconds since 1970, but the first one of the log is in se",
        ),
    ],
)  # fmt: skip
def test_times_that_cannot_be_compared_are_refused(tmp_path, times, since, message):
    path = timed(tmp_path / "x.csv", times)
    with pytest.raises(InputError, match=rf"x\.csv, .*{message}"):
        read_click_rows(path, columns={"time": "time"}, rules=LogRules(since=since))
    assert read_click_rows(path, columns={"time": "time"}).n_pages == 2


def test_other_numbers_are_compared_with_numbers(tmp_path):
    """Those that would be seconds since 1990 among them."""
    path = timed(tmp_path / "x.csv", [1, 2, 500_000_000, 700_000_000])
    for since, n_pages in ((2, 3), (600_000_000, 1), ("650000000", 1)):
        rules = LogRules(since=since)
        assert read_click_rows(path, columns={"time": "time"}, rules=rules).n_pages == n_pages


def test_clicks_below_the_depth_do_not_count_towards_too_many(tmp_path):
    path = write_rows(tmp_path / "x.tsv", page("s", "q", list("abcd"), "acd"))
    kept = read_click_rows(path, rules=LogRules(depth=2, max_clicks=1))
    assert as_counts(kept) == {("q", "a", 0): (1, 1), ("q", "b", 1): (1, 0)}
    with pytest.raises(InputError, match="no result was shown"):
        read_click_rows(path, rules=LogRules(max_clicks=1))


def test_a_log_of_clicked_results_alone_gets_a_remark(tmp_path):
    rows = [*page("s", "q", ["a", "b"], ["a", "b"]), *page("t", "q", ["b"], ["b"])]
    (remark,) = read_click_rows(write_rows(tmp_path / "x.tsv", rows)).remarks
    assert remark.startswith("every result that was shown was clicked: the results that were not")
    assert read_click_rows(write_rows(tmp_path / "y.tsv", ROWS)).remarks == []


def test_a_log_without_pages_has_counts(tmp_path):
    path = write_rows(tmp_path / "x.tsv", ROWS)
    log = read_click_rows(path, columns={"session": ""})
    assert as_counts(log) == EXPECTED
    assert log.pages is None
    with pytest.raises(InputError, match="max_clicks needs pages"):
        read_click_rows(path, columns={"session": ""}, rules=LogRules(max_clicks=1))


def test_pages_need_not_be_kept(tmp_path):
    path = write_rows(tmp_path / "x.tsv", ROWS)
    log = read_click_rows(path, rules=LogRules(pages=False))
    assert as_counts(log) == EXPECTED
    assert log.pages is None


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"queries": "words"}, "queries must be"),
        ({"first_position": 2}, "first_position must be 0 or 1"),
        ({"depth": 0}, "depth must be a whole number"),
        ({"depth": 2000}, "depth must be at most"),
        ({"max_clicks": 0}, "max_clicks must be"),
        ({"since": "noon"}, "since is neither"),
        ({"since": "2026-03-02", "until": "2026-03-01"}, "is not before until"),
    ],
)
def test_rules_out_of_range_are_refused(rules, message):
    with pytest.raises(InputError, match=message):
        LogRules(**rules)


def test_counts_are_added(tmp_path):
    header = ("query", "document", "position", "shown", "clicked")
    rows = [("Q", "a", 1, 10, 4), ("q", "a", 1, 5, 0), ("q", "b", 2, 0, 0), ("q", "b", 3, 7, 7)]
    log = read_click_counts(write_rows(tmp_path / "x.tsv", rows, header))
    assert as_counts(log) == {("q", "a", 0): (15, 4), ("q", "b", 2): (7, 7)}
    assert log.pages is None


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
        read_click_counts(write_rows(tmp_path / "x.tsv", [row], header))
    assert SECRET not in str(e.value)
    with pytest.raises(InputError, match="neither pages nor times"):
        read_click_counts(tmp_path / "x.tsv", rules=LogRules(max_clicks=3))


# UBI ------------------------------------------------------------------------------------------


def ubi_query(query_id, text, hits, time="2024-05-01T10:00:00Z", client="c"):
    return {"query_id": query_id, "user_query": text, "query_response_hit_ids": hits,
            "timestamp": time, "client_id": client}  # fmt: skip


def ubi_event(query_id, object_id, action="click", time="2024-05-01T10:00:05Z", ordinal=3):
    return {
        "action_name": action, "query_id": query_id, "timestamp": time,
        "event_attributes": {"object": {"object_id": object_id, "object_id_field": "sku"},
                             "position": {"ordinal": ordinal}},
    }  # fmt: skip


def write_ubi(folder, queries, events):
    for name, records in (("queries", queries), ("events", events)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    return folder / "queries.jsonl", folder / "events.jsonl"


def test_ubi_pages_and_clicks(tmp_path):
    queries = [
        ubi_query("1", "Shoes", ["a", "b"]),
        {"_index": "ubi_queries", "_source": ubi_query("2", "shoes", ["b", "a"])},
        ubi_query("2", "shoes", ["b", "a"]),
        ubi_query("3", "nothing", []),
    ]
    events = [
        ubi_event("1", "b"), ubi_event("1", "b"), ubi_event("1", "a", "hover"),
        ubi_event("2", "b", time="2024-05-01T09:00:00Z"), ubi_event(None, "b"),
    ]  # fmt: skip
    log = read_ubi(*write_ubi(tmp_path, queries, events))
    assert as_counts(log) == {
        ("shoes", "a", 0): (1, 0), ("shoes", "b", 1): (1, 1),
        ("shoes", "b", 0): (1, 1), ("shoes", "a", 1): (1, 0),
    }  # fmt: skip
    said = log.description
    assert said["pages"] == 2
    assert said["clicks"] == 3
    assert said["clicks on an object clicked before, counted as one"] == 1
    assert said["clicks stamped before their page, counted all the same"] == 1
    assert said["clicks without a query_id, left out"] == 1
    assert said["pages with the query_id of another, left out"] == 1
    assert said["pages without results, left out"] == 1


@pytest.mark.parametrize("first", [0, 1])
def test_ubi_clicks_at_another_position_are_told(tmp_path, first):
    """Page 2 of a query, in a record of its own, seems to begin at the first position."""
    queries = [ubi_query("1", "q", ["a", "b", "c"]), ubi_query("2", "q", ["d", "e", "f"])]
    events = [ubi_event("1", d, ordinal=first + i) for i, d in enumerate("abc")]
    second = [ubi_event("2", d, ordinal=first + 3 + i) for i, d in enumerate("de")]
    told = "clicks whose position.ordinal is not the place of the hit, as on second pages"
    log = read_ubi(*write_ubi(tmp_path, queries, events + second))
    assert log.description[told] == 2
    assert log.clicked.sum() == 5
    second = [{**event, "event_attributes": {"object": {"object_id": "d"}}} for event in second]
    for unsaid in (second, [ubi_event("2", "d", ordinal=None)]):
        log = read_ubi(*write_ubi(tmp_path, queries, events + unsaid))
        assert told not in log.description


def test_ubi_events_that_are_clicks_are_named(tmp_path):
    queries = [ubi_query("1", SECRET, ["a", "b"])]
    events = [ubi_event("1", "a", "item_click"), ubi_event("1", "b", "open"),
              ubi_event("1", "b", "hover"), ubi_event("1", "a", "hover")]  # fmt: skip
    paths = write_ubi(tmp_path, queries, events)
    log = read_ubi(*paths)
    assert log.clicked.tolist() == [1, 0]
    told = "events that are no clicks, left out: hover (2), open (1)"
    assert log.description[told] == 3
    log = read_ubi(*paths, rules=LogRules(actions=["open", "item_click"]))
    assert log.clicked.tolist() == [1, 1]
    assert read_ubi(*paths, rules=LogRules(actions="open")).clicked.tolist() == [0, 1]
    with pytest.raises(
        InputError, match=r"no event is a click \(tap\); there are hover \(2\)"
    ) as e:
        read_ubi(*paths, rules=LogRules(actions="tap"))
    assert SECRET not in str(e.value)
    for bad in ("", [], [1]):
        with pytest.raises(InputError, match="actions must be names of events"):
            LogRules(actions=bad)


def test_ubi_clicks_without_a_showing(tmp_path):
    paths = write_ubi(
        tmp_path, [ubi_query("1", SECRET, ["a"])], [ubi_event("1", "z"), ubi_event("9", "a")]
    )
    with pytest.raises(InputError, match=r"events\.jsonl, line 1: a click on a page") as e:
        read_ubi(*paths)
    assert SECRET not in str(e.value)
    log = read_ubi(*paths, on_unknown="skip")
    assert log.description["clicks without a showing, left out"] == 2
    assert log.clicked.sum() == 0


def test_ubi_rules(tmp_path):
    queries = [ubi_query(str(i), "q", ["a", "b"], client="robot") for i in range(3)]
    queries += [
        ubi_query("8", "q", ["a", "b", "c"], time="2024-05-03T00:00:00Z", client="x"),
        ubi_query("9", "q", ["b", "a"], time="2024-04-30T00:00:00Z", client="y"),
    ]
    paths = write_ubi(tmp_path, queries, [ubi_event("8", "c"), ubi_event("0", "a")])
    log = read_ubi(*paths, rules=LogRules(max_pages=2, since="2024-05-01", depth=2))
    assert as_counts(log) == {("q", "a", 0): (1, 0), ("q", "b", 1): (1, 0)}


def test_ubi_times_may_be_milliseconds(tmp_path):
    """And the times of clicks dates."""
    queries = [
        ubi_query(str(i), "q", ["a", "b"], time=1000 * time) for i, time in enumerate(SECONDS)
    ]
    events = [
        ubi_event("0", "a", time="2025-10-09T08:53:21Z"),
        ubi_event("1", "b", time=SECONDS[1]),
    ]
    paths = write_ubi(tmp_path, queries, events)
    log = read_ubi(*paths, rules=LogRules(since="2026-06-01"))
    assert as_counts(log) == {("q", "a", 0): (1, 0), ("q", "b", 1): (1, 1)}
    assert log.description["times"] == "milliseconds since 1970, by their size"
    early = "clicks stamped before their page, counted all the same"
    assert early not in read_ubi(*paths).description
    with pytest.raises(InputError, match=r"queries\.jsonl, line 1: the time is in milliseconds"):
        read_ubi(*paths, rules=LogRules(since=5))


@pytest.mark.parametrize(
    ("query", "event", "message"),
    [
        ({"user_query": SECRET}, {}, r"queries\.jsonl, line 1: query_id is missing"),
        ({**ubi_query("1", SECRET, ["a"]), "query_response_hit_ids": SECRET}, {}, "is not a list"),
        (ubi_query("1", SECRET, ["a", "a"]), {}, "an object twice"),
        (ubi_query("1", SECRET, ["a"], time="noon"), {}, "timestamp is neither"),
        (ubi_query("1", " ", ["a"]), {}, "user_query is empty"),
        (ubi_query("1", SECRET, ["a"]), {"event_attributes": None}, "without event_attributes"),
        (ubi_query("1", SECRET, ["a"]), {"action_name": None}, "action_name is missing"),
    ],
)
def test_bad_ubi_records_are_refused(tmp_path, query, event, message):
    paths = write_ubi(tmp_path, [query], [{**ubi_event("1", "a"), **event}])
    with pytest.raises(InputError, match=message) as e:
        read_ubi(*paths)
    assert SECRET not in str(e.value)


# Any log --------------------------------------------------------------------------------------

SESSIONS = st.lists(
    st.tuples(
        st.sampled_from(["q", "Q ", "p"]),
        st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5, unique=True),
        st.sets(st.sampled_from("abcdef")),
    ),
    min_size=1,
    max_size=12,
)


@given(SESSIONS)
@settings(max_examples=60, deadline=None)
def test_any_log_is_counted(tmp_path_factory, sessions):
    """Against a dictionary that counts row by row."""
    rows, expected = [], {}
    for number, (query, documents, clicked) in enumerate(sessions):
        rows += page(f"s{number}", query, documents, clicked)
        for k, d in enumerate(documents):
            shown, clicks = expected.get((query.strip().lower(), d, k), (0, 0))
            expected[query.strip().lower(), d, k] = (shown + 1, clicks + (d in clicked))
    log = read_click_rows(write_rows(tmp_path_factory.mktemp("log") / "x.csv", rows))
    assert as_counts(log) == expected
    assert log.n_pages == len(sessions)
    pages = log.pages
    assert (pages.count >= 1).all()
    assert int(pages.row_count.sum()) == len(rows)
    assert log.by_pair(log.shown).sum() == len(rows)


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
    path = write_rows(tmp_path_factory.mktemp("log") / name, rows)
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


def test_logs_without_a_row_are_named(tmp_path):
    (tmp_path / "log.csv").write_text("session,query,document,position,clicked\n")
    (tmp_path / "counts.csv").write_text("query,document,position,shown,clicked\n")
    for read, name in ((read_click_rows, "log.csv"), (read_click_counts, "counts.csv")):
        with pytest.raises(InputError, match=rf"{name}: click log: no result was shown"):
            read(tmp_path / name)
    with pytest.raises(InputError, match=r"queries.jsonl: click log: no result was shown"):
        read_ubi(*write_ubi(tmp_path, [], []))
