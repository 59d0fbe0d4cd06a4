"""Quality and speed of wiki markup removal against gensim and mwparserfromhell, on one excerpt.

    python tests/benchmarks/bench_wikitext.py

Prints the table below. A word counts as lost if two of the three readers keep it (as often, within
the same article) and the third does not: of the 458,101 that two keep. Left over: occurrences in
all texts; the four bars are part of the articles. Article links: outside templates and footnotes.
Measured on the 106 articles of the excerpt shipped with gensim (5.8 MB of markup, one core):

==========================  ===========  ==================  =======================
                            this module  gensim filter_wiki  mwparserfromhell, with
                                                             ref, File, Category
                                                             removed node by node
==========================  ===========  ==================  =======================
MB/s                               19.1                 4.6      0.4 (strip_code: 1.6)
words lost                       0.17 %              1.18 %                    0.27 %
left over: [[ ]] {{ }}                0                   0                        49
left over: <ref and tags              0                   0                        54
left over: table markup               1                   5                       571
left over: single bars                4                  99                       585
left over: quotes ''                  0              10,879                        20
left over: File: and 20px             0                 151                        31
article links with anchors       27,108              26,104                    27,329
==========================  ===========  ==================  =======================

Of the words that the toolkit loses, two in three are names that the others glue together at a
``<br>``; most of the rest are alternative texts of pictures. gensim loses most of one article to
the tag that it sees in ``<10 ppm``. The additional links of mwparserfromhell are in templates and
footnotes that it failed to remove.
"""

from __future__ import annotations

import bz2
import re
import time
from collections import Counter
from collections.abc import Callable
from html import unescape

from timing import peer

from ltr_features.sources.wikipedia import excerpt_path
from ltr_features.sources.wikitext import parse_wikitext

RESIDUE = {
    "[[ ]] {{ }}": r"\[\[|\]\]|\{\{|\}\}",
    "<ref and tags": r"</?[a-z]+[ >/]",
    "table markup": r"(?m)^\s*(?:\{\||\|-|\|\}|\||!)|\|\||"
    r"(?:style|align|colspan|rowspan|class|width|bgcolor|scope)\s*=",
    "single bars": r"\|",
    "quotes ''": r"''",
    "File: and 20px": r"(?i)\b(?:file|image):\S|\b\d+px\b",
}
WORD = re.compile(r"[^\W\d_]{2,}")


def article_sources() -> list[str]:
    xml = bz2.decompress(excerpt_path().read_bytes()).decode()
    pages = re.findall(r"<page>(.*?)</page>", xml, re.DOTALL)
    return [
        unescape(page[page.index(">", page.index("<text ")) + 1 : page.index("</text>")])
        for page in pages
        if "<redirect " not in page
    ]


def ours(source: str) -> str:
    return "\n".join(f"{s.heading}\n{s.text}" for s in parse_wikitext(source))


def gensims(source: str) -> str:
    from gensim.corpora.wikicorpus import filter_wiki

    return filter_wiki(source)


def mwparserfromhells(source: str) -> str:
    """strip_code after removing what it would leave: footnotes, categories, picture options."""
    mwparserfromhell = peer("mwparserfromhell")
    code = mwparserfromhell.parse(source)
    dropped = code.filter_tags(
        matches=lambda tag: str(tag.tag).lower() in ("ref", "math", "references", "gallery")
    )
    for node in dropped + code.filter_wikilinks():
        title = str(getattr(node, "title", "category:"))
        kind = re.match(r"\s*(category|file|image)\s*:", title, re.IGNORECASE)
        options = str(getattr(node, "text", None) or "")
        try:
            if kind and kind[1].lower() != "category" and re.search("thumb|frame", options):
                caption = re.split(r"\|(?![^\[]*\]\])", options)[-1]
                code.replace(node, f"\n{caption}\n")
            elif kind:
                code.remove(node)
        except ValueError:  # the node went with one that held it
            continue
    return str(mwparserfromhell.parse(str(code)).strip_code())


def main() -> None:
    sources = article_sources()
    megabytes = sum(len(source.encode()) for source in sources) / 1e6
    readers: dict[str, Callable[[str], str]] = {
        "this module": ours,
        "gensim": gensims,
        "mwparserfromhell": mwparserfromhells,
    }
    texts: dict[str, list[str]] = {}
    for name, reader in readers.items():
        reader(sources[0])
        began = time.process_time()
        texts[name] = [reader(source) for source in sources]
        speed = megabytes / (time.process_time() - began)
        left = {k: sum(len(re.findall(r, t)) for t in texts[name]) for k, r in RESIDUE.items()}
        print(f"{name:16} {speed:5.1f} MB/s, left over: {left}")
    kept = 0
    lost = Counter[str]()
    for parallel in zip(*texts.values(), strict=True):
        a, b, c = (Counter(WORD.findall(text.lower())) for text in parallel)
        agreed = (a & b) | (a & c) | (b & c)
        kept += agreed.total()
        lost.update({n: (agreed - x).total() for n, x in zip(texts, (a, b, c), strict=True)})
    for name in texts:
        print(f"{name:16} loses {lost[name]:,} of {kept:,} words: {lost[name] / kept:.2%}")


if __name__ == "__main__":
    main()
