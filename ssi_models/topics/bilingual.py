"""The bilingual topic model of query-title pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ssi_models.topics.topic_model import TopicModel


@dataclass(kw_only=True, eq=False, repr=False)
class BLTM(TopicModel):
    """Query and title of a pair share theta, and express its topics in words of their own:
    phi^q and phi^d.

    Reference:
        Gao, Toutanova, Yih: "Clickthrough-based latent semantic models for web search",
        SIGIR 2011, eq. 3-8.
    """

    name: ClassVar[str] = "bltm"
