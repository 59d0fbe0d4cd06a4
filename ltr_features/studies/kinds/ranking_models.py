"""Parts of a report on trained models: facts, training curves, nearest words, maps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Literal

import numpy as np
from scipy.sparse import csr_matrix, vstack

from letor.errors import InputError
from ltr_base.names import clipped
from ltr_features.columns.base import ColumnFamily
from ltr_features.columns.fitted import model_texts
from ltr_features.columns.out_of_fold import train_parts
from ltr_features.columns.registry import family_class
from ltr_features.columns.term_space import nearest_terms, query_row
from ltr_features.columns.vector_sources import Doc2VecSource, WordVectorSource
from ltr_features.studies.kinds.ranking_stages import RankingStages, SplitOutputs
from ltr_features.studies.kinds.sections import FamilyConfig, ModelConfig
from ltr_features.studies.page.report import Curve
from ltr_features.studies.page.tables import Column, Columns, Table
from ltr_features.studies.statistics.embedding_map import EmbeddingMap, embedding_map
from ltr_features.text.index import WHOLE
from ltr_features.text.letter_ngrams import rows_of_word
from ssi_models.base import MatchingModel
from ssi_models.training.trainable import TrainableModel

MAP_WORDS = 600
MAP_DOCUMENTS = 400
MAP_TITLE = 60
"""Maximum number of characters of a document's title on the map."""


def test_models(
    experiment: RankingStages, output: SplitOutputs, model: ModelConfig
) -> list[MatchingModel]:
    """The model of each fold that scored its validation and test queries."""
    folder = experiment.models_folder(output.split, model)
    column = experiment.trained_column(output.split, model, folder)
    collection, folds, n_parts = experiment.collection, output.folds, output.split.inner_parts
    return [column.fold_model(train_parts(collection, folds, fold, n_parts)) for fold in folds]


def model_facts(model: ModelConfig, fitted: Sequence[MatchingModel]) -> dict[str, str]:
    """Facts on the progress of training, measured on held-out training queries; {} if untrained."""
    trained = [m for m in fitted if isinstance(m, TrainableModel)]
    if not trained:
        return {}
    histories = [m.history_ for m in trained]
    before = [h.epochs[0].validation for h in histories]
    after = [h.best_validation for h in histories]
    return {
        f"{model.name}, MAP on held-out training queries": f"{np.mean(before):.4f} before training "
        f"({trained[0].start}), {np.mean(after):.4f} at the epoch kept (mean over folds: "
        f"{len(trained)})",
        f"{model.name}, epochs kept": ", ".join(str(h.best_epoch) for h in histories),
    }


def training_curve(title: str, model: ModelConfig, fitted: MatchingModel) -> Curve | None:
    """The first fold's training curve; None if the model has no history."""
    name = f"{model.name}, {title}, first fold"
    if isinstance(fitted, TrainableModel):
        history = fitted.history_
        epochs = history.epochs
        return Curve(
            name=name,
            x_label="epoch",
            y_label="MAP of held-out training queries over all documents",
            series={
                "held-out training queries": (
                    [float(e.number) for e in epochs],
                    [e.validation for e in epochs],
                )
            },
            best_x=float(history.best_epoch),
            description=f"Epoch 0 is the model before training, {fitted.start}. Training stops "
            f"after {fitted.training.patience} epochs without improvement; the best epoch is kept.",
            remark="".join(f"{model.name} {remark}. " for remark in fitted.remarks).strip(),
        )
    iterations = getattr(fitted, "history_", ())
    steps = [line for line in iterations if np.isfinite(getattr(line, "objective", np.nan))]
    if not steps:
        return None
    return Curve(
        name=name,
        x_label="iteration",
        y_label="objective of EM",
        series={
            "objective": ([float(s.number) for s in steps], [float(s.objective) for s in steps])
        },
        description="The objective at the start of each iteration; EM never decreases it.",
    )


def has_vectors(part: FamilyConfig, of: type) -> bool:
    """Whether a column family has the vectors of a class, such as ``WordVectorSource``."""
    try:
        return issubclass(family_class(part.family), of)
    except InputError:  # the check of families says so
        return False


def asked_words(experiment: RankingStages) -> tuple[list[str], list[str]]:
    """The words of ``nearest_words`` as the index has them, and those that it does not have."""
    index = experiment.context.index
    found = {
        asked: [word for word in index.analyzer.tokens(asked) if word in index.vocabulary]
        for asked in experiment.config.nearest_words
    }
    return list(dict.fromkeys(chain(*found.values()))), [w for w in found if not found[w]]


def map_of_words(experiment: RankingStages) -> EmbeddingMap | None:
    """The ``word_map`` of the experiment, with its ``nearest_words`` and the most frequent words;
    None if it has none."""
    name, context = experiment.config.word_map, experiment.context
    if name is None:
        return None
    every = context.index.vocabulary
    order = np.argsort(-context.index.field(WHOLE).document_frequency, kind="stable")[:MAP_WORDS]
    words = list(dict.fromkeys([*asked_words(experiment)[0], *(every[int(i)] for i in order)]))
    model = _model(experiment, name)
    if model is None:
        family = _family(experiment, name)
        assert isinstance(family, WordVectorSource)
        return embedding_map(name, "words", words, family.load(context, words))
    fitted = _first_fitted(experiment, model)
    vocabulary = fitted.vocabulary_
    if vocabulary is None:
        return None
    terms = {word: np.concatenate(rows_of_word(vocabulary, word)) for word in words}
    words = [word for word in words if len(terms[word])]
    if not words:
        return None
    if model.recipe.terms == "words" or fitted.inputs == "counts":
        rows = [terms[word] for word in words]
        ends = np.cumsum([0, *map(len, rows)])
        ones = np.ones(ends[-1], np.float32)
        alone = csr_matrix((ones, np.concatenate(rows), ends), (len(words), fitted.n_words_))
        alone.sum_duplicates()
    else:
        alone = vstack([query_row(vocabulary, fitted.weighting_, [word]) for word in words], "csr")
    return _of_model(experiment, name, "words", words, fitted, alone)


def map_of_documents(experiment: RankingStages) -> EmbeddingMap | None:
    """The ``document_map`` of the experiment, with the documents that are relevant to most queries,
    then others in the order of the collection; None if it has none."""
    name, context = experiment.config.document_map, experiment.context
    if name is None:
        return None
    collection, judged = experiment.collection, experiment.collection.judgements
    relevant = np.bincount(judged.document[judged.grade > 0], minlength=collection.n_documents)
    rows = np.argsort(-relevant, kind="stable")[:MAP_DOCUMENTS]
    ids = [collection.document_ids[row] for row in rows.tolist()]
    titles = [clipped(experiment.title(document), MAP_TITLE) for document in ids]
    model = _model(experiment, name)
    if model is None:
        family = _family(experiment, name)
        assert isinstance(family, Doc2VecSource)
        vectors = family.field_vectors(context, WHOLE)[rows]
        return embedding_map(name, "documents", titles, vectors)
    D = model_texts(context, model.recipe).D[rows]
    return _of_model(experiment, name, "documents", titles, _first_fitted(experiment, model), D)


def _of_model(
    experiment: RankingStages,
    name: str,
    of: Literal["words", "documents"],
    labels: Sequence[str],
    fitted: MatchingModel,
    D: csr_matrix,
) -> EmbeddingMap | None:
    if fitted.of_its_documents or fitted.only_same_words:
        return None  # what vectors it has are of other documents, or have no part in its scores
    title = f"{name}, {experiment.config.splits[0].title}, first fold"
    return embedding_map(title, of, labels, fitted.embed_documents(D))


def _model(experiment: RankingStages, name: str) -> ModelConfig | None:
    """The model of that name; None if a column family has the vectors."""
    return next((model for model in experiment.config.models if model.name == name), None)


def _first_fitted(experiment: RankingStages, model: ModelConfig) -> MatchingModel:
    """The model in the first fold of the first split."""
    return test_models(experiment, experiment.outputs[0], model)[0]


def _family(experiment: RankingStages, name: str) -> ColumnFamily:
    made = zip(experiment.config.columns, experiment.column_families(), strict=True)
    return next(family for part, family in made if part.family == name)


def nearest_words(
    title: str, model: ModelConfig, fitted: MatchingModel, words: Sequence[str]
) -> Table | None:
    """Neighbours of the words under the first fold's model; None if it has no vocabulary."""
    vocabulary = fitted.vocabulary_
    if vocabulary is None:
        return None
    caption = "".join(f"{model.name} {remark}. " for remark in fitted.remarks)
    if fitted.only_same_words:
        words, caption = [], f"{caption}In this model, a query word matches only itself."
    else:
        caption += (
            "Document words t with the largest score f(s, t) for a query word s (U_s . V_t for "
            "low-rank models); s itself is left out."
        )
    rows: list[tuple[str, str]] = []
    for word in words:
        own = np.unique(np.concatenate(rows_of_word(vocabulary, word))).tolist()
        if not own:
            continue
        try:
            near = nearest_terms(fitted, vocabulary, [word], own, 5 + len(own))
        except (TypeError, ValueError):  # the model scores only documents, or explains single terms
            continue
        # Probabilities of words may be small; two decimals would show them all as 0.
        others = [
            f"{vocabulary[t]} {weight:{'.2f' if abs(weight) >= 0.005 else '.1g'}}"
            for t, weight in near
            if t not in own
        ]
        rows.append((word, ", ".join(others[:5])))
    name = f"Nearest words under {model.name}, {title}, first fold"
    columns: Columns = ["Word", Column("Nearest words, nearest first", number=False)]
    return Table(name, columns, rows, caption, "compact")
