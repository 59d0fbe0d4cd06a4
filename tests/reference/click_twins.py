"""Click models written as they are told: loops over sessions, dictionaries, sums over all that
could have happened."""

from collections import defaultdict
from itertools import product
from math import log


def sessions_of(log_):
    """[(pairs, positions, clicks)] of a ClickLog's pages, each as often as it was seen."""
    pages = log_.pages
    found = []
    for i, (start, stop) in enumerate(zip(pages.offsets[:-1], pages.offsets[1:], strict=True)):
        rows = (pages.pair[start:stop].tolist(), pages.position[start:stop].tolist(),
                pages.click[start:stop].tolist())  # fmt: skip
        found += [rows] * int(pages.count[i])
    return found


def histories(clicks, attraction, after_click, after_skip):
    """[(number of rows examined, probability together with the clicks)]: users examine rows from
    the top and stop somewhere."""
    n, found = len(clicks), []
    for n_examined in range(1, n + 1):
        if any(clicks[n_examined:]):
            continue
        p = 1.0
        for r in range(n_examined):
            p *= attraction[r] if clicks[r] else 1 - attraction[r]
            on = after_click[r] if clicks[r] else after_skip
            if r + 1 < n:
                p *= on if r + 1 < n_examined else 1 - on
        found.append((n_examined, p))
    return found


def all_clicks(n):
    return list(product((False, True), repeat=n))


def pbm(sessions, prior=(1, 1), iterations=50):
    """(attractiveness by pair, examination by position) after so many steps of EM."""
    a, b = prior
    shown, clicked, at, hit = (defaultdict(float) for _ in range(4))
    for pairs, positions, clicks in sessions:
        for pair, position, click in zip(pairs, positions, clicks, strict=True):
            shown[pair] += 1
            clicked[pair] += click
            at[position] += 1
            hit[position] += click
    alpha = {pair: (clicked[pair] + a) / (shown[pair] + a + b) for pair in shown}
    rate = {k: (hit[k] + 1) / (at[k] + 2) for k in at}
    gamma = {k: rate[k] / max(rate.values()) for k in at}
    gamma[min(at)] = 1.0
    for _ in range(iterations):
        looked_pair, looked = defaultdict(float), defaultdict(float)
        for pairs, positions, clicks in sessions:
            for pair, k, click in zip(pairs, positions, clicks, strict=True):
                e = 1.0
                if not click:
                    e = gamma[k] * (1 - alpha[pair]) / (1 - alpha[pair] * gamma[k])
                looked_pair[pair] += e
                looked[k] += e
        alpha = {p: (clicked[p] + a) / (looked_pair[p] + a + b) for p in alpha}
        gamma = {k: looked[k] / at[k] for k in gamma}
        gamma[min(at)] = 1.0
    return alpha, gamma


def cascade(sessions, prior=(1, 1)):
    """Attractiveness by pair."""
    a, b = prior
    clicked, seen = defaultdict(float), defaultdict(float)
    for pairs, _, clicks in sessions:
        for pair, click in zip(pairs, clicks, strict=True):
            seen[pair] += 1
            clicked[pair] += click
            if click:
                break
    return {
        pair: (clicked[pair] + a) / (seen[pair] + a + b)
        for pairs, _, _ in sessions
        for pair in pairs
    }


def dbn(sessions, prior=(1, 1), iterations=20, continuation=0.9):
    """(attractiveness, satisfaction by pair, continuation) after so many steps of EM, which weighs
    every history by its probability."""
    a, b = prior
    shown, clicked = defaultdict(float), defaultdict(float)
    for pairs, _, clicks in sessions:
        for pair, click in zip(pairs, clicks, strict=True):
            shown[pair] += 1
            clicked[pair] += click
    alpha = {p: (clicked[p] + a) / (shown[p] + a + b) for p in shown}
    sigma, gamma = dict.fromkeys(shown, 0.5), continuation
    for _ in range(iterations):
        looked, satisfied, told = (defaultdict(float) for _ in range(3))
        went_on, could = 0.0, 0.0
        for pairs, _, clicks in sessions:
            attraction = [alpha[p] for p in pairs]
            after = [gamma * (1 - sigma[p]) for p in pairs]
            found = histories(clicks, attraction, after, gamma)
            total = sum(p for _, p in found)
            for n_examined, p in found:
                p /= total
                for r in range(n_examined):
                    looked[pairs[r]] += p
                    if r + 1 == len(pairs):
                        continue
                    told[pairs[r]] += p * clicks[r]
                    stopped = r + 1 == n_examined
                    # Who stopped at a click was satisfied, or was not and gave up.
                    content = sigma[pairs[r]] / (1 - after[r]) if stopped and clicks[r] else 0.0
                    satisfied[pairs[r]] += p * content
                    could += p * (1 - content)
                    went_on += p * (not stopped)
        alpha = {p: (clicked[p] + a) / (looked[p] + a + b) for p in shown}
        sigma = {p: (satisfied[p] + a) / (told[p] + a + b) for p in shown}
        gamma = min(went_on / could, 1.0)
    return alpha, sigma, gamma


def dcm(sessions, prior=(1, 1), iterations=20):
    """(attractiveness by pair, continuation by position, NaN where none is told)."""
    a, b = prior
    shown, clicked, at = defaultdict(float), defaultdict(float), set()
    for pairs, positions, clicks in sessions:
        at |= set(positions)
        for pair, click in zip(pairs, clicks, strict=True):
            shown[pair] += 1
            clicked[pair] += click
    alpha = {p: (clicked[p] + a) / (shown[p] + a + b) for p in shown}
    lam = dict.fromkeys(at, 0.5)
    for _ in range(iterations):
        looked, went_on, told = (defaultdict(float) for _ in range(3))
        for pairs, positions, clicks in sessions:
            found = histories(clicks, [alpha[p] for p in pairs], [lam[k] for k in positions], 1.0)
            total = sum(p for _, p in found)
            for n_examined, p in found:
                p /= total
                for r in range(n_examined):
                    looked[pairs[r]] += p
                    if clicks[r] and r + 1 < len(pairs):
                        told[positions[r]] += p
                        went_on[positions[r]] += p * (r + 1 < n_examined)
        alpha = {p: (clicked[p] + a) / (looked[p] + a + b) for p in shown}
        mean = sum(went_on.values()) / sum(told.values())
        lam = {k: went_on[k] / told[k] if told[k] else mean for k in at}
    return alpha, lam


def log_likelihood(sessions, parameters, prior_terms=0.0):
    """Sum of log P(clicks): ``parameters(pairs, positions)`` gives attraction, after_click and
    after_skip."""
    total = prior_terms
    for pairs, positions, clicks in sessions:
        total += log(sum(p for _, p in histories(clicks, *parameters(pairs, positions))))
    return total
