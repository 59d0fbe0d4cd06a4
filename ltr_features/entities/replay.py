"""Stored annotations: a linker that looks up texts in JSON lines of texts and their mentions."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from letor.errors import InputError
from letor.files import atomic_path
from ltr_features.entities.linker import Mention, refuse_single_text
from ltr_features.text.records import json_lines

_NAMES = [part.name for part in fields(Mention)]


def save_annotations(
    path: str | os.PathLike[str], texts: Sequence[str], mentions: Sequence[Sequence[Mention]]
) -> None:
    """Write ``{"text": ..., "mentions": [{...}]}``, one line per text."""
    with atomic_path(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as out:
        for text, found in zip(texts, mentions, strict=True):
            line = {"text": text, "mentions": [asdict(mention) for mention in found]}
            out.write(json.dumps(line) + "\n")


@dataclass(frozen=True)
class StoredAnnotations:
    """Links texts by annotations that :func:`save_annotations` wrote.

    Attributes:
        path: the file.

    Raises:
        InputError: there is no such file, a line is not an annotation, or two annotate the same
            text differently.
    """

    path: str | os.PathLike[str]

    def __post_init__(self) -> None:
        self._known  # noqa: B018  report a bad file now, not in the middle of the work

    @property
    def description(self) -> str:
        return f"annotations of {Path(self.path).name}"

    def link(self, texts: Sequence[str]) -> list[list[Mention]]:
        """The stored mentions; a text that is empty or blank has none.

        Raises:
            InputError: texts without stored annotations.
        """
        refuse_single_text(texts)
        missing = [text for text in texts if text.strip() and text not in self._known]
        if missing:
            raise InputError(
                f"{self.path}: no annotations for {len(missing)} of {len(texts)} texts, the first "
                f"is {missing[0][:60]!r}; link them and store the annotations"
            )
        return [list(self._known.get(text, ())) for text in texts]

    @cached_property
    def _known(self) -> dict[str, tuple[Mention, ...]]:
        known: dict[str, tuple[Mention, ...]] = {}
        for number, record in json_lines(Path(self.path), ("text", "mentions")):
            text, mentions = self._read(record, number)
            if known.setdefault(text, mentions) != mentions:
                raise InputError(
                    f"{self.path}, line {number}: the text {text[:60]!r} has other mentions on an "
                    "earlier line; keep one of the lines"
                )
        return known

    def _read(self, record: Mapping[str, Any], number: int) -> tuple[str, tuple[Mention, ...]]:
        text = record["text"]
        try:
            mentions = tuple(Mention(**found) for found in record["mentions"])
            valid = isinstance(text, str) and all(
                0 <= m.start <= m.end <= len(text)
                and isinstance(m.entity, str)
                and 0 <= m.rho <= 1
                and 0 <= m.link_probability <= 1
                for m in mentions
            )
        except (ValueError, KeyError, TypeError):
            valid = False
        if not valid:
            raise InputError(
                f"{self.path}, line {number}: not an annotation; expected "
                '{"text": ..., "mentions": [{' + ", ".join(_NAMES) + "}]}"
            )
        return text, mentions
