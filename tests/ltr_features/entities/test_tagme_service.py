import contextlib
import http.server
import json
import sqlite3
import threading
import time
from dataclasses import replace
from urllib.parse import parse_qs

import pytest

from letor.errors import InputError
from ltr_features.entities.linker import EntityLinker
from ltr_features.entities.replay import StoredAnnotations, save_annotations
from ltr_features.entities.tagme_service import TagmeService

NOTE = {"spot": "fox", "start": 2, "end": 5, "id": 5, "title": "Fox", "link_probability": 0.25,
        "rho": 0.125}  # fmt: skip


class Tagme(http.server.BaseHTTPRequestHandler):
    """Answers in TAGME's JSON: every word "fox" is the entity Fox; offsets in UTF-16 units."""

    def do_POST(self):
        server = self.server
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        server.requests.append({name: values[0] for name, values in form.items()})
        behaviour = server.behaviours.pop(0) if server.behaviours else server.usual
        if behaviour == "slow":
            time.sleep(1.5)
        status = behaviour if isinstance(behaviour, int) else 200
        bodies = {"html": b"<html>down", "object": b'{"annotations": {}}'}
        body = bodies.get(behaviour) if isinstance(behaviour, str) else None
        body = body or self.answer(form["text"][0])
        if isinstance(behaviour, dict):
            body = json.dumps({"annotations": [NOTE | behaviour]}).encode()
        self.send_response(status)
        if status == 307:
            self.send_header("Location", f"http://localhost:{self.server.server_port}/elsewhere")
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)
            for _ in range(100 if behaviour == "drip" else 0):
                self.wfile.write(b" ")
                server.dripped += 1
                time.sleep(0.05)
            for _ in range(100 if behaviour == "endless" else 0):
                self.wfile.write(b" " * 2**20)

    def answer(self, text):
        units = text.encode("utf-16-le")
        notes = [{"spot": "x", "start": 0, "end": 1, "id": 9, "link_probability": 1, "rho": 0.9}]
        at = units.find("fox".encode("utf-16-le"))
        if at >= 0:
            start = at // 2
            notes.append(
                {"spot": "fox", "start": start, "end": start + 3, "id": 5, "title": "Fox_(animal)",
                 "link_probability": 0.25, "rho": 0.125}
            )  # fmt: skip
        answer = {"test": "5", "api": "tag", "lang": "en", "time": 0, "annotations": notes,
                  "timestamp": "2016-12-02T11:36:49"}  # fmt: skip
        return json.dumps(answer).encode()

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tagme)
    server.requests, server.behaviours, server.usual, server.dripped = [], [], 200, 0
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def service(server, tmp_path, monkeypatch):
    monkeypatch.setenv("GCUBE_TOKEN", "secret")
    return TagmeService(
        tmp_path / "answers.sqlite",
        address=f"http://127.0.0.1:{server.server_port}/tag",
        pause=0.001,
        timeout=1.0,  # "slow" takes longer, a busy machine does not
        attempts=3,
    )


def test_mentions_have_raw_scores_and_offsets_in_code_points(server, service):
    (mentions,) = service.link(["\U0001f98a a fox"])
    (mention,) = mentions  # the annotation without a title names no entity
    assert (mention.start, mention.end) == (4, 7)
    assert mention.entity == "Fox (animal)"
    assert (mention.rho, mention.link_probability, mention.commonness) == (0.125, 0.25, None)
    assert server.requests[0]["gcube-token"] == "secret"
    assert server.requests[0]["long_text"] == "0"
    assert isinstance(service, EntityLinker)


@pytest.mark.parametrize("other", [{"language": "de"}, {"long_text": 3}])
def test_answers_of_other_settings_are_not_taken_from_the_cache(server, service, other):
    service.link(["a fox"])
    replace(service, **other).link(["a fox"])
    assert len(server.requests) == 2


def test_a_text_is_sent_once_and_cached_answers_are_the_same(server, service, monkeypatch):
    texts = ["a fox", "", "no animal", "a fox", "  "]
    first = service.link(texts)
    assert [r["text"] for r in server.requests] == ["a fox", "no animal"]
    monkeypatch.delenv("GCUBE_TOKEN")
    assert service.link(texts) == first
    assert len(server.requests) == 2


def test_a_single_text_is_refused(server, service):
    with pytest.raises(InputError, match=r"got the text 'Trees'; link\(\[text\]\)"):
        service.link("Trees")


WRONG = [
    {"title": 5}, {"start": 4, "end": 3}, {"end": 6}, {"start": -1}, {"rho": float("nan")},
    {"rho": None}, {"link_probability": [1]}, {"end": 1e300}, {"title": {"a": []}},
]  # fmt: skip


@pytest.mark.parametrize("failure", [503, 429, "html", "object", "slow", "drip", "endless", *WRONG])
def test_passing_failures_are_tried_again(server, service, failure):
    server.behaviours = [failure, failure]
    assert len(service.link(["a fox"])[0]) == 1
    assert len(server.requests) == 3
    assert server.dripped < 100  # of 200 that it had to send: not waited for to the end


def test_a_service_that_goes_down_tells_what_is_missing_and_how_to_go_on(server, service):
    server.behaviours = [200, 200]
    server.usual = 503
    texts = ["fox 1", "fox 2", "fox 3", "fox 4"]
    message = r"status 503, 3 attempts\. 2 of 4 texts are not linked yet, 2 are in .*to continue"
    with pytest.raises(InputError, match=message):
        service.link(texts)
    assert len(service.link(texts[:2])) == 2  # cached texts still work
    server.usual = 200
    sent = len(server.requests)
    assert [len(mentions) for mentions in service.link(texts)] == [1] * 4
    assert [r["text"] for r in server.requests[sent:]] == texts[2:]


def test_refusals_are_not_repeated(server, service, monkeypatch):
    server.usual = 403
    with pytest.raises(InputError, match=r"403 .the token or the address may be wrong.* 1 of 1"):
        service.link(["a fox"])
    assert len(server.requests) == 1
    monkeypatch.delenv("GCUBE_TOKEN")
    with pytest.raises(InputError, match="GCUBE_TOKEN is not set"):
        service.link(["a fox"])


def test_the_token_goes_nowhere_else(server, service):
    server.usual = 307
    with pytest.raises(InputError, match=r"redirects to 'http://localhost:\d+/elsewhere'") as error:
        service.link(["a fox"])
    assert len(server.requests) == 1
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "poison",
    ["", "null", "5", "[[2, 5]]", "[[2, 5, 7, 0, 0]]", '[[5, 2, "a", 0, 0]]', "[" * 99_999],
)
def test_a_poisoned_cache_is_healed(server, service, poison):
    whole = service.link(["a fox"])
    with contextlib.closing(sqlite3.connect(service.cache)) as store, store:
        store.execute("UPDATE answers SET answer = ?", (poison,))
    assert service.link(["a fox"]) == whole
    assert len(server.requests) == 2
    assert service.link(["a fox"]) == whole
    assert len(server.requests) == 2


def test_no_server_at_all(service, server, tmp_path):
    gone = TagmeService(tmp_path / "c.sqlite", address="http://127.0.0.1:9/", pause=0, attempts=2)
    with pytest.raises(InputError, match=r"no answer \(ConnectionError\), 2 attempts"):
        gone.link(["a fox"])


def test_bad_parameters_and_caches(tmp_path):
    for odd, said in (
        ({"attempts": 0}, "attempts >= 1"),
        ({"attempts": 1.5}, "attempts must be a whole number, got 1.5"),
        ({"timeout": float("inf")}, "timeout > 0 and pause >= 0, at most 86,400 seconds"),
        ({"pause": float("nan")}, "timeout > 0 and pause >= 0"),
        ({"language": "fr"}, "language must be 'en' or 'de' or 'it', got 'fr'"),
    ):
        with pytest.raises(InputError, match=said):
            TagmeService(**odd)
    (tmp_path / "notes").write_text("this is no database" * 100)
    with pytest.raises(InputError, match="not a cache of TAGME answers"):
        TagmeService(tmp_path / "notes").link(["fox"])


def test_stored_annotations_replay_what_was_linked(server, service, tmp_path):
    texts = ["a fox", "none"]
    save_annotations(tmp_path / "a.jsonl", texts, service.link(texts))
    stored = StoredAnnotations(tmp_path / "a.jsonl")
    assert stored.link(["none", "", "a fox"]) == [[], [], *service.link(["a fox"])]
    with pytest.raises(InputError, match="no annotations for 1 of 2 texts, the first is 'new'"):
        stored.link(["a fox", "new"])
    assert isinstance(stored, EntityLinker)


@pytest.mark.parametrize(
    "line",
    ["{", '{"text": "a"}', "[]", '{"text": "a", "mentions": [{"start": 0}]}', '{"text":"a",'
     '"mentions":[{"start":0,"end":9,"entity":"A","rho":0.1,"link_probability":1}]}'],
)  # fmt: skip
def test_damaged_annotations_are_named_by_line(line, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "b", "mentions": []}\n' + line + "\n")
    with pytest.raises(InputError, match=r"a\.jsonl, line 2: (no|mentions is)"):
        StoredAnnotations(tmp_path / "a.jsonl")


@pytest.mark.data
def test_the_services_own_answer(server, service, data_folder, monkeypatch):
    raw = (data_folder / "tagme" / "api_answer_sample.json").read_bytes()
    monkeypatch.setattr(Tagme, "answer", lambda self, text: raw)
    ((mention,),) = service.link(["latent dirichlet allocation"])
    assert mention.entity == "Latent Dirichlet allocation"
    assert (mention.start, mention.end, mention.rho, mention.link_probability) == (0, 27, 0.5, 1)
