"""Offline linking against the articles' own links, on articles that gave no statistics.

    python tests/benchmarks/bench_linker.py [--folds 3] [--sample 0]

The articles of the excerpt shipped with gensim are dealt into folds; those of one are linked by a
knowledge base made without their text and links. An article links a thing once or not at all, so
most mentions are told neither right nor wrong by it. Mentions of the article's own entity are left
out; the others are of these kinds:

- right, another, unknown: the article links these very words, to the entity found, to another one
  of the knowledge base, or to an article that it lacks: the precision of disambiguation;
- part: inside or across a link to something else ("Asia" in "Southeast Asia");
- linked elsewhere: the words are no link here, but the article links the entity in another place;
- words elsewhere: the article links these words in another place, to something else;
- untold: neither words nor entity are linked in the article. ``--sample`` prints some, to judge.

Of 60 untold mentions read one by one, 23 are right though the author did not link them, 10 are the
end of a longer name without an article in the base ("Southeast Asia"), and 27 have a sense that it
lacks: "answer" becomes the plea at law, for want of any other. With every sense in the base (the
column "another") no mention was wrong. None is a number, and no stop word is one either.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from pathlib import Path

from ltr_features.entities.build import build_knowledge_base
from ltr_features.entities.linker import Mention
from ltr_features.entities.wikipedia_linker import WikipediaLinker
from ltr_features.sources.wikipedia import (
    Article,
    Redirect,
    excerpt_path,
    read_dump,
    resolve_redirect,
)
from ltr_features.sources.wikitext import Section

THRESHOLDS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
KINDS = ("right", "another", "unknown", "part", "linked elsewhere", "words elsewhere", "untold")


class LinksOfArticle:
    """Where an article links what: the judge of mentions."""

    def __init__(self, article: Article, redirects: dict[str, str], titles: set[str]) -> None:
        self.title, self.redirects, self.titles = article.title, redirects, titles
        links = [link for section in article.sections for link in section.links]
        self.entities = {resolve_redirect(link.target, redirects) for link in links}
        self.words = {link.anchor.casefold() for link in links}

    def of_section(self, section: Section) -> dict[tuple[int, int], str]:
        return {
            (link.start, link.start + len(link.anchor)): resolve_redirect(
                link.target, self.redirects
            )
            for link in section.links
        }

    def kind(self, mention: Mention, section: Section) -> str:
        links = self.of_section(section)
        target = links.get((mention.start, mention.end))
        if mention.entity == self.title:
            return "self"
        if target is not None:
            known = "another" if target in self.titles else "unknown"
            return "right" if target == mention.entity else known
        if any(begin < mention.end and mention.start < end for begin, end in links):
            return "part"
        if mention.entity in self.entities:
            return "linked elsewhere"
        words = section.text[mention.start : mention.end].casefold()
        return "words elsewhere" if words in self.words else "untold"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--folds", type=int, default=3)
    arguments.add_argument("--sample", type=int, default=0)
    options = arguments.parse_args()
    records = list(read_dump(excerpt_path()))
    articles = [record for record in records if isinstance(record, Article)]
    redirects = {r.title: r.target for r in records if isinstance(r, Redirect)}
    titles = {article.title for article in articles}
    found: list[tuple[str, bool, Mention, str]] = []
    n_links = 0
    for fold in range(options.folds):
        held_out = articles[fold :: options.folds]
        with tempfile.TemporaryDirectory() as folder:
            base = Path(folder) / "kb"
            build_knowledge_base(excerpt_path(), base, held_out=[a.title for a in held_out])
            linker = WikipediaLinker(base, threads=1)
            for article in held_out:
                judge, seen = LinksOfArticle(article, redirects, titles), set[str]()
                linked = linker.link([section.text for section in article.sections])
                for section, mentions in zip(article.sections, linked, strict=True):
                    targets = judge.of_section(section).values()
                    n_links += sum(t in titles and t != article.title for t in targets)
                    for m in mentions:
                        context = section.text[max(0, m.start - 40) : m.end + 40]
                        first = m.entity not in seen
                        seen.add(m.entity)
                        found.append((judge.kind(m, section), first, m, context))
    own = sum(kind == "self" for kind, *_ in found)
    print(f"{len(found):,} mentions, {own:,} of them of the article's own entity; {n_links} links")
    print(
        f"{'rho >=':8}"
        + "".join(f"{kind:>17}" for kind in KINDS)
        + f"{'precision':>11}{'recall':>8}"
    )
    for name, firsts in (("all mentions", (False, True)), ("first of each entity", (True,))):
        print(name)
        for least in THRESHOLDS:
            counts = Counter(k for k, first, m, _ in found if m.rho >= least and first in firsts)
            told = sum(counts[kind] for kind in KINDS[:3])
            print(
                f"{least:<8}" + "".join(f"{counts[kind]:17}" for kind in KINDS)
                + f"{counts['right'] / max(told, 1):11.3f}{counts['right'] / n_links:8.3f}"
            )  # fmt: skip
    untold = [x for x in found if x[0] == "untold"]
    for _, _, m, context in random.Random(0).sample(untold, min(options.sample, len(untold))):
        shown = " ".join(context.split())
        print(f"{m.entity} (rho {m.rho:.2f}, link probability {m.link_probability:.2f}): {shown}")


if __name__ == "__main__":
    main()
