"""What an experiment's rows, columns and rankers are made of: sections of its TOML file, typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ltr_features.columns.learned import LearnedColumn
from ltr_features.studies.config import Section
from ltr_features.text.collection import FORMER_KEYS
from ltr_features.text.index import WHOLE
from ltr_features.text.letter_ngrams import Terms
from ssi_models.registry import present_name


class CollectionConfig(BaseModel):
    """Where documents, queries and judgements come from; further keys are the source's options.

    Attributes:
        source: a name of :mod:`ltr_features.sources.registry`.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    source: str

    @property
    def options(self) -> dict[str, Any]:
        """What the source is asked for; paths as they stand in the file."""
        return dict(self.model_extra or {})


class TextConfig(Section):
    """How texts become words, see :class:`ltr_features.text.analyzer.Analyzer`.

    Attributes:
        stopwords: words to leave out, or "english" for a list. stemmer: Snowball's, "english".
        min_length, max_length: of words that are kept. drop_numbers: leave out numbers.
    """

    lowercase: bool = True
    stopwords: str | tuple[str, ...] = ()
    stemmer: str | None = None
    min_length: int = 2
    max_length: int = 64
    drop_numbers: bool = False


class FamilyConfig(Section):
    """Columns of a family.

    Attributes:
        family: a name of :mod:`ltr_features.columns.registry`. options: its own.
    """

    family: str
    options: dict[str, Any] = Field({})


class ModelConfig(Section):
    """The column of a trained model, see :class:`ltr_features.columns.learned.LearnedColumn`.

    Attributes:
        name: the column's. model: a name of :mod:`ssi_models.registry`. params: the model's.
        field: the text that it reads. terms: what texts are counted in.
        min_document_frequency: terms of fewer documents are left out.
        word_weight: of the cosine of words beside the model's own score.
    """

    former_keys: ClassVar[Mapping[str, str]] = FORMER_KEYS

    name: str
    model: str
    params: dict[str, Any] = Field({})
    field: str = WHOLE
    min_document_frequency: int = Field(1, ge=1)
    word_weight: float | None = Field(None, ge=0, le=1)
    terms: Terms = "words"

    @field_validator("model")
    @classmethod
    def _called_as_now(cls, model: str) -> str:
        return present_name(model)

    @property
    def recipe(self) -> LearnedColumn:
        """What makes the column.

        Raises:
            InputError: no such model, or a parameter that it does not have or take.
        """
        return LearnedColumn(**self.model_dump())


class RankerConfig(Section):
    """A ranker with its parameters.

    Attributes:
        name: what the file calls it. ranker: of :mod:`letor.rankers.registry`. params: its own.
    """

    name: str
    ranker: str
    params: dict[str, Any] = Field({})
