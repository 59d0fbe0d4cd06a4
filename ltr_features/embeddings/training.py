"""Train embeddings with gensim on the texts of a collection, without labels.

Training uses one worker and a fixed seed: gensim's threads race for the parameters, so only a
single one makes the vectors reproducible. Documents are read in the order of their ids. gensim
trains on the first 10,000 words of a text alone, so longer ones are cut into pieces.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar, cast

import gensim
import numpy as np
from gensim.models.doc2vec import TaggedDocument

from letor.errors import InputError
from ltr_features.embeddings.doc2vec import Doc2Vec
from ltr_features.embeddings.settings import TRAINED_ON, TrainingSettings
from ltr_features.embeddings.vectors import SUFFIX, WordVectors, unit_rows
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection import FIELDS, Collection
from ssi_models.vocabulary import Vocabulary

#: Fields that are read as sentences: all but the URL.
TEXT_FIELDS = tuple(field for field in FIELDS if field != "url")

#: gensim's MAX_SENTENCE_LEN and MAX_DOCUMENT_LEN, in words.
_LONGEST = 10_000

T = TypeVar("T", WordVectors, Doc2Vec)


def train_word_vectors(
    collection: Collection, analyzer: Analyzer, settings: TrainingSettings
) -> WordVectors:
    """Train skip-gram vectors (Mikolov et al. 2013) by ``gensim.models.Word2Vec``; each field of
    each document is a sentence, or several of up to 10,000 words.

    Raises:
        InputError: no word occurs ``min_count`` times.
    """
    sentences = [
        piece
        for fields in document_tokens(collection, analyzer)
        for tokens in fields.values()
        if tokens
        for piece in _pieces(tokens)
    ]
    options = settings.gensim_options()
    model = gensim.models.Word2Vec(sg=1, window=settings.window, **options)
    _train(model, sentences, collection, settings)
    vectors = np.asarray(model.wv.vectors, dtype=np.float32)
    return WordVectors(
        Vocabulary(model.wv.index_to_key),
        unit_rows(vectors),
        f"word2vec trained on: {TRAINED_ON} ({collection.name})",
    )


def train_doc2vec(
    collection: Collection, analyzer: Analyzer, settings: TrainingSettings
) -> Doc2Vec:
    """Train a PV-DBOW model (Le and Mikolov 2014) by ``gensim.models.Doc2Vec``; the text fields of
    a document form one text.

    Raises:
        InputError: no word occurs ``min_count`` times.
    """
    texts = [
        TaggedDocument(piece, [row])
        for row, fields in enumerate(document_tokens(collection, analyzer))
        for piece in _pieces([token for tokens in fields.values() for token in tokens])
    ]
    model = gensim.models.Doc2Vec(dm=0, dbow_words=0, **settings.gensim_options())
    _train(model, texts, collection, settings)
    source = f"doc2vec trained on: {TRAINED_ON} ({collection.name})"
    return Doc2Vec.from_gensim(model, source=source)


def _pieces(tokens: Sequence[str]) -> list[Sequence[str]]:
    """The text in pieces that gensim reads to their end; one piece if it is empty."""
    starts = range(0, max(len(tokens), 1), _LONGEST)
    return [tokens[start : start + _LONGEST] for start in starts]


def _train(
    model: Any, texts: Sequence[Any], collection: Collection, settings: TrainingSettings
) -> None:
    """Train a model of gensim on texts in its form."""
    model.build_vocab(texts)
    if not len(model.wv):
        raise InputError(
            f"no word occurs {settings.min_count} times in collection {collection.name!r}; "
            "lower min_count"
        )
    model.train(texts, total_examples=model.corpus_count, epochs=model.epochs)


def _rows_by_id(collection: Collection) -> list[int]:
    return sorted(range(collection.n_documents), key=[*collection.document_ids].__getitem__)


def document_tokens(collection: Collection, analyzer: Analyzer) -> Iterator[dict[str, list[str]]]:
    """Yield the tokens of each document's text fields, documents in the order of their ids."""
    fields = [field for field in TEXT_FIELDS if field in collection.fields]
    shared: dict[str, str] = {}
    for row in _rows_by_id(collection):
        yield {
            field: [
                shared.setdefault(token, token)
                for token in analyzer.tokens(collection.fields[field][row])
            ]
            for field in fields
        }


def trained(
    kind: type[T],
    collection: Collection,
    analyzer: Analyzer,
    settings: TrainingSettings,
    folder: str | os.PathLike[str] | None,
) -> T:
    """Vectors or a model of the collection's documents, trained once per folder, then loaded.

    Args:
        kind: the class of what is trained.
        folder: where it is stored and looked up; None always trains.
    """
    word2vec = ("word2vec", train_word_vectors)
    name, train = word2vec if kind is WordVectors else ("doc2vec", train_doc2vec)
    if folder is None:
        return cast("T", train(collection, analyzer, settings))
    key = training_key(name, collection, analyzer, settings)
    path = Path(folder) / f"{key}{SUFFIX}"
    if not path.is_file():
        train(collection, analyzer, settings).save(path)
    return kind.load(path)


def training_key(
    kind: str, collection: Collection, analyzer: Analyzer, settings: TrainingSettings
) -> str:
    """A name with a digest of the texts, recipe, settings, and versions of gensim and NumPy."""
    digest = hashlib.sha256()
    made_of: Mapping[str, Any] = {
        "kind": kind,
        "analyzer": analyzer.fingerprint,
        "settings": asdict(settings),
        "longest text": _LONGEST,
        "gensim": gensim.__version__,
        "numpy": np.__version__,
    }
    digest.update(json.dumps(made_of, sort_keys=True, default=np.generic.item).encode())
    for row in _rows_by_id(collection):
        for field in TEXT_FIELDS:
            text = collection.fields[field][row] if field in collection.fields else ""
            encoded = text.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "little"))
            digest.update(encoded)
    return f"{kind}-{digest.hexdigest()[:16]}"
