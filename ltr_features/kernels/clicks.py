"""Kernels of click models in which users go down a page from row to row.

A user examines the first row. An examined row is clicked with probability attraction[r]. The next
row is examined with probability after_click[r] if row r is clicked, and with probability after_skip
if it is not. Page s owns rows ``offsets[s]:offsets[s + 1]``; ``last`` is int64 [s], the position
within the page of its last clicked row, -1 without clicks. All probabilities are float64, one per
row unless stated otherwise.
"""

from __future__ import annotations

from ltr_base.compiled import kernel


@kernel()
def examined(offsets, last, pair, attraction, after_last, after_skip, examination, tail):
    """Given the clicks of each page: the probabilities that each row was examined, and that no
    click follows the last one.

    With T_r = P(no click from r on | r examined), which is 1 below the last row,

        T_r = (1 - attraction_r) (1 - after_skip + after_skip T_(r + 1)).

    Rows up to the last click are examined. The next row is examined with odds kappa T : 1 - kappa,
    where kappa is after_click of the last click, and each further one, given the row above it, with
    odds after_skip T : 1 - after_skip.

    Args:
        pair: int64 [n], the pair of each row. attraction: one per pair.
        after_last: float64 [s], kappa of each page; any value for a page without clicks.
        examination: float64 [n], written: P(row examined | clicks).
        tail: float64 [s], written: P(no click below the last | last click); P(no click) for a
            page without clicks.
    """
    for s in range(len(last)):
        first, stop = offsets[s], offsets[s + 1]
        below_click = first + last[s] + 1
        silent = 1.0
        for r in range(stop - 1, below_click - 1, -1):
            silent = (1.0 - attraction[pair[r]]) * (1.0 - after_skip + after_skip * silent)
            examination[r] = silent  # T_r, until the loop down the page
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
def click_probabilities(offsets, click, attraction, after_click, after_skip, reach, conditional):
    """P(row examined), and P(row clicked | clicks above it), for every row.

    Args:
        click: bool [n]. reach, conditional: float64 [n], written.
    """
    for s in range(len(offsets) - 1):
        reached, reached_given = 1.0, 1.0
        for r in range(offsets[s], offsets[s + 1]):
            a = attraction[r]
            reach[r] = reached
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
    """Add count x x' of the pages start..stop, all of one query, to the query's information matrix.
    x is the gradient of a page's log-likelihood by the query's parameters: the first parameters of
    its d pairs, followed by their second ones.

    Args:
        local: int64 [n], number of a row's pair among the d pairs of its query.
        score: float64 [n], derivative by the first parameter of the row's pair; click_score: that
            by the second parameter, for clicked rows.
        shared_score: float64 [s, g], derivatives by parameters that all queries share.
        own: float64 [2 d, 2 d], added to. cross: float64 [2 d, g], added to.
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
