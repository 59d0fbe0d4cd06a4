"""A knowledge base of two jaguars."""

import pytest
from knowledge import PAGES, make_knowledge

from ltr_features.entities.knowledge import KnowledgeBase


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return KnowledgeBase.open(make_knowledge(tmp_path_factory.mktemp("kb"), PAGES))
