"""Small knowledge bases: of two jaguars, and of words of the contract tests' collection."""

import atexit
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from dumps import dump_xml, page_xml

from ltr_features.entities.build import build_knowledge_base
from ltr_features.entities.knowledge import KnowledgeBase
from ltr_features.entities.words import hash_phrases, word_lines

PAGES = [
    page_xml("Jaguar (animal)", "A big cat. See [[Cat]] and [[Panther|jaguar]].", page_id=1),
    page_xml("Jaguar Cars", "A car maker; a jaguar. [[Car]] [[Car|motor car]]", page_id=2),
    page_xml(
        "Cat",
        "The jaguar, see [[Jaguar (animal)|jaguar]] or [[Jaguar (animal)|Jaguar]]. [[Nowhere]]",
        page_id=3,
    ),
    page_xml("Car", "[[Jaguar Cars|Jaguar]] and [[Cat]] and [[Auto]].", page_id=4),
    page_xml("Panther", redirect="Jaguar (animal)", page_id=5),
    page_xml("Auto", redirect="Car", page_id=6),
    page_xml("Motoring", "A [[car]] and a [[Jaguar Cars|jaguar]].", page_id=7),
    page_xml("Zoo", "A [[cat]] and a [[Jaguar (animal)|jaguar]].", page_id=8),
]


@cache
def word_knowledge() -> Path:
    """Articles "Word0" to "Word19"; article i links to i + 1, i + 2 and i + 5."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return write_word_knowledge(folder)


def write_word_knowledge(folder: Path) -> Path:
    """The same, made in a folder that is there: its ``kb``."""
    pages = [
        page_xml(
            f"Word{i}",
            f"word{i} is word{(3 * i) % 50} of word{(7 * i) % 50} and "
            + " ".join(f"[[Word{(i + k) % 20}]]" for k in (1, 2, 5)),
            page_id=i + 1,
        )
        for i in range(20)
    ]
    return make_knowledge(folder, pages)


def make_knowledge(folder: Path, pages: Sequence[str]) -> Path:
    """The ``kb`` that is made in a folder of a dump of these pages, its ``dump.xml``."""
    (folder / "dump.xml").write_bytes(dump_xml(pages))
    build_knowledge_base(folder / "dump.xml", folder / "kb")
    return folder / "kb"


def phrase(base: KnowledgeBase, text: str) -> tuple[int, int, dict[str, int]]:
    """How often a phrase is a link, occurs, and links to each article."""
    at = int(np.searchsorted(base.phrase_hash, hash_phrases(word_lines([text]))[0]))
    ends = base.sense_ends[at : at + 2]
    senses = {
        base.titles[int(base.sense_entity[i])]: int(base.sense_links[i]) for i in range(*ends)
    }
    return int(base.phrase_links[at]), int(base.phrase_count[at]), senses


def in_links(base: KnowledgeBase, title: str) -> list[str]:
    """The articles that link to one."""
    (row,) = base.rows([title])
    rows = base.link_sources[base.link_ends[row] : base.link_ends[row + 1]]
    return [base.titles[int(i)] for i in rows]
