"""Kernels for EM of topic models over pairs, by word types with counts.

With r = n(w, i) / sum_z phi_zw theta_iz, the expected counts are phi_zw theta_iz r. So a pair needs
sum_w r phi_w (for theta_i), and a word sum_i r theta_i (for phi_w): the first is computed by pair,
the second by word, and each number by one thread in a fixed order. No posterior is stored.

Both visit four rows at a time, so that their loads overlap: this makes EM 1.25 times faster, end to
end, and without it EM is less than 8 times as fast as scikit-learn's NMF with KL divergence.

phi is word-major, float32 [V, K]. Kernels release the GIL and work on rows ``start..stop``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr_base.compiled import kernel

_FAST = {"contract", "reassoc", "nsz"}
_FACTORS = 8  # numbers of 1e-30 or more whose product is a normal float64
_SLACK = 1e-3  # how far Barzilai and Borwein's steps may take the dual below its highest value
_ZERO, _FLOOR, _LEAST = np.float32(0.0), np.float32(1e-30), np.float32(-80.0)
_TINY = np.float32(1e-38)


class Texts(NamedTuple):
    """The queries, or the titles, of a block of B pairs.

    Attributes:
        indptr, indices, counts: CSR by pair.
        phi: float32 [V, K].
        theta: float32 [B, K], the topics that the posteriors of the texts are computed from.
        ratio: float32 [nnz], written: n(w, i) / sum_z phi_zw theta_iz.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    counts: NDArray[np.float32]
    phi: NDArray[np.float32]
    theta: NDArray[np.float32]
    ratio: NDArray[np.float32]


@kernel(fastmath=_FAST, forceinline=True)
def _ratio(texts, p, last, probability):
    """n_w / P(w), n_w log P(w) and n_w of entry p; 0 if P(w) is 0 or p is past the last entry."""
    if p >= last:
        return _ZERO, 0.0, _ZERO
    count = texts.counts[p] if probability > _ZERO else _ZERO
    ratio = count / max(probability, _TINY)
    texts.ratio[p] = ratio
    return ratio, count * np.log(np.float64(max(probability, _TINY))), count


@kernel(fastmath=_FAST, forceinline=True)
def _add_text(texts, i, gain):
    """gain += sum_w r_w phi_w over the words of text i, writing the ratios
    r_w = n_w / (phi_w . theta_i). Words whose probability is 0 are skipped.

    Four words at a time, so that their rows of phi are fetched side by side.

    Returns sum_w n_w log(phi_w . theta_i), and sum n_w over the words that were not skipped.
    """
    phi, theta, words = texts.phi, texts.theta[i], texts.indices
    log_likelihood, length, last = 0.0, 0.0, texts.indptr[i + 1]
    for p in range(texts.indptr[i], last, 4):
        a, b = words[p], words[min(p + 1, last - 1)]
        c, d = words[min(p + 2, last - 1)], words[min(p + 3, last - 1)]
        pa, pb, pc, pd = _ZERO, _ZERO, _ZERO, _ZERO
        for k in range(len(theta)):
            pa += phi[a, k] * theta[k]
            pb += phi[b, k] * theta[k]
            pc += phi[c, k] * theta[k]
            pd += phi[d, k] * theta[k]
        ra, log_a, na = _ratio(texts, p, last, pa)
        rb, log_b, nb_ = _ratio(texts, p + 1, last, pb)
        rc, log_c, nc = _ratio(texts, p + 2, last, pc)
        rd, log_d, nd = _ratio(texts, p + 3, last, pd)
        log_likelihood += log_a + log_b + log_c + log_d
        length += na + nb_ + nc + nd
        for k in range(len(theta)):
            gain[k] += (ra * phi[a, k] + rb * phi[b, k]) + (rc * phi[c, k] + rd * phi[d, k])
    return log_likelihood, length


@kernel(fastmath=_FAST)
def _log_sum(x):
    """sum_k log x_k of numbers of 1e-30 or more; one logarithm for eight of them."""
    logs = 0.0
    for first in range(0, len(x), _FACTORS):
        product = 1.0
        for k in range(first, min(first + _FACTORS, len(x))):
            product *= np.float64(x[k])
        logs += np.log(product)
    return logs


@kernel(fastmath=_FAST)
def expect_pairs(queries, titles, theta, pseudo_count, value, start, stop):
    """E-step of pairs and M-step of their theta (Gao et al., eq. 4-6).

    Args:
        queries, titles: :class:`Texts` that share one theta, written: theta as on entry.
        theta: float32 [B, K]; the new one on return. pseudo_count: alpha - 1.
        value: float64 [B], written: log P(q_i, d_i) + (alpha - 1) sum_z log theta_iz on entry.
    """
    K = theta.shape[1]
    gain = np.empty(K, np.float32)
    for b in range(start, stop):
        queries.theta[b] = theta[b]
        gain[:] = _ZERO
        lq, nq = _add_text(queries, b, gain)
        ld, nd = _add_text(titles, b, gain)
        value[b] = lq + ld
        if pseudo_count > 0.0:
            value[b] += pseudo_count * _log_sum(theta[b])
        norm = np.float32(1.0 / max(nq + nd + K * pseudo_count, 1e-30))
        for k in range(K):
            mean = (theta[b, k] * gain[k] + np.float32(pseudo_count)) * norm
            theta[b, k] = max(mean, _FLOOR)


@kernel(fastmath=_FAST)
def tilt(theta, lam, one_q, one_d, u, v):
    """u = theta exp(-lambda one_q - a) and v = theta exp(lambda one_d - b), where a and b make the
    largest factor 1; returns a and b. Factors are not below exp(-80)."""
    a, b = -np.float32(np.min(lam)) * one_q, np.float32(np.max(lam)) * one_d
    for k in range(len(lam)):
        x = np.float32(lam[k])
        u[k] = theta[k] * np.exp(max(-x * one_q - a, _LEAST))
        v[k] = theta[k] * np.exp(max(x * one_d - b, _LEAST))
    return np.float64(a), np.float64(b)


@kernel(fastmath=_FAST, forceinline=True)
def _evaluate(queries, titles, b, theta, lam, size, gain, gradient, scale, step):
    """Gradient and scaling of the dual of pair b at lambda. Inlined, as of two copies of its code,
    with sums in another order, a process would take the one that it compiled itself.

    Args:
        size: float64 [2], |q| and |d|. gain: float32 [2, K], written: the expected fractions' part.
        gradient, scale: float32 [K], written. step: float32 [K], the last step of lambda.

    Returns:
        Minus the dual; the largest |gradient|; s . scale s for the step s; and s . (decrease of the
        gradient).
    """
    u, v, gain[:] = queries.theta[b], titles.theta[b], _ZERO
    one_q, one_d = np.float32(1.0 / size[0]), np.float32(1.0 / size[1])
    half = np.float32(0.5) * (one_q + one_d)
    q_shift, d_shift = tilt(theta[b], lam, one_q, one_d, u, v)
    lq, _ = _add_text(queries, b, gain[0])
    ld, _ = _add_text(titles, b, gain[1])
    worst, moved, curved = _ZERO, _ZERO, _ZERO
    for k in range(len(lam)):
        fq, fd = u[k] * gain[0, k] * one_q, v[k] * gain[1, k] * one_d
        moved += step[k] * step[k] * scale[k]
        curved += step[k] * (gradient[k] - (fq - fd))
        gradient[k] = fq - fd
        scale[k] = half * (fq + fd) + _FLOOR
        worst = max(worst, abs(fq - fd))
    return lq + size[0] * q_shift + ld + size[1] * d_shift, worst, moved, curved


@kernel(fastmath=_FAST)
def project_pairs(
    queries, titles, theta, pseudo_count, multiplier, tolerance, limit, value, evaluations, start,
    stop,
):  # fmt: skip
    """E-step of pairs, projected so that query and title have equal topic fractions, and M-step
    of theta (Gao et al., eq. 9-13).

    The projected posteriors are those of theta exp(-lambda / |q|) for the query and
    theta exp(lambda / |d|) for the title. The dual is maximised by scaled ascent,

        lambda += step 2 (f_q - f_d) / ((f_q + f_d) (1 / |q| + 1 / |d|)),

    where f are the fractions. With step 1 the dual always rises (log(f_q / f_d) in place of the
    term 2 (f_q - f_d) / (f_q + f_d) would maximise a lower bound of it that is tight at lambda).
    Steps after the first are Barzilai and Borwein's in that scaling; if one goes too far, the
    ascent continues from the best point with step 1.

    Args:
        queries, titles: :class:`Texts`, whose theta is written: the tilted theta of each side.
        theta, pseudo_count: see :func:`expect_pairs`.
        multiplier: float32 [B, K], lambda; the start on entry, the solution on return.
        tolerance: largest |f_q - f_d| accepted. limit: largest number of evaluations per pair.
        value: float64 [B], written: E_Q[log P(q, d, z)] + H(Q) + (alpha - 1) sum_z log theta_iz.
        evaluations: int32 [B], written: number of gradients computed.
    """
    K = theta.shape[1]
    lam, best, size = np.empty(K), np.empty(K), np.empty(2)
    gain, gradient, scale, step = (
        np.zeros((2, K), np.float32), np.zeros(K, np.float32), np.zeros(K, np.float32),
        np.zeros(K, np.float32),
    )  # fmt: skip
    for b in range(start, stop):
        lam[:] = multiplier[b]
        size[0] = queries.counts[queries.indptr[b] : queries.indptr[b + 1]].sum()
        size[1] = titles.counts[titles.indptr[b] : titles.indptr[b + 1]].sum()
        highest, done = -np.inf, 0
        while True:
            bound, worst, moved, curved = _evaluate(
                queries, titles, b, theta, lam, size, gain, gradient, scale, step
            )
            done += 1
            if worst < tolerance or done >= limit:
                break
            if -bound > highest:
                highest = -bound
                best[:] = lam
            elif -bound < highest - _SLACK:
                lam[:], step[:] = best, _ZERO
                continue
            length = np.float32(1.0)
            if done > 1 and curved > _ZERO:
                length = min(max(moved / curved, length), np.float32(100.0))
            for k in range(K):
                step[k] = length * gradient[k] / scale[k]
                lam[k] += step[k]
        multiplier[b] = lam
        evaluations[b] = done
        value[b] = bound
        if pseudo_count > 0.0:
            value[b] += pseudo_count * _log_sum(theta[b])
        norm = np.float32(1.0 / max(size[0] + size[1] + K * pseudo_count, 1e-30))
        u, v = queries.theta[b], titles.theta[b]
        for k in range(K):
            value[b] += lam[k] * gradient[k]
            expected = u[k] * gain[0, k] + v[k] * gain[1, k]
            theta[b, k] = max((expected + np.float32(pseudo_count)) * norm, _FLOOR)


@kernel(fastmath=_FAST)
def add_words(words, starts, owner, position, ratio, theta, sums, first, last):
    """sums[w] += sum_i r_iw theta_i for the words of slots first..last of a block.

    Args:
        words: int32 [S]. starts: int64 [S + 1]: slot s owns entries ``starts[s]:starts[s + 1]``.
        owner, position: int32 [nnz]: an entry's pair in the block, and its index in ``ratio``.
        theta: float32 [B, K]. sums: float64 [V, K].
    """
    for s in range(first, last):
        w, stop = words[s], starts[s + 1]
        for p in range(starts[s], stop, 4):
            a, ra = owner[p], ratio[position[p]]
            if p + 1 == stop:
                for k in range(theta.shape[1]):
                    sums[w, k] += ra * theta[a, k]
                continue
            b, rb = owner[p + 1], ratio[position[p + 1]]
            c, rc = (owner[p + 2], ratio[position[p + 2]]) if p + 2 < stop else (b, _ZERO)
            d, rd = (owner[p + 3], ratio[position[p + 3]]) if p + 3 < stop else (b, _ZERO)
            for k in range(theta.shape[1]):
                sums[w, k] += (ra * theta[a, k] + rb * theta[b, k]) + (
                    rc * theta[c, k] + rd * theta[d, k]
                )


@kernel()
def add_rows(total, words, sums, start, stop):
    """total[words[i]] += sums[i] for i in start..stop; no word occurs twice."""
    for i in range(start, stop):
        for k in range(sums.shape[1]):
            total[words[i], k] += sums[i, k]


@kernel(fastmath=_FAST)
def sum_logs(X, out, start, stop):
    """out[i] = sum_k log X[i, k] for rows start..stop, with values of 1e-30 or more; 0 for a row
    that starts with 0."""
    for i in range(start, stop):
        out[i] = _log_sum(X[i]) if X[i, 0] > 0.0 else 0.0


@kernel(fastmath=_FAST)
def expected_counts(sums, phi, totals, run, start, stop):
    """sums *= phi, and totals[c] = the sum over words c run..(c + 1) run, for c in start..stop.

    The runs are fixed, so that the totals do not depend on the number of threads.
    """
    for c in range(start, stop):
        totals[c] = 0.0
        for w in range(c * run, min((c + 1) * run, len(phi))):
            for k in range(phi.shape[1]):
                sums[w, k] *= phi[w, k]
                totals[c, k] += sums[w, k]


@kernel(fastmath=_FAST)
def normalise_words(counts, factor, pseudo_count, phi, start, stop):
    """phi_w = (counts_w + beta - 1) factor for known words (phi_w not 0) of start..stop, and
    counts_w = 0, ready for the next pass.

    phi is at least 1e-30: with beta = 1 a probability could reach 0, which marks unknown words.
    """
    for w in range(start, stop):
        if phi[w, 0] > 0.0:
            for k in range(phi.shape[1]):
                share = (counts[w, k] + pseudo_count) * factor[k]
                phi[w, k] = max(np.float32(share), np.float32(1e-30))
                counts[w, k] = 0.0


@kernel(fastmath=_FAST)
def fold_in(texts, pseudo_count, iterations, start, stop):
    """Estimate theta of :class:`Texts` for a fixed phi, starting from theta on entry (folding-in,
    Gao et al., section 3)."""
    K = texts.theta.shape[1]
    gain = np.empty(K, np.float32)
    for b in range(start, stop):
        theta = texts.theta[b]
        for _ in range(iterations):
            gain[:] = _ZERO
            _, length = _add_text(texts, b, gain)
            if length == 0.0:
                break
            norm = np.float32(1.0 / (length + K * pseudo_count))
            for k in range(K):
                theta[k] = (theta[k] * gain[k] + np.float32(pseudo_count)) * norm


@kernel(fastmath=_FAST)
def word_probabilities(indptr, indices, phi, theta, query, document, offsets, out, start, stop):
    """out[offsets[i] + j] = phi_w . theta[document[i]] for word j of query[i], pairs start..stop.

    Args:
        theta: float32 [n, K]. offsets: int64 [n_pairs + 1]. out: float64 [offsets[-1]].
    """
    for i in range(start, stop):
        topics = theta[document[i]]
        first = indptr[query[i]]
        for p in range(first, indptr[query[i] + 1]):
            word = phi[indices[p]]
            total = np.float32(0.0)
            for k in range(theta.shape[1]):
                total += word[k] * topics[k]
            out[offsets[i] + p - first] = total
