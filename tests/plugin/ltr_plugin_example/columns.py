"""One column: how many characters the title has."""

import numpy as np

from ltr_features.columns.base import ColumnFamily, ColumnSpec


class TitleLength(ColumnFamily):
    name = "title-length"
    description = "characters of the title"
    reference = "this package"
    columns = (
        ColumnSpec("title_characters", "len(title)", "characters", ">= 0", reference, "title"),
    )

    def compute(self, context, pairs):
        context.check(pairs)
        titles = context.collection.fields.get("title", [""] * context.collection.n_documents)
        lengths = context.cached("title lengths", lambda: np.array([len(t) for t in titles]))
        return lengths[pairs.document].astype(np.float32)[:, None]
