"""Matching models: how well a document answers a query, learned on sparse rows of words.

    from ssi_models import LowRankSSI, Preferences, TfIdf

    model = LowRankSSI(50, margin=0.5).fit(Q, D, Preferences.from_pairs(query, document, ...))
    model.score(Q, D, query, document)

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ltr_base.lazy_names import lazy_names

if TYPE_CHECKING:
    from ssi_models.base import NotFittedError
    from ssi_models.projections.baselines import VSM, Popularity, PopularTfIdf
    from ssi_models.projections.lsa import CLLSA, LSA, LSI, LsiTfIdf
    from ssi_models.projections.opca import OPCA
    from ssi_models.projections.query_expansion import QueryExpansion
    from ssi_models.registry import get_model, load_model, make_model
    from ssi_models.s2net.model import S2Net, S2NetOptions
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
    from ssi_models.training.options import TrainingOptions
    from ssi_models.training.preferences import CandidateLists, Preferences
    from ssi_models.vocabulary import Vocabulary
    from ssi_models.weighting import TfIdf

__all__ = [
    "BLTM",
    "BLTMPR",
    "BLTMPR1V",
    "CLLSA",
    "LSA",
    "LSI",
    "OPCA",
    "PLSA",
    "PSI",
    "VSM",
    "CandidateLists",
    "CorrelatedHashSSI",
    "CrossLanguageSSI",
    "DiagonalSSI",
    "FullSSI",
    "HashKernelSSI",
    "IBMModel1",
    "LowRankSSI",
    "LsiTfIdf",
    "NotFittedError",
    "PopularTfIdf",
    "Popularity",
    "Preferences",
    "QueryExpansion",
    "S2Net",
    "S2NetOptions",
    "SparseSSI",
    "TfIdf",
    "TrainingOptions",
    "UnigramLM",
    "Vocabulary",
    "get_model",
    "load_model",
    "make_model",
]

_HOMES = {
    "base": "NotFittedError",
    "projections.baselines": "VSM PopularTfIdf Popularity",
    "projections.lsa": "CLLSA LSA LSI LsiTfIdf",
    "projections.opca": "OPCA",
    "projections.query_expansion": "QueryExpansion",
    "registry": "get_model load_model make_model",
    "s2net.model": "S2Net S2NetOptions",
    "ssi.correlated_hash": "CorrelatedHashSSI",
    "ssi.cross_language": "CrossLanguageSSI",
    "ssi.diagonal": "DiagonalSSI",
    "ssi.full": "FullSSI",
    "ssi.hash_kernel": "HashKernelSSI",
    "ssi.low_rank": "LowRankSSI",
    "ssi.polynomial": "PSI",
    "ssi.sparse": "SparseSSI",
    "topics.bilingual": "BLTM BLTMPR BLTMPR1V PLSA",
    "topics.language_model": "UnigramLM",
    "topics.translation": "IBMModel1",
    "training.options": "TrainingOptions",
    "training.preferences": "CandidateLists Preferences",
    "vocabulary": "Vocabulary",
    "weighting": "TfIdf",
}


__getattr__, __dir__ = lazy_names(
    __name__, {name: f".{home}" for home, names in _HOMES.items() for name in names.split()}
)
