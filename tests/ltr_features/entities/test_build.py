"""The knowledge base of a dump: counts by hand, what is no phrase, the same bytes."""

from functools import partial

import numpy as np
import pytest
from dumps import page_xml
from folders import different
from knowledge import PAGES, in_links, make_knowledge, phrase

from ltr_features.entities import build
from ltr_features.entities.build import build_knowledge_base
from ltr_features.entities.knowledge import KnowledgeBase
from ltr_features.entities.words import hash_phrases, word_lines


def test_statistics_by_hand(base):
    assert base.titles.tolist() == [
        "Jaguar (animal)", "Jaguar Cars", "Cat", "Car", "Motoring", "Zoo",
    ]  # fmt: skip
    # Links of anchor "jaguar": from Cat twice, Car, Motoring, Zoo; Panther's link from the animal's
    # own page does not count; one more by the title "Jaguar (animal)".
    assert phrase(base, "Jaguar") == (6, 8, {"Jaguar (animal)": 4, "Jaguar Cars": 2})
    assert phrase(base, "motor car") == (1, 1, {"Car": 1})
    assert phrase(base, "panther") == (1, 1, {"Jaguar (animal)": 1})
    assert in_links(base, "Jaguar (animal)") == ["Cat", "Zoo"]
    assert in_links(base, "Car") == ["Jaguar Cars", "Motoring"]
    assert in_links(base, "Auto") == in_links(base, "Car")
    assert base.rows(["Nowhere", "Jaguar_Cars"]).tolist() == [-1, 1]
    assert base.abstracts[1] == "A car maker; a jaguar. Car motor car"


def test_titles_of_disambiguation_pages_are_no_phrases(tmp_path):
    pages = [
        page_xml("Bank (Begriffsklärung)", "* [[Sitzbank]]", page_id=1),
        page_xml("Sitzbank", "Eine Bank zum Sitzen, siehe [[Stuhl]]. Bank.", page_id=2),
        page_xml("Stuhl", "Keine [[Sitzbank|Bank]].", page_id=3),
    ]
    base = KnowledgeBase.open(make_knowledge(tmp_path, pages))
    assert phrase(base, "bank") == (1, 3, {"Sitzbank": 1})


def test_anchors_of_one_character_or_digits_alone_are_no_phrases(tmp_path):
    anchors = ["1984", "1984 - 85", "x", "xy", "1984a"]
    text = ", ".join(f"[[Orwell|{anchor}]]" for anchor in anchors)
    pages = [page_xml("Novel", text, page_id=1), page_xml("Orwell", "A writer.", page_id=2)]
    base = KnowledgeBase.open(make_knowledge(tmp_path, pages))
    known = np.isin(hash_phrases(word_lines(anchors)), base.phrase_hash)
    assert known.tolist() == [False, False, False, True, True]


def test_redirects_lead_to_articles_over_other_redirects(tmp_path):
    to = {"Auto": "Car", "Automobile": "Auto", "Motor": "Automobile", "X": "Y", "Y": "X", "Z": "No"}
    pages = [
        page_xml(title, redirect=goal, page_id=i) for i, (title, goal) in enumerate(to.items())
    ]
    pages += [page_xml("Car", "A [[bus]].", page_id=10), page_xml("Bus", "[[motor]]", page_id=11)]
    base = KnowledgeBase.open(make_knowledge(tmp_path, pages))
    assert base.rows(["Car", *to]).tolist() == [0, 0, 0, 0, -1, -1, -1]
    assert in_links(base, "Car") == ["Bus"]


def test_building_again_gives_the_same_bytes_and_replaces(tmp_path):
    make_knowledge(tmp_path, PAGES)
    base = make_knowledge(tmp_path, PAGES)
    build_knowledge_base(tmp_path / "dump.xml", tmp_path / "b", processes=2)
    assert not list(base.glob("*.raw"))
    assert different(base, tmp_path / "b") == set()


@pytest.mark.parametrize("part", [1, 3, 7])
def test_sorting_in_parts_gives_the_same_bytes(part, base, tmp_path, monkeypatch):
    for name in ("_senses", "_in_links"):
        monkeypatch.setattr(build, name, partial(getattr(build, name), part=part))
    monkeypatch.setattr(build, "_CHUNK", part + 1)
    assert different(base.path, make_knowledge(tmp_path, PAGES)) == set()
