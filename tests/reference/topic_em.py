"""Slow twin of EM for bilingual topic models, in float64, with dense arrays.

Gao, Toutanova, Yih: "Clickthrough-based latent semantic models for web search", SIGIR 2011: the
objective is their eq. 3, EM eq. 4-8, the projection eq. 9-13 (its dual maximised by L-BFGS).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp


def posterior(theta, phi):
    """P(z|w, i): [n, V, K] for theta [n, K], phi [V, K] (eq. 4, 5)."""
    joint = theta[:, None, :] * phi[None, :, :]
    return joint / joint.sum(axis=2, keepdims=True)


def project(Pq, cq, Pd, cd):
    """The closest posteriors with equal topic fractions, of word types [m, K] with counts [m]."""
    nq, nd = cq.sum(), cd.sum()
    log_q, log_d = np.log(Pq), np.log(Pd)

    def tilted(lam):
        a, b = log_q - lam / nq, log_d + lam / nd
        return (
            np.exp(a - logsumexp(a, axis=1, keepdims=True)),
            np.exp(b - logsumexp(b, axis=1, keepdims=True)),
        )

    def negative_dual(lam):
        value = cq @ logsumexp(log_q - lam / nq, axis=1) + cd @ logsumexp(log_d + lam / nd, axis=1)
        Qq, Qd = tilted(lam)
        return value, cd @ Qd / nd - cq @ Qq / nq

    best = minimize(
        negative_dual, np.zeros(Pq.shape[1]), jac=True, method="L-BFGS-B",
        options={"gtol": 1e-7, "ftol": 0, "maxiter": 5000, "maxcor": 30},
    )  # fmt: skip
    return tilted(best.x)


def log_prior(theta, phis, alpha, beta):
    return (alpha - 1) * np.log(theta).sum() + (beta - 1) * sum(np.log(p).sum() for p in phis)


def iterate(Q, D, theta, phi_q, phi_d, alpha, beta, regularised, shared):
    """One iteration; returns the objective at its beginning and the new theta, phi_q, phi_d.

    Args:
        Q, D: dense counts [n, V]; every word occurs.
    """
    Rq, Rd = posterior(theta, phi_q), posterior(theta, phi_d)
    objective = log_prior(theta, [phi_q] if shared else [phi_q, phi_d], alpha, beta)
    for i in range(len(theta)):
        q, d = np.flatnonzero(Q[i]), np.flatnonzero(D[i])
        if regularised:
            Rq[i, q], Rd[i, d] = project(Rq[i, q], Q[i, q], Rd[i, d], D[i, d])
        for R, words, counts, phi in ((Rq, q, Q, phi_q), (Rd, d, D, phi_d)):
            inside = np.log(theta[i]) + np.log(phi[words]) - np.log(R[i, words])
            objective += (counts[i, words, None] * R[i, words] * inside).sum()
    cq, cd = np.einsum("nv,nvk->vk", Q, Rq), np.einsum("nv,nvk->vk", D, Rd)
    topics = np.einsum("nv,nvk->nk", Q, Rq) + np.einsum("nv,nvk->nk", D, Rd) + alpha - 1
    theta = topics / topics.sum(axis=1, keepdims=True)
    if shared:
        cq = cd = cq + cd
    new = [(c + beta - 1) / (c + beta - 1).sum(axis=0) for c in (cq, cd)]
    return objective, theta, new[0], new[1]


def ibm1(pairs, n_words, iterations):
    """t(q|w) as [n_words, n_words + 1] (the last column is NULL) after EM from a uniform
    start over the words that meet, and the log-likelihoods before each iteration (Brown et al.).

    Args:
        pairs: list of (query word list, title word list).
    """
    t = np.zeros((n_words, n_words + 1))
    for query, title in pairs:
        t[np.ix_(query, [*title, n_words])] = 1
    t /= np.maximum(t.sum(axis=0), 1)
    likelihoods = []
    for _ in range(iterations):
        counts, likelihood = np.zeros_like(t), 0.0
        for query, title in pairs:
            sources = [*title, n_words]
            for q in query:
                total = sum(t[q, w] for w in sources)
                likelihood += np.log(total / len(sources))
                for w in sources:
                    counts[q, w] += t[q, w] / total
        likelihoods.append(likelihood)
        t = counts / np.maximum(counts.sum(axis=0), 1e-300)
    return t, likelihoods
