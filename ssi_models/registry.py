"""Every model by its name."""

from __future__ import annotations

import os

from ssi_models.base import MatchingModel
from ssi_models.persistence import load_tensors
from ssi_models.projections import baselines
from ssi_models.projections.cl_lsa import CLLSA
from ssi_models.projections.lsa import LSA, LatentSemanticIndex, LsiTfIdf
from ssi_models.projections.opca import OPCA
from ssi_models.projections.query_expansion import QueryExpansion
from ssi_models.projections.vsm import VSM, TfIdfCosine
from ssi_models.s2net.model import S2Net
from ssi_models.ssi.correlated_hash import CorrelatedHashSSI
from ssi_models.ssi.cross_language import CrossLanguageSSI
from ssi_models.ssi.diagonal import DiagonalSSI
from ssi_models.ssi.full import FullSSI
from ssi_models.ssi.hash_kernel import HashKernelSSI
from ssi_models.ssi.low_rank import LowRankSSI
from ssi_models.ssi.polynomial import PolynomialSSI
from ssi_models.ssi.sparse import SparseSSI
from ssi_models.topics.bilingual import BLTM
from ssi_models.topics.language_model import UnigramLM
from ssi_models.topics.plsa import PLSA
from ssi_models.topics.posterior_regularization import BLTMPR, BLTMPR1V
from ssi_models.topics.translation import IBMModel1

_CLASSES: tuple[type[MatchingModel], ...] = (
    baselines.Popularity,
    TfIdfCosine,
    baselines.PopularTfIdf,
    QueryExpansion,
    LatentSemanticIndex,
    LsiTfIdf,
    DiagonalSSI,
    FullSSI,
    SparseSSI,
    HashKernelSSI,
    LowRankSSI,
    CorrelatedHashSSI,
    PolynomialSSI,
    CrossLanguageSSI,
    VSM,
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
#: Model classes by name, from the simplest on.
MODELS: dict[str, type[MatchingModel]] = {kind.name: kind for kind in _CLASSES}


def get_model(name: str) -> type[MatchingModel]:
    """The class of a model.

    Raises:
        ValueError: no model has that name.
    """
    if name not in MODELS:
        raise ValueError(f"there is no model {name!r}; use one of {', '.join(MODELS)}")
    return MODELS[name]


def load_model(path: str | os.PathLike[str]) -> MatchingModel:
    """Read a model file of any class.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not a model file, or of a model that this version does not know.
    """
    header, _ = load_tensors(path)
    return get_model(header["model"]).load(path)
