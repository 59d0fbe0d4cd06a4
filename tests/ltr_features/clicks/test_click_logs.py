"""Click logs: what their rows come to."""

import gzip

import pytest
from click_logs import EXPECTED, HEADER, ROWS, SECONDS, as_counts, page, write_log
from hypothesis import given, settings
from hypothesis import strategies as st

from letor.errors import InputError
from ltr_features.clicks.reading import read_click_counts, read_click_rows
from ltr_features.clicks.rules import LogRules, log_files
from ltr_features.sources import table_blocks
from ltr_features.text.query_texts import normalised


@pytest.mark.parametrize("name", ["x.tsv", "x.csv", "x.jsonl", "x.parquet"])
def test_every_format_says_the_same(tmp_path, name):
    log = read_click_rows(write_log(tmp_path / name, ROWS))
    assert as_counts(log) == EXPECTED
    assert log.query_ids == ["red shoes", "blue"]
    assert log.n_pages == 4
    assert len(log.pages) == 4
    assert log.description["positions"] == "from 1 (the least that occurs)"
    assert log.description["rows"] == 10
    n_clicks = int(log.clicked.sum())
    assert repr(log) == f"<ClickLog: 2 queries, {log.n_pairs} pairs shown, {n_clicks} clicks>"


def test_compressed_files_and_several_of_them(tmp_path):
    path = write_log(tmp_path / "x.tsv", ROWS)
    later = write_log(tmp_path / "y.tsv", [(f"{row[0]} later", *row[1:]) for row in ROWS])
    (tmp_path / "y.tsv.gz").write_bytes(gzip.compress(later.read_bytes()))
    log = read_click_rows([path, tmp_path / "y.tsv.gz"])
    assert as_counts(log) == {key: (2 * s, 2 * c) for key, (s, c) in EXPECTED.items()}
    assert log.n_pages == 8
    assert len(log.pages) == 4


def test_a_folder_is_the_log_of_its_files(tmp_path):
    write_log(tmp_path / "2.csv", [(f"{row[0]} later", *row[1:]) for row in ROWS])
    write_log(tmp_path / "1.jsonl", ROWS)
    for paths in (tmp_path, tmp_path / "*", [tmp_path / "*.csv", tmp_path / "*.jsonl"]):
        log = read_click_rows(paths)
        assert as_counts(log) == {key: (2 * s, 2 * c) for key, (s, c) in EXPECTED.items()}
        assert log.description["files"] == 2


def test_a_second_page_after_midnight_is_a_page_of_its_own(tmp_path):
    """Were many so, the rows would be mixed."""
    others = [row for i in range(24) for row in page(f"s{i}", "q", "ab")]
    first = write_log(tmp_path / "1.csv", [*others, *page("night", "q", "ab", "a")])
    second = write_log(tmp_path / "2.csv", page("night", "q", "cd", "d", first=3))
    log = read_click_rows([first, second])
    assert as_counts(log)["q", "d", 3] == (1, 1)
    assert log.n_pages == 26
    told = "pages that go on with one of an earlier file, as at midnight"
    assert log.description[told] == 1
    assert told not in read_click_rows(first).description
    late = write_log(tmp_path / "4.csv", page("night", "q", "b", "b", first=2))
    with pytest.raises(InputError, match=r"4\.csv, line 2: goes on with a page"):
        read_click_rows([first, late])
    again = write_log(tmp_path / "3.csv", [*others, *page("night", "q", "ef", first=5)])
    with pytest.raises(InputError, match=r"2\.csv, line 2: goes on with a page .*query, time \(if"):
        read_click_rows([write_log(tmp_path / "0.csv", page("night", "q", "ab")), second])
    with pytest.raises(InputError, match=r"3\.csv: an earlier file has all its 25 pages"):
        read_click_rows([first, second, again])


def test_files_without_a_click_are_named(tmp_path):
    first = write_log(tmp_path / "1.csv", ROWS)
    second = write_log(tmp_path / "2.csv", page("later", "q", "ab"))
    assert read_click_rows([first, second]).description["files without a click"] == str(second)
    assert "files without a click" not in read_click_rows(second).description
    header = ("query", "document", "position", "shown", "clicked")
    counts = [write_log(tmp_path / f"{n}.tsv", [("q", "a", 1, 5, n)], header) for n in range(2)]
    assert read_click_counts(counts).description["files without a click"] == str(counts[0])


def test_second_pages_whose_positions_begin_anew_are_told(tmp_path):
    told = "pages of the session and query of the page before, with none of its documents"
    rows = [*page("s", "q", "ab", "a"), *page("s", "q", "cd"), *page("t", "q", "ab")]
    again = [*page("u", "q", "ab"), *page("u", "q", "ca"), *page("u", "r", "bd")]
    log = read_click_rows(write_log(tmp_path / "1.csv", [*rows, *again]))
    assert log.description[told] == 1
    (remark,) = log.remarks
    assert remark.startswith("1 of 6 pages have the session and query of the page before")
    log = read_click_rows(write_log(tmp_path / "2.csv", [*page("v", "q", "ab", "a"), *again]))
    assert told not in log.description
    assert not log.remarks
    timed = [(*row, 5 if row[0] == "s" else 1) for row in [*rows, *again]]
    path = write_log(tmp_path / "3.csv", timed, (*HEADER, "time"))
    rules = LogRules(until=3)
    log = read_click_rows(path, columns={"time": "time"}, rules=rules)
    assert told not in log.description


def test_the_same_log_twice_is_refused(tmp_path):
    path = write_log(tmp_path / "x.tsv", ROWS)
    copy = tmp_path / "copy.tsv"
    copy.write_bytes(path.read_bytes())
    for twice in (path, copy):
        with pytest.raises(InputError, match=rf"{twice.name}: the same log as .*x\.tsv, so clicks"):
            read_click_rows([path, twice])
    with pytest.raises(InputError, match="the same log as"):
        read_click_counts([path, copy])
    (tmp_path / "copy.tsv.gz").write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(InputError, match=r"copy\.tsv\.gz: the same log as .*x\.tsv, so clicks"):
        read_click_counts([path, tmp_path / "copy.tsv.gz"])
    (tmp_path / "x.tsv.gz").write_bytes(gzip.compress(path.read_bytes().replace(b"\n", b"\r\n")))
    with pytest.raises(InputError, match=r"x\.tsv\.gz: an earlier file has all its 4 pages, by"):
        read_click_rows([path, tmp_path / "x.tsv.gz"])
    for name in ("e.csv", "e.jsonl", "e.parquet"):  # of days or parts without a row
        empty = [write_log(tmp_path / f"{number}{name}", []) for number in range(2)]
        assert log_files(empty) == empty
    more = write_log(tmp_path / "more.tsv", [*ROWS, *page("new", "q", ["a"])])
    said = read_click_rows([path, more]).description
    assert said["pages with the session and query of one in an earlier file"] == 4


def test_files_whose_positions_begin_otherwise_are_named(tmp_path):
    """Of two programs that write logs, one may count from 0."""
    first = write_log(tmp_path / "1.tsv", ROWS)
    told, zero = "files without a position 0", page("new", "q", ["a", "b"], first=0)
    second = write_log(tmp_path / "2.tsv", zero)
    assert read_click_rows([first, second]).description[told] == str(first)
    rules = LogRules(first_position=0)
    for log in (
        read_click_rows(first),
        read_click_rows(second),
        read_click_rows(first, rules=rules),
    ):
        assert not any("files without a position" in key for key in log.description)


def test_all_files_of_a_log_have_the_columns_of_the_first(tmp_path):
    path = write_log(tmp_path / "x.tsv", ROWS)
    other = tmp_path / "y.tsv"
    other.write_text(path.read_text().replace("position", "rank", 1))
    lost = (
        r"y\.tsv: the columns are .*'rank'.*; 'position', the position in the first file, .*x\.tsv"
    )
    with pytest.raises(InputError, match=lost):
        read_click_rows([path, other])


def test_ids_are_not_normalised(tmp_path):
    path = write_log(tmp_path / "x.tsv", [*page("s", "Q1", ["a"]), *page("t", "q1", ["a"])])
    assert read_click_rows(path, rules=LogRules(queries="id")).query_ids == ["Q1", "q1"]
    assert read_click_rows(path).query_ids == ["q1"]


def test_normalisation_folds_case_width_and_blanks():
    assert normalised(" Ｓｔraße\t  Ⅻ\n") == "strasse xii"
    assert normalised("İSTANBUL") == normalised("istanbul")
    assert normalised("ΜΑΪ́ΟΥ") == normalised("Μαΐου") == "μαΐου"  # ΐ folds to three code points


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_blocks_do_not_matter(tmp_path, monkeypatch, size):
    path = write_log(tmp_path / "x.jsonl", ROWS)
    monkeypatch.setattr(table_blocks, "_JSON_LINES", size)
    log = read_click_rows(path)
    assert as_counts(log) == EXPECTED
    assert log.n_pages == 4
    rows_alone = read_click_rows(path, columns={"session": ""})
    assert as_counts(rows_alone) == EXPECTED
    assert as_counts(read_click_rows(path, rules=LogRules(max_pages=5))) == EXPECTED
    back = [*page("s", "q", ["a", "b"]), *page("s", "p", ["a"]), *page("s", "q", ["a", "b"])]
    assert read_click_rows(write_log(tmp_path / "y.jsonl", back)).n_pages == 3
    mixed = write_log(tmp_path / "z.jsonl", [back[0], back[2], back[1]])
    with pytest.raises(InputError, match=r"z\.jsonl, line 3: goes on with a page"):
        read_click_rows(mixed)


def test_positions_from_zero_are_detected(tmp_path):
    path = write_log(tmp_path / "x.tsv", page("s", "q", ["a", "b"], first=0))
    log = read_click_rows(path)
    assert log.result_position.tolist() == [0, 1]
    assert log.description["positions"].startswith("from 0")


def test_a_page_seen_again_counts_once_if_it_is_reloaded(tmp_path):
    path = write_log(
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
    path = write_log(tmp_path / "x.tsv", [rows[0], *rows])  # the first row twice
    log = read_click_rows(path)
    assert as_counts(log) == {
        ("q", "a", 0): (2, 1), ("q", "b", 1): (2, 1), ("q", "c", 2): (1, 0), ("q", "c", 1): (1, 0),
        ("q", "d", 0): (1, 0),
    }  # fmt: skip
    assert log.description["pages of the session and query of the page before"] == 2
    assert log.description["duplicate rows of a page, counted once"] == 1
    with pytest.raises(InputError, match="leave out all of it"):  # it counts them
        read_click_rows(path, rules=LogRules(max_pages=2))


@pytest.mark.parametrize(("later", "n_pages"), [(60, 1), (3600, 2)])
def test_the_same_results_half_an_hour_later_are_another_page(tmp_path, later, n_pages):
    look = page("s", "q", ["a", "b"], ["a"])
    rows = [(*row, SECONDS[0] + i) for i, row in enumerate(look)]
    rows += [(*row[:-1], row[-1] + later) for row in rows]
    path = write_log(tmp_path / "x.tsv", rows, (*HEADER, "when"))
    assert read_click_rows(path).n_pages == 1
    assert read_click_rows(path, columns={"time": "when"}).n_pages == n_pages


@pytest.mark.parametrize(
    ("first", "remark"), [(1, "100 % of the pages have a single row"), (2, "below the first")]
)
def test_fragments_of_pages_are_told_of(tmp_path, first, remark):
    looks = [page(f"s{i}", "q", ["a", "b", "c"], ["a"]) for i in range(20)]
    rows = [row for look in looks for row in look]
    assert read_click_rows(write_log(tmp_path / "x.tsv", rows)).remarks == []
    cut = [(f"{s}-{k // 2}", q, d, k + first, c) for k, (s, q, d, _, c) in enumerate(rows)]
    if first == 1:
        cut = [(f"row {i}", *row[1:]) for i, row in enumerate(rows)]
    else:
        cut = [(s, q, d, k + 1, c) for s, q, d, k, c in rows]
    (told,) = read_click_rows(
        write_log(tmp_path / "y.tsv", cut), rules=LogRules(first_position=1)
    ).remarks
    assert remark in told


def test_pages_with_every_result_clicked_are_told_of(tmp_path):
    people = [page(f"s{i}", "q", list("abcde"), ["a", "b"][: i % 3]) for i in range(60)]
    robots = [page("robot", f"q{i}", list("abcde"), list("abcde")) for i in range(2)]
    for n, told in ((0, []), (1, ["8 % of all clicks are on pages (1) with 5 or more results"])):
        path = write_log(tmp_path / f"{n}.tsv", [r for look in people + robots[:n] for r in look])
        remarks = read_click_rows(path).remarks
        assert [remark.split(" of which")[0] for remark in remarks] == told


def test_clicks_without_the_page_that_showed_them_are_told_of(tmp_path):
    looks = [page(f"s{i}", "q", list("abcde"), ["a", "b"][: i % 3]) for i in range(60)]
    alone = [[(f"x{i}", "q", "d", 4, 1)] for i in range(4)]
    for n, told in ((2, 0), (4, 1)):
        path = write_log(tmp_path / f"{n}.tsv", [r for look in looks + alone[:n] for r in look])
        remarks = read_click_rows(path).remarks
        assert len(remarks) == told
    assert remarks[0].startswith("6 % of all clicks are on pages (4) of a single result below")


def test_a_session_that_comes_back_to_a_query_sees_a_new_page(tmp_path):
    rows = [*page("s", "q", ["a", "b"]), *page("s", "p", ["a"]), *page("s", "q", ["a", "b"], "b")]
    assert read_click_rows(write_log(tmp_path / "x.tsv", rows)).n_pages == 3


def test_several_clicks_on_a_row_count_as_one(tmp_path):
    path = write_log(tmp_path / "x.tsv", [("s", "q", "a", 1, 3), ("s", "q", "b", 2, 0)])
    log = read_click_rows(path)
    assert log.clicked.tolist() == [1, 0]
    assert log.description["rows with several clicks, counted as one"] == 1


def test_true_and_false_are_clicks(tmp_path):
    path = write_log(tmp_path / "x.parquet", [("s", "q", "a", 1, True), ("s", "q", "b", 2, False)])
    assert read_click_rows(path).clicked.tolist() == [1, 0]


def test_depth_leaves_out_what_is_below(tmp_path):
    path = write_log(tmp_path / "x.tsv", [*page("s", "q", list("abc")), ("s", "q", "z", 5000, 1)])
    log = read_click_rows(path, rules=LogRules(depth=2))
    assert as_counts(log) == {("q", "a", 0): (1, 0), ("q", "b", 1): (1, 0)}
    assert log.description["rows below the depth, left out"] == 2


def test_robots_are_left_out(tmp_path):
    rows = [
        *page("calm", "q", ["a", "b"], ["a"]),
        *page("greedy", "q", ["a", "b"], ["a", "b"]),
        *[row for i in range(4) for row in page("busy", f"q{i}", ["a", "b"], ["b"])],
    ]
    path = write_log(tmp_path / "x.tsv", rows)
    log = read_click_rows(path, rules=LogRules(max_clicks=1, max_pages=3))
    assert as_counts(log) == {("q", "a", 0): (1, 1), ("q", "b", 1): (1, 0)}
    assert log.description["rows"] == 12  # though they are read twice
    assert log.description["pages with too many clicks, left out"] == 1
    assert log.description["pages of sessions with too many pages, left out"] == 4
    assert read_click_rows(path, rules=LogRules(max_pages=4)).n_pages == 6


def test_clicks_below_the_depth_do_not_count_towards_too_many(tmp_path):
    path = write_log(tmp_path / "x.tsv", page("s", "q", list("abcd"), "acd"))
    kept = read_click_rows(path, rules=LogRules(depth=2, max_clicks=1))
    assert as_counts(kept) == {("q", "a", 0): (1, 1), ("q", "b", 1): (1, 0)}
    with pytest.raises(InputError, match="no result was shown"):
        read_click_rows(path, rules=LogRules(max_clicks=1))


def test_a_log_of_clicked_results_alone_gets_a_remark(tmp_path):
    rows = [*page("s", "q", ["a", "b"], ["a", "b"]), *page("t", "q", ["b"], ["b"])]
    (remark,) = read_click_rows(write_log(tmp_path / "x.tsv", rows)).remarks
    assert remark.startswith("every result that was shown was clicked: the results that were not")
    assert read_click_rows(write_log(tmp_path / "y.tsv", ROWS)).remarks == []


def test_a_log_without_pages_has_counts(tmp_path):
    path = write_log(tmp_path / "x.tsv", ROWS)
    log = read_click_rows(path, columns={"session": ""})
    assert as_counts(log) == EXPECTED
    assert log.pages is None
    with pytest.raises(InputError, match="max_clicks needs pages"):
        read_click_rows(path, columns={"session": ""}, rules=LogRules(max_clicks=1))


def test_pages_need_not_be_kept(tmp_path):
    path = write_log(tmp_path / "x.tsv", ROWS)
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
    log = read_click_counts(write_log(tmp_path / "x.tsv", rows, header))
    assert as_counts(log) == {("q", "a", 0): (15, 4), ("q", "b", 2): (7, 7)}
    assert log.pages is None


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
    log = read_click_rows(write_log(tmp_path_factory.mktemp("log") / "x.csv", rows))
    assert as_counts(log) == expected
    assert log.n_pages == len(sessions)
    pages = log.pages
    assert (pages.count >= 1).all()
    assert int(pages.row_count.sum()) == len(rows)
    assert log.by_pair(log.shown).sum() == len(rows)
