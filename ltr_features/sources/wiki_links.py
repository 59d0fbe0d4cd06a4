"""Links of a wiki page: their targets, their anchors, and the meaning of prefixes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from ltr_features.sources.wiki_markup import BAR, CLOSE, LITERAL, OPEN, UNLITERAL


@dataclass(frozen=True, slots=True)
class Site:
    """The properties of a wiki that its markup depends on: namespaces (in lower case) and titles.

    Attributes:
        files: prefixes of pictures, e.g. ``file``, ``image``, ``datei``.
        categories: prefixes of categories.
        others: prefixes of all other namespaces except the article namespace.
        capital_first: whether titles start with a capital letter (false on a Wiktionary).
        language: its code, e.g. ``de``; None if the dump does not name it.
        address: what the address of a page starts with, before its title; ``""`` if the dump does
            not name that of the main page.
    """

    files: frozenset[str] = frozenset({"file", "image"})
    categories: frozenset[str] = frozenset({"category"})
    others: frozenset[str] = frozenset(
        f"{name}{talk}"
        for name in ("user", "project", "wikipedia", "mediawiki", "template", "help", "portal")
        for talk in ("", " talk")
    ) | {"talk", "special", "media", "wp", "file talk", "category talk", "module", "draft", "book"}
    capital_first: bool = True
    language: str | None = None
    address: str = ""


DEFAULT_SITE = Site()

# Prefixes of sister projects and services; languages are recognised by their shape.
_INTERWIKI = re.compile(
    "b|c|commons|d|doi|foundation|iarchive|m|mail|meta|mw|n|phab|phabricator|q|rfc|s|simple|"
    "species|v|voy|w|wikt|wikibooks|wikidata|wikimedia|wikinews|wikipedia|wikiquote|wikisource|"
    "wikispecies|wikiversity|wikivoyage|wiktionary"
)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z-]+)?")


# Marks of the direction of writing, which MediaWiki removes from titles.
_DIRECTION = re.compile("[\u200e\u200f\u202a-\u202e]")


def normalise_title(title: str, site: Site = DEFAULT_SITE) -> str:
    """Title in its normal form: single spaces, no underscores or marks of direction, first letter
    by the site's rule."""
    if not title.isascii():
        title = _DIRECTION.sub("", title)
    title = " ".join(title.replace("_", " ").split())
    # MediaWiki leaves letters without a single capital, such as ß, and those of Georgian, whose
    # capitals are not for the start of a word.
    first = title[:1].title()
    if site.capital_first and not title[:1].isupper() and len(first) == 1:
        title = first + title[1:]
    return title


_INNER = r"[^\[\]]*(?:(?:\[(?!\[)|\](?!\]))[^\[\]]*)*"
# The letters that directly follow a link belong to its anchor: [[cat]]s shows "cats". Latin, Greek,
# Cyrillic, Hebrew and Arabic ones; not those of scripts without spaces between words.
_TRAIL = "a-zß-öø-ÿĀ-žά-ώа-џґא-תء-يپچژکگی"
# The code points are the marks of links and the stand-ins for what no title has: []{}|<>.
_LINK = re.compile(rf"\[\[([^\[\]{{}}<>|\n\ufdd0-\ufdd9]*)(\|{_INNER})?\]\]([{_TRAIL}]*)")
_FILE_LINK = re.compile(rf"\[\[([^\[\]|\n:]*):([^\[\]|\n]*)(\|{_INNER})?\]\]")
_EXTERNAL = re.compile(
    r"\[(?:(?:https?|ftps?|irc|news|mailto):|//)[^\s\[\]<>\ufdd0]*+([^\[\]\n]*)\]"
)
# Dumps do not tell the former names of a wiki's namespace of files, such as Bild in German.
_OF_FILE = re.compile(
    r"\.(?:jpe?g|png|gif|svg|tiff?|webp|xcf|djvu|pdf|og[agv]|webm)\s*", re.IGNORECASE
)
# Pictures show their caption only when framed. The words are English, which every wiki understands,
# and those of the large European wikis.
_FRAME = (
    "thumb|thumbnail|frame|framed|enframed|mini|miniatur|gerahmt|vignette|cadre|miniatura|"
    "miniaturadeimagen|marco|мини|миниатюра"
)
_FRAMED = re.compile(rf"\|\s*(?:{_FRAME})\s*(?:=[^|]*)?(?=\||$)")
_PICTURE_OPTION = re.compile(  # matches an option without the spaces around it
    rf"(?:{_FRAME}|frameless|border|left|right|center|centre|none|baseline|sub|super|top|"
    r"text-top|middle|bottom|text-bottom|rahmenlos|links|rechts|zentriert|ohne|hochkant|gauche|"
    r"droite|centré|redresse|izquierda|derecha|centro|справа|слева|центр|"
    r"\d*+\s*+(?:x\s*+\d++\s*+)?px|(?:upright|hochkant|redresse|alt|link|verweis|lang|page|class|"
    r"thumb|thumbtime|start|end)\s*=.*|upright(?:\s+[\d.]+)?)",
    re.DOTALL,
)


#: Depth of pictures in captions of pictures; deeper ones are left as text.
_MOST_NESTED = 20
_NOT_IN_TITLES = re.compile(r"[\[\]{}<>|\n\ufdd0-\ufdef]")


class _LinkMarker:
    """Replaces links by their marked anchors and keeps their targets in the order of the text."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.targets: list[tuple[str, str]] = []

    def __call__(self, match: re.Match[str]) -> str:
        written, label, trail = match.groups()
        written = written.translate(UNLITERAL)
        if "%" in written and not _NOT_IN_TITLES.search(decoded := unquote(written)):
            written = decoded
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
            shown = _piped(written) + trail
        title, _, fragment = written.removeprefix(":").partition("#")
        title = normalise_title(title, self.site)
        shown = " ".join(shown.split())
        if not title or not shown:
            return shown
        if "|" in shown or "!!" in shown:  # not to be taken for cell separators of a table
            shown = shown.translate(LITERAL)
        self.targets.append((title, fragment and fragment.replace("_", " ").strip()))
        return f"{OPEN}{len(self.targets) - 1}{BAR}{shown}{CLOSE}"

    def _kind(self, written: str) -> str:
        """The kind of a link with a colon: ``""`` if that is just part of an article's title."""
        prefix, colon, rest = written.partition(":")
        name = " ".join(prefix.replace("_", " ").split())
        lower = name.lower()
        if not name:  # [[:Category:Cats]] shows a link to the category page
            return "other" if colon and self._kind(rest) else ""
        if _is_file(lower, rest, self.site):
            return "file"
        if lower in self.site.categories:
            return "hidden"
        if lower in self.site.others or _INTERWIKI.fullmatch(lower):
            return "other"
        if _LANGUAGE.fullmatch(name) and not rest.startswith(" "):
            return "hidden"
        return ""


def _is_file(prefix: str, name: str, site: Site) -> bool:
    return prefix in site.files or _OF_FILE.fullmatch(name[name.rfind(".") :]) is not None


def _piped(title: str) -> str:
    """What ``[[title|]]`` shows: no namespace, no brackets at the end, nothing after a comma."""
    name = title.partition(":")[2] if ":" in title else title
    opening = name.rfind("(") if name.endswith(")") else -1
    if opening >= 0 and ")" not in name[opening:-1]:
        before = name[:opening].rstrip()
        return before.partition(",")[0]
    return name.partition(",")[0]


def _caption(options: str) -> str:
    if not _FRAMED.search(options):
        return ""
    for part in reversed(options.split("|")[1:]):
        if not _PICTURE_OPTION.fullmatch(part.strip()):
            return "\n" + " ".join(part.split()) + "\n"
    return ""


def mark_links(text: str, site: Site) -> tuple[str, list[tuple[str, str]]]:
    """The text with marked anchors in place of links, and (title, fragment) of each target."""
    marker = _LinkMarker(site)
    text = _LINK.sub(marker, text)

    def picture(match: re.Match[str]) -> str:
        is_file = _is_file(match[1].strip().lower(), match[2], site)
        return _caption(match[3] or "") if is_file else match[0]

    # Pictures with links in their captions, which are marked by now.
    for _ in range(_MOST_NESTED):
        if "[[" not in text:
            break
        replaced = _FILE_LINK.sub(picture, text)
        if replaced == text:
            break
        text = replaced
    text = _EXTERNAL.sub(lambda match: match[1].strip(), text)
    return text.replace("[[", "").replace("]]", ""), marker.targets
