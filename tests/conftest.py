"""Fixtures that several packages' tests share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of research data sets named by the environment variable LTR_DATA."""
    named = os.environ.get("LTR_DATA")
    if not named:
        pytest.skip("set LTR_DATA to the folder of the research data sets to run this test")
    folder = Path(named)
    if not folder.is_dir():
        pytest.skip(f"LTR_DATA={named} is not a folder")
    return folder
