"""A knowledge base of two jaguars."""

import pytest
from dumps import dump_xml
from knowledge import PAGES

from ltr_features.entities.build import build_knowledge_base
from ltr_features.entities.knowledge import KnowledgeBase


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kb")
    (folder / "dump.xml").write_bytes(dump_xml(PAGES))
    build_knowledge_base(folder / "dump.xml", folder / "kb")
    return KnowledgeBase.open(folder / "kb")
