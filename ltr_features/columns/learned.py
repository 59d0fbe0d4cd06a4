"""LearnedColumn: a matching model as a column."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from letor.dataset import SETTINGS
from letor.errors import InputError
from ltr_base.docstrings import summary
from ltr_base.former import former_names, present_names
from ltr_features.columns.base import ColumnSpec, check_column_name, plain_settings
from ltr_features.columns.context import ColumnContext
from ltr_features.parameters import check_choice, check_names, check_range, check_values
from ltr_features.text.collection import FORMER_KEYS
from ltr_features.text.index import WHOLE
from ltr_features.text.letter_ngrams import KINDS, Terms, described
from ssi_models.base import MatchingModel
from ssi_models.parameters import plain_number
from ssi_models.registry import MODELS, find_model, get_model, present_name

LEAK_FREE = (
    "judgements of the fold's training queries; rows of training queries are scored out of fold, "
    "by models that did not see their queries' judgements"
)
NO_LABELS = "the texts of all documents, no judgements"


@former_names(**FORMER_KEYS)
@dataclass(frozen=True)
class LearnedColumn:
    """A column of the scores of a matching model that is trained for each fold.

    ``LearnedColumn("ssi", LowRankSSI(rank=50))``, or by the model's name in
    :data:`ssi_models.registry.MODELS`: ``LearnedColumn("ssi", "ssi", {"rank": 50})``.

    Attributes:
        name: the column's name.
        model: the name of a registered model, or the class of an unregistered one. The constructor
            also takes an unfitted model and keeps its class and parameters; each fit makes a new
            model, and the given one is never fitted.
        params: the model's constructor parameters; ``seed`` and ``threads`` may be among them.
        field: the document field that the model reads; ``"whole"`` for all fields together. Words
            and their idf are those of the whole documents in any case.
        min_document_frequency: least document frequency of the terms, for models of tf-idf rows;
            see :class:`ltr_features.columns.term_space.TermSpace`.
        word_weight: weight of plain word matching in the column, 0 to 1, for models that have a
            parameter for it: word_weight of projections (w q . d + (1 - w) cosine), lambda2 of
            language models. 0 is the model alone; None leaves it to the model, which by default
            chooses it by the ranking of held-out training queries.
        terms: the terms that the model counts: ``"words"``, ``"letter-trigrams"`` or ``"both"``,
            see :mod:`ltr_features.text.letter_ngrams`.
        heaviest: number of terms with the largest tf-idf weights that a text keeps, for models of
            tf-idf rows; by default all. Long documents are learned faster with 200, say.

    Raises:
        InputError: there is no such model, or a parameter is unknown or out of range.
    """

    name: str
    model: str | type[MatchingModel] | MatchingModel
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    field: str = WHOLE
    min_document_frequency: int = 1
    word_weight: float | None = None
    terms: Terms = "words"
    heaviest: int | None = None

    def __post_init__(self) -> None:
        self._check_model()
        if isinstance(self.model, MatchingModel):
            self._take(self.model)
        if isinstance(self.model, type) and is_registered(self.model):
            object.__setattr__(self, "model", self.model.name)
        elif isinstance(self.model, str):
            object.__setattr__(self, "model", present_name(self.model))
        check_column_name(self.name)
        if set(self.name) & set("/\\\0"):
            raise InputError(
                f"column {self.name!r}: the name becomes a file name; it must not contain / or \\"
            )
        self._check_numbers()
        try:
            given = present_names(self.params, self.kind.former_params)
            # Parameters of a grid may be numpy's numbers, which JSON does not know.
            params = {name: plain_number(value) for name, value in given.items()}
            object.__setattr__(self, "params", params)
            self._check_params()
            self._check_word_weight()
            check_range("min_document_frequency", self.min_document_frequency, 1)
            if self.heaviest is not None:
                check_range("heaviest", self.heaviest, 1)
            for setting, unset in (("min_document_frequency", 1), ("heaviest", None)):
                if self.kind.inputs == "counts" and getattr(self, setting) != unset:
                    raise ValueError(f"{setting}: a model of counts takes all terms")
            check_choice("terms", self.terms, KINDS)
            model = self.new_model()
            if hasattr(model, "check_params"):
                model.check_params()
            if self.learns_from_lists and self.params.get("negatives") == "given":
                raise ValueError(
                    "list_share takes negatives from a query's candidates, negatives='given' only "
                    "judged documents; give one of the two"
                )
        except ValueError as error:
            raise InputError(f"column {self.name!r}: {error}") from None

    def _check_model(self) -> None:
        """Raise InputError for what is neither a model nor names one."""
        named = isinstance(self.model, str) or (
            issubclass(self.kind, MatchingModel)
            and isinstance(getattr(self.kind, "name", None), str)
        )
        if not named:
            raise InputError(
                f"column {self.name!r}: model must be the name of a model, or a model or class "
                f"that has a name, got {self.model!r}"
            )
        if not isinstance(self.params, Mapping):
            raise InputError(
                f"column {self.name!r}: params must be parameters by name, {{'rank': 50}}, got "
                f"{self.params!r}"
            )

    def _check_numbers(self) -> None:
        """Raise InputError for settings that are no numbers; numpy's, which JSON does not know,
        become Python's."""
        names = ("min_document_frequency", "word_weight", "heaviest")
        numbers = {name: plain_number(getattr(self, name)) for name in names}
        check_values(type(self), numbers, f"column {self.name!r}")
        for name, value in numbers.items():
            object.__setattr__(self, name, value)

    def _take(self, model: MatchingModel) -> None:
        """Keep a model's class and those of its parameters that differ from their defaults."""
        if self.params:
            raise InputError(f"column {self.name!r}: give params to the model itself")
        kind = type(model)
        defaults = kind.default_params()
        params = {k: v for k, v in model.get_params().items() if v != defaults[k]}
        object.__setattr__(self, "model", kind.name if is_registered(kind) else kind)
        object.__setattr__(self, "params", params)

    def _check_params(self) -> None:
        what = f"model {self.kind.name!r}"
        check_names(self.params, self.kind.default_params(), what, "parameter")
        check_values(self.kind, self.params, what)

    def _check_word_weight(self) -> None:
        if self.word_weight and self._weight_parameter is None:
            raise InputError(
                f"model {self.kind.name!r} has no word_weight; models that include word matching "
                "weigh it by their parameter scales"
            )
        if self.word_weight is not None and self._weight_parameter in self.params:
            raise InputError(f"{self._weight_parameter} is given twice; give word_weight")
        if self.word_weight is not None:
            check_range("word_weight", self.word_weight, 0.0, 1.0)

    def check_for_folds(self, context: ColumnContext) -> None:
        """Check, before any work, that the column can be made in folds of the texts.

        Raises:
            InputError: as :meth:`check_texts`; or a parameter says how to hold out queries, which
                the parts of a fold decide.
        """
        self.check_texts(context)
        try:
            self.new_model().check_for_parts()
        except ValueError as error:
            raise InputError(f"column {self.name!r}: {error}") from None

    def check_texts(self, context: ColumnContext) -> None:
        """Check, before any work, that the texts have the field and words frequent enough.

        Raises:
            InputError: they have not.
        """
        index, name = context.index, context.collection.name
        if self.field not in index:
            raise InputError(
                f"column {self.name!r}: collection {name!r} has no field {self.field!r}; it has "
                f"{', '.join(index.fields)}, and {WHOLE!r}"
            )
        least = self.min_document_frequency
        most = int(index.field(self.field).document_frequency.max(initial=0))
        if self.terms == "words" and least > most:
            raise InputError(
                f"column {self.name!r}: min_document_frequency is {least:,}, but no word occurs in "
                f"more than {most:,} documents; lower it"
            )

    def new_model(self) -> MatchingModel:
        """An unfitted model."""
        return self.kind(**self.all_params)

    def filled(self, **params: Any) -> LearnedColumn:
        """The same with these parameters of the model where it has them and none is given."""
        known = self.kind.default_params()
        usual = {name: value for name, value in params.items() if name in known}
        return dataclasses.replace(self, params={**usual, **self.params})

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> LearnedColumn:
        """The recipe stored in a file. Files that predate the choice of terms use words, and call
        the field stream; some have a ``min_document_frequency`` that the model ignored.

        Raises:
            InputError: as for the constructor.
            TypeError: a key is unknown or missing.
        """
        now = {FORMER_KEYS.get(key, key): value for key, value in values.items()}
        kind = find_model(str(now.get("model")))
        if kind is not None and kind.inputs == "counts":
            now.pop("min_document_frequency", None)
        return cls(**{"terms": "words", **now})

    def to_json(self) -> dict[str, Any]:
        """The values that :meth:`from_json` reads.

        Raises:
            InputError: the model's class has no name in the registry.
        """
        if not isinstance(self.model, str):
            raise InputError(
                f"column {self.name!r}: {self.kind.__name__} is not a registered model, so a file "
                "cannot name it"
            )
        return {**asdict(self), "params": dict(self.params)}

    @property
    def kind(self) -> type[MatchingModel]:
        """The model's class."""
        if isinstance(self.model, str):
            return get_model(self.model)
        return self.model if isinstance(self.model, type) else type(self.model)

    @property
    def _weight_parameter(self) -> str | None:
        """The name of the model's parameter for the weight of word matching, or None."""
        known = self.kind.default_params()
        return next((name for name in ("word_weight", "lambda2") if name in known), None)

    @property
    def looks_at_labels(self) -> bool:
        """Whether the fit depends on judgements."""
        return self.new_model().looks_at_labels

    @property
    def learns_from_lists(self) -> bool:
        """Whether a share of a query's negatives is drawn from its candidates."""
        return bool(self.params.get("list_share"))

    @property
    def all_params(self) -> dict[str, Any]:
        """The model's constructor parameters, including the weight of word matching."""
        if self.word_weight is None or self._weight_parameter is None:
            return dict(self.params)
        return {**self.params, self._weight_parameter: self.word_weight}

    @property
    def spec(self) -> ColumnSpec:
        """The declaration of the column."""
        mixes = self.word_weight and not self.new_model().only_same_words
        mixed = f", mixed with word matching ({self.word_weight:g})" if mixes else ""
        counts = self.kind.inputs == "counts"
        description, reference = described(
            self.terms,
            f"{self.kind.name}: {summary(self.kind)}{mixed}",
            _reference(self.kind),
        )
        return ColumnSpec(
            name=self.name,
            description=description,
            unit="nats per query term" if counts else "score",
            value_range="<= 0" if counts else "any",
            reference=reference,
            field=self.field,
        )

    def settings(
        self, context: ColumnContext, fold: str | None = None, model: MatchingModel | None = None
    ) -> dict[str, Any]:
        """What decides the column's values besides texts and judgements, for its provenance, see
        :data:`letor.dataset.SETTINGS`.

        Args:
            fold: the fold whose training judgements the model learned from; None if unknown.
            model: the fitted model, whose parameters may be those of an earlier version's defaults.
        """
        model = model or self.new_model()
        recipe: dict[str, Any] = {
            "text analysis": str(context.index.analyzer),
            "model": self.kind.name,
            "field": self.field,
            "terms": self.terms,
            "min_document_frequency": self.min_document_frequency,
            "heaviest": self.heaviest or "all",
        }
        params = model.get_params()
        if "list_share" in params:  # its default is the model's, see learns_from_lists
            share = params.pop("list_share")
            recipe["list_share in use"] = share if self.learns_from_lists else 0.0
        if "texts" in params and not model.looks_at_labels:  # without preferences "both" are these
            del params["texts"]
            recipe["texts in use"] = "documents"
        settings = recipe | plain_settings(params)
        return settings if fold is None or not model.looks_at_labels else settings | {"fold": fold}

    @property
    def provenance(self) -> dict[str, str]:
        """What the column is and what it is trained on, for files."""
        return {
            "family": self.name,
            "description": self.spec.description,
            "reference": self.spec.reference,
            "trained on": self._trained_on,
        }

    def provenance_in(self, context: ColumnContext, fold: str) -> dict[str, Any]:
        """The provenance of a fold's column in a LETOR file."""
        return {**self.provenance, "fold": fold, SETTINGS: self.settings(context, fold)}

    @property
    def _trained_on(self) -> str:
        if not self.looks_at_labels:
            return NO_LABELS
        shared = self.kind.shared_by_parts
        return f"{LEAK_FREE} (all models of a fold share {shared})" if shared else LEAK_FREE


def _reference(kind: type[MatchingModel]) -> str:
    """The paper named in a model's docstring, or an empty text."""
    for base in kind.__mro__:
        _, found, after = (base.__doc__ or "").partition("Reference:")
        if found:
            return " ".join(after.split("\n\n")[0].split())
    return ""


def is_registered(kind: type[MatchingModel]) -> bool:
    """Whether :data:`ssi_models.registry.MODELS` has the class under its name."""
    return MODELS.get(kind.name) is kind
