"""Fixtures that several packages' tests share."""

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ltr_features.cluster import local_cluster
from ssi_models import parallel

# Before LightGBM is loaded, as the command line does: several tests run side by side.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The documentation's examples come first: they take minutes, and would be waited for."""
    items.sort(key=lambda item: item.path.name != "test_docs.py")


@pytest.fixture(autouse=True)
def all_threads_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little there is to do: the data of tests are small."""
    monkeypatch.setattr(parallel, "WORTH_WAKING", 0)


@pytest.fixture
def windows_line_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of text end as on Windows, wherever the program leaves that to the system."""
    real_open = io.open

    def opened(
        file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None,
        errors: str | None = None, newline: str | None = None, *more: Any, **named: Any,
    ) -> Any:  # fmt: skip
        if newline is None and "b" not in mode and not {*mode}.isdisjoint("wax+"):
            newline = "\r\n"
        return real_open(file, mode, buffering, encoding, errors, newline, *more, **named)

    for module in ("io", "builtins"):
        monkeypatch.setattr(f"{module}.open", opened)
    monkeypatch.setattr("os.linesep", "\r\n")


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    """A Dask cluster of two processes; started once, as each imports the package anew."""
    with local_cluster(2) as found:
        yield found


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of research data sets named by the environment variable LTR_DATA."""
    named = os.environ.get("LTR_DATA")
    if not named:
        pytest.skip("set LTR_DATA to the folder of the research data sets to run this test")
    folder = Path(named)
    if not folder.is_dir():
        pytest.fail(f"LTR_DATA={named} is not a folder")
    return folder
