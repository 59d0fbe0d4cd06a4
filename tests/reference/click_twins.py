"""Click models written as they are told: loops over sessions, dictionaries, sums over all that
could have happened."""

from collections import defaultdict
from itertools import product
from math import log, log2


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


def counted(sessions):
    """(showings by pair, clicks by pair, positions)."""
    shown, clicked, positions = defaultdict(float), defaultdict(float), set()
    for pairs, at, clicks in sessions:
        positions |= set(at)
        for pair, click in zip(pairs, clicks, strict=True):
            shown[pair] += 1
            clicked[pair] += click
    return shown, clicked, positions


def ratio(above, below, prior):
    """By key: (above + prior clicks) / (below + prior)."""
    a, b = prior
    return {k: (above[k] + a) / (below[k] + a + b) if below[k] + a + b else 0.0 for k in below}


def phases(prior, iterations):
    """(prior, whether shared parameters are learned) of each step: by likelihood first."""
    return [((0, 0), True)] * iterations + [(prior, False)] * iterations


def pbm(sessions, prior=(1, 1), iterations=50):
    """(attractiveness by pair, examination by position) after so many steps of EM by likelihood,
    and as many with the prior and the examination as it is."""
    shown, clicked, positions = counted(sessions)
    at, hit = defaultdict(float), defaultdict(float)
    for _, place, clicks in sessions:
        for position, click in zip(place, clicks, strict=True):
            at[position] += 1
            hit[position] += click
    alpha = ratio(clicked, shown, (1, 1))
    rate = {k: (hit[k] + 1) / (at[k] + 2) for k in at}
    gamma = {k: rate[k] / max(rate.values()) for k in at}
    gamma[min(positions)] = 1.0
    for present, shared in phases(prior, iterations):
        looked_pair, looked = defaultdict(float), defaultdict(float)
        for pairs, place, clicks in sessions:
            for pair, k, click in zip(pairs, place, clicks, strict=True):
                e = 1.0
                if not click:
                    e = gamma[k] * (1 - alpha[pair]) / (1 - alpha[pair] * gamma[k])
                looked_pair[pair] += e
                looked[k] += e
        alpha = ratio(clicked, looked_pair, present)
        if shared:
            gamma = {k: looked[k] / at[k] for k in gamma}
            gamma[min(positions)] = 1.0
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
    """(attractiveness, satisfaction by pair, continuation) after so many steps of EM by likelihood,
    and as many with the prior and the continuation as it is. EM weighs every history by its
    probability."""
    shown, clicked, _ = counted(sessions)
    alpha = ratio(clicked, shown, (1, 1))
    sigma, gamma = dict.fromkeys(shown, 0.5), continuation
    for present, shared in phases(prior, iterations):
        looked, satisfied = defaultdict(float), defaultdict(float)
        told = dict.fromkeys(shown, 0.0)
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
        alpha = ratio(clicked, looked, present)
        sigma = ratio(satisfied, told, present)
        gamma = min(went_on / could, 1.0) if shared else gamma
    return alpha, sigma, gamma


def dcm(sessions, prior=(1, 1), iterations=20):
    """(attractiveness by pair, continuation by position), in steps as those of dbn."""
    shown, clicked, at = counted(sessions)
    alpha, lam = ratio(clicked, shown, (1, 1)), dict.fromkeys(at, 0.5)
    for present, shared in phases(prior, iterations):
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
        alpha = ratio(clicked, looked, present)
        if shared:
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


def by_position(alpha, gamma):
    """For :func:`prediction`: clicks that depend on pair and position alone."""
    return lambda pairs, positions, _: [
        (alpha[p] * gamma[k],) * 2 for p, k in zip(pairs, positions, strict=True)
    ]


def downwards(alpha, after_click, after_skip):
    """For :func:`prediction`: clicks of users who go down the page; ``after_click(pair, position)``
    is how they go on after a click."""

    def probabilities(pairs, positions, clicks):
        found, reached, given = [], 1.0, 1.0
        for pair, k, click in zip(pairs, positions, clicks, strict=True):
            a, on = alpha[pair], after_click(pair, k)
            found.append((reached * a, given * a))
            reached *= a * on + (1 - a) * after_skip
            given = on if click else given * (1 - a) * after_skip / (1 - given * a)
        return found

    return probabilities


def prediction(sessions, probabilities, least=1e-6):
    """(log-likelihood of all rows, mean over positions of the perplexity)."""
    total, bits, rows = 0.0, defaultdict(float), defaultdict(int)
    for pairs, positions, clicks in sessions:
        found = probabilities(pairs, positions, clicks)
        for (marginal, conditional), k, click in zip(found, positions, clicks, strict=True):
            total += log(max(conditional if click else 1 - conditional, least))
            bits[k] -= log2(max(marginal if click else 1 - marginal, least))
            rows[k] += 1
    return total, sum(2 ** (bits[k] / rows[k]) for k in rows) / len(rows)
