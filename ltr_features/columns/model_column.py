"""The recipe of a trained column: any model of :mod:`ssi_models.registry`, by name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from letor.errors import InputError
from ltr_features.columns.registry import ColumnSpec
from ltr_features.columns.term_space import check_document_frequency
from ltr_features.parameters import check_values
from ltr_features.text.index import WHOLE
from ltr_features.text.letter_ngrams import Terms, check_terms, described
from ssi_models.base import MatchingModel
from ssi_models.registry import get_model

LEAK_FREE = (
    "judgements of the fold's training queries; rows of training queries are scored out of fold, "
    "by models that did not see their queries, but for the choice of when all of them stop and how "
    "much word matching they have"
)
NO_LABELS = "the texts of all documents, no judgement"


@dataclass(frozen=True)
class ModelColumn:
    """The recipe of one column.

    Attributes:
        name: the column's name.
        model: a name of :data:`ssi_models.registry.MODELS`.
        params: the model's constructor parameters; ``seed`` and ``threads`` may be among them.
        stream: the documents' stream that the model reads; ``"whole"`` is all of them together.
        min_document_frequency: of the terms that a model of tf-idf rows knows, see
            :class:`ltr_features.columns.term_space.TermSpace`.
        word_weight: weight, 0 to 1, of plain word matching in the column, where the model has a
            parameter for it: word_weight of projections (w q . d + (1 - w) cosine), lambda2 of
            language models. 0 is the model alone; None leaves it to the model, whose default is
            to choose it by how held-out training queries are ranked.
        terms: what the model's columns are: ``"words"``, ``"letter-trigrams"`` or ``"both"``, see
            :mod:`ltr_features.text.letter_ngrams`.

    Raises:
        InputError: no such model, a parameter that it does not have, or one out of range.
    """

    name: str
    model: str
    params: Mapping[str, Any] = field(default_factory=dict)
    stream: str = WHOLE
    min_document_frequency: int = 1
    word_weight: float | None = None
    terms: Terms = "words"

    def __post_init__(self) -> None:
        try:
            known = [*self.kind.default_params(), *self.kind.former_params]
        except ValueError as error:
            raise InputError(f"column {self.name!r}: {error}") from None
        unknown = sorted(set(self.params) - set(known))
        if unknown:
            raise InputError(
                f"column {self.name!r}: model {self.model!r} has no parameter "
                f"{', '.join(unknown)}; it has {', '.join(known)}"
            )
        check_values(self.kind, self.params, f"column {self.name!r}: model {self.model!r}")
        if not self.name or set(self.name) & set("/\\\0"):
            raise InputError(
                f"column {self.name!r}: the name must be that of a file, without / and \\"
            )
        if self.word_weight and self._weight_parameter is None:
            raise InputError(
                f"column {self.name!r}: model {self.model!r} has no word_weight; where word "
                "matching is part of a model, scales say how much of it there is"
            )
        if self.word_weight is not None and self._weight_parameter in self.params:
            raise InputError(
                f"column {self.name!r}: {self._weight_parameter} is given twice; give word_weight"
            )
        try:
            check_document_frequency(self.min_document_frequency)
            check_terms(self.terms)
        except InputError as error:
            raise InputError(f"column {self.name!r}: {error}") from None
        if self.word_weight is not None and not 0 <= self.word_weight <= 1:
            raise InputError(
                f"column {self.name!r}: word_weight must be in 0..1, got {self.word_weight}"
            )
        model = self.kind(**self.all_params)
        if hasattr(model, "check_params"):
            try:
                model.check_params()
            except ValueError as error:
                raise InputError(f"column {self.name!r}: {error}") from None

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ModelColumn:
        """The recipe that a file holds. Files of before there was a choice of terms have words.

        Raises:
            InputError: as the constructor.
            TypeError: a key that is no attribute, or one that is missing.
        """
        return cls(**{"terms": "words", **values})

    @property
    def kind(self) -> type[MatchingModel]:
        """The model's class."""
        return get_model(self.model)

    @property
    def _weight_parameter(self) -> str | None:
        """The model's parameter for the weight of word matching."""
        known = self.kind.default_params()
        return next((name for name in ("word_weight", "lambda2") if name in known), None)

    @property
    def learns_from_lists(self) -> bool:
        """Whether the recipe gives the candidates of a query a share of its negatives."""
        return bool(self.params.get("list_share"))

    @property
    def all_params(self) -> dict[str, Any]:
        """The model's constructor parameters, the weight of word matching among them."""
        if self.word_weight is None or self._weight_parameter is None:
            return dict(self.params)
        return {**self.params, self._weight_parameter: self.word_weight}

    @property
    def spec(self) -> ColumnSpec:
        """What the column is called and means."""
        text = inspect.getdoc(self.kind) or ""
        mixed = f", mixed with word matching ({self.word_weight:g})" if self.word_weight else ""
        counts = self.kind.inputs == "counts"
        description, reference = described(
            self.terms,
            f"{self.model}: {text.splitlines()[0].rstrip('.')}{mixed}",
            _reference(self.kind),
        )
        return ColumnSpec(
            name=self.name,
            description=description,
            unit="nats per query term" if counts else "score",
            value_range="<= 0" if counts else "any",
            reference=reference,
            stream=self.stream,
        )

    @property
    def provenance(self) -> dict[str, str]:
        """What a LETOR file says of the column."""
        return {
            "family": self.name,
            "description": self.spec.description,
            "reference": self.spec.reference,
            "trained on": NO_LABELS if self.kind.learns_from == "documents" else LEAK_FREE,
        }


def _reference(kind: type[MatchingModel]) -> str:
    """The paper that a model's docstring names."""
    for base in kind.__mro__:
        _, found, after = (base.__doc__ or "").partition("Reference:")
        if found:
            return " ".join(after.split("\n\n")[0].split())
    return ""
