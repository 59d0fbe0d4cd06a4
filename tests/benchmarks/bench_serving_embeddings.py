"""Time of each column family for 1,000 candidates of one query, documents' parts cached.

    python tests/benchmarks/bench_serving_embeddings.py [n_documents]

The 34 embedding columns of Ensan et al. (vectors of dimension 100, trained for one epoch), LETOR's
46, the tf-idf cosine and SSI of rank 100: each alone and all together. The text is generated:
Zipf-distributed words, 150 to a document; entities are those of the excerpt of Wikipedia that is
installed with gensim, whose titles every document and query mentions.
"""

import sys
import tempfile
from dataclasses import replace

import numpy as np
from bench_scoring import N_CANDIDATES, collection
from timing import seconds_of

from ltr_features import FeatureBuilder, LearnedColumn

N_ASKED = 50

#: Pages of the excerpt that others link to.
NAMES = ("Anarchism", "Aristotle", "Abraham Lincoln", "Alabama", "Achilles", "Academy Award")

TRAINED = {"epochs": 1, "dimension": 100}
OF_ENTITIES = {**TRAINED, "dump": "wikipedia-excerpt"}
FAMILIES = {
    "letor46": {},
    "vsm": {},
    "w2v-word": TRAINED,
    "d2v-word": TRAINED,
    "d2v-chunk": TRAINED,
    "w2v-entity": OF_ENTITIES,
    "d2v-entity": OF_ENTITIES,
}


def with_entities(data):
    rng = np.random.default_rng(1)
    names = iter(rng.choice(NAMES, data.n_documents + data.n_queries).tolist())
    bodies = [f"{body} {next(names)}" for body in data.fields["body"]]
    texts = [f"{text} {next(names)}" for text in data.query_texts]
    return replace(data, fields={**data.fields, "body": bodies}, query_texts=texts)


def milliseconds(features, data):
    """5 %, median and 95 % over queries, after a first one that fills what is cached."""
    docnos = data.document_ids[:N_CANDIDATES]
    query = np.zeros(len(docnos), np.int64)
    features.compute(data.query_texts[-1:], query, docnos)
    times = [
        seconds_of(features.compute, [text], query, docnos) for text in data.query_texts[:N_ASKED]
    ]
    return np.percentile(np.array(times) * 1e3, [5, 50, 95])


def main() -> None:
    n_documents = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    data = with_entities(collection(n_documents))
    ssi = LearnedColumn("ssi", "ssi", {"rank": 100, "max_epochs": 1}, min_document_frequency=3)
    print(f"{n_documents:,} documents, {N_CANDIDATES} candidates: ms per query")
    print("columns          5 %   median   95 %")
    with tempfile.TemporaryDirectory() as folder:
        made = {
            name: {**options, "folder": folder} if options else options
            for name, options in FAMILIES.items()
        }
        context = None
        for name in (*made, "ssi", "all"):
            chosen = made if name == "all" else {k: v for k, v in made.items() if k == name}
            features = FeatureBuilder(
                chosen, [ssi] if name in ("ssi", "all") else [], threads=1, progress=False
            ).fit(context or data)
            context = features.context_
            low, median, high = milliseconds(features, data)
            print(f"{name:12s} {low:7.2f} {median:8.2f} {high:6.2f}", flush=True)


if __name__ == "__main__":
    main()
