"""Column families by name: the built-in ones, and those that other packages register in the entry
point group ``ltr_features.columns`` (value: ``module:Class``).

A family does not have to be registered: :class:`ltr_features.feature_builder.FeatureBuilder` also
accepts objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from letor.errors import InputError, described
from letor.plugins import Plugins
from ltr_base.former import warn_of_former
from ltr_base.names import repeated
from ltr_features.columns.base import ColumnFamily, check_declared
from ltr_features.parameters import check_call

_BUILT_IN = {
    "letor46": "ltr_features.columns.letor46:Letor46",
    "vsm": "ltr_features.columns.term_space:VectorSpace",
    "letters": "ltr_features.columns.term_space:LetterSpace",
    "w2v-word": "ltr_features.columns.word_embeddings:WordEmbeddingWord",
    "d2v-word": "ltr_features.columns.doc_embeddings:DocumentEmbeddingWord",
    "d2v-chunk": "ltr_features.columns.doc_embeddings:DocumentEmbeddingChunk",
    "w2v-entity": "ltr_features.columns.entities:WordEmbeddingEntity",
    "d2v-entity": "ltr_features.columns.entities:DocumentEmbeddingEntity",
    "ensan2017": "ltr_features.columns.ensan2017:Ensan2017",
    "entity-overlap": "ltr_features.columns.entities:EntityOverlap",
    "numbers": "ltr_features.columns.document_numbers:DocumentNumbers",
    "scores": "ltr_features.columns.given_scores:GivenScores",
    "vectors": "ltr_features.columns.given_vectors:GivenVectors",
}
_FAMILIES = Plugins("column family", "ltr_features.columns", _BUILT_IN, ColumnFamily)


def family_names() -> list[str]:
    """The names of all registered families, the built-in ones first."""
    return _FAMILIES.names()


def family_class(name: str) -> type[ColumnFamily]:
    """The class of a family.

    Raises:
        InputError: there is no such family, or that of an installed package cannot be used.
    """
    return _FAMILIES.get(name)


def families() -> dict[str, type[ColumnFamily]]:
    """All registered families by name, the built-in ones first. One that cannot be used is in the
    way of all: look up a single one by :func:`family_class`.

    Raises:
        InputError: a family of an installed package cannot be used.
    """
    return {name: family_class(name) for name in family_names()}


def is_registered(kind: type[ColumnFamily]) -> bool:
    """Whether :func:`get_family` makes families of that class, by its name."""
    return kind.name in family_names() and family_class(kind.name) is kind


def get_family(name: str, **options: Any) -> ColumnFamily:
    """Construct a family by name; ``options`` are its constructor's parameters.

    Raises:
        InputError: there is no such family, it has no such option, or that of an installed package
            cannot be made.
    """
    kind = family_class(name)
    check_call(kind, options, f"column family {name!r}")
    try:
        family = kind(**options)
    except ValueError:  # of an option
        raise
    except Exception as error:
        raise InputError(
            f"column family {name!r} cannot be made: {described(error)} (--debug shows where)"
        ) from error
    check_declared(family)
    return family


def get_families(
    families: Sequence[str | ColumnFamily] | Mapping[str, Mapping[str, Any]],
) -> list[ColumnFamily]:
    """Families as objects, from a list of names and objects or a mapping of names to options.

    Raises:
        InputError: as for :func:`get_family`, or ``families`` is of another type, or two classes
            have the same name.
    """
    if isinstance(families, Mapping):
        return [get_family(name, **params) for name, params in families.items()]
    single = isinstance(families, str | ColumnFamily)
    if single or not all(isinstance(family, str | ColumnFamily) for family in families):
        raise InputError("families must be a list of names or objects, ['vsm'] or [VectorSpace()]")
    made = [get_family(family) if isinstance(family, str) else family for family in families]
    for family in made:
        check_declared(family)
    if twice := repeated(name for name, _ in {(family.name, type(family)) for family in made}):
        raise InputError(
            f"two classes of column families have the name {twice[0]!r}, by which a saved builder "
            "knows them; rename one"
        )
    return made


def __getattr__(name: str) -> Any:
    """Serve a name that has moved from here, for one release."""
    if name != "ColumnSpec":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "ltr_features.columns.base"
    warn_of_former(f"{name} is in {home} now; change the import")
    return getattr(import_module(home), name)
