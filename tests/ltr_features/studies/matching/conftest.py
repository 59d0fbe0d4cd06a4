"""Small generated data: linked articles on topics, and sentences in two languages."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_studies import write_matching


@pytest.fixture(scope="session")
def small_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``articles`` (links within topics) and ``sentences`` (word for word)."""
    folder = tmp_path_factory.mktemp("data")
    write_matching(folder)
    return folder
