"""Link texts with the TAGME web service, using addresses and classes of the ``tagme`` client.

Requests of the client (0.1.3) have no timeout, return None for every failure and drop the link
probability. So requests are sent by a session of our own, and the client's class reads each
annotation, to which the link probability is added. The client's relatedness calls do not work on
Python 3.9 and later, and are not used. Offsets of the service are UTF-16 units and are converted to
code points.

Answers are stored in an SQLite file as soon as they arrive: a text is sent once, and an interrupted
or failed run continues where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from letor.errors import InputError, reading
from ltr_features.entities.linker import Mention, refuse_single_text
from ltr_features.parameters import check_choice, check_values

#: The environment variable that holds the access token.
TOKEN_VARIABLE = "GCUBE_TOKEN"

#: The languages that the service knows.
LANGUAGES = ("en", "de", "it")

_LONGEST_WAIT = 86_400  # seconds
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_MOST_BYTES = 16 * 2**20  # of an answer


@dataclass(frozen=True)
class TagmeService:
    """Links texts by the TAGME service; the token is read from the environment variable
    GCUBE_TOKEN when a text has to be sent.

    Attributes:
        cache: SQLite file of the answers; created if missing.
        language: en, de or it.
        long_text: number of neighbouring mentions that vote; 0 (all of them) suits short texts.
        address: address of the service; None for the client's.
        timeout: seconds for an answer, from the first byte sent to the last byte received.
        attempts: how often a text is sent before the service counts as down.
        pause: least seconds between requests; doubled after each failure of the same text.

    Raises:
        InputError: a parameter is out of range.
    """

    cache: str | os.PathLike[str] = "tagme.sqlite"
    language: str = "en"
    long_text: int = 0
    address: str | None = None
    timeout: float = 30.0
    attempts: int = 4
    pause: float = 0.5

    def __post_init__(self) -> None:
        check_values(type(self), vars(self), "TAGME service")
        check_choice("language", self.language, LANGUAGES)
        if not (
            0 < self.timeout <= _LONGEST_WAIT
            and 0 <= self.pause <= _LONGEST_WAIT
            and self.attempts >= 1
            and self.long_text >= 0
        ):
            raise InputError(
                f"TAGME service: timeout > 0 and pause >= 0, at most {_LONGEST_WAIT:,} seconds, "
                "attempts >= 1 and long_text >= 0 expected, got "
                f"{self.timeout}, {self.pause}, {self.attempts}, {self.long_text}"
            )

    @property
    def description(self) -> str:
        return f"TAGME service (language {self.language}, long_text {self.long_text})"

    def link(self, texts: Sequence[str]) -> list[list[Mention]]:
        """The mentions of each text; cached texts need no request.

        Raises:
            InputError: the service is down or refuses; the message counts the missing texts.
        """
        refuse_single_text(texts)
        distinct = list(dict.fromkeys(text for text in texts if text.strip()))
        advice = "not a cache of TAGME answers: remove it, and texts are sent again"
        with reading(self.cache, advice):
            opened = self._open()
        with closing(opened) as store:
            with reading(self.cache, advice):
                answers = {text: self._stored(store, text) for text in distinct}
            missing = [text for text, answer in answers.items() if answer is None]
            if missing:
                self._fetch(store, missing, answers)
        return [_mentions(text, answers.get(text)) for text in texts]

    def _fetch(
        self, store: sqlite3.Connection, missing: list[str], answers: dict[str, str | None]
    ) -> None:
        import requests

        token = os.environ.get(TOKEN_VARIABLE)
        with requests.Session() as session:
            for done, text in enumerate(missing):
                try:
                    if not token:
                        raise _FailureError(f"the environment variable {TOKEN_VARIABLE} is not set")
                    answer = self._ask(session, text, token)
                except _FailureError as failure:
                    raise InputError(
                        f"TAGME service: {failure}. {len(missing) - done} of {len(answers)} texts "
                        f"are not linked yet, {len(answers) - len(missing) + done} are in "
                        f"{self.cache}; run the same command again to continue"
                    ) from None
                with store:
                    store.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)",
                                  (self._key(text), answer))  # fmt: skip
                answers[text] = answer

    def _ask(self, session: Any, text: str, token: str) -> str:
        """Request the annotations of a text; returns them checked, as JSON."""
        import requests
        import tagme

        payload = {
            "text": text.encode("utf-8", "replace"),
            "long_text": self.long_text,
            "lang": self.language,
            "gcube-token": token,
        }
        wait = self.pause
        reason = ""
        for attempt in range(self.attempts):
            time.sleep(wait if attempt else self.pause)
            wait *= 2
            until = time.monotonic() + self.timeout
            try:
                # Following a redirect would send the token to another address.
                with session.post(
                    self.address or tagme.DEFAULT_TAG_API,
                    data=payload,
                    timeout=self.timeout,
                    allow_redirects=False,
                    stream=True,
                ) as answer:
                    if answer.status_code in _PASSING:
                        reason = f"status {answer.status_code}"
                        continue
                    if answer.is_redirect:
                        raise _FailureError(
                            f"it redirects to {answer.headers['location'][:200]!r}; the token is "
                            "not sent there; if that is the service, give it as the address"
                        )
                    if answer.status_code != 200:
                        raise _FailureError(
                            f"status {answer.status_code} (the token or the address may be wrong)"
                        )
                    content = _received(answer, until)
            except (requests.RequestException, TimeoutError) as error:
                reason = f"no answer ({type(error).__name__})"
                continue
            try:
                return json.dumps(_checked(content, text))
            except ValueError as error:
                reason = f"an answer that is not TAGME's JSON ({error})"
        raise _FailureError(f"{reason}, {self.attempts} attempts")

    def _key(self, text: str) -> str:
        parts = json.dumps([self.address, self.language, self.long_text, text])
        return hashlib.sha256(parts.encode()).hexdigest()

    def _open(self) -> sqlite3.Connection:
        Path(self.cache).parent.mkdir(parents=True, exist_ok=True)
        store = sqlite3.connect(self.cache)
        store.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT)")
        return store

    def _stored(self, store: sqlite3.Connection, text: str) -> str | None:
        """The answer in the cache; None if there is none or it is invalid, so that it is requested
        again."""
        row = store.execute(
            "SELECT answer FROM answers WHERE key = ?", (self._key(text),)
        ).fetchone()
        if row is None:
            return None
        try:
            for annotation in json.loads(row[0]):
                _check_annotation(*annotation, n_units=_n_units(text))
        except (ValueError, TypeError, RecursionError):
            return None
        return str(row[0])


class _FailureError(Exception):
    """The reason why a text has no answer."""


def _received(answer: Any, until: float) -> bytes:
    """Receive the body of an answer."""
    content = bytearray()
    for byte in answer.iter_content(1):  # a larger chunk waits until it is full
        content += byte
        if time.monotonic() > until or len(content) > _MOST_BYTES:
            raise TimeoutError
    return bytes(content)


def _checked(content: bytes, text: str) -> list[list[Any]]:
    """Start, end, title, rho and link probability of each annotation that names an entity."""
    import tagme

    found = []
    try:
        annotations = json.loads(content.decode("utf-8"))["annotations"]
        if not isinstance(annotations, list):
            raise ValueError(f"annotations are a {type(annotations).__name__}")
        for raw in annotations:
            if raw.get("title"):
                note = tagme.Annotation(raw)
                parts = [note.begin, note.end, note.entity_title, note.score,
                         float(raw["link_probability"])]  # fmt: skip
                _check_annotation(*parts, n_units=_n_units(text))
                found.append(parts)
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    return found


def _check_annotation(
    begin: Any, end: Any, title: Any, rho: Any, probability: Any, *, n_units: int
) -> None:
    """Raise ValueError if this cannot be an annotation of a text with ``n_units`` UTF-16 units."""
    if not (type(begin) is type(end) is int and 0 <= begin <= end <= n_units):
        raise ValueError(f"a mention from {begin!r} to {end!r} of {n_units}")
    if not isinstance(title, str):
        raise ValueError(f"the title {title!r}")
    for score in (rho, probability):
        if not isinstance(score, int | float) or not math.isfinite(score):
            raise ValueError(f"the score {score!r}")


def _n_units(text: str) -> int:
    """The length of a text in UTF-16 units, in which the service counts."""
    return len(text) + sum(character > "\uffff" for character in text)


def _mentions(text: str, answer: str | None) -> list[Mention]:
    if answer is None:
        return []
    units = np.cumsum([0, *(2 if character > "\uffff" else 1 for character in text)])
    mentions = []
    for begin, end, title, rho, probability in json.loads(answer):
        first, last = np.searchsorted(units, [begin, end]).clip(0, len(text)).tolist()
        scores = (min(1.0, max(0.0, score)) for score in (rho, probability))
        mentions.append(Mention(first, last, title.replace("_", " "), *scores))
    return sorted(mentions, key=lambda mention: (mention.start, -mention.end))
