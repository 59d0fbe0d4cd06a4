"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130

Threads = Annotated[
    int | None,
    typer.Option(min=1, help="Worker threads (default: all cores); results do not depend on it."),
]
