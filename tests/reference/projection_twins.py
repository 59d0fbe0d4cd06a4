"""Slow twins of the projection models: dense matrices in float64, formulas as they are written."""

import numpy as np
import scipy.linalg


def cosines(X, Y, A_q, A_d):
    """cos(A_q'x, A_d'y) of all rows; 0 where a projection is 0."""
    U, V = X @ A_q, Y @ A_d
    lengths = np.outer(np.linalg.norm(U, axis=1), np.linalg.norm(V, axis=1))
    return np.divide(U @ V.T, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def s2net_loss(Q, D, tuples, A_q, A_d, gamma):
    """Summed log(1 + exp(-gamma (cos(q, d+) - cos(q, d-)))) over tuples (q, d+, d-)."""
    C = cosines(Q, D, A_q, A_d)
    return sum(np.logaddexp(0, -gamma * (C[q, p] - C[q, n])) for q, p, n in tuples)


def s2net_gradient(Q, D, tuples, A_q, A_d, gamma):
    """By A_q and A_d, term by term: appendix B of Gao, Toutanova, Yih (SIGIR 2011)."""
    G_q, G_d = np.zeros_like(A_q), np.zeros_like(A_d)
    C = cosines(Q, D, A_q, A_d)
    for q, p, n in tuples:
        w = -gamma / (1 + np.exp(gamma * (C[q, p] - C[q, n])))
        for d, sign in ((p, 1), (n, -1)):
            u, v = A_q.T @ Q[q], A_d.T @ D[d]
            if not u.any() or not v.any():
                continue
            a, b, c = u @ v, 1 / np.linalg.norm(u), 1 / np.linalg.norm(v)
            G_q += sign * w * np.outer(Q[q], b * c * v - a * b**3 * c * u)
            G_d += sign * w * np.outer(D[d], b * c * u - a * b * c**3 * v)
    return G_q, G_d


def lsa(X, rank):
    """Leading right singular vectors; the entry of the largest magnitude is positive."""
    V = scipy.linalg.svd(X, full_matrices=False)[2][:rank].T
    return V * np.sign(V[np.argmax(np.abs(V), axis=0), np.arange(rank)])


def opca_matrices(Q, D, pairs, ridge):
    """S and N + rho I of Gao et al., eq. 22-24, with rho = ridge trace(N) / d."""
    C_Q, C_T = Q[[q for q, _ in pairs]], D[[d for _, d in pairs]]
    n, width = C_Q.shape
    S = (C_Q.T @ C_Q + C_T.T @ C_T) / (2 * n)
    N = (C_Q - C_T).T @ (C_Q - C_T) / n
    return S, N + ridge * np.trace(N) / width * np.eye(width)
