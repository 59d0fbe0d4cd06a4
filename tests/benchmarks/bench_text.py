"""Text to term counts against scikit-learn, bm25s and (where installed) polars, in one process.

    LTR_DATA=<folder of data sets> python tests/benchmarks/bench_text.py

Wikispeedia's articles, 14 million tokens, from str objects to a sparse matrix of counts (polars: to
a table of document, word, count). polars uses all cores, ours up to four, the others one. Prints
tokens per second by wall clock and by processor time, which a busy machine blurs less.
"""

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

from data_sets import articles
from timing import on_two_clocks

from ltr_features.text.term_counts import count_terms

RUNS = 3


def scikit_learn(texts: Sequence[str]) -> None:
    from sklearn.feature_extraction.text import CountVectorizer

    CountVectorizer().fit_transform(texts)


def bm25s_tokens(texts: Sequence[str]) -> None:
    import bm25s

    bm25s.tokenize(texts, stopwords=None, show_progress=False)


def polars_counts(texts: Sequence[str]) -> None:
    import polars as pl

    (
        pl.DataFrame({"text": texts})
        .with_row_index("document")
        .lazy()
        .with_columns(pl.col("text").str.to_lowercase().str.extract_all(r"\w\w+"))
        .explode("text")
        .group_by("document", "text")
        .len()
        .collect()
    )


def main() -> None:
    titles, bodies = articles()
    texts = [f"{title} {body}" for title, body in zip(titles, bodies, strict=True)]
    n_tokens = int(count_terms(texts)[1].sum())
    print(f"{len(texts):,} texts, {n_tokens / 1e6:.1f} M tokens; M tokens/s (wall | processor)")
    peers: dict[str, Callable[[Sequence[str]], object]] = {
        "scikit-learn CountVectorizer": scikit_learn,
        "bm25s.tokenize (no counts)": bm25s_tokens,
        "polars": polars_counts,
        "ours": count_terms,
    }
    rates = {}
    for name, count in peers.items():
        try:
            wall, processor = on_two_clocks(RUNS, partial(count, texts))
        except ImportError as error:
            print(f"{name:30} left out: {error}")
            continue
        rates[name] = n_tokens / median(wall) / 1e6
        print(f"{name:30} {rates[name]:6.1f} | {n_tokens / median(processor) / 1e6:6.1f}")
    ratio = rates["ours"] / rates["scikit-learn CountVectorizer"]
    print(f"ours / CountVectorizer {ratio:.1f}")


if __name__ == "__main__":
    main()
