"""The HTTP service: real requests to it, good and bad, many at once; its end by a signal."""

from __future__ import annotations

import errno
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from toys import topics

from letor.dataset import RankingData
from letor.folds import k_fold
from letor.rankers import LambdaMART
from ltr_features import FeatureBuilder, LearnedColumn, ScoringPipeline, serving
from ltr_features.serving import MOST_BYTES, MOST_CHARACTERS, MOST_DOCUMENTS, ScoringServer


@pytest.fixture(scope="module")
def pipeline():
    collection = topics()
    builder = FeatureBuilder(["letor46", "vsm"], [LearnedColumn("lsa", "lsi", {"rank": 4})])
    train, vali, _ = builder.folds(collection, k_fold(collection.query_ids, 4, seed=0))[0]
    ranker = LambdaMART(n_estimators=10, min_data_in_leaf=5).fit(train, vali)
    return ScoringPipeline(builder.fit(collection), ranker)


@contextmanager
def running(server):
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def server(pipeline):
    with running(ScoringServer(pipeline, port=0)) as server:
        yield server


def ask(server, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=20)
    text = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
    connection.request(method, path, text, headers or {})
    answer = connection.getresponse()
    assert answer.headers["Content-Type"] == "application/json"
    found = json.loads(answer.read())
    connection.close()
    return answer.status, found


def rank(server, **request):
    status, found = ask(server, "POST", "/rank", request)
    assert status == 200, found
    return [(d["id"], d["score"]) for d in found["documents"]]


def expected(pipeline, *arguments, **options):
    best = pipeline.rank(*arguments, **options)
    return list(zip(best["docno"], best["score"].tolist(), strict=True))


def test_answers_are_those_of_the_pipeline(server, pipeline):
    text = pipeline.features.context_.collection.query_texts[3]
    assert rank(server, query=text) == expected(pipeline, text)
    assert len(rank(server, query=text, k=3)) == 3
    documents = ["d5", "d3", "d50"]
    found = rank(server, query=text, documents=documents)
    assert found == expected(pipeline, text, 99, docnos=documents)
    assert rank(server, query=text, documents=documents, k=1) == found[:1]
    best = [docno for docno, _ in rank(server, query=text)]
    assert rank(server, query=text, exclude=best[:2]) == expected(pipeline, text, excluded=best[:2])
    assert rank(server, query=text, documents=documents, exclude=["d3", "d999"]) == rank(
        server, query=text, documents=["d5", "d50"]
    )
    # Two engines may propose the same document: it must not count twice in the normalisation.
    assert rank(server, query=text, documents=["d5", *documents, "d3"]) == found
    assert rank(server, query="nowhere") == []
    assert rank(server, query=text, documents=[]) == []
    assert rank(server, query="\ud800 größe 🙂", documents=["d1"])[0][0] == "d1"
    assert ask(server, "GET", "/health") == (200, {"status": "ok", "documents": 60})
    assert ask(server, "GET", "/health?from=balancer")[0] == 200


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the request is not JSON in UTF-8"),
        (b"{", "the request is not JSON in UTF-8"),
        (b"\xff\xfe{}", "the request is not JSON in UTF-8"),
        (b"[" * 100_000, "the request is not JSON in UTF-8"),
        ([], "the request must be an object with a query, got []"),
        ({}, "query must be text of at most 100,000 characters, got null"),
        ({"query": 7}, "got 7"),
        ({"query": "x" * (MOST_CHARACTERS + 1)}, "... (100,003 characters)"),
        ({"query": "x", "k": 0}, "k must be a whole number, 1 to 10,000, got 0"),
        ({"query": "x", "k": True}, "got true"),
        ({"query": "x", "k": 1.5}, "got 1.5"),
        ({"query": "x", "k": 10**400}, "k must be a whole number"),
        (b'{"query": "x", "k": NaN}', "got NaN"),
        (b'{"query": "x", "k": ' + b"9" * 5000 + b"}", "the request is not JSON"),
        ({"query": "x", "n": 3}, "no such key 'n'; there are query, k, documents, exclude, "),
        ({"query": "x", "on_unknown": "drop"}, 'on_unknown must be "raise" or "skip", got "drop"'),
        ({"query": "x", "documents": [7]}, "ids, each a text, got [7]"),
        ({"query": "x", "document": []}, "no such key 'document'; did you mean 'documents'?"),
        ({"query": "x", "documents": "d1"}, 'a list of at most 10,000 ids, each a text, got "d1"'),
        ({"query": "x", "documents": ["d1", None]}, 'got ["d1", null]'),
        ({"query": "x", "documents": [["d1"]]}, "documents must be a list"),
        ({"query": "x", "documents": {}}, "documents must be a list"),
        ({"query": "x", "exclude": "d1"}, 'exclude must be a list of at most 10,000 ids, each a'),
        ({"query": "x", "documents": ["d1"] * (MOST_DOCUMENTS + 1)}, "documents must be a list"),
        ({"query": "x", "documents": ["d1", "d999"]}, "collection 'topics' has no document 'd999'"),
    ],
)  # fmt: skip
def test_a_bad_request_is_answered_with_what_was_found(server, body, message):
    status, found = ask(server, "POST", "/rank", body)
    assert status == 400
    assert message in found["error"]
    assert len(found["error"]) < 300
    assert ask(server, "GET", "/health")[0] == 200


def test_requests_of_the_largest_size_are_answered(server):
    longest = {"query": "x" * MOST_CHARACTERS, "k": MOST_DOCUMENTS}
    longest |= {"documents": ["d1"] * MOST_DOCUMENTS, "exclude": ["d2"] * MOST_DOCUMENTS}
    body = json.dumps(longest).ljust(MOST_BYTES)
    status, found = ask(server, "POST", "/rank", body)
    assert (status, [document["id"] for document in found["documents"]]) == (200, ["d1"])


def test_unknown_documents_can_be_left_out_and_are_told(server):
    """A product added a minute ago does not take the page down."""
    request = {"query": "topic1word1", "documents": ["d1", "d999", "d7", "d998"]}
    status, found = ask(server, "POST", "/rank", {**request, "on_unknown": "skip"})
    assert status == 200
    assert found["unknown"] == ["d999", "d998"]
    assert (
        found["documents"]
        == ask(server, "POST", "/rank", {"query": "topic1word1", "documents": ["d1", "d7"]})[1][
            "documents"
        ]
    )
    nothing = {"query": "x", "documents": ["d999"], "on_unknown": "skip"}
    assert ask(server, "POST", "/rank", nothing) == (200, {"documents": [], "unknown": ["d999"]})


def raw(server, data):
    """What comes back for bytes that no HTTP library would send."""
    with socket.create_connection(server.server_address[:2], timeout=20) as client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(4096), b""))


def test_what_is_no_request_to_it_is_an_error_too(server):
    assert ask(server, "GET", "/") == (404, {"error": "there are GET /health and POST /rank"})
    assert ask(server, "POST", "/score", {})[0] == 404
    for method in ("DELETE", "PUT"):
        told = {"error": "there are GET /health and POST /rank"}
        assert ask(server, method, "/rank") == (405, told)
    assert b"Allow: POST\r\n" in raw(server, b"PUT /rank HTTP/1.1\r\n\r\n")
    assert b"Allow: GET, HEAD\r\n" in raw(server, b"DELETE /health HTTP/1.1\r\n\r\n")
    assert ask(server, "PUT", "/score") == (404, told)
    status, found = ask(server, "BREW", "/rank")
    assert (status, list(found)) == (501, ["error"])
    status, found = ask(server, "POST", "/rank", b"x" * (MOST_BYTES + 1))
    assert (status, found) == (413, {"error": "at most 1,048,576 bytes"})
    assert b" 411 " in raw(server, b"POST /rank HTTP/1.1\r\n\r\n")
    assert b" 411 " in raw(server, b"POST /rank HTTP/1.1\r\nContent-Length: -5\r\n\r\n")
    body = b'{"query": "topic1word1"}'
    for other in (b"Content-Length: 5", b"Transfer-Encoding: chunked"):  # which may be smuggled in
        post = b"POST /rank HTTP/1.1\r\n%b\r\nContent-Length: %d\r\n\r\n%b"
        said = raw(server, post % (other, len(body), body))
        assert b" 411 " in said
        assert b"one Content-Length, and no Transfer-Encoding" in said
    many = b"POST /rank HTTP/1.1\r\nContent-Length: " + b"9" * 6000 + b"\r\n\r\n"
    assert b" 413 " in raw(server, many)
    short = b'POST /rank HTTP/1.1\r\nContent-Length: 50\r\n\r\n{"query"'
    assert b" 400 " in raw(server, short)
    for noise in (b"\r\n", b"\x16\x03\x01\x02\x00", b"GET " + b"a" * 70_000, b"X: y\r\n" * 300):
        assert b"Traceback" not in raw(server, noise)
    assert ask(server, "GET", "/health")[0] == 200


def test_an_unexpected_error_is_for_the_log_not_for_the_client(server, monkeypatch, capsys):
    def broken(*_, **__):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(server.pipeline, "rank", broken)
    assert ask(server, "POST", "/rank", {"query": "x"}) == (500, {"error": "see the server's log"})
    assert "ZeroDivisionError: secret" in capsys.readouterr().err


def test_health_can_be_asked_without_the_answer_s_body(server):
    for page, status in (("/health", b" 200 "), ("/rank", b" 404 ")):
        answer = raw(server, b"HEAD " + page.encode() + b" HTTP/1.1\r\n\r\n")
        assert status in answer
        assert answer.endswith(b"\r\n\r\n")


def test_a_client_that_does_not_wait_is_no_error(server, capfd):
    """Front ends give up after their own time limit, and would fill the log with tracebacks."""
    body = b'{"query": "topic1word1", "k": 100}'
    request = b"POST /rank HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    for _ in range(10):
        client = socket.create_connection(server.server_address[:2], timeout=20)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(request)
        client.close()  # by a reset
    assert rank(server, query="topic1word1")
    server.server_close()  # which waits for the requests in progress
    assert capfd.readouterr().err == ""


def test_a_client_that_sends_nothing_is_given_up(server, monkeypatch):
    monkeypatch.setattr(serving._Handler, "timeout", 0.2)
    with socket.create_connection(server.server_address[:2], timeout=20) as client:
        client.sendall(b"POST /rank HTTP/1.1\r\n")
        assert client.recv(100) == b""


def test_a_client_that_sends_a_byte_now_and_then_is_given_up(server, monkeypatch):
    """It would keep the server from ending, which waits for requests in progress."""
    monkeypatch.setattr(serving, "MOST_SECONDS", 0.5)
    clients = []
    for head in (b"POST /rank HTTP/1.1\r\n", b"POST /rank HTTP/1.1\r\nContent-Length: 900\r\n\r\n"):
        clients.append(socket.create_connection(server.server_address[:2], timeout=20))
        clients[-1].sendall(head)
    stop = threading.Event()

    def trickle():
        while not stop.wait(0.05):
            for client in clients:
                with suppress(OSError):
                    client.sendall(b"x")

    def answer(client):
        received = b""
        with suppress(ConnectionResetError):  # closed while bytes were on their way
            while part := client.recv(4096):
                received += part
        return received

    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        answers = [answer(client) for client in clients]
    finally:
        stop.set()
        thread.join()
        for client in clients:
            client.close()
    assert b" 400 " in answers[1]
    assert b"of the 900 bytes of its Content-Length arrived, within 0.5 seconds" in answers[1]


def test_many_at_once_get_the_scores_of_the_batch(server, pipeline):
    collection = pipeline.features.context_.collection
    docnos, query = list(collection.document_ids), np.repeat(np.arange(24), 60)
    texts = list(collection.query_texts)
    batch = RankingData(
        pipeline.features.compute(texts, query, docnos * 24),
        np.zeros(len(query), np.float32),
        list(collection.query_ids),
        query,
        pipeline.features.column_names,
    )
    scores = pipeline.ranker.predict(batch).reshape(24, 60).tolist()
    wanted = {t: dict(zip(docnos, row, strict=True)) for t, row in zip(texts, scores, strict=True)}
    asked = texts * 6
    with ThreadPoolExecutor(12) as clients:
        found = clients.map(lambda text: rank(server, query=text, documents=docnos), asked)
        for text, answer in zip(asked, found, strict=True):
            assert dict(answer) == wanted[text]


def test_two_servers_do_not_share_a_port_of_windows(pipeline, monkeypatch):
    with monkeypatch.context() as windows:
        windows.setattr(os, "name", "nt")
        server = ScoringServer(pipeline, port=0)
    with server:
        assert not server.socket.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_an_address_may_be_of_ipv6(pipeline):
    try:
        server = ScoringServer(pipeline, "::1", 0)
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            pytest.skip("this machine has no IPv6")
        raise
    with running(server):
        assert ask(server, "GET", "/health") == (200, {"status": "ok", "documents": 60})


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM that a process can answer")
def test_the_command_serves_a_saved_pipeline_until_a_signal(pipeline, tmp_path):
    pipeline.save(tmp_path / "service")
    text = pipeline.features.context_.collection.query_texts[3]
    for number in (signal.SIGTERM, signal.SIGINT):
        process = subprocess.Popen(
            [sys.executable, "-m", "ltr_features.cli", "serve", str(tmp_path / "service"),
             "--port", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            said = process.stdout.readline()
            assert said.startswith("60 documents: http://127.0.0.1:")
            port = int(said.rpartition(":")[2].removesuffix("/rank\n"))
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("POST", "/rank", json.dumps({"query": text, "k": 3}))
            found = json.loads(connection.getresponse().read())["documents"]
            assert [(d["id"], d["score"]) for d in found] == expected(pipeline, text, 3)
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
        assert (process.returncode, out, err) == (0, "", "")
