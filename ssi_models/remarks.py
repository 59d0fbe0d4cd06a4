"""Remarks for the user on a fit that learned nothing, diverged, or had little to learn from."""

from __future__ import annotations

from ltr_base.names import counted
from ssi_models.training.loop import History

#: Describes the start of models whose learned part is zero before training.
WORD_MATCHING = "the tf-idf cosine"

#: Descriptions of starts that also match different words.
LATENT = ("latent semantic indexing", "LSA", "CL-LSA", "cross-language LSA")

#: Fewer relevant pairs, or fewer queries that have them, are little to learn from.
FEW_PAIRS, FEW_QUERIES = 100, 20
#: With this many queries or more, a lack of judgements is hardly why they teach nothing.
ENOUGH_QUERIES = 1000


class FitWarning(UserWarning):
    """A model learned nothing, diverged, or had little to learn from."""


def of_amount(n_queries: int, n_pairs: int) -> list[str]:
    """A remark if there is little data; 0 pairs stand for an unknown number."""
    if n_pairs == 0 or (n_pairs >= FEW_PAIRS and n_queries >= FEW_QUERIES):
        return []
    return [
        f"learned from only {counted(n_pairs, 'relevant pair')} of "
        f"{counted(n_queries, 'query')}: judge more queries, or use a model that learns only from "
        "texts (lsa)"
    ]


def of_training(
    history: History, *, start: str, n_queries: int, learned_weight: float, learning_rate: float
) -> list[str]:
    """Remarks on training by epochs.

    Args:
        start: describes the model before training.
        n_queries: number of training queries with relevant documents.
        learned_weight: factor of the learned part in the scores; 0 if it was switched off.
    """
    remarks = []
    last = history.epochs[-1].number
    if history.stopped == "diverged":
        kept = f"the parameters of epoch {history.best_epoch}"
        if history.best_epoch == 0:
            kept = f"its start ({start})"
        remarks.append(
            f"diverged in epoch {last + 1} and kept {kept}: lower learning_rate (it was "
            f"{learning_rate:g})"
        )
    elif last == 0:
        remarks.append(f"was not trained and equals its start ({start})")
    elif learned_weight == 0:
        remarks.append(_only_words(n_queries))
    elif history.best_epoch == 0:
        nothing = _teach_nothing(n_queries, may_help=start.startswith(LATENT))
        remarks.append(f"did not improve on its start ({start}): {nothing}")
    elif history.best_epoch == last and history.stopped in ("max_epochs", "max_seconds"):
        limit = f"epoch limit ({last})" if history.stopped == "max_epochs" else "time limit"
        remarks.append(
            f"stopped at its {limit} while still improving on held-out queries: raise "
            f"{history.stopped}"
        )
    return remarks


def of_word_weight(weight: float, *, chosen: bool, n_queries: int) -> list[str]:
    """Remarks on the weight of word matching."""
    if not chosen:
        return [
            f"its weight relative to word matching is {1 - weight:g} by default: there were fewer "
            "than two queries with relevant documents to choose it by"
        ]
    if weight == 1:
        return [_only_words(n_queries)]
    return []


def _only_words(n_queries: int) -> str:
    nothing = _teach_nothing(n_queries, may_help=False)
    return f"gives no weight to its learned part and is plain word matching: {nothing}"


def _teach_nothing(n_queries: int, *, may_help: bool) -> str:
    """Says that queries taught nothing, with advice; ``may_help``: whether the start is useful."""
    advice = "the start may help as it is" if may_help else "leave it out"
    if n_queries < ENOUGH_QUERIES:
        advice = f"judge more queries{'; ' if may_help else ', or '}{advice}"
    return (
        f"what it learns from its {n_queries:,} judged training queries does not clearly carry "
        f"over to held-out queries; {advice}"
    )
