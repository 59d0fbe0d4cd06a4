"""The section search task, by hand on a dump of three articles and by its stated properties."""

from __future__ import annotations

import numpy as np
import pytest
from dumps import dump_xml, page_xml, topical_dump

from letor.errors import InputError
from ltr_features.sources.wikipedia import Article, read_dump
from ltr_features.sources.wikipedia_sections import section_collection
from ltr_features.text.analyzer import Analyzer

RIVER = "river water bank flow delta fish boat bridge flood source"
SEA = "sea water wave salt fish boat harbour tide storm island"


@pytest.fixture
def dump(tmp_path):
    pages = [
        page_xml("River", f"[[Water]] {RIVER}\n== Use ==\n[[H2O|wet]] [[Sea|salt]] {RIVER} {SEA}\n"
                 f"== Law ==\n[[Court]] {RIVER}\n== See also ==\n{RIVER}", page_id=1),
        page_xml("Sea", f"{SEA} [[River|field]] [[River#Law|rules]] [[River#Use|trade]]\n"
                 f"== Tides ==\n{SEA} [[River|mouth]]", page_id=2),
        page_xml("Single", RIVER, page_id=3),
        page_xml("Stub", f"Short.\n== Long ==\n{RIVER}", page_id=5),
        page_xml("H2O", "", page_id=4, redirect="Water"),
    ]  # fmt: skip
    path = tmp_path / "dump.xml"
    path.write_bytes(dump_xml(pages))
    return path


def test_documents_fields_and_grades_by_hand(dump):
    c = section_collection(dump, words_per_query=3, min_words=5, min_document_frequency=1)
    # "Use" and "Tides" give queries, and "Long" none, as its article has no document; "See also"
    # is apparatus; the redirect is no document.
    assert c.document_ids == ["River", "River~Law", "Sea", "Single"]
    assert c.fields["title"] == ["River", "River: Law", "Sea", "Single"]
    # Anchors of links from other articles' documents: to the article or to a section that is no
    # document (its lead), or to the section. Those of "Use" and "Tides" are in none.
    assert c.fields["anchor"] == ["field\ntrade", "rules", "", ""]
    assert c.fields["url"][1] == "https://wiki.example.org/index.php/River#Law"
    judged = {
        (c.query_ids[q], c.document_ids[d]): int(g)
        for q, d, g in zip(
            c.judgements.query, c.judgements.document, c.judgements.grade, strict=True
        )
    }
    # The lead links to Water, "Use" to H2O, a redirect to Water: they share a target.
    assert judged == {("q1", "River"): 2, ("q1", "River~Law"): 1, ("q2", "Sea"): 2}
    assert list(zip(c.links.source, c.links.target, strict=True)) == [(2, 0)]
    assert c.query_groups == ["River", "Sea"]
    assert c.query_sources is None
    assert "every second section" in c.withheld


def test_query_words_follow_the_rule(tmp_path):
    path = tmp_path / "dump.xml"
    path.write_bytes(topical_dump(12, 4))
    c = section_collection(path, words_per_query=6, min_document_frequency=3)
    analyzer = Analyzer(stopwords="english")
    bodies = [set(analyzer.tokens(text)) for text in c.fields["body"]]
    articles = [record for record in read_dump(path) if isinstance(record, Article)]
    sources = [set(analyzer.tokens(a.sections[s].text)) for a in articles for s in (1, 3)]
    assert len(c.query_texts) == len(sources) == len(bodies) == 24
    for text, source in zip(c.query_texts, sources, strict=True):
        words = text.split()
        assert len(words) == len(set(words)) == 6
        assert set(words) <= source
        assert all(sum(word in body for body in bodies) >= 3 for word in words)
    again = section_collection(path, words_per_query=6, min_document_frequency=3)
    other = section_collection(path, words_per_query=6, min_document_frequency=3, seed=1)
    assert again.query_texts == c.query_texts
    assert other.query_texts != c.query_texts
    assert np.isin(c.judgements.grade, [1, 2]).all()


def test_dumps_without_a_task_are_refused(dump):
    with pytest.raises(InputError, match="4 articles has a section of 500 words for a document"):
        section_collection(dump, min_words=500)
    with pytest.raises(InputError, match=r"none of the 2 sections .* 10 different words .* in 99"):
        section_collection(dump, min_words=5, min_document_frequency=99)


@pytest.mark.parametrize(
    "wrong",
    [{"words_per_query": 0}, {"min_words": -1}, {"min_document_frequency": 0}, {"seed": -1}],
)
def test_numbers_out_of_range_are_refused_before_the_dump_is_read(wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))} must be . or more"):
        section_collection("absent.xml", **wrong)


def test_ids_are_distinct_after_blanks_and_number_signs_are_gone(tmp_path):
    headings = ["x y", "x_y", "x#", "x%23"]
    sections = "".join(f"== {name} {i} ==\n{RIVER}\n== {name} ==\n{RIVER}\n"
                       for i, name in enumerate(headings))  # fmt: skip
    (tmp_path / "d.xml").write_bytes(dump_xml([page_xml("A", f"{RIVER}\n{sections}")]))
    c = section_collection(
        tmp_path / "d.xml", words_per_query=3, min_words=5, min_document_frequency=2
    )
    assert c.document_ids == ["A", "A~x_y", "A~x_y~2", "A~x%23", "A~x%23~2"]


def test_links_to_a_repeated_heading_lead_to_its_first_section(tmp_path):
    sections = f"== Law ==\n{RIVER}\n== Use ==\n{SEA}\n" * 2
    pages = [
        page_xml("River", f"{RIVER}\n== Query ==\n{RIVER}\n{sections}", page_id=1),
        page_xml("Sea", f"{SEA} [[River#Law|rules]]", page_id=2),
    ]
    (tmp_path / "d.xml").write_bytes(dump_xml(pages))
    c = section_collection(
        tmp_path / "d.xml", words_per_query=3, min_words=5, min_document_frequency=1
    )
    assert c.document_ids == ["River", "River~Law", "River~Law~2", "Sea"]
    assert c.fields["anchor"] == ["", "rules", "", ""]
