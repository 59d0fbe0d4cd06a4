"""Matching models: how well a document answers a query, learned on sparse rows of words.

    from ssi_models import LowRankSSI, Preferences, TfIdf

    model = LowRankSSI(50, margin=0.5).fit(Q, D, Preferences.from_pairs(query, document, ...))
    model.score(Q, D, query, document)

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ltr_base.lazy_names import declared_names, lazy_names

if TYPE_CHECKING:  # `as` marks a name as re-exported
    from ssi_models.parameters import NotFittedError as NotFittedError
    from ssi_models.projections.baselines import VSM as VSM
    from ssi_models.projections.baselines import Popularity as Popularity
    from ssi_models.projections.baselines import PopularTfIdf as PopularTfIdf
    from ssi_models.projections.lsa import CLLSA as CLLSA
    from ssi_models.projections.lsa import LSA as LSA
    from ssi_models.projections.lsa import LSI as LSI
    from ssi_models.projections.lsa import LsiTfIdf as LsiTfIdf
    from ssi_models.projections.opca import OPCA as OPCA
    from ssi_models.projections.query_expansion import QueryExpansion as QueryExpansion
    from ssi_models.registry import get_model as get_model
    from ssi_models.registry import load_model as load_model
    from ssi_models.registry import make_model as make_model
    from ssi_models.s2net.model import S2Net as S2Net
    from ssi_models.s2net.model import S2NetOptions as S2NetOptions
    from ssi_models.ssi.correlated_hash import CorrelatedHashSSI as CorrelatedHashSSI
    from ssi_models.ssi.cross_language import CrossLanguageSSI as CrossLanguageSSI
    from ssi_models.ssi.diagonal import DiagonalSSI as DiagonalSSI
    from ssi_models.ssi.full import FullSSI as FullSSI
    from ssi_models.ssi.hash_kernel import HashKernelSSI as HashKernelSSI
    from ssi_models.ssi.low_rank import LowRankSSI as LowRankSSI
    from ssi_models.ssi.polynomial import PSI as PSI
    from ssi_models.ssi.sparse import SparseSSI as SparseSSI
    from ssi_models.topics.bilingual import BLTM as BLTM
    from ssi_models.topics.bilingual import BLTMPR as BLTMPR
    from ssi_models.topics.bilingual import BLTMPR1V as BLTMPR1V
    from ssi_models.topics.bilingual import PLSA as PLSA
    from ssi_models.topics.language_model import UnigramLM as UnigramLM
    from ssi_models.topics.translation import IBMModel1 as IBMModel1
    from ssi_models.training.candidate_lists import CandidateLists as CandidateLists
    from ssi_models.training.options import TrainingOptions as TrainingOptions
    from ssi_models.training.preferences import Preferences as Preferences
    from ssi_models.vocabulary import Vocabulary as Vocabulary
    from ssi_models.weighting import TfIdf as TfIdf

_HOMES = declared_names(__file__)
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
