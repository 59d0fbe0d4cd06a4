"""Wiki markup to sections, text and links: cases by hand, and properties for any input."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ltr_features.sources.wiki_links import Site, normalise_title
from ltr_features.sources.wikitext import Section, parse_wikitext

GERMAN = Site(files=frozenset({"file", "datei"}), categories=frozenset({"category", "kategorie"}))


def texts(source: str, site: Site = Site()) -> list[tuple[str, int, str]]:  # noqa: B008
    return [(s.heading, s.level, s.text) for s in parse_wikitext(source, site)]


def lead(source: str, site: Site = Site()) -> str:  # noqa: B008
    (section,) = parse_wikitext(source, site)
    return section.text


def links(source: str, site: Site = Site()) -> list[tuple[str, str]]:  # noqa: B008
    sections = parse_wikitext(source, site)
    for section in sections:
        assert_links_lie_in_text(section)
    return [(link.target, link.anchor) for s in sections for link in s.links]


def assert_links_lie_in_text(section: Section) -> None:
    end = 0
    for link in section.links:
        assert link.start >= end
        end = link.start + len(link.anchor)
        assert section.text[link.start : end] == link.anchor != ""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a {{x|{{y|[[z]]}}|u=v}} b", "a b"),
        ("a {{unclosed\nb", "a unclosed\nb"),
        ("a }} b ]] c [[ d", "a b c d"),
        ("a<!-- b\n== c ==\n-->d", "ad"),
        ("a<!-- never closed [[b]]", "a"),
        ("A<ref name=x/> b<ref>c [[d]] {{e}}</ref>.<ref name='a'>x</ref>", "A b."),
        ("a<ref>unclosed", "aunclosed"),
        ("<nowiki>[[no]] ''no'' {{no}} &lt;</nowiki>", "[[no]] ''no'' {{no}} <"),
        ("x <math>y^2</math> z", "x z"),
        ("'''bold''' ''it'' l''ami''", "bold it lami"),
        ("AT&amp;T &lt;b&gt; a&nbsp;b &amp;nbsp; &unknown;", "AT&T <b> a b &nbsp; &unknown;"),
        ("H<sub>2</sub>O<br/>two a < b and c > d", "H2O two a < b and c > d"),
        ("* a\n** b\n# c\n; t: d\n:: e\n----\n\n\n  f  g", "a\nb\nc\nt: d\ne\nf g"),
        ("* {{cite}}.\n* b", "b"),
        ("Foo ({{ipa}}; born {{x}}, 3) ({{z}}) a {{q}}, b {{r}}.", "Foo (born, 3) a, b."),
        ("[http://a.org The site] [//b.org b] [http://c.org] [mailto:d e]", "The site b e"),
        ("__NOTOC__a __b__", "a __b__"),
        ("<pre>a [[b]]\n== c ==</pre>", "a [[b]]\n== c =="),
        ("<gallery>\nFile:a.jpg|cap [[b]]|alt=c\nFile:d.jpg\n</gallery>e", "cap b\ne"),
    ],
)
def test_markup_is_removed(source: str, expected: str) -> None:
    assert lead(source) == expected


def test_tables_become_lines_of_cells() -> None:
    table = """before
{| class="wikitable"
|+ Caption
! scope=col | Name !! style="x" | Size
|- style="background:#fff"
| [[Cat|Cats]] || align=right | 2
|
{|
| inner
== no heading ==
|}
| last
|}
after"""
    assert lead(table).split("\n") == [
        *("before", "Caption", "Name Size", "Cats 2", "inner", "no heading", "last", "after")
    ]
    assert links(table) == [("Cat", "Cats")]


def test_unclosed_table_ends_at_a_heading() -> None:
    assert texts("a\n{| class=x\n| cell\n== H ==\nb") == [("", 1, "a\ncell"), ("H", 2, "b")]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[[cat]]", [("Cat", "cat")]),
        ("[[cat]]s, [[Katze|Kätz]]chen", [("Cat", "cats"), ("Katze", "Kätzchen")]),
        ("[[foo_bar  baz#Sec_t|the ''X'']]", [("Foo bar baz", "the X")]),
        ("[[a|b [c] d]] [[e|f\ng]]", [("A", "b [c] d"), ("E", "f g")]),
        ("[[#below|there]] [[ ]] [[|x]] [[a{b}|c]]", []),
        ("[[Foo (bar)|]] [[Foo, Bar|]]", [("Foo (bar)", "Foo"), ("Foo, Bar", "Foo")]),
        ("[[Caf%C3%A9]] [[AT&amp;T]]", [("Café", "Café"), ("AT&T", "AT&T")]),
        ("[[O&#39;Reilly|her]] [[a&#45;b]]", [("O'Reilly", "her"), ("A-b", "a-b")]),
        ("[[a&#124;b]] [[<nowiki>|</nowiki>c]]", []),
        ("[[\u200fשלום\u200e|x]] [[საქართველო]]", [("שלום", "x"), ("საქართველო",) * 2]),
        ("[[Star Trek: TNG]] [[2001: A]]", [("Star Trek: TNG",) * 2, ("2001: A",) * 2]),
        ("[[Category:C]] [[File:a.jpg]] [[fr:Chat]] [[zh-yue:X]]", []),
        ("[[:Category:C]] [[:File:a]] [[:fr:Chat|c]] [[wikt:dog]] [[User talk:X|x]] [[WP:Y]]", []),
        ("{{tpl|[[a]]}}<ref>[[b]]</ref><nowiki>[[c]]</nowiki><!--[[d]]-->", []),
        ("[[a|]]b [[c|<b>d</b>]]", [("A", "ab"), ("C", "d")]),
        ("[[miasto|miast]]ością [[مصر]]ية", [("Miasto", "miastością"), ("مصر", "مصرية")]),
        ("[[日本]]の[[λόγος]]ού", [("日本", "日本"), ("Λόγος", "λόγοςού")]),
        ('<span title="[[a]]">[[b]]</span>', [("B", "b")]),
        ("[http://x.org/[[a]] b [[c]]]", [("A", "a"), ("C", "c")]),
        ("{|\n| [[a|b||c]] || [[d!!e]]\n|}", [("A", "b||c"), ("D!!e", "d!!e")]),
    ],
)
def test_links(source: str, expected: list[tuple[str, str]]) -> None:
    assert links(source) == expected


def test_links_to_other_pages_keep_their_words() -> None:
    source = "[[Category:C]][[:Category:C]] [[:fr:Chat|chat]] [[wikt:dog]] [[User:X|me]] [[fr:Y]]"
    assert lead(source) == "Category:C chat wikt:dog me"


def test_link_knows_its_fragment_and_place() -> None:
    (link,) = parse_wikitext("''The'' [[Cat#In_art|cats]]")[0].links
    assert (link.target, link.fragment, link.anchor, link.start) == ("Cat", "In art", "cats", 4)


def test_pictures_leave_their_caption_when_framed() -> None:
    framed = "[[File:a.jpg|thumb|left|200x80px|alt=Foo|A [[cat|big cat]] on [[mat]]s|link=x]]Text."
    assert lead(framed) == "A big cat on mats\nText."
    assert links(framed) == [("Cat", "big cat"), ("Mat", "mats")]
    assert lead("a [[File:a.png|20px|flag]] b [[Image:c.png|thumb|right]]") == "a b"
    assert lead("a [[File:a.png|20px]]and b") == "a and b"  # no link whose anchor goes on
    nested = "[[File:a.jpg|thumb|See [[File:b.png|frame|in [[x]]]] and [[y]]]]"
    assert links(nested) == [("X", "x"), ("Y", "y")]


def test_files_are_known_by_their_ending_too() -> None:
    source = (
        "a [[Bild:Alt.JPG|thumb|right|mit [[Spree]]]] b [[画像:x.png]] c [[Bild: Eine Zeitung]]"
    )
    assert lead(source) == "a\nmit Spree\nb c Bild: Eine Zeitung"
    assert links(source) == [("Spree", "Spree"), ("Bild: Eine Zeitung", "Bild: Eine Zeitung")]


def test_namespaces_of_the_site() -> None:
    source = "[[Datei:a.jpg|mini|Bild]] [[Kategorie:K]] [[Hund]]"
    assert lead(source, GERMAN) == "Bild\nHund"
    assert links(source, GERMAN) == [("Hund", "Hund")]
    assert links("[[cat]]", Site(capital_first=False)) == [("cat", "cat")]


def test_sections() -> None:
    source = """intro
== One ==
1
=== ''Sub'' [[a|link]] <!-- c --> ===
=== Empty ===
==Two==<!-- c -->
<nowiki>
== no ==
</nowiki>{{x|
== no ==
}}<!--
== no ==
--><ref>
== no ==
</ref>
not == a == heading
== [[b]]
======six======
s [[c]]"""
    assert texts(source) == [
        ("", 1, "intro"),
        ("One", 2, "1"),
        ("Sub link", 3, ""),
        ("Empty", 3, ""),
        ("Two", 2, "== no ==\nnot == a == heading\n== b"),
        ("six", 6, "s c"),
    ]
    assert links(source) == [("B", "b"), ("C", "c")]


def test_article_without_text_has_an_empty_lead() -> None:
    assert parse_wikitext("") == (Section("", 1, "", ()),)
    assert texts("== H ==") == [("", 1, ""), ("H", 2, "")]


@pytest.mark.parametrize(
    ("title", "expected"),
    [("foo_bar ", "Foo bar"), ("ßa", "ßa"), ("éa", "Éa"), ("", ""), ("100%", "100%")],
)
def test_titles_have_a_normal_form(title: str, expected: str) -> None:
    assert normalise_title(title) == expected


TOKENS = [
    *"[]{}|!<>'=\n:;*#&_-(),. é\ufdd0\ufdd1\ufdd3\u2003\x85",
    *("[[", "]]", "{{", "}}", "{|", "|}", "|-", "||", "\n|", "\n==", "==\n", "''", "'''", "\n\n"),
    *("<!--", "-->", "<ref>", "</ref>", "<ref/>", "<nowiki>", "</nowiki>", "<br>", "<gallery>"),
    *("</gallery>", "&nbsp;", "&amp;", "&#91;", "File:", "Category:", "thumb", "http://x", "%41"),
    *("__TOC__", "----", "cat", "Dog"),
]
MARKUP = st.lists(st.sampled_from(TOKENS), max_size=40).map("".join)


@given(MARKUP)
@example("[[a|b]]" * 3 + "\n{|\n|[[c|d||e]]|[[f]]\n")
def test_any_input_gives_clean_sections(source: str) -> None:
    for section in parse_wikitext(source):
        assert_links_lie_in_text(section)
        for text in (section.heading, section.text):
            assert not re.search("[\ufdd0-\ufdef]", text)
            assert "\n\n" not in text
            assert text == text.strip()
        assert section.level in range(1, 7)
    assert parse_wikitext(source)[0].heading == ""


PLAIN_LINE = st.text("abc é.", min_size=1, max_size=20).filter(lambda line: len(line.split()) > 0)
HEADING = st.tuples(st.integers(2, 6), st.text("abc", min_size=1, max_size=5))


@given(st.lists(PLAIN_LINE | HEADING, max_size=12))
def test_splitting_loses_nothing(blocks: list[str | tuple[int, str]]) -> None:
    """Headings and texts in order give back the page, but for its spaces and equal signs."""
    source = "\n".join(b if isinstance(b, str) else "=" * b[0] + b[1] + "=" * b[0] for b in blocks)
    sections = parse_wikitext(source)
    words = [word for s in sections for word in f"{s.heading}\n{s.text}".split()]
    kept = [w for w in source.replace("=", " ").split() if re.search(r"\w", w)]
    assert re.sub(r"[\s.]", "", "".join(words)) == re.sub(r"[\s.]", "", "".join(kept))
    expected = [b for b in blocks if not isinstance(b, str)]
    assert [(s.level, s.heading) for s in sections[1:]] == expected
