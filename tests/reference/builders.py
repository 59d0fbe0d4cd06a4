"""What the tests of builders and pipelines share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from toys import toy

from ltr_features import LearnedColumn
from ltr_features.text.collection import Judgements

#: Sizes of the collection of topics.
N_TOPICS, N_DOCUMENTS, N_QUERIES = 8, 96, 48

MODELS = (
    LearnedColumn("ssi", "ssi", {"rank": 4, "max_epochs": 2, "batch_size": 16, "seed": 1}),
    LearnedColumn("wtm", "wtm", {}, field="title", word_weight=0.5),
)


def frame_of(collection, data):
    """The pairs of rows as a frame with the texts of their queries, as builders take it."""
    text = dict(zip(collection.query_ids, collection.query_texts, strict=True))
    qids = [data.query_ids[i] for i in data.query_index]
    return pd.DataFrame(
        {"docno": list(data.document_ids), "query": [text[q] for q in qids], "qid": qids}
    )


def two_documents(*ids, texts=("red shoe", "blue hat")):
    """A collection of two documents with these ids, and a query for the first."""
    judged = Judgements(*np.array([[0], [0], [1]]))
    return replace(toy({"body": list(texts)}, ["red"], judged), document_ids=list(ids))
