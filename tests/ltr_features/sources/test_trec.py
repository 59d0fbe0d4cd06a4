"""TREC documents, topics and qrels, in the forms that they come in."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from letor.errors import InputError
from ltr_features.sources import trec_documents as documents
from ltr_features.sources.trec import read_trec
from ltr_features.sources.trec_documents import trec_documents, web_fields
from ltr_features.sources.trec_topics import read_topics

TEXT = """<DOC>
<DOCNO> FT911-1 </DOCNO>
<HEADLINE>Trade &amp; war</HEADLINE>
<TEXT>
First <P>paragraph</P>.
</TEXT>
</DOC>
<DOC><DOCNO>FT911-2</DOCNO>
no element around <B>this</B> text
</DOC>
"""
WEB = """<DOC>
<DOCNO>GX000-00-0000000</DOCNO>
<DOCHDR>
http://www.example.gov/a.html
HTTP/1.1 200 OK
</DOCHDR>
<html><head><title>A &lt;page&gt;</title><meta name="Keywords" content="tax, law">
<meta name="description" content="About tax"><script>var x = "<p>no</p>";</script>
<style>p { color: red }</style></head><body><p>Pay&nbsp;tax<br>here</p></body></html>
</DOC>
"""
TOPICS = """<top>
<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations.

<narr> Narrative:
A relevant document names one.

</top>
<top><num>302</num><title>Polio</title></top>
"""


def write(folder, text=TEXT, topics=TOPICS, qrels="301 0 FT911-1 1\n302 0 FT911-2 0\n"):
    for name, content in (("docs.txt", text), ("topics.txt", topics), ("qrels.txt", qrels)):
        (folder / name).write_text(content, encoding="utf-8")
    return folder / "docs.txt", folder / "topics.txt", folder / "qrels.txt"


def test_news_documents_and_classic_topics(tmp_path):
    c = read_trec(*write(tmp_path), topic_fields=("title", "desc"), on_unknown="raise")
    assert c.document_ids == ["FT911-1", "FT911-2"]
    assert c.fields["title"] == ["Trade & war", ""]
    assert c.fields["body"] == ["First paragraph .", "no element around this text"]
    assert c.query_texts == ["International Organized Crime Identify organizations.", "Polio"]
    assert c.judgements.grade.tolist() == [1, 0]
    assert c.description["judged pairs"] == 2


def test_topics_and_qrels_of_several_years_are_read_as_one(tmp_path):
    years = [tmp_path / "2007", tmp_path / "2008"]
    for year in years:
        year.mkdir()
    docs, topics, qrels = write(years[0], topics="1:crime\n", qrels="1 0 FT911-1 1\n")
    _, later, later_qrels = write(years[1], topics="2:polio\n", qrels="2 0 FT911-2 2\n")
    c = read_trec(docs, [topics, later], [qrels, later_qrels])
    assert (c.query_ids, c.query_texts) == (["1", "2"], ["crime", "polio"])
    assert c.judgements.grade.tolist() == [1, 2]
    with pytest.raises(InputError, match=r"2007.topics.txt: topic '1' is in an earlier file, too"):
        read_trec(docs, [topics, topics], qrels)


def test_newspapers_with_lead_paragraphs(tmp_path):
    """The Wall Street Journal's and the San Jose Mercury's elements."""
    path = tmp_path / "docs"
    path.write_text(
        "<DOC><DOCNO>WSJ1</DOCNO><HL>An accord</HL><DD>03/24/87</DD><LP>NEW YORK</LP>"
        "<TEXT>It is near. <LP>Inside</LP></TEXT></DOC>"
        "<DOC><DOCNO>SJMN1</DOCNO><HEADLINE>Rain</HEADLINE><LEADPARA>Wet</LEADPARA><TEXT>Very.</TEXT></DOC>"
    )
    assert [document.fields for document in trec_documents(path)] == [
        {"title": "An accord", "body": "NEW YORK It is near. Inside"},
        {"title": "Rain", "body": "Wet Very."},
    ]


def test_numbers_in_the_start_tag(tmp_path):
    """AQUAINT-2's and Gigaword's documents."""
    path = tmp_path / "docs"
    path.write_text(
        '<?xml version="1.0"?><DOCSTREAM>\n<DOC id="NYT_ENG_1.0001" type="story" >\n'
        "<HEADLINE>\nRain\n</HEADLINE>\n<DATELINE>PARIS</DATELINE>\n<TEXT>\n<P>Very wet.</P></TEXT>"
        "</DOC>\n<DOC type='other' id='NYT_ENG_1.0002'>No element</DOC></DOCSTREAM>\n"
    )
    assert list(trec_documents(path)) == [
        ("NYT_ENG_1.0001", {"title": "Rain", "body": "Very wet."}),
        ("NYT_ENG_1.0002", {"title": "", "body": "No element"}),
    ]


def test_comparisons_are_no_tags(tmp_path):
    path = tmp_path / "docs"
    path.write_text(
        "<DOC><DOCNO>1</DOCNO><TEXT>p < 0.05 and n > 3 <!-- PJG 0 --></TEXT></DOC>"
        "<DOC><DOCNO>2</DOCNO>\nx <- 1, y -> 2 <F P=100>or</F> 3 </DOC>"
    )
    bodies = [document.fields["body"] for document in trec_documents(path)]
    assert bodies == ["p < 0.05 and n > 3", "x <- 1, y -> 2 or 3"]


def test_topics_of_other_elements(tmp_path):
    """The first TREC's have elements between and after those that make up queries; the microblog
    track's have a query in place of the title."""
    (tmp_path / "t").write_text(
        "<top>\n<head> Tipster Topic Description\n<num> Number:  051\n<dom> Domain:  Economics\n"
        "<title> Topic:  Airbus Subsidies\n<desc> Description:\nAid to Airbus.\n\n"
        "<smry> Summary:\nDisputes.\n<narr> Narrative:\nIt names one.\n<con> Concept(s):\n"
        "1. Airbus\n<fac> Factor(s):\n<nat> Nationality: U.S.\n</fac>\n<def> Definition(s):\n"
        "</top>\n<top>\n<num> Number: MB1 </num>\n<query> BBC cuts </query>\n"
        "<querytime> Tue </querytime>\n<querytweettime> 32 </querytweettime>\n</top>\n"
    )
    assert read_topics(tmp_path / "t") == [("051", "Airbus Subsidies"), ("MB1", "BBC cuts")]
    first, _ = (tmp_path / "t").read_text().split("<top>\n<num> Number: MB1")
    (tmp_path / "t").write_text(first)
    assert read_topics(tmp_path / "t", ["desc"]) == [("051", "Aid to Airbus.")]
    assert read_topics(tmp_path / "t", ["narr"]) == [("051", "It names one.")]


def test_grades_below_0_are_counted(tmp_path):
    """Some tracks mark spam so."""
    c = read_trec(*write(tmp_path, qrels="301 0 FT911-1 1\n301 0 FT911-2 -2\n302 0 FT911-2 -1\n"))
    assert c.judgements.grade.tolist() == [1, -2, -1]
    told = "judged pairs with a grade below 0, which counts as 0"
    assert c.description[told] == 2
    assert told not in read_trec(*write(tmp_path)).description


def test_web_pages(tmp_path):
    files = write(tmp_path, WEB, "301:tax\n", "301 0 GX000-00-0000000 2\n")
    assert {k: v[0] for k, v in read_trec(*files).fields.items()} == {
        "title": "A <page>",
        "body": "Pay tax here",
        "keywords": "tax, law",
        "description": "About tax",
        "url": "http://www.example.gov/a.html",
    }


def test_folders_of_compressed_files_are_read_by_name(tmp_path):
    _, topics, qrels = write(tmp_path)
    docs = tmp_path / "docs"
    (docs / "b").mkdir(parents=True)
    first, second = TEXT.split("</DOC>\n")[:2]
    (docs / "b" / "2.gz").write_bytes(gzip.compress((second + "</DOC>\n").encode()))
    (docs / "a.txt").write_text(first + "</DOC>\n")
    assert read_trec(docs, topics, qrels).document_ids == ["FT911-1", "FT911-2"]


@given(size=st.integers(1, 40))
def test_the_size_of_pieces_does_not_matter(size, tmp_path_factory):
    path = tmp_path_factory.mktemp("trec") / "docs"
    path.write_text(TEXT + WEB)
    whole = list(trec_documents(path))
    assert len(whole) == 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "_BLOCK", size)
        assert list(trec_documents(path)) == whole


def test_encodings_are_named(tmp_path):
    path = tmp_path / "docs"
    path.write_bytes("<DOC><DOCNO>1</DOCNO>caf\xe9</DOC>".encode("latin-1"))
    assert next(trec_documents(path, "latin-1")).fields["body"] == "café"
    with pytest.raises(InputError, match=r"document 1 is not utf-8.*encoding='latin-1', say"):
        list(trec_documents(path))


@pytest.mark.parametrize("encodings", [("utf-8", "latin-1"), ("latin-1", "utf-8")])
def test_the_encoding_is_that_of_documents_and_topics_that_are_not_utf_8(tmp_path, encodings):
    docs, topics, _ = files = write(tmp_path, topics="301:café\n302: thé\n")
    for path, encoding in zip((docs, topics), encodings, strict=True):
        text = path.read_text(encoding="utf-8").replace("<TEXT>", "<TEXT>Zoë ")
        path.write_bytes(text.encode(encoding))
    found = read_trec(*files, encoding="latin-1")
    assert found.query_texts == ["café", "thé"]
    assert "Zoë" in found.fields["body"][0]


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("<p>unclosed", "unclosed"),
        ("a<script>never ends", "a"),
        ("a < b & c > d &#xZZ; <", "a < b & c > d &#xZZ;"),
        ("</title></x>", ""),
        ("", ""),
        ("a<![what is this]>b", "a b"),
        ("a <!-- b <p>c</p>", "a"),
        ("a <b c='d>e</b>", "a"),
        (f"&#{'9' * 5000};a", "\ufffda"),
        ("&#0000000065;&#x41;", "AA"),
    ],
)
def test_broken_pages_do_not_stop_the_reader(text, body):
    assert web_fields(text)["body"] == body


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        ("1:one two\n\n2:  three\n", [("1", "one two"), ("2", "three")]),
        ("wt-1\tone\n", [("wt-1", "one")]),
        (f"<top><num>1<title>a &#{'9' * 5000}; b</top>", [("1", "a \ufffd b")]),  # no character
        ("a b\tone: two\n c : d\te \n", [("a b", "one: two"), ("c", "d\te")]),
        (
            '<topics><topic number="7"><query>hot</query><question>Is it?</question></topic>\n'
            "<topic number='8'><query>cold</query></topic></topics>",
            [("7", "hot"), ("8", "cold")],
        ),
    ],
)
def test_other_forms_of_topics(tmp_path, topics, expected):
    (tmp_path / "t").write_text(topics)
    assert read_topics(tmp_path / "t") == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text": "<DOC><DOCNO>1</DOCNO>x"}, "document 1 has no </DOC>"),
        ({"text": "<DOC>x</DOC>"}, "document 1 has no <DOCNO>"),
        ({"text": "x</DOC>"}, "document 1 has no <DOC>"),
        ({"text": '<DOC id="1">x<DOC id="2">y</DOC>'}, "document 1 has no </DOC> before the next"),
        ({"text": '<DOC id="1">x'}, "document 1 has no </DOC>; the file is cut off"),
        ({"text": '<DOC id="">x</DOC>'}, "document 1 has no <DOCNO> and no attribute id"),
        ({"text": TEXT.replace("</DOC>", "", 1)}, "document 1 has no </DOC> before the next"),
        ({"text": TEXT + TEXT}, "document number 'FT911-1' occurs twice"),
        ({"text": "nothing"}, "no documents"),
        ({"topics": "<top><title>x</top>"}, "topic 1 has no <num>"),
        ({"topics": "<top><num>1<title></top>"}, "topic '1' has no text in title"),
        ({"topics": "just words\n"}, "line 1: 'just words' is not a topic"),
        ({"topics": "1:a\n1:b\n"}, "topic '1' occurs twice"),
        ({"topics": ""}, "no topics"),
        ({"topics": '<topic id="1"><query>x</query></topic>'}, "has no attribute number"),
        ({"qrels": "301 0 FT911-1\n"}, r"qrels\.txt:1: 3 fields instead of 4"),
        ({"qrels": "301 0 FT9 1\n"}, r"qrels\.txt, line 1: there is no document 'FT9'"),
        ({"qrels": "999 0 FT911-1 1\n"}, "there is no query '999'.* add it, remove the line"),
        ({"qrels": "0301 0 FT911-1 1\n"}, "no query '0301' in the collection; there is '301': w"),
        ({"qrels": ""}, "no query has a judgement"),
    ],
)
def test_bad_files_are_named(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        read_trec(*write(tmp_path, **changes))


def test_bad_options_are_named(tmp_path):
    files = write(tmp_path)
    with pytest.raises(InputError, match="topic_fields: query given; use title, desc, narr"):
        read_trec(*files, topic_fields=("query",))
    with pytest.raises(InputError, match="encoding 'utf-9' is unknown"):
        read_trec(*files, encoding="utf-9")
    with pytest.raises(InputError, match="no such file"):
        read_trec(tmp_path / "nothing", *files[1:])
