"""Serve a pipeline over HTTP with the standard library alone: JSON in, JSON out.

``POST /rank`` takes ``{"query": ..., "k": 10}`` (candidates as in training) or ``{"query": ...,
"documents": [...]}`` and answers ``{"documents": [{"id": ..., "score": ...}, ...]}``, best first;
``GET /health`` answers ``{"status": "ok", "documents": n}``, ``HEAD /health`` only that it is up.
Documents of ``"exclude": [...]`` are no candidates. A bad request is answered with ``{"error":
...}``, but with ``"on_unknown": "skip"`` documents that the pipeline does not have are left out and
answered as ``"unknown": [...]``. There is no encryption and no authentication.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import traceback
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from letor.errors import InputError
from ltr_base.names import nearest
from ltr_features.scoring import ScoringPipeline

#: Largest number of bytes in a request's body, characters in a query, documents in a request.
MOST_BYTES, MOST_CHARACTERS, MOST_DOCUMENTS = 1 << 20, 100_000, 10_000
#: Seconds within which a request must have arrived.
MOST_SECONDS = 10
_PATHS = "there are GET /health and POST /rank"
_ALLOWED = {"/health": "GET, HEAD", "/rank": "POST"}
_KEYS = ("query", "k", "documents", "exclude", "on_unknown")


class ScoringServer(ThreadingHTTPServer):
    """Serves a pipeline, with one thread per request.

    Args:
        pipeline: the pipeline. Scores do not depend on concurrent requests.
        host: the address to listen on, of IPv4 or IPv6. port: 0 for any free port.

    Raises:
        OSError: the address cannot be listened on.
    """

    request_queue_size = 128
    daemon_threads = False  # so that server_close waits for requests in progress

    def __init__(self, pipeline: ScoringPipeline, host: str = "127.0.0.1", port: int = 8080):
        self.pipeline = pipeline
        self.n_documents = pipeline.features.n_documents
        # For a port that has just been left; on Windows two servers would share it.
        self.allow_reuse_address = os.name == "posix"
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)

    def serve(self) -> None:
        """Answer requests until SIGTERM or Ctrl-C; requests in progress are still answered. Must
        be called from the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            # shutdown() waits for the loop, which runs in this thread: call it from another one.
            signal.signal(number, lambda *_: threading.Thread(target=self.shutdown).start())
        with self:
            self.serve_forever(poll_interval=0.1)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log an unexpected error. A client that did not wait for its answer is none."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: ScoringServer
    protocol_version = "HTTP/1.1"  # knows "Expect: 100-continue"
    timeout = 5  # seconds without a byte of a request

    def setup(self) -> None:
        """Read no longer than ``MOST_SECONDS``: a client that sends a byte every second would keep
        its thread, and the server from ending, for as long as it likes."""
        super().setup()
        self._late = threading.Timer(MOST_SECONDS, self._stop_reading)
        self._late.start()

    def finish(self) -> None:
        self._late.cancel()
        super().finish()

    def _stop_reading(self) -> None:
        with suppress(OSError):  # the client, or the server, has closed it just now
            self.connection.shutdown(socket.SHUT_RD)

    def do_GET(self) -> None:
        if self.path.partition("?")[0] == "/health":  # some load balancers add a parameter
            self._answer(HTTPStatus.OK, {"status": "ok", "documents": self.server.n_documents})
        else:
            self.send_error(HTTPStatus.NOT_FOUND, _PATHS)

    def do_HEAD(self) -> None:
        """As GET, without the body: many load balancers check health so."""
        self.do_GET()

    def do_POST(self) -> None:
        length, *others = self.headers.get_all("Content-Length", [""])
        if "Transfer-Encoding" in self.headers or others or not length.isdecimal():
            # A proxy may have found the body's end by another of them.
            message = "the request needs one Content-Length, and no Transfer-Encoding"
            self.send_error(HTTPStatus.LENGTH_REQUIRED, message)
            return
        n_bytes = int(length[:20])
        body = self._body(n_bytes)
        if body is None:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {MOST_BYTES:,} bytes")
        elif len(body) < n_bytes:
            arrived = f"only {len(body):,} of the {n_bytes:,} bytes of its Content-Length arrived"
            self.send_error(HTTPStatus.BAD_REQUEST, f"{arrived}, within {MOST_SECONDS} seconds")
        elif self.path != "/rank":
            self.send_error(HTTPStatus.NOT_FOUND, _PATHS)
        else:
            try:
                answer = _rank(self.server.pipeline, body)
            except InputError as error:
                self.send_error(HTTPStatus.BAD_REQUEST, str(error))
            except Exception:
                print(traceback.format_exc(), file=sys.stderr)
                self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, "see the server's log")
            else:
                self._answer(HTTPStatus.OK, answer)

    def do_PUT(self) -> None:
        known = self.path in _ALLOWED
        self.send_error(HTTPStatus.METHOD_NOT_ALLOWED if known else HTTPStatus.NOT_FOUND, _PATHS)

    do_DELETE = do_PATCH = do_OPTIONS = do_PUT  # noqa: N815, names that the base class looks for

    def _body(self, length: int) -> bytes | None:
        """The request's body, or None if it is too long. Then up to eight times the limit is read
        and dropped, as clients do not read the answer before they have sent everything."""
        if length <= MOST_BYTES:
            return self.rfile.read(length)
        for _ in range(min(length, 8 * MOST_BYTES) >> 16):
            self.rfile.read(1 << 16)
        return None

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer with an error as JSON; the base class calls this, too."""
        self._answer(code, {"error": message or HTTPStatus(code).phrase})

    def _answer(self, code: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        if code == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", _ALLOWED[self.path])
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Do nothing: only unexpected errors are logged, with their traceback."""


def _rank(pipeline: ScoringPipeline, body: bytes) -> dict[str, Any]:
    """The answer to a request. Raises InputError for a bad request."""
    try:
        request = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the request is not JSON in UTF-8: {error}") from None
    if not isinstance(request, dict):
        raise InputError(f"the request must be an object with a query, got {_shown(request)}")
    for key in request:
        if key not in _KEYS:
            raise InputError(f"no such key {key!r}; {nearest(key, _KEYS)}")
    query, documents = request.get("query"), request.get("documents")
    excluded = request.get("exclude", [])
    k = request.get("k", 10 if documents is None else MOST_DOCUMENTS)
    if not isinstance(query, str) or len(query) > MOST_CHARACTERS:
        raise InputError(
            f"query must be text of at most {MOST_CHARACTERS:,} characters, got {_shown(query)}"
        )
    if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= MOST_DOCUMENTS:
        raise InputError(f"k must be a whole number, 1 to {MOST_DOCUMENTS:,}, got {_shown(k)}")
    for key, ids in (("documents", [] if documents is None else documents), ("exclude", excluded)):
        if (
            not isinstance(ids, list)
            or len(ids) > MOST_DOCUMENTS
            or not all(isinstance(document, str) for document in ids)
        ):
            raise InputError(
                f"{key} must be a list of at most {MOST_DOCUMENTS:,} ids, each a text, got "
                f"{_shown(ids)}"
            )
    on_unknown = request.get("on_unknown", "raise")
    if on_unknown not in ("raise", "skip"):
        raise InputError(f'on_unknown must be "raise" or "skip", got {_shown(on_unknown)}')
    answer = {}
    if documents is not None and on_unknown == "skip":
        answer["unknown"] = pipeline.features.unknown_documents(documents)
        unknown = set(answer["unknown"])
        documents = [document for document in documents if document not in unknown]
    best = pipeline.rank(query, k, docnos=documents, excluded=excluded)
    pairs = zip(best["docno"], best["score"].tolist(), strict=True)
    return {"documents": [{"id": docno, "score": score} for docno, score in pairs], **answer}


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}... ({len(text):,} characters)"
