"""Logs in the layout of User Behavior Insights."""

import json

import pandas as pd
import pytest
from click_logs import SECONDS, SECRET, as_counts
from toys import run

from letor.errors import InputError
from ltr_features.clicks.reading import read_click_counts, read_click_rows
from ltr_features.clicks.rules import LogRules
from ltr_features.clicks.ubi import read_ubi


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


def test_ubi_ids_may_be_the_number_0(tmp_path):
    paths = write_ubi(tmp_path, [ubi_query(0, "q", [0, 1])], [ubi_event(0, 0), ubi_event("", 1)])
    log = read_ubi(*paths)
    assert as_counts(log) == {("q", "0", 0): (1, 1), ("q", "1", 1): (1, 0)}
    assert log.description["clicks without a query_id, left out"] == 1


def test_ubi_of_several_days(tmp_path):
    """A click may come after midnight; files are named where something is wrong."""
    days = []
    for day, queries, events in (
        ("monday", [ubi_query("1", "q", ["a", "b"])], [ubi_event("1", "a")]),
        ("sunday", [ubi_query("2", "q", ["a", "b"])], [ubi_event("1", "b"), ubi_event("2", "b")]),
    ):
        (tmp_path / day).mkdir()
        days.append(write_ubi(tmp_path / day, queries, events))
    queries, events = zip(*days, strict=True)
    expected = {("q", "a", 0): (2, 1), ("q", "b", 1): (2, 2)}
    for given in ((queries, events), (tmp_path / "*" / "q*", tmp_path / "*" / "e*")):
        log = read_ubi(*given)
        assert as_counts(log) == expected
        assert (log.description["files"], log.description["files of events"]) == (2, 2)
        assert "files without a click" not in log.description
    assert read_ubi(queries, events[0]).description["files without a click"] == str(queries[1])
    with pytest.raises(InputError, match=r"sunday.events\.jsonl, line 2: .* that \S+ does not"):
        read_ubi(queries[0], events)
    assert read_ubi(queries[0], events, on_unknown="skip").clicked.tolist() == [1, 1]
    with pytest.raises(InputError, match=r"monday.events\.jsonl, \S+events\.jsonl: no event is"):
        read_ubi(queries, events, rules=LogRules(actions="tap"))
    events[1].write_text("{}\n")
    with pytest.raises(InputError, match=r"sunday.events\.jsonl, line 1: action_name is missing"):
        read_ubi(queries, events)
    with pytest.raises(InputError, match="the same log as"):
        read_ubi(queries[:1] * 2, events)


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


def test_bad_ubi_records_are_left_out_with_their_clicks(tmp_path):
    queries = [ubi_query(str(i), "q", ["a", "b"], client=str(i % 2)) for i in range(60)]
    queries[7]["user_query"], queries[9]["query_response_hit_ids"] = "", None
    events = [ubi_event(str(i), "a") for i in range(60)]
    del events[3]["event_attributes"]["object"]
    queries_file, events_file = write_ubi(tmp_path, queries, events)
    lines = events_file.read_text().splitlines()
    events_file.write_text("\n".join([*lines[:20], lines[20][:30], *lines[21:]]))
    with pytest.raises(InputError, match=r"events\.jsonl, line 4: a click without"):
        read_ubi(queries_file, events_file)
    for rules in (None, LogRules(max_pages=50)):
        log = read_ubi(queries_file, events_file, rules=rules, on_bad_row="skip")
        assert as_counts(log) == {("q", "a", 0): (58, 56), ("q", "b", 1): (58, 0)}
        assert log.description["bad records of events, left out"] == {
            "not a JSON object": f"1, the first in {events_file}, line 21",
            "a click without event_attributes.object": f"1, the first in {events_file}, line 4",
        }
        assert log.description["bad records of queries, left out"] == {
            "user_query is empty": f"1, the first in {queries_file}, line 8",
            "query_response_hit_ids is not a list": f"1, the first in {queries_file}, line 10",
        }
    events_file.write_text("\n".join([*lines[:20], *["{}"] * 20]))
    with pytest.raises(InputError, match=r"21 of 40 records of events cannot be read.*action_name"):
        read_ubi(queries_file, events_file, on_bad_row="skip")


def test_too_many_bad_ubi_queries_are_refused_however_many_events_there_are(tmp_path):
    queries = [ubi_query(str(i), "q" if i else " ", ["a"]) for i in range(10)]
    paths = write_ubi(tmp_path, queries, [ubi_event("1", "a")] * 1000)
    with pytest.raises(InputError, match=r"1 of 10 records of queries cannot be read.*is empty"):
        read_ubi(*paths, on_bad_row="skip")


def test_ubi_clicks_on_a_page_without_results_are_not_lost(tmp_path):
    queries = [ubi_query("1", "q", ["a"]), ubi_query("2", "q", [])]
    paths = write_ubi(tmp_path, queries, [ubi_event("1", "a"), ubi_event("2", "a")])
    with pytest.raises(InputError, match=r"events\.jsonl, line 2: a click on a page or result"):
        read_ubi(*paths)
    log = read_ubi(*paths, on_unknown="skip")
    assert log.description["clicks without a showing, left out"] == 1


@pytest.mark.parametrize("robot", ["robot", 7])
def test_ubi_rules(tmp_path, robot):
    queries = [ubi_query(str(i), "q", ["a", "b"], client=robot) for i in range(3)]
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


def test_logs_without_a_row_are_named(tmp_path):
    (tmp_path / "log.csv").write_text("session,query,document,position,clicked\n")
    (tmp_path / "counts.csv").write_text("query,document,position,shown,clicked\n")
    for read, name in ((read_click_rows, "log.csv"), (read_click_counts, "counts.csv")):
        with pytest.raises(InputError, match=rf"{name}: click log: no result was shown"):
            read(tmp_path / name)
    with pytest.raises(InputError, match=r"queries.jsonl: click log: no result was shown"):
        read_ubi(*write_ubi(tmp_path, [], []))


def test_ubi_from_the_command_line(tmp_path):
    pages = [ubi_query(str(i), SECRET, ["a", "b"] if i % 2 else ["b", "a"]) for i in range(40)]
    events = [ubi_event(str(i), "a", ordinal=2 - i % 2) for i in range(0, 40, 3)]
    days = (("q.jsonl", pages), ("e1.jsonl", events[:9]), ("e2.jsonl", events[9:]))
    for name, records in days:
        (tmp_path / name).write_text("\n".join(map(json.dumps, records)))
    output = run(
        "clicks", "judge", tmp_path / "q.jsonl", "--layout", "ubi", "--events",
        tmp_path / "e1.jsonl", "--events", tmp_path / "e[2-9]*", "--out", tmp_path / "judged",
    ).output  # fmt: skip
    files = json.loads((tmp_path / "judged" / "clicks.json").read_text())["files"]
    assert [file["name"] for file in files] == [name for name, _ in days]
    assert "pages: 40" in output
    table = pd.read_csv(tmp_path / "judged" / "judgements.tsv", sep="\t")
    assert dict(zip(table["document"], table["clicked"], strict=True)) == {"a": 14, "b": 0}
