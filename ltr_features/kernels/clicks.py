"""Kernels of click models in which users go down a page from row to row.

A user examines the first row. An examined row is clicked with the probability attraction[r]; then
the next row is examined with the probability after_click[r], after a row that is not clicked with
the probability after_skip. Page s owns rows ``offsets[s]:offsets[s + 1]``; ``last`` is int64 [s],
the number within the page of its last clicked row, -1 where none is. All probabilities are float64,
one per row unless said otherwise.
"""

from __future__ import annotations

from ltr_base.compiled import kernel


@kernel()
def examined(offsets, last, pair, attraction, after_last, after_skip, examination, tail):
    """Given the clicks of each page: which rows were examined, and how likely the silence after
    the last click was.

    With T_r = P(no click from r on | r examined), which is 1 below the last row,

        T_r = (1 - attraction_r) (1 - after_skip + after_skip T_(r + 1)).

    Rows up to the last click are examined; the next one is with the odds kappa T : 1 - kappa, where
    kappa is after_click of the last click; and each further one, given the one above it, with the
    odds after_skip T : 1 - after_skip.

    Args:
        pair: int64 [n]. attraction: by pair.
        after_last: float64 [s], kappa of each page; any value where there is no click.
        examination: float64 [n], written: P(row examined | clicks).
        tail: float64 [s], written: P(no click below the last | last click); P(no click) where
            there is none.
    """
    for s in range(len(last)):
        first, stop = offsets[s], offsets[s + 1]
        below_click = first + last[s] + 1
        silent = 1.0
        for r in range(stop - 1, below_click - 1, -1):
            silent = (1.0 - attraction[pair[r]]) * (1.0 - after_skip + after_skip * silent)
            examination[r] = silent  # kept here until the way down
        for r in range(first, below_click):
            examination[r] = 1.0
        if last[s] < 0:
            tail[s], reach = silent, 1.0
        else:
            kappa = after_last[s]
            tail[s] = 1.0 - kappa + kappa * silent
            reach = kappa * silent / tail[s] if tail[s] > 0.0 else 0.0
        for r in range(below_click, stop):
            examination[r] = reach
            if r + 1 < stop:
                on = after_skip * examination[r + 1]
                reach *= on / (1.0 - after_skip + on) if on > 0.0 else 0.0


@kernel()
def click_probabilities(offsets, click, attraction, after_click, after_skip, marginal, conditional):
    """P(row clicked), and P(row clicked | clicks above it), of every row.

    Args:
        click: bool [n]. marginal, conditional: float64 [n], written.
    """
    for s in range(len(offsets) - 1):
        reached, reached_given = 1.0, 1.0
        for r in range(offsets[s], offsets[s + 1]):
            a = attraction[r]
            marginal[r] = reached * a
            conditional[r] = reached_given * a
            reached *= a * after_click[r] + (1.0 - a) * after_skip
            if click[r]:
                reached_given = after_click[r]
            else:
                silent = 1.0 - conditional[r]
                on = reached_given * (1.0 - a) * after_skip
                reached_given = on / silent if silent > 0.0 else 0.0


@kernel()
def add_information(
    start, stop, offsets, count, local, score, click, click_score, shared_score, own, cross
):  # fmt: skip
    """Adds count x x' of the pages start..stop, which are of one query, to its information, where x
    is the gradient of a page's log-likelihood by the query's parameters: those of its d pairs, and,
    below them, a second one of each.

    Args:
        local: int64 [n], number of a row's pair among the d of its query.
        score: float64 [n], derivative by the row's pair; click_score: the one by its second
            parameter, which clicked rows have.
        shared_score: float64 [s, g], by parameters that all queries share.
        own: float64 [2 d, 2 d], added to. cross: float64 [2 d, g], likewise.
    """
    d = own.shape[0] // 2
    for s in range(start, stop):
        for r in range(offsets[s], offsets[s + 1]):
            for second in range(2):
                if second == 1 and not click[r]:
                    continue
                i = local[r] + second * d
                value = count[s] * (click_score[r] if second == 1 else score[r])
                for k in range(offsets[s], offsets[s + 1]):
                    own[i, local[k]] += value * score[k]
                    if click[k]:
                        own[i, local[k] + d] += value * click_score[k]
                for k in range(cross.shape[1]):
                    cross[i, k] += value * shared_score[s, k]
