"""The small study of rankers."""

import pytest
from small_studies import write_letor


@pytest.fixture
def toy(tmp_path):
    """The file of the study."""
    path = tmp_path / "study.toml"
    path.write_text(write_letor(tmp_path / "data"))
    return path
