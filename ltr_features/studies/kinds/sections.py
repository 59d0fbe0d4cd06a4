"""Sections of experiment files that several kinds share, and the files that their options name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from letor.errors import LetorWarning
from ltr_base.quiet import ignored
from ltr_features.columns.base import ColumnFamily
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.registry import family_class, get_family
from ltr_features.entities.of_dump import EXCERPT_NAME
from ltr_features.sources.input_files import is_pattern, matching
from ltr_features.sources.wikipedia import excerpt_path
from ltr_features.studies.config import Section
from ltr_features.studies.identity import Digests
from ltr_features.text.collection import FORMER_KEYS
from ltr_features.text.index import WHOLE
from ltr_features.text.letter_ngrams import Kind, Terms
from ssi_models.registry import present_name


class CollectionConfig(BaseModel):
    """Where documents, queries and judgements come from; further keys are the source's options.

    Attributes:
        source: a name in :mod:`ltr_features.sources.registry`.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    source: str

    @property
    def options(self) -> dict[str, Any]:
        """The options of the source, with paths as in the file."""
        return dict(self.model_extra or {})


class TextConfig(Section):
    """How texts become words, see :class:`ltr_features.text.analyzer.Analyzer`.

    Attributes:
        stopwords: words to leave out, or "english". stemmer: a Snowball stemmer, e.g. "english".
        min_length, max_length: of words that are kept. drop_numbers: leave out numbers.
        cjk_bigrams: take pairs of neighbouring characters as words of Chinese and Japanese.
    """

    lowercase: bool = True
    stopwords: str | tuple[str, ...] = ()
    stemmer: str | None = None
    min_length: int = 2
    max_length: int = 64
    drop_numbers: bool = False
    cjk_bigrams: bool = False

    @field_validator("stopwords", mode="before")
    @classmethod
    def _words(cls, given: Any) -> Any:
        several = isinstance(given, list | tuple) and all(isinstance(word, str) for word in given)
        if not several and not isinstance(given, str):
            raise ValueError(f'must be "english" or a list of words, got {given!r}')
        return given


def unmatched_advice(cjk_bigrams: bool, terms: Kind) -> str:
    """What to do about many unknown words; the end of a sentence.

    Args:
        cjk_bigrams, terms: the task's options.
    """
    letters = ""
    if terms == "words":
        letters = 'set terms = "letter-trigrams", which words of similar spelling share, or, '
    pairs = "" if cjk_bigrams else "set cjk_bigrams = true (Chinese, Japanese) or "
    return f"{letters}if the language has no spaces between words, {pairs}put spaces between them"


class FamilyConfig(Section):
    """The columns of a family.

    Attributes:
        family: a name in :mod:`ltr_features.columns.registry`. options: of the family.
    """

    family: str
    options: dict[str, Any] = Field({})

    def made(self, data: Path, *, tell: bool = False, **usual: Any) -> ColumnFamily:
        """The family; paths are relative to the data folder. ``tell``: whether to tell what a table
        has besides numbers, if no check of the file did. ``usual``: values of options that it may
        have, if they are not given."""
        kind = family_class(self.family)
        known = {k: v for k, v in usual.items() if k in inspect.signature(kind).parameters}
        with nullcontext() if tell else ignored(".*: left out, ", category=LetorWarning):
            return get_family(self.family, **known | with_paths(kind, self.options, data))

    def content(self, data: Path, digests: Digests) -> dict[str, Any]:
        """The options by name of the family, see :func:`with_content`."""
        kind = family_class(self.family)
        content = with_content(kind, self.options, data, digests, kind.file_beside)
        return {self.family: content}


class ModelConfig(Section):
    """The column of a trained model, see :class:`ltr_features.columns.learned.LearnedColumn`.

    Attributes:
        name: of the column. model: a name in :mod:`ssi_models.registry`. params: of the model.
        field: text field that the model reads. terms: units in which texts are counted.
        min_document_frequency: terms that occur in fewer documents are left out.
        word_weight: weight of the cosine of words when combined with the model's own score.
        heaviest: number of terms with the largest tf-idf weights that a text keeps; by default all.
    """

    former_keys: ClassVar[Mapping[str, str]] = FORMER_KEYS

    name: str
    model: str
    params: dict[str, Any] = Field({})
    field: str = WHOLE
    min_document_frequency: int = Field(1, ge=1)
    word_weight: float | None = Field(None, ge=0, le=1)
    terms: Terms = "words"
    heaviest: int | None = Field(None, ge=1)

    @field_validator("model")
    @classmethod
    def _present_name(cls, model: str) -> str:
        return present_name(model)

    @cached_property
    def recipe(self) -> LearnedColumn:
        """The recipe that makes the column.

        Raises:
            InputError: there is no such model, or it does not accept a parameter or its value.
        """
        return LearnedColumn(**self.model_dump())


class RankerConfig(Section):
    """A ranker with its parameters.

    Attributes:
        name: in the file. ranker: a name in :mod:`letor.rankers.registry`. params: of the ranker.
    """

    name: str
    ranker: str
    params: dict[str, Any] = Field({})


def path_options(made: Callable[..., Any]) -> set[str]:
    """The parameters of a source or family that are paths."""
    return {
        name
        for name, parameter in inspect.signature(made).parameters.items()
        if "Path" in str(parameter.annotation)
    }


def with_paths(made: Callable[..., Any], options: Mapping[str, Any], data: Path) -> dict[str, Any]:
    """The options with paths resolved against the data folder (absolute ones stay). Values of other
    options, such as word vectors, are resolved too if they name a file in that folder, and stay as
    they are if they name one in the working directory; or a folder there, where a package's
    parameter has no annotation that tells whether it is a path. A pattern of files becomes the list
    of those that match it."""
    return _with_files(made, options, data, str)


def with_content(
    made: Callable[..., Any],
    options: Mapping[str, Any],
    data: Path,
    digests: Digests,
    file_beside: Callable[[Path], Path | None] = lambda path: None,
) -> dict[str, Any]:
    """The options with the identity of each file or folder in place of its path, as inputs of a
    stage, which do not depend on the spelling of paths; with the order of keys where the value of
    an option is a table, as it may be that of columns.

    Args:
        file_beside: the file that is read with another one; both are identified then.
    """

    def identity(path: Path) -> Any:
        beside = file_beside(path)
        if beside is None or not beside.is_file():
            return digests.identity(path)
        return [digests.identity(path), digests.identity(beside)]

    found = _with_files(made, options, data, identity)
    if orders := {name: list(v) for name, v in options.items() if isinstance(v, Mapping)}:
        found["order of keys"] = orders
    return found


def _with_files(
    made: Callable[..., Any],
    options: Mapping[str, Any],
    data: Path,
    put: Callable[[Path], Any],
) -> dict[str, Any]:
    paths, parameters = path_options(made), inspect.signature(made).parameters.values()
    unknown = {
        parameter.name for parameter in parameters if parameter.annotation is parameter.empty
    }

    several = {parameter.name for parameter in parameters if "Paths" in str(parameter.annotation)}

    def replaced(name: str, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [replaced(name, v) for v in value]
        if isinstance(value, Mapping):
            return {key: replaced(name, v) for key, v in value.items()}
        if name == "dump" and value == EXCERPT_NAME:
            return put(excerpt_path())
        if not isinstance(value, str):
            return value
        if name in paths or (data / value).is_file():
            return put(data / value)
        # Read from the working directory then, and to be known by its content all the same.
        here = Path(value)
        found = here.is_file() or (value and name in unknown and here.is_dir())
        return put(here) if found else value

    return {
        name: replaced(name, _matched(value, data) if name in several else value)
        for name, value in options.items()
    }


def _matched(paths: Any, data: Path) -> Any:
    """Paths with the files that match in place of a pattern; others, and one that nothing matches,
    as they are."""
    if isinstance(paths, (list, tuple)):
        found = [_matched(one, data) for one in paths]
        return [path for one in found for path in (one if isinstance(one, list) else [one])]
    if not (isinstance(paths, str) and is_pattern(paths, data)):
        return paths
    return [str(path) for path in matching(paths, data)] or paths
