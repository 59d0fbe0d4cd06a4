"""Markup that is made to be slow: every shape is parsed in a time that grows with its length.

Superlinear parsing would take minutes to years at this length, so what is checked is that the tests
end, within a limit that a busy machine keeps a hundred times over.
"""

import subprocess
import sys

from ltr_features.sources.wikitext import parse_wikitext

LENGTH, LIMIT = 200_000, 120  # characters, seconds for all shapes together
#: What is repeated, between what.
SHAPES = [
    ("[[File:a|thumb|", " ", "q]]"), ("{{", "}}a", ""), ("[[a", " ", "b|]]"), ("", "{{a", ""),
    ("", "[[", ""), ("", "]]", ""), ("", "[[a|", ""), ("", "[[File:a|thumb|", "]]"),
    ("", "[[File:a|thumb|b ", "]]" * 20_000), ("", "[http://a ", ""), ("[http://a", " ", ""),
    ("", "<ref>", ""), ("", "<ref", ""), ("<ref", " ", ""), ("", "</ref ", ""), ("", "<!--", ""),
    ("", "{{", ""), ("", "<gallery>", ""), ("", "[http://x", ""), ("", "{|\n", ""), ("", "=", ""),
    ("", "&a", ""),
    ("", "<nowiki>", ""), ("<gallery>", "|alt=", "</gallery>"), ("<gallery>", "| ", "</gallery>"),
    ("", "''", ""), ("'", "'", ""), ("", "__", ""), ("__", "A", ""), ("", "__AAA", ""),
    ("\n", "-", "x"), ("", "\n----", ""), ("", "&", ""), ("&", "a", ""), ("&#", "1", ";"),
    ("", "(", ""), ("(", " ,", "x"), ("", "( ", ""), ("", "\n{|", ""), ("", "\n{|\n|}", ""),
    ("\n", ":*", "{|"), ("\n=", "= ", ""), ("\n=", "=", "a"), ("\n== a ", "= ", "b"),
    ("\n=", " ", "x"), ("", "\n* ", ""), ("\n", " ", "x"), ("", " \n", ""), ("", "\n.", ""),
    ("", "<a", ""), ("<a", " a", ""), ("<", "br ", ""), ("", "<br ", ""),
    ("[[File:a|", "1", "px]]"), ("[[File:a|12", " ", "x]]"), ("[[File:a|upright", " ", "x]]"),
    ("[[File:a|", "|thumb ", "]]"), ("[[a:", "(", "|]]"), ("[[a", ",", "|]]"), ("[[", "%41", "]]"),
    ("", "\ufdd0", ""), ("", "[[a]]", ""), ("\n|", "||", ""), ("\n!", "!!", ""),
]  # fmt: skip


def shapes():
    for before, repeated, after in SHAPES:
        yield before + repeated * (LENGTH // len(repeated)) + after


def test_every_shape_is_parsed_in_time():
    program = "import test_nasty_markup as t\nfor s in t.shapes(): print(len(t.parse_wikitext(s)))"
    command = [sys.executable, "-c", program]
    folder = __file__.rsplit("/", 1)[0]
    done = subprocess.run(
        command, cwd=folder, timeout=LIMIT, check=True, stdout=subprocess.PIPE, text=True
    )
    assert len(done.stdout.split()) == len(SHAPES)  # one count of sections for each


#: The same for TREC's topics and documents, most of which are refused.
TREC_SHAPES = [
    ("", "<top>", ""), ("<top><num>", " ", "x</top>"), ("<top>", "<num", "</top>"),
    ("", '<topic number="1">', ""), ("", "<topic", ""), ('<topic number="', " ", '>a</topic>'),
    ('<topic number="1">', "<title>", "</topic>"), ("1:a", " ", "b"), ("", " ", "a"),
    ("a", " ", ":"),
    ("<DOC><DOCNO>", " ", "x</DOC>"), ("<DOC>", "<DOCNO>", "</DOC>"), ("<DOC>", "<DOCNO", "</DOC>"),
    ("<DOC><DOCNO>1</DOCNO>", "<TEXT>", "</DOC>"), ("<DOC><DOCNO>1</DOCNO>", "<TITLE>", "</DOC>"),
    *(("<DOC><DOCNO>1</DOCNO><DOCHDR>u</DOCHDR>", repeated, "</DOC>")
      for repeated in ("<!--", "<![CDATA[", "<!", "<?", "<a", "</a", "<a b='", " <script>a")),
]  # fmt: skip


def test_every_shape_of_trec_files_is_read_or_refused_in_time(tmp_path):
    for number, (before, repeated, after) in enumerate(TREC_SHAPES):
        text = before + repeated * (LENGTH // len(repeated)) + after
        (tmp_path / str(number)).write_text(text)
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from letor.errors import InputError\n"
        "from ltr_features.sources.trec_documents import trec_documents\n"
        "from ltr_features.sources.trec_topics import read_topics\n"
        "for path in Path(sys.argv[1]).iterdir():\n"
        "    try:\n"
        "        list((trec_documents if '<DOC>' in path.read_text() else read_topics)(path))\n"
        "    except InputError as error:\n"
        "        assert str(path) in str(error)\n"
        "    print('done')\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, timeout=LIMIT, check=True, stdout=subprocess.PIPE, text=True)
    assert len(done.stdout.split()) == len(TREC_SHAPES)


def test_what_the_pipe_trick_shows():
    shown = {
        "a:b (c)|": "b",
        "b, c|": "b",
        "b (c, d)|": "b",
        "b, c (d)|": "b",
        "b (c) d|": "b (c) d",
    }
    for written, expected in shown.items():
        (section,) = parse_wikitext(f"x [[{written}]]")
        assert section.text == f"x {expected}"


def test_pictures_within_captions_within_captions():
    source = "[[File:a|thumb|one [[File:b|thumb|two [[File:c|thumb|three]]]]]]"
    assert parse_wikitext(source)[0].text == "one two three"
