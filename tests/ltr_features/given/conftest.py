"""A collection that values are given for."""

from dataclasses import replace

import pytest
from toys import context_of, toy


@pytest.fixture(scope="module")
def context():
    collection = toy({"body": ["one two", "two three", "three"]}, ["one", "two"])
    return context_of(replace(collection, query_ids=["a", "b"]))
