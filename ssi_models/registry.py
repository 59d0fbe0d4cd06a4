"""Registry of all models by name."""

from __future__ import annotations

import os
from typing import Any

from ltr_base.former import warn_of_former
from ltr_base.names import nearest
from ssi_models.base import MatchingModel
from ssi_models.persistence import load_header, reading
from ssi_models.projections.baselines import VSM, Popularity, PopularTfIdf
from ssi_models.projections.lsa import CLLSA, LSA, LSI, LsiTfIdf
from ssi_models.projections.opca import OPCA
from ssi_models.projections.query_expansion import QueryExpansion
from ssi_models.s2net.model import S2Net
from ssi_models.ssi.correlated_hash import CorrelatedHashSSI
from ssi_models.ssi.cross_language import CrossLanguageSSI
from ssi_models.ssi.diagonal import DiagonalSSI
from ssi_models.ssi.full import FullSSI
from ssi_models.ssi.hash_kernel import HashKernelSSI
from ssi_models.ssi.low_rank import LowRankSSI
from ssi_models.ssi.polynomial import PSI
from ssi_models.ssi.sparse import SparseSSI
from ssi_models.topics.bilingual import BLTM, BLTMPR, BLTMPR1V, PLSA
from ssi_models.topics.language_model import UnigramLM
from ssi_models.topics.translation import IBMModel1

_CLASSES: tuple[type[MatchingModel], ...] = (
    Popularity,
    VSM,
    PopularTfIdf,
    QueryExpansion,
    LSI,
    LsiTfIdf,
    DiagonalSSI,
    FullSSI,
    SparseSSI,
    HashKernelSSI,
    LowRankSSI,
    CorrelatedHashSSI,
    PSI,
    CrossLanguageSSI,
    LSA,
    CLLSA,
    OPCA,
    S2Net,
    UnigramLM,
    PLSA,
    BLTM,
    BLTMPR,
    BLTMPR1V,
    IBMModel1,
)
#: Model classes by name, simplest first.
MODELS: dict[str, type[MatchingModel]] = {kind.name: kind for kind in _CLASSES}


_FORMER = {name: kind for kind in _CLASSES for name in kind.former_names}


def find_model(name: str) -> type[MatchingModel] | None:
    """The class of a model, by its present or a former name; None if there is none."""
    return MODELS.get(name) or _FORMER.get(name)


def get_model(name: str) -> type[MatchingModel]:
    """The class of a model.

    Raises:
        ValueError: no model has that name.

    Warns:
        FormerName: the name is a former one.
    """
    kind = find_model(present_name(name))
    if kind is None:
        raise ValueError(f"there is no model {name!r}; {nearest(name, MODELS)}")
    return kind


def present_name(name: str) -> str:
    """The present name of a model; unknown names are returned unchanged.

    Warns:
        FormerName: the name is a former one.
    """
    kind = find_model(name)
    if kind is None or name in MODELS:
        return name
    warn_of_former(f"model {name!r} is now {kind.name!r}")
    return kind.name


def make_model(name: str, **params: Any) -> MatchingModel:
    """Create a model by name; training options are given by their own names, as in
    ``make_model("ssi", rank=50, margin=0.3)``.

    Raises:
        ValueError: no model has that name.
        TypeError: the model has no such parameter.
    """
    return get_model(name)(**params)


def load_model(path: str | os.PathLike[str]) -> MatchingModel:
    """Read a model file of any class.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not a model file, or of a model that this version does not know.
    """
    with reading(path):
        name = str(load_header(path)["model"])
    kind = find_model(name)
    if kind is None:
        raise ValueError(
            f"{path}: holds a {name!r} model, which this version does not know (load one of your "
            "own by its class, MyModel.load(path))"
        )
    return kind.load(path)
