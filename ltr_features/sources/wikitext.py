"""Wiki markup to plain sections with their links.

:func:`parse_wikitext` takes the source text of one article and gives its sections as clean running
text, together with every article link and the place of its anchor in that text.

The order of the steps is MediaWiki's own: comments and extension tags (``<nowiki>``, ``<ref>``,
``<math>``...) first, so that nothing inside them counts as markup; then templates; then tags,
quotes and entities; then links, innermost first, so that a picture's caption may hold links; then
tables, whose cell separators can no longer be confused with a link's; then headings and lines.

While markup is removed, a link is carried as ``OPEN number BAR anchor CLOSE``: code points that
Unicode reserves for internal use around a number in the list of targets. They are taken out at the
very end, which gives the exact offset of the anchor in the finished text whatever happened around.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, islice
from urllib.parse import unquote

OPEN, BAR, CLOSE = "\ufdd0", "\ufdd1", "\ufdd2"
# Stand-ins for characters that are not markup where they stand: within <nowiki>, say.
_LITERAL = {ord(c): chr(0xFDD3 + i) for i, c in enumerate("[]{}|<>=*#:;'&_-!~()")}
_UNLITERAL = {ord(stand_in): chr(c) for c, stand_in in _LITERAL.items()}
_RESERVED = re.compile("[\ufdd0-\ufdef]")
_MARKER = re.compile("[\ufdd0-\ufdd2]")
_STAND_IN = re.compile("[\ufdd3-\ufdef]")


@dataclass(frozen=True, slots=True)
class Link:
    """A link to an article.

    Attributes:
        target: title of the article as written (a redirect is not followed), in its normal form:
            first letter upper-cased, underscores as spaces, no fragment.
        anchor: the words that carry the link, as they stand in the section's text.
        start: offset of ``anchor`` in the section's text, in code points.
        fragment: section of the target that the link points into, ``""`` for the whole article.
    """

    target: str
    anchor: str
    start: int
    fragment: str = ""

    def __reduce__(self) -> tuple[type[Link], tuple[str, str, int, str]]:
        """Pickle as a call: half the time that a frozen dataclass takes by default."""
        return Link, (self.target, self.anchor, self.start, self.fragment)


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of an article between two headings.

    Attributes:
        heading: plain text of the heading; ``""`` for the lead.
        level: number of equal signs of the heading (2 for ``== ... ==``); 1 for the lead.
        text: running text without the heading: one line per paragraph, list item or table row,
            single spaces, no empty lines. Empty if only sub-sections follow.
        links: the links in ``text``, by offset.
    """

    heading: str
    level: int
    text: str
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Site:
    """What the markup's meaning depends on: the wiki's namespaces (names in lower case).

    Attributes:
        files: prefixes of pictures, e.g. ``file``, ``image``, ``datei``.
        categories: prefixes of categories.
        others: prefixes of all other namespaces but the article namespace.
        capital_first: whether titles start with a capital letter (false on a Wiktionary).
    """

    files: frozenset[str] = frozenset({"file", "image", "media"})
    categories: frozenset[str] = frozenset({"category"})
    others: frozenset[str] = frozenset(
        f"{name}{talk}"
        for name in ("user", "project", "wikipedia", "mediawiki", "template", "help", "portal")
        for talk in ("", " talk")
    ) | {"talk", "special", "wp", "file talk", "category talk", "module", "draft", "book"}
    capital_first: bool = True


# Sister projects and services that links reach by a prefix; languages are told by their shape.
_INTERWIKI = frozenset(
    re.findall(
        r"\w+",
        """b c commons d doi foundation iarchive m mail meta mw n phab phabricator q rfc s simple
        species v voy w wikt wikibooks wikidata wikimedia wikinews wikipedia wikiquote wikisource
        wikispecies wikiversity wikivoyage wiktionary""",
    )
)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z-]+)?")


def normalise_title(title: str, site: Site = Site()) -> str:
    """Title in its normal form: single spaces, no underscores, first letter as the site has it."""
    if "&" in title:
        title = html.unescape(title)
    if "%" in title:
        title = unquote(title)
    title = " ".join(title.replace("_", " ").split())
    # Letters such as ß have no single capital: MediaWiki leaves them.
    if site.capital_first and len(title[:1].upper()) == 1:
        title = title[0].upper() + title[1:]
    return title


# --- step 1: comments and extension tags ----------------------------------------------------------

_DROPPED_TAGS = (
    "ref|math|chem|ce|score|timeline|graph|hiero|imagemap|inputbox|mapframe|maplink|templatedata|"
    "templatestyles|section|references|indicator|categorytree|includeonly"
)
_LITERAL_TAGS = "nowiki|pre|source|syntaxhighlight"
_EXTENSION = re.compile(
    rf"<!--|<({_DROPPED_TAGS}|{_LITERAL_TAGS}|gallery)(?:\s[^<>]*?)?(/?)>", re.IGNORECASE
)


def _strip_extensions(text: str) -> str:
    """Remove comments and extension tags; turn the content of literal ones into stand-ins."""
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
            pieces.append(html.unescape(content).translate(_LITERAL))
    pieces.append(text[position:])
    return "".join(pieces)


def _gallery_captions(content: str) -> str:
    captions = (line.partition("|")[2] for line in content.split("\n"))
    return "\n" + "\n".join(re.sub(r"\b(?:alt|link)=[^|]*\|?", "", c) for c in captions) + "\n"


# --- step 2: templates ----------------------------------------------------------------------------


def _nested_spans(tokens: Iterable[re.Match[str]]) -> list[tuple[int, int]]:
    """Outermost closed (start, end) spans of a bracket pair; unclosed brackets are passed over."""
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


def _replace_spans(
    text: str, spans: list[tuple[int, int]], replacement: Callable[[str], str]
) -> str:
    pieces = []
    position = 0
    for start, end in spans:
        pieces += [text[position:start], replacement(text[start:end])]
        position = end
    pieces.append(text[position:])
    return "".join(pieces)


_TEMPLATE_TOKEN = re.compile(r"([{}])\1")


def _strip_templates(text: str) -> str:
    spans = _nested_spans(_TEMPLATE_TOKEN.finditer(text))
    text = _replace_spans(text, spans, lambda _: "")
    return text.replace("{{", "").replace("}}", "")


# --- step 3: tags, quotes, entities ---------------------------------------------------------------

_BLOCK_TAG = re.compile(
    r"</?(?:br|p|div|li|tr|td|th|ol|ul|dl|dt|dd|hr|table|caption|blockquote|center|poem|h[1-6])"
    r"(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?[a-z][a-z0-9]*(?:\s[^<>]*)?/?>", re.IGNORECASE)
_QUOTES = re.compile(r"''+")
_SWITCH = re.compile(r"__[A-Z]{3,}__")
_RULE = re.compile(r"\n-{4,}")
_ENTITY = re.compile(r"&#?[0-9A-Za-z]+;")
# Brackets and commas that a removed template or footnote left alone.
_HOLLOW = re.compile(r"\([\s,;:]*\)")
_HALF_HOLLOW = re.compile(r"\(\s*[,;][\s,;]*")
_SPACED_STOP = re.compile(r" ([,.;])(?=\s)")


def _clean_inline(text: str) -> str:
    """Remove tags, bold, italics and switches; decode entities to characters that are no markup."""
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
    # A bare & cannot be taken for an entity again: one pass decodes one level.
    return decoded if decoded == "&" else decoded.translate(_LITERAL)


# --- step 4: links --------------------------------------------------------------------------------

_INNER = r"[^\[\]]*(?:(?:\[(?!\[)|\](?!\]))[^\[\]]*)*"
# The letters that directly follow a link belong to its anchor: [[cat]]s shows "cats".
_LINK = re.compile(rf"\[\[([^\[\]{{}}<>|\n\ufdd0-\ufdef]*)(\|{_INNER})?\]\]([a-zß-öø-ÿа-яё]*)")
_FILE_LINK = re.compile(rf"\[\[([^\[\]|\n:]*):([^\[\]|\n]*)(\|{_INNER})?\]\]")
_EXTERNAL = re.compile(
    r"\[(?:(?:https?|ftps?|irc|news|mailto):|//)[^\s\[\]<>\ufdd0]*([^\[\]\n]*)\]"
)
# Pictures show their caption only when framed; the words are the English ones, which every wiki
# understands, and those of the large European wikis.
_FRAMED = re.compile(
    r"\|\s*(?:thumb|thumbnail|frame|framed|enframed|mini|miniatur|gerahmt|vignette|cadre|"
    r"miniatura|miniaturadeimagen|marco|mini|мини|миниатюра|thumbnail)\s*(?:=[^|]*)?(?=\||$)"
)
_PICTURE_OPTION = re.compile(
    r"\s*(?:thumb|thumbnail|frame|framed|enframed|frameless|border|left|right|center|centre|none|"
    r"baseline|sub|super|top|text-top|middle|bottom|text-bottom|mini|miniatur|gerahmt|rahmenlos|"
    r"links|rechts|zentriert|ohne|hochkant|vignette|cadre|gauche|droite|centré|redresse|miniatura|"
    r"izquierda|derecha|centro|marco|мини|миниатюра|справа|слева|центр|(?:upright|hochkant|alt|"
    r"link|lang|page|class|thumbtime|start|end|verweis|redresse)\s*=?.*|\d*\s*(?:x\s*\d+)?\s*px)\s*",
    re.DOTALL,
)


class _LinkMarker:
    """Replaces links by their marked anchors and keeps their targets in the order of the text."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.targets: list[tuple[str, str]] = []

    def __call__(self, match: re.Match[str]) -> str:
        written, label, trail = match.groups()
        shown = (label[1:] if label else written.removeprefix(":")) + trail
        if ":" in written:
            kind = self._kind(written)
            if kind == "file":
                return _caption(label or "") + trail
            if kind == "hidden":
                return trail
            if kind == "other":
                return shown
        if label is not None and not label[1:].strip():  # the pipe trick: [[Foo (bar)|]]
            shown = re.sub(r"^[^:]*:|\s*\([^()]*\)$|,.*$", "", written) + trail
        title, _, fragment = written.removeprefix(":").partition("#")
        title = normalise_title(title, self.site)
        shown = " ".join(shown.split())
        if not title or not shown:
            return shown
        if "|" in shown or "!!" in shown:  # no cell separators of a table around the link
            shown = shown.translate(_LITERAL)
        self.targets.append((title, fragment and fragment.replace("_", " ").strip()))
        return f"{OPEN}{len(self.targets) - 1}{BAR}{shown}{CLOSE}"

    def _kind(self, written: str) -> str:
        """What a colon in a link makes it: ``""`` if it is just a part of an article's title."""
        prefix, colon, rest = written.partition(":")
        name = " ".join(prefix.replace("_", " ").split())
        lower = name.lower()
        if not name:  # [[:Category:Cats]] shows a link to the category page
            return "other" if colon and self._kind(rest) else ""
        if lower in self.site.files:
            return "file"
        if lower in self.site.categories:
            return "hidden"
        if lower in self.site.others or lower in _INTERWIKI:
            return "other"
        if _LANGUAGE.fullmatch(name) and not rest.startswith(" "):
            return "hidden"
        return ""


def _caption(options: str) -> str:
    if not _FRAMED.search(options):
        return ""
    for part in reversed(options.split("|")[1:]):
        if not _PICTURE_OPTION.fullmatch(part):
            return "\n" + " ".join(part.split()) + "\n"
    return ""


def _mark_links(text: str, site: Site) -> tuple[str, list[tuple[str, str]]]:
    marker = _LinkMarker(site)
    text = _LINK.sub(marker, text)

    def picture(match: re.Match[str]) -> str:
        is_file = match[1].strip().lower() in site.files
        return _caption(match[3] or "") if is_file else match[0]

    # Pictures whose caption held links: their inner links are marked by now.
    while "[[" in text:
        replaced = _FILE_LINK.sub(picture, text)
        if replaced == text:
            break
        text = replaced
    text = _EXTERNAL.sub(lambda match: match[1].strip(), text)
    return text.replace("[[", "").replace("]]", ""), marker.targets


# --- step 5: tables -------------------------------------------------------------------------------

# A line's start is matched by the newline before it: re finds a literal far faster than ^.
_TABLE_TOKEN = re.compile(r"\n[ \t:*#]*(\{\||\|\})")
_HEADING = re.compile(r"\n(={1,6})(?!=*[ \t]*(?:\n|$))(.*?)(={1,6})[ \t]*(?=\n|$)")


def _flatten_tables(text: str) -> str:
    """Table cells as text: one line per source line, no separators, no attributes."""
    tokens = list(_TABLE_TOKEN.finditer(text))
    if not tokens and "\n|" not in text:
        return text
    text = _replace_spans(text, _nested_spans(tokens), _table_text)
    # What starts with a bar now belongs to a table that is never closed, or whose frame a template
    # brought: line by line, so that the headings below it survive.
    lines = text.split("\n")
    return "\n".join(
        _table_line(line) if line.lstrip(" \t:*#").startswith(("|", "{|")) else line
        for line in lines
    )


def _table_text(table: str) -> str:
    return _HEADING.sub(r"\n\2", "\n".join(map(_table_line, table.split("\n"))))


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


# --- step 6: lines --------------------------------------------------------------------------------


_ODD_SPACE = re.compile(
    "[\t\r\v\f\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
)
_SPACES = re.compile(r"  +")
_LINE_START = re.compile(r"\n[\s*#:;]*")
_EMPTY_LINE = re.compile(r"\n[^\w\n]{1,3}(?=\n|$)")


def _clean_lines(text: str) -> str:
    """Single spaces; no list markers, no empty lines, no lines of a few stops without a word."""
    text = _ODD_SPACE.sub(" ", text)
    if "  " in text:
        text = _SPACES.sub(" ", text)
    text = text.replace(" \n", "\n")
    text = _LINE_START.sub("\n", "\n" + text)
    return _EMPTY_LINE.sub("", text).strip("\n ")


# --- all steps ------------------------------------------------------------------------------------


def parse_wikitext(source: str, site: Site = Site()) -> tuple[Section, ...]:
    """Sections of an article in order; the first is the lead (its text may be empty).

    Templates, footnotes, formulas, categories and links to other languages are left out; list
    items, table cells, captions of framed pictures and galleries, and the text of other links are
    kept. Any input gives a result: what is not valid markup counts as text.
    """
    if _RESERVED.search(source):
        source = _RESERVED.sub("", source)
    # The newline gives the first line the start that all others have.
    text = _clean_inline(_strip_templates("\n" + _strip_extensions(source)))
    text, targets = _mark_links(text, site)
    text = _flatten_tables(text)
    sections = []
    for heading, level, body in _split_at_headings(text):
        plain_heading, _ = _take_links(_clean_lines(heading), targets)
        plain, links = _take_links(_clean_lines(body), targets)
        sections.append(Section(plain_heading, level, plain, links))
    return tuple(sections)


def _split_at_headings(text: str) -> Iterator[tuple[str, int, str]]:
    heading, level, position = "", 1, 0
    for match in _HEADING.finditer(text):
        yield heading, level, text[position : match.start()]
        heading, level, position = match[2], min(len(match[1]), len(match[3])), match.end()
    yield heading, level, text[position:]


def _take_links(marked: str, targets: list[tuple[str, str]]) -> tuple[str, tuple[Link, ...]]:
    """Take the markers out of a text and say where the anchors are."""
    if OPEN not in marked and not _RESERVED.search(marked):
        return marked, ()
    if _STAND_IN.search(marked):
        marked = marked.translate(_UNLITERAL)
    # plain, number, anchor, plain, number, anchor, ..., plain
    pieces = _MARKER.split(marked)
    numbers = pieces[1::3]
    del pieces[1::3]
    starts = islice(accumulate(map(len, pieces)), 0, None, 2)
    links = tuple(
        Link(target, anchor, start, fragment)
        for (target, fragment), anchor, start in zip(
            [targets[int(number)] for number in numbers], pieces[1::2], starts, strict=False
        )
    )
    return "".join(pieces), links
