"""The 46 LETOR columns of BM25 top-100 pairs, in document-features per second.

    LTR_DATA=<folder of data sets> python tests/benchmarks/bench_columns.py

Wikispeedia's articles with body, title, anchor (titles of the linked articles, once per link) and
URL; queries are the titles, and for comparison 10 words drawn from each article. The peer, Pyserini
(36 k document-features/s with two workers on this data's size), needs Java and is not run here.
"""

from statistics import median

import numpy as np
from data_sets import articles, links
from timing import repeated, timed

from ltr_features.columns.context import ColumnContext
from ltr_features.columns.letor46 import Letor46
from ltr_features.text.candidates import BM25Retriever
from ltr_features.text.collection import Collection, Judgements, Links
from ltr_features.text.index import TermIndex

RUNS = 5


def wikispeedia() -> Collection:
    titles, bodies = articles()
    rows = np.array(links(), dtype=np.int64)
    anchors: list[list[str]] = [[] for _ in titles]
    for target in rows[:, 1]:
        anchors[target].append(titles[target])
    rng = np.random.default_rng(0)
    keywords = [" ".join(rng.choice(body.split(), 10)) for body in bodies]
    fields = {
        "body": bodies,
        "title": titles,
        "anchor": [" ".join(texts) for texts in anchors],
        "url": [f"http://schools.example/wp/{title.replace(' ', '_')}.htm" for title in titles],
    }
    return Collection(
        "wikispeedia",
        [str(i) for i in range(len(titles))],
        fields,
        [str(i) for i in range(2 * len(titles))],
        [*titles, *keywords],
        Judgements.none(),
        Links(rows[:, 0], rows[:, 1]),
    )


def main() -> None:
    collection = wikispeedia()
    seconds, index = timed(TermIndex.build, collection)
    print(f"index of {len(index.vocabulary):,} words built in {seconds:.1f} s")
    counts = index.query_counts(collection.query_texts)
    n_titles = collection.n_queries // 2
    family = Letor46()
    for what, first in (("title", 0), ("10-word", n_titles)):
        asked = counts.copy()
        asked.data[: asked.indptr[first]] = 0
        asked.data[asked.indptr[first + n_titles] :] = 0
        asked.eliminate_zeros()
        pairs = BM25Retriever(index).top(asked, 100)[0]
        for threads in (1, 2):
            context = ColumnContext(collection, index, threads)
            values = family.compute(context, pairs)  # compiles, and ranks the pages once
            seconds = median(repeated(RUNS, family.compute, context, pairs))
            rate = values.size / seconds / 1e6
            print(
                f"{what} queries, {len(pairs):,} pairs, {threads} threads: "
                f"{rate:.1f} M document-features/s"
            )


if __name__ == "__main__":
    main()
