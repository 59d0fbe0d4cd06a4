"""Pages of a span of time."""

import pandas as pd
import pytest
from click_logs import SECONDS, as_counts, write_log

from letor.errors import InputError
from ltr_features.clicks.reading import read_click_rows
from ltr_features.clicks.rules import LogRules


def test_time_chooses_pages_whatever_their_order(tmp_path):
    header = ("time", "query", "document", "position", "clicked")
    rows = [
        ("2024-03-02T10:00:00Z", "q", "a", 1, 1),
        ("2024-03-02T10:00:00Z", "q", "b", 2, 0),
        ("2024-03-01T09:00:00+00:00", "q", "b", 1, 0),
    ]
    path = write_log(tmp_path / "x.tsv", rows, header)
    columns = {"session": "", "time": "time"}
    early = read_click_rows(path, columns=columns, rules=LogRules(until="2024-03-02"))
    assert as_counts(early) == {("q", "b", 0): (1, 0)}
    late = read_click_rows(path, columns=columns, rules=LogRules(since="2024-03-02"))
    assert as_counts(late) == {("q", "a", 0): (1, 1), ("q", "b", 1): (1, 0)}
    with pytest.raises(InputError, match="since and until need times"):
        read_click_rows(path, columns={"session": ""}, rules=LogRules(since=3))
    bad = write_log(tmp_path / "y.tsv", [("noon", "q", "a", 1, 0)], header)
    with pytest.raises(InputError, match="line 2: time is 'noon', neither"):
        read_click_rows(bad, columns=columns)


def test_queries_and_documents_of_pages_that_are_left_out_are_not_counted(tmp_path):
    """What is said of a period would else count what people asked before."""
    header = ("session", "time", "query", "document", "position", "clicked")
    rows = [
        (session, time, query, document, position, position - 1)
        for session, time, query, documents in (
            ("s1", 1, "old", "ab"), ("s2", 2, "both", "bc"), ("s3", 3, "both", "cb"),
            ("s4", 4, "new", "de"),
        )
        for position, document in enumerate(documents, 1)
    ]  # fmt: skip
    path = write_log(tmp_path / "x.tsv", rows, header)
    log = read_click_rows(path, columns={"time": "time"}, rules=LogRules(since=3))
    assert (log.query_ids, log.document_ids) == (["both", "new"], ["b", "c", "d", "e"])
    shown = {("both", "c", 0): (1, 0), ("both", "b", 1): (1, 1)}
    assert as_counts(log) == shown | {("new", "d", 0): (1, 0), ("new", "e", 1): (1, 1)}
    pages = log.pages
    documents = log.pair_document[pages.pair].reshape(2, 2).tolist()
    assert [[log.document_ids[d] for d in page] for page in documents] == [["c", "b"], ["d", "e"]]


def test_the_time_of_a_page_is_that_of_its_earliest_row(tmp_path):
    rows = [("s", time, "q", d, k, 0) for k, (d, time) in enumerate([("a", 7), ("b", 5), ("c", 6)])]
    header = ("session", "time", "query", "document", "position", "clicked")
    path = write_log(tmp_path / "x.csv", rows, header)
    kept = read_click_rows(path, columns={"time": "time"}, rules=LogRules(since=5, until=6))
    assert len(as_counts(kept)) == 3
    with pytest.raises(InputError, match="leave out all of it"):
        read_click_rows(path, columns={"time": "time"}, rules=LogRules(since=6))


def timed(path, times, header=("session", "time")):
    rows = [(f"s{i}", time, "q", d, 1 + k, k) for i, time in enumerate(times)
            for k, d in enumerate("ab")]  # fmt: skip
    return write_log(path, rows, (*header, "query", "document", "position", "clicked"))


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
