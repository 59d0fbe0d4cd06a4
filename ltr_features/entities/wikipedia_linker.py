"""TAGME's algorithm, offline, over the statistics of a knowledge base.

Ferragina and Scaiella, "TAGME: on-the-fly annotation of short text fragments", CIKM 2010:

1. spotting: phrases of up to 6 words in the anchor dictionary, link probability
   lp(a) = link(a) / freq(a) at least ``min_link_probability``; a phrase inside a longer one of
   higher lp is dropped;
2. voting: vote(p_a) = sum over the other mentions b of the mean over b's senses p_b of
   relatedness(p_a, p_b) commonness(p_b), relatedness by Milne and Witten 2008, senses with
   commonness of at least ``min_commonness``;
3. choice: of the senses whose vote is within ``epsilon`` of the best, the most common one;
4. confidence: rho = (lp + coherence) / 2, where coherence is the mean relatedness to the other
   mentions' entities. No threshold is applied to rho.

The ``window`` mentions before and after a mention vote, so that the cost is linear in a text's
length (the service does the same with its parameter long_text).
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ltr_base.parallel import map_blocks
from ltr_base.slices import slices
from ltr_features.entities.knowledge import KnowledgeBase, bucket_index
from ltr_features.entities.linker import Mention, refuse_single_text
from ltr_features.entities.words import hash_words, word_lines, word_spans
from ltr_features.kernels.entities import (
    LONGEST_PHRASE,
    Cache,
    InLinks,
    Senses,
    Voting,
    disambiguate,
    spot,
)
from ltr_features.parameters import check_range

#: Texts linked at a time, and the most pairs whose relatedness is cached meanwhile.
_BLOCK, _MEMORY = 256, 1 << 17


@dataclass(frozen=True)
class WikipediaLinker:
    """Links texts offline, by the statistics of a knowledge base.

    Attributes:
        knowledge: folder of the knowledge base.
        min_link_probability: least link probability of a phrase, 0 to 1.
        min_commonness: least commonness of a sense, 0 to 1.
        epsilon: greatest distance to the best vote, as a share of it, 0 to 1.
        window: number of mentions on either side that vote.
        threads: number of worker threads; None for one per core. Mentions do not depend on it.

    Raises:
        InputError: the folder is not a knowledge base, or a parameter is out of range.
    """

    knowledge: str | os.PathLike[str]
    min_link_probability: float = 0.02
    min_commonness: float = 0.02
    epsilon: float = 0.3
    window: int = 10
    threads: int | None = None

    def __post_init__(self) -> None:
        for name in ("min_link_probability", "min_commonness", "epsilon"):
            check_range(name, getattr(self, name), 0.0, 1.0)
        check_range("window", self.window, 1)
        self.base  # noqa: B018  report a missing folder now, not in the middle of the work

    @cached_property
    def base(self) -> KnowledgeBase:
        return KnowledgeBase.open(self.knowledge)

    @property
    def description(self) -> str:
        return (
            f"TAGME's algorithm on {self.base.source} (link probability >= "
            f"{self.min_link_probability:g}, commonness >= {self.min_commonness:g}, epsilon "
            f"{self.epsilon:g}, window {self.window})"
        )

    def link(self, texts: Sequence[str]) -> list[list[Mention]]:
        """The mentions of each text, in order of start; positions are those in its NFC, the normal
        form of Wikipedia's texts."""
        refuse_single_text(texts)
        _ = self._statistics  # computed before threads ask for it
        blocks = [texts[rows] for rows in slices(len(texts), _BLOCK)]
        return [m for part in map_blocks(self._link, blocks, self.threads) for m in part]

    @cached_property
    def _statistics(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray, np.uint64]:
        """Link probabilities of phrases, commonness of senses, and the index of the phrases."""
        base = self.base
        probability = base.phrase_links / base.phrase_count
        of_phrase = np.repeat(base.phrase_links, np.diff(base.sense_ends))
        return (probability, base.sense_links / of_phrase, *bucket_index(base.phrase_hash))

    def _link(self, texts: Sequence[str]) -> list[list[Mention]]:
        base = self.base
        probability, commonness, first, shift = self._statistics
        texts = [unicodedata.normalize("NFC", text) for text in texts]
        words = hash_words(word_lines(texts, base.word_rule))
        starts, lengths, found = np.empty((3, LONGEST_PHRASE * len(words)), dtype=np.int64)
        n = spot(
            words, base.phrase_hash, first, shift, probability, self.min_link_probability,
            starts, lengths, found,
        )  # fmt: skip
        starts, lengths, found = starts[:n], lengths[:n], found[:n]
        stops = np.flatnonzero(words == 0)
        bounds = np.append(0, np.searchsorted(starts, stops)).astype(np.int64)
        senses, rho = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.float64)
        n_senses = int((base.sense_ends[found + 1] - base.sense_ends[found]).sum())
        memory = max(1, min(n_senses**2, _MEMORY))
        disambiguate(
            bounds, found,
            Senses(probability, base.sense_ends, base.sense_entity, commonness),
            InLinks(base.link_ends, base.link_sources, len(base)),
            Voting(self.min_commonness, self.epsilon, self.window),
            Cache(np.zeros(memory, dtype=np.uint64), np.zeros(memory)), senses, rho,
        )  # fmt: skip
        linked = []
        for t, text in enumerate(texts):
            spans = word_spans(text, base.word_rule)
            begin = 0 if t == 0 else int(stops[t - 1]) + 1
            linked.append(
                [
                    Mention(
                        spans[starts[m] - begin][0],
                        spans[starts[m] - begin + lengths[m] - 1][1],
                        base.titles[int(base.sense_entity[senses[m]])],
                        float(rho[m]),
                        float(probability[found[m]]),
                        float(commonness[senses[m]]),
                    )
                    for m in range(bounds[t], bounds[t + 1])
                    if senses[m] >= 0
                ]
            )
        return linked
