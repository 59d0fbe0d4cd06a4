"""Slow twins of the SSI models: scores from the papers' formulas, gradients by differences."""

import numpy as np


def unit_rows(rng, n, width, density=0.3, empty=()):
    """Dense float32 unit rows, some of them empty."""
    X = np.abs(rng.normal(size=(n, width))) * (rng.random((n, width)) < density)
    X[list(empty)] = 0
    return (X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)).astype(np.float32)


def score(kind, theta, q, d):
    """f(q, d) in float64; theta: arrays by name, tables as [V, N] (the papers' transposed)."""
    U, V, D, W = (theta.get(name) for name in ("U", "V", "D", "W"))
    if kind == "UV+I":
        return (q @ U) @ (d @ V) + q @ d
    if kind == "UU+I":
        return (q @ U) @ (d @ U) + q @ d
    if kind == "UV+D":
        return (q @ U) @ (d @ V) + (q * D) @ d
    if kind == "UV":
        return (q @ U) @ (d @ V)
    if kind == "D":
        return (q * D) @ d
    if kind == "W":
        return q @ W @ d
    if kind == "hash":
        H, P = len(theta["w"]), theta["P"]
        return sum(
            theta["w"][(s * P + t) % H] * q[s] * d[t]
            for s in np.flatnonzero(q)
            for t in np.flatnonzero(d)
        )
    if kind == "psi3":
        v, y = d @ theta["V0"], d @ theta["V1"]
        return (q @ U) @ (v * y) + (q @ U) @ v + q @ d
    if kind == "psi4":
        v, y, z = d @ theta["V0"], d @ theta["V1"], d @ theta["V2"]
        return (q @ U) @ (v + v * y + v * y * z) + q @ d
    if kind == "psi3 separate":
        v2, v3, y3 = d @ theta["V0"], d @ theta["V1"], d @ theta["V2"]
        N = v2.shape[-1]
        return (q @ U[:, :N]) @ v2 + (q @ U[:, N:]) @ (v3 * y3) + q @ d
    raise KeyError(kind)


def objective(kind, theta, Q, D, query, positive, negatives, A):
    """sum_bk A_bk (f(q_b, d+_b) - f(q_b, d-_bk)), what a step climbs; negatives [B, K + k], -1 is
    none."""
    total = 0.0
    for b, q in enumerate(query):
        above = score(kind, theta, Q[q], D[positive[b]])
        for k, d in enumerate(negatives[b]):
            if d >= 0:
                total += A[b, k] * (above - score(kind, theta, Q[q], D[d]))
    return total


def difference_gradient(function, values, step=1e-3):
    """Central differences of function() by each element of values (changed and restored)."""
    gradient = np.zeros_like(values)
    for i in np.ndindex(values.shape):
        kept = values[i]
        values[i] = kept + step
        above = function()
        values[i] = kept - step
        below = function()
        values[i] = kept
        gradient[i] = (above - below) / (2 * step)
    return gradient


def pair_gradients(loss, rank_weight, margin, positive, negative, allowed, pool, own_pool=None):
    """Gradients [B, K] and summed loss: the formulas of PairwiseLoss, one tuple at a time. With
    ``own_pool`` [B], those of own negatives, before their share."""
    B, K = negative.shape
    A, total = np.zeros((B, K)), 0.0
    for b in range(B):
        rows = [k for k in range(K) if allowed[b, k]]
        above = sum(negative[b, k] >= positive[b] for k in rows)
        violating = [k for k in rows if positive[b] - negative[b, k] < margin]
        for k in rows:
            x = float(positive[b] - negative[b, k])
            if loss == "margin":
                total += max(0.0, margin - x)
                gradient = float(margin - x > 0)
            else:
                total += margin * np.logaddexp(0, -x / margin)
                gradient = 1 / (1 + np.exp(x / margin))
            ranked = pool if own_pool is None else own_pool[b]
            scale = ranked / len(rows)
            if rank_weight == "uniform":
                weight = 1 / (K if own_pool is None else len(rows))
            elif rank_weight == "warp":
                rank = max(1, int(len(violating) * ranked / len(rows)))
                weight = sum(1 / j for j in range(1, rank + 1)) / max(1, len(violating))
                weight *= k in violating
            else:
                gain = (
                    (lambda r: 1 / np.log2(1 + r)) if rank_weight == "ndcg" else (lambda r: 1 / r)
                )
                better = sum(negative[b, h] > negative[b, k] for h in rows)
                rank = 1 + better * scale + (positive[b] > negative[b, k])
                weight = abs(gain(1 + above * scale) - gain(rank)) * pool / len(rows)
            A[b, k] = gradient * weight
    return A, total


def average_precision(scores, relevant):
    """Average precision; a relevant document ranks below irrelevant ones of the same score."""
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], relevant[i]))
    hits, total = 0, 0.0
    for rank, i in enumerate(order, start=1):
        if relevant[i]:
            hits += 1
            total += hits / rank
    return total / sum(relevant)
