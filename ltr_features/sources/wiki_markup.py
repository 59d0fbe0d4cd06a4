"""Remove wiki markup other than links and headings, for :func:`wikitext.parse_wikitext`.

Each function takes and returns the text of a whole page. Code points that Unicode reserves for
internal use (U+FDD0 to U+FDEF) carry what must survive the later steps: the first three mark links,
the others stand for characters that are not markup where they are, within ``<nowiki>`` for example.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

OPEN, BAR, CLOSE = "\ufdd0", "\ufdd1", "\ufdd2"
# Stand-ins for characters that are not markup where they occur.
LITERAL = {ord(c): chr(0xFDD3 + i) for i, c in enumerate("[]{}|<>=*#:;'&_-!~()")}
UNLITERAL = {ord(stand_in): chr(c) for c, stand_in in LITERAL.items()}
RESERVED = re.compile("[\ufdd0-\ufdef]")
# These and the stand-ins in UTF-8, in which searching is many times faster.
RESERVED_BYTES = re.compile(b"\xef\xb7[\x90-\xaf]")
STAND_IN_BYTES = re.compile(b"\xef\xb7[\x93-\xaf]")


def has_bytes(pattern: re.Pattern[bytes], text: str) -> bool:
    """Whether a pattern of bytes beyond ASCII occurs in the text's UTF-8."""
    return not text.isascii() and bool(pattern.search(text.encode("utf8", "surrogatepass")))


# --- comments and extension tags ------------------------------------------------------------------

_DROPPED_TAGS = (
    "ref|math|chem|ce|score|timeline|graph|hiero|imagemap|inputbox|mapframe|maplink|templatedata|"
    "templatestyles|section|references|indicator|categorytree|includeonly"
)
_LITERAL_TAGS = "nowiki|pre|source|syntaxhighlight"
_EXTENSION = re.compile(
    rf"<!--|<({_DROPPED_TAGS}|{_LITERAL_TAGS}|gallery)(?:\s[^<>]*?)?(/?)>", re.IGNORECASE
)


def strip_extensions(text: str) -> str:
    """Remove comments and extension tags; turn the content of literal tags into stand-ins."""
    pieces: list[str] = []
    position = 0
    unclosed: set[str] = set()
    while match := _EXTENSION.search(text, position):
        pieces.append(text[position : match.start()])
        name = (match[1] or "").lower()
        position = match.end()
        if match[2] or name in unclosed:
            continue
        if not name:
            end = text.find("-->", position)
            position = len(text) if end < 0 else end + 3
            continue
        closing = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(text, position)
        if closing is None:
            unclosed.add(name)
            continue
        content = text[position : closing.start()]
        position = closing.end()
        if name == "gallery":
            pieces.append(_gallery_captions(content))
        elif name in _LITERAL_TAGS.split("|"):
            pieces.append(_ENTITY.sub(_decode_entity, content).translate(LITERAL))
    pieces.append(text[position:])
    return "".join(pieces)


_GALLERY_OPTION = re.compile(r"(?:^|\|)\s*(?:alt|link|page|lang)=[^|\[\]]*")


def _gallery_captions(content: str) -> str:
    captions = (line.partition("|")[2] for line in content.split("\n"))
    plain = (_GALLERY_OPTION.sub("", caption).lstrip("|") for caption in captions)
    return "\n" + "\n".join(plain) + "\n"


# --- templates ------------------------------------------------------------------------------------


def strip_templates(text: str) -> str:
    """Remove closed templates, and the brackets of unclosed ones."""
    first, *rest = text.split("{{")
    # The pieces of each open template, innermost last.
    levels = [[first]]
    for piece in rest:
        inside, *behind = piece.split("}}")
        levels.append([inside])
        for text in behind:
            if len(levels) > 1:
                levels.pop()
            levels[-1].append(text)
    joined = "".join(piece for level in levels for piece in level)
    return joined.replace("{{", "").replace("}}", "")


# --- tags, quotes, entities -----------------------------------------------------------------------

_BLOCK_TAG = re.compile(
    r"</?(?:br|p|div|li|tr|td|th|ol|ul|dl|dt|dd|hr|table|caption|blockquote|center|poem|h[1-6])"
    r"(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?[a-z][a-z0-9]*(?:\s[^<>]*)?/?>", re.IGNORECASE)
_QUOTES = re.compile(r"''+")
_SWITCH = re.compile(r"__[A-Z]{3,}__")
_RULE = re.compile(r"\n-{4,}")
_ENTITY = re.compile(r"&#?[0-9A-Za-z]{1,40};")
# Brackets and commas that a removed template or footnote left behind.
_HOLLOW = re.compile(r"\([\s,;:]*\)")
_HALF_HOLLOW = re.compile(r"\(\s*[,;][\s,;]*")
_SPACED_STOP = re.compile(r" ([,.;])(?!\S)")


def clean_inline(text: str) -> str:
    """Remove tags, bold, italics and switches; decode entities to stand-ins for characters."""
    if "<" in text:
        text = _TAG.sub("", _BLOCK_TAG.sub(" ", text))
    text = _QUOTES.sub("", text)
    if "__" in text:
        text = _SWITCH.sub("", text)
    text = _RULE.sub("\n", text)
    if "&" in text:
        text = _ENTITY.sub(_decode_entity, text)
    text = _HALF_HOLLOW.sub("(", _HOLLOW.sub("", text))
    return _SPACED_STOP.sub(r"\1", text)


def _decode_entity(match: re.Match[str]) -> str:
    decoded = html.unescape(match[0])
    # A bare & needs no stand-in: entities are decoded only once.
    return decoded if decoded == "&" else decoded.translate(LITERAL)


# --- tables ---------------------------------------------------------------------------------------

# The newline before a line matches its start, as re finds a literal far faster than ^.
_TABLE_TOKEN = re.compile(r"\n[ \t:*#]*(\{\||\|\})")
HEADING = re.compile(r"\n(={1,6})(?!=*[ \t]*(?:\n|$))(.*?)(={1,6})[ \t]*(?=\n|$)")


def _nested_spans(tokens: Iterable[re.Match[str]]) -> list[tuple[int, int]]:
    """Outermost (start, end) spans of tables; those that are never closed are ignored."""
    open_at: list[int] = []
    spans: list[tuple[int, int]] = []
    for token in tokens:
        if "{" in token[1]:
            open_at.append(token.start())
        elif open_at:
            start = open_at.pop()
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start, token.end()))
    return spans


def flatten_tables(text: str) -> str:
    """Replace tables by their cells' text, a line per source line, no separators or attributes."""
    tokens = list(_TABLE_TOKEN.finditer(text))
    if not tokens and "\n|" not in text:
        return text
    pieces, position = [], 0
    for start, end in _nested_spans(tokens):
        cells = "\n".join(map(_table_line, text[start:end].split("\n")))
        pieces += [text[position:start], HEADING.sub(r"\n\2", cells)]
        position = end
    text = "".join([*pieces, text[position:]])
    # Lines that still start with a bar belong to a table that is never closed, or whose frame came
    # from a template; they are handled line by line, so that the headings below survive.
    return "\n".join(
        _table_line(line) if line.lstrip(" \t:*#").startswith(("|", "{|")) else line
        for line in text.split("\n")
    )


def _table_line(line: str) -> str:
    line = line.lstrip(" \t:*#") if line.lstrip(" \t:*#").startswith(("|", "{|", "!")) else line
    if line.startswith(("{|", "|-")):
        return ""
    if line.startswith("|}"):
        return line[2:].lstrip("}")
    if not line.startswith(("|", "!")):
        return line
    if line.startswith("!"):
        line = line.replace("!!", "||")
    cells = line[1:].removeprefix("+").split("||")
    return " ".join(_cell_text(cell) for cell in cells)


def _cell_text(cell: str) -> str:
    attributes, bar, content = cell.partition("|")
    return content if bar and OPEN not in attributes else cell
