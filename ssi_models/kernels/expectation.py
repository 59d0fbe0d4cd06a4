"""Kernels of EM for topic models over pairs, by word types with counts.

With r = n(w, i) / sum_z phi_zw theta_iz, the expected counts are phi_zw theta_iz r. So a pair needs
sum_w r phi_w (for theta_i), and a word sum_i r theta_i (for phi_w): the first is computed by pair,
the second by word, and each number by one thread in one order. No posterior is stored.

CSR arrays as in :mod:`ssi_models.kernels.sparse`; phi is word-major, float32 [V, K]. Kernels
release the GIL and work on rows ``start..stop``. They are compiled without numba's runtime
(``_nrt=False``) and so get their scratch arrays from the caller: with it every row that is taken
of an array counts a reference up and down, and threads wait for each other's counting.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from ssi_models.kernels.instructions import as_float, as_int, prefetch

_FAST = {"contract", "reassoc", "nsz"}
_NO_NAN = _FAST | {"nnan"}  # without which a maximum is not vectorised; there is no NaN here
_PAIRS_AHEAD, _WORDS_AHEAD = 2, 3  # that are fetched while one is worked on; by measurement
_SLACK = 1e-3  # of the dual's rise, which Barzilai and Borwein's steps may break for a while


@nb.njit(cache=True, nogil=True, _nrt=False, forceinline=True)
def _ask_for(first, last, indices, X):
    """Have the rows of X that the entries first..last name fetched while others are worked on."""
    for p in range(first, last):
        for k in range(0, X.shape[1], 16):
            prefetch(X, indices[p], k)


@nb.njit(cache=True, nogil=True, _nrt=False, fastmath=_FAST, forceinline=True)
def _add_side(first, last, indices, counts, phi, weights, gain, ratio):
    """gain += sum_w r_w phi_w, ratio[p] = r_w = n_w / (phi_w . weights), over entries first..last.

    Words whose probability is 0 are skipped. Returns sum_w n_w log(phi_w . weights), and sum n_w
    over the words that were not skipped. Four words at a time where three or more are left, so
    that weights and gain go through the registers once for all.
    """
    K = len(weights)
    p = first
    while p < last:
        n = min(4, last - p) if last - p > 2 else 1
        a = phi[indices[p]]
        sum_a, sum_b = np.float32(0.0), np.float32(0.0)
        sum_c, sum_d = np.float32(0.0), np.float32(0.0)
        if n == 1:
            for k in range(K):
                sum_a += a[k] * weights[k]
        else:
            b, c, d = phi[indices[p + 1]], phi[indices[p + 2]], phi[indices[p + n - 1]]
            for k in range(K):
                sum_a += a[k] * weights[k]
                sum_b += b[k] * weights[k]
                sum_c += c[k] * weights[k]
                sum_d += d[k] * weights[k]
            ratio[p + 1], ratio[p + 2], ratio[p + n - 1] = sum_b, sum_c, sum_d
        ratio[p] = sum_a
        p += n
    log_likelihood, length, product = 0.0, 0.0, 1.0
    for p in range(first, last):
        probability, count = ratio[p], counts[p]
        ratio[p] = 0.0
        if probability > 0.0:
            ratio[p] = count / probability
            length += count
            # One logarithm for many factors; most counts are 1.
            if count == 1.0:
                product *= probability
                if product < 1e-200:
                    log_likelihood += np.log(product)
                    product = 1.0
            else:
                log_likelihood += count * np.log(np.float64(probability))
    p = first
    while p < last:
        n = min(4, last - p) if last - p > 2 else 1
        a, ra = phi[indices[p]], ratio[p]
        if n == 1:
            for k in range(K):
                gain[k] += ra * a[k]
        else:
            b, c, d = phi[indices[p + 1]], phi[indices[p + 2]], phi[indices[p + n - 1]]
            rb, rc = ratio[p + 1], ratio[p + 2]
            rd = ratio[p + 3] if n == 4 else np.float32(0.0)
            for k in range(K):
                gain[k] += (ra * a[k] + rb * b[k]) + (rc * c[k] + rd * d[k])
        p += n
    return log_likelihood + np.log(product), length


@nb.njit(cache=True, nogil=True, _nrt=False, fastmath=_FAST, forceinline=True)
def _log_sum(x):
    """sum_k log x_k of normal positive numbers.

    Exponents are added up as integers, and the mantissas, in 1..2, multiplied: one logarithm for
    up to 120 numbers.
    """
    exponents, logs = np.int32(0), 0.0
    for first in range(0, len(x), 120):
        product = np.float32(1.0)
        for k in range(first, min(first + 120, len(x))):
            bits = as_int(x[k])
            exponents += (bits >> np.int32(23)) - np.int32(127)
            product *= as_float((bits & np.int32(0x7FFFFF)) | np.int32(0x3F800000))
        logs += np.log(np.float64(product))
    return logs + exponents * np.log(2.0)


@nb.njit(cache=True, nogil=True, _nrt=False, fastmath=_FAST)
def expect_pairs(
    q_indptr, q_indices, q_counts, d_indptr, d_indices, d_counts, phi_q, phi_d, theta,
    pseudo_count, old_theta, q_ratio, d_ratio, value, gain, start, stop,
):  # fmt: skip
    """E-step of pairs and M-step of their theta (Gao et al., eq. 4-6).

    Args:
        theta: float32 [B, K]; the new one on return. pseudo_count: alpha - 1.
        old_theta: float32 [B, K], written: theta on entry.
        q_ratio, d_ratio: float32 [nnz], written: n(w, i) / sum_z phi_zw theta_iz.
        value: float64 [B], written: log P(q_i, d_i) + (alpha - 1) sum_z log theta_iz on entry.
        gain: float32 [K], scratch.
    """
    K = theta.shape[1]
    for b in range(start, stop):
        ahead = b + _PAIRS_AHEAD
        if ahead < stop:
            _ask_for(q_indptr[ahead], q_indptr[ahead + 1], q_indices, phi_q)
            _ask_for(d_indptr[ahead], d_indptr[ahead + 1], d_indices, phi_d)
        weights = old_theta[b]
        for k in range(K):
            weights[k] = theta[b, k]
            gain[k] = 0.0
        lq, nq = _add_side(
            q_indptr[b], q_indptr[b + 1], q_indices, q_counts, phi_q, weights, gain, q_ratio
        )
        ld, nd = _add_side(
            d_indptr[b], d_indptr[b + 1], d_indices, d_counts, phi_d, weights, gain, d_ratio
        )
        value[b] = lq + ld
        if pseudo_count > 0.0:
            value[b] += pseudo_count * _log_sum(theta[b])
        norm = np.float32(1.0 / max(nq + nd + K * pseudo_count, 1e-30))
        for k in range(K):
            mean = (weights[k] * gain[k] + np.float32(pseudo_count)) * norm
            theta[b, k] = max(mean, np.float32(1e-30))


@nb.njit(cache=True, nogil=True, _nrt=False, fastmath=_NO_NAN, forceinline=True)
def _exp(x):
    """exp(x) for x in -80..0, and as much as rounding may put x above 0.

    By its Taylor polynomial after taking out powers of two (relative error 2e-7), because this
    form is vectorised.
    """
    power = np.int32(x * np.float32(1.4426950408889634) - np.float32(0.5))
    n = np.float32(power)
    # ln 2 in two parts (Cody, Waite), the first of which n multiplies exactly.
    r = (x - n * np.float32(0.693359375)) + n * np.float32(2.12194440e-4)
    e = np.float32(1.0 / 720.0)
    e = e * r + np.float32(1.0 / 120.0)
    e = e * r + np.float32(1.0 / 24.0)
    e = e * r + np.float32(1.0 / 6.0)
    e = e * r + np.float32(0.5)
    e = e * r + np.float32(1.0)
    e = e * r + np.float32(1.0)
    return e * as_float((power + np.int32(127)) << np.int32(23))


@nb.njit(cache=True, nogil=True, _nrt=False, fastmath=_NO_NAN, forceinline=True)
def _tilt(theta, lam, one_q, one_d, u, v):
    """u = theta exp(-lambda one_q - a) and v = theta exp(lambda one_d - b), where a and b make the
    largest factor 1; returns a and b. All float32."""
    least = greatest = lam[0]
    for k in range(len(lam)):
        least, greatest = min(least, lam[k]), max(greatest, lam[k])
    a, b, floor = -least * one_q, greatest * one_d, np.float32(-80.0)
    for k in range(len(lam)):
        u[k] = theta[k] * _exp(max(-lam[k] * one_q - a, floor))
        v[k] = theta[k] * _exp(max(lam[k] * one_d - b, floor))
    return np.float64(a), np.float64(b)


@nb.njit(cache=True, nogil=True, _nrt=False, fastmath=_NO_NAN)
def project_pairs(
    q_indptr, q_indices, q_counts, d_indptr, d_indices, d_counts, phi_q, phi_d, theta,
    pseudo_count, multiplier, tolerance, limit, q_theta, d_theta, q_ratio, d_ratio, value,
    evaluations, scratch, points, start, stop,
):  # fmt: skip
    """E-step of pairs, projected so that query and title have equal topic fractions, and M-step
    of theta (Gao et al., eq. 9-13).

    The projected posteriors are those of theta exp(-lambda / |q|) for the query and
    theta exp(lambda / |d|) for the title. The dual is maximised by scaled ascent,

        lambda += step 2 (f_q - f_d) / ((f_q + f_d) (1 / |q| + 1 / |d|)),

    f being the fractions. With step 1 it rises always (log(f_q / f_d) in place of its first term
    2 (f_q - f_d) / (f_q + f_d) maximises a lower bound of it that touches at lambda); steps
    after the first are Barzilai and Borwein's in that scaling, and step 1 again from the best
    point where one has gone too far.

    Args:
        multiplier: float32 [B, K], lambda; the start on entry, the solution on return.
        tolerance: the largest |f_q - f_d| that is accepted. limit: most evaluations per pair.
        q_theta, d_theta: float32 [B, K], written: the two tilted theta.
        value: float64 [B], written: E_Q[log P(q, d, z)] + H(Q) + (alpha - 1) sum_z log theta_iz.
        evaluations: int32 [B], written: gradients computed.
        scratch: float32 [6, K]. points: float64 [2, K], scratch too.
        others: see ``expect_pairs``.
    """
    K = theta.shape[1]
    q_gain, d_gain, gradient = scratch[0], scratch[1], scratch[2]
    scale, step, rounded = scratch[3], scratch[4], scratch[5]
    lam, best = points[0], points[1]
    scratch[:] = 0.0
    points[:] = 0.0
    for b in range(start, stop):
        ahead = b + _PAIRS_AHEAD
        if ahead < stop:
            _ask_for(q_indptr[ahead], q_indptr[ahead + 1], q_indices, phi_q)
            _ask_for(d_indptr[ahead], d_indptr[ahead + 1], d_indices, phi_d)
        u, v = q_theta[b], d_theta[b]
        for k in range(K):
            lam[k] = multiplier[b, k]
        q0, q1, d0, d1 = q_indptr[b], q_indptr[b + 1], d_indptr[b], d_indptr[b + 1]
        nq, nd = np.float32(q_counts[q0:q1].sum()), np.float32(d_counts[d0:d1].sum())
        one_q, one_d = np.float32(1.0) / nq, np.float32(1.0) / nd
        safe = nq * nd / (nq + nd)
        highest = -np.inf
        done = 0
        while True:
            q_gain[:] = 0.0
            d_gain[:] = 0.0
            for k in range(K):
                rounded[k] = lam[k]
            q_shift, d_shift = _tilt(theta[b], rounded, one_q, one_d, u, v)
            lq, _ = _add_side(q0, q1, q_indices, q_counts, phi_q, u, q_gain, q_ratio)
            ld, _ = _add_side(d0, d1, d_indices, d_counts, phi_d, v, d_gain, d_ratio)
            worst = np.float32(0.0)
            moved, curved = np.float32(0.0), np.float32(0.0)
            half = np.float32(0.5) / safe
            for k in range(K):
                fq, fd = u[k] * q_gain[k] * one_q, v[k] * d_gain[k] * one_d
                change = gradient[k] - (fq - fd)
                curved += step[k] * change
                moved += step[k] * step[k] * scale[k]
                gradient[k] = fq - fd
                scale[k] = half * (fq + fd) + np.float32(1e-30)
            for k in range(K):
                size = abs(gradient[k])
                worst = size if size > worst else worst
            done += 1
            if worst < tolerance or done >= limit:
                break
            length = np.float32(1.0)
            if done > 1 and curved > 0.0:
                length = min(max(moved / curved, np.float32(1.0)), np.float32(100.0))
            dual = -(lq + nq * q_shift + ld + nd * d_shift)
            if dual > highest:
                highest = dual
                for k in range(K):
                    best[k] = lam[k]
            elif dual < highest - _SLACK:
                for k in range(K):
                    lam[k], step[k] = best[k], 0.0
                length = np.float32(-1.0)
            if length > 0.0:
                for k in range(K):
                    step[k] = length * gradient[k] / scale[k]
                    lam[k] += step[k]
        for k in range(K):
            multiplier[b, k] = lam[k]
        evaluations[b] = done
        value[b] = lq + nq * q_shift + ld + nd * d_shift
        if pseudo_count > 0.0:
            value[b] += pseudo_count * _log_sum(theta[b])
        norm = np.float32(1.0 / max(nq + nd + K * pseudo_count, 1e-30))
        for k in range(K):
            value[b] += lam[k] * gradient[k]
            expected = u[k] * q_gain[k] + v[k] * d_gain[k]
            theta[b, k] = max((expected + np.float32(pseudo_count)) * norm, np.float32(1e-30))


@nb.njit(cache=True, nogil=True, _nrt=False, fastmath=_FAST)
def add_words(words, starts, owner, position, ratio, theta, sums, first, last):
    """sums[w] += sum_i r_iw theta_i for the words of slots first..last of a block.

    Args:
        words: int32 [S]. starts: int64 [S + 1]: slot s owns entries ``starts[s]:starts[s + 1]``.
        owner, position: int32 [nnz]: an entry's pair in the block, and its place in ``ratio``.
        theta: float32 [B, K]. sums: float64 [V, K].
    """
    K = theta.shape[1]
    for s in range(first, last):
        if s + _WORDS_AHEAD < last:
            for k in range(0, K, 8):
                prefetch(sums, words[s + _WORDS_AHEAD], k)
        w = words[s]
        p, stop = starts[s], starts[s + 1]
        while p < stop:
            n = min(4, stop - p)
            a, ra = theta[owner[p]], ratio[position[p]]
            if n == 1:
                for k in range(K):
                    sums[w, k] += ra * a[k]
            elif n == 2:
                b, rb = theta[owner[p + 1]], ratio[position[p + 1]]
                for k in range(K):
                    sums[w, k] += ra * a[k] + rb * b[k]
            else:
                b, c, d = theta[owner[p + 1]], theta[owner[p + 2]], theta[owner[p + n - 1]]
                rb, rc = ratio[position[p + 1]], ratio[position[p + 2]]
                rd = ratio[position[p + 3]] if n == 4 else np.float32(0.0)
                for k in range(K):
                    sums[w, k] += (ra * a[k] + rb * b[k]) + (rc * c[k] + rd * d[k])
            p += n


@nb.njit(cache=True, nogil=True, _nrt=False, fastmath=_FAST)
def sum_logs(X, out, start, stop):
    """out[i] = sum_k log X[i, k] for rows start..stop of normal positive numbers, 0 for a row that
    starts with 0."""
    for i in range(start, stop):
        out[i] = _log_sum(X[i]) if X[i, 0] > 0.0 else 0.0


@nb.njit(cache=True, nogil=True, _nrt=False, fastmath=_FAST)
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


@nb.njit(cache=True, nogil=True, _nrt=False, fastmath=_FAST)
def normalise_words(counts, factor, pseudo_count, phi, start, stop):
    """phi_w = (counts_w + beta - 1) factor for known words (phi_w not 0) of start..stop, and
    counts_w = 0, ready for the next pass.

    Not below 1e-30: with beta = 1 a probability could reach 0 and its word count as unknown.
    """
    for w in range(start, stop):
        if phi[w, 0] > 0.0:
            for k in range(phi.shape[1]):
                share = (counts[w, k] + pseudo_count) * factor[k]
                phi[w, k] = max(np.float32(share), np.float32(1e-30))
                counts[w, k] = 0.0


@nb.njit(cache=True, nogil=True, _nrt=False, fastmath=_FAST)
def fold_in(
    indptr, indices, counts, phi, pseudo_count, iterations, theta, gain, ratio, start, stop
):  # fmt: skip
    """theta of texts under given phi (Gao et al., section 3: folding-in), from theta on entry.
    ``gain``, float32 [K], and ``ratio``, float32 [nnz], are scratch."""
    K = theta.shape[1]
    for b in range(start, stop):
        for _ in range(iterations):
            gain[:] = 0.0
            _, length = _add_side(
                indptr[b], indptr[b + 1], indices, counts, phi, theta[b], gain, ratio
            )
            if length == 0.0:
                break
            norm = np.float32(1.0 / (length + K * pseudo_count))
            for k in range(K):
                theta[b, k] = (theta[b, k] * gain[k] + np.float32(pseudo_count)) * norm


@nb.njit(cache=True, nogil=True, _nrt=False, fastmath=_FAST)
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
