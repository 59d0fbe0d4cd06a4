"""Kernels of EM for topic models over pairs, by word types with counts.

With r = n(w, i) / sum_z phi_zw theta_iz, the expected counts are phi_zw theta_iz r. So a pair needs
sum_w r phi_w (for theta_i), and a word sum_i r theta_i (for phi_w): the first is computed by pair,
the second by word, and each number by one thread in one order. No posterior is stored.

CSR arrays as in :mod:`ssi_models.kernels.sparse`; phi is word-major, float32 [V, K]. Kernels
release the GIL and work on rows ``start..stop``.
"""

from __future__ import annotations

import numba as nb
import numpy as np

_FAST = {"contract", "reassoc", "nsz"}
_NO_NAN = _FAST | {"nnan"}  # without which a maximum is not vectorised; there is no NaN here
_SLACK = 1e-3  # of the dual's rise, which Barzilai and Borwein's steps may break for a while
_RUN = 32  # addends that are summed in float32 before the sum goes to float64


@nb.njit(cache=True, nogil=True, fastmath=_FAST)
def _add_side(first, last, indices, counts, phi, weights, gain, ratio):
    """gain += sum_w r_w phi_w, ratio[p] = r_w = n_w / (phi_w . weights), over entries first..last.

    Words whose probability is 0 are skipped. Returns sum_w n_w log(phi_w . weights), and sum n_w
    over the words that were not skipped. Four words at a time: their rows come from memory
    together, and weights and gain go through the registers once for all four.
    """
    K = len(weights)
    log_likelihood, length, product = 0.0, 0.0, 1.0
    probability = np.empty(4, np.float32)
    r = np.empty(4, np.float32)
    for start in range(first, last, 4):
        n = min(4, last - start)
        # Where fewer are left, the first stands in with a ratio of 0.
        a = phi[indices[start]]
        b = phi[indices[start + (1 if n > 1 else 0)]]
        c = phi[indices[start + (2 if n > 2 else 0)]]
        d = phi[indices[start + (3 if n > 3 else 0)]]
        sum_a, sum_b = np.float32(0.0), np.float32(0.0)
        sum_c, sum_d = np.float32(0.0), np.float32(0.0)
        for k in range(K):
            sum_a += a[k] * weights[k]
            sum_b += b[k] * weights[k]
            sum_c += c[k] * weights[k]
            sum_d += d[k] * weights[k]
        probability[0], probability[1], probability[2], probability[3] = sum_a, sum_b, sum_c, sum_d
        r[:] = 0.0
        for i in range(n):
            p, count = probability[i], counts[start + i]
            if p > 0.0:
                r[i] = count / p
                length += count
                # One logarithm for many factors; most counts are 1.
                if count == 1.0:
                    product *= p
                    if product < 1e-200:
                        log_likelihood += np.log(product)
                        product = 1.0
                else:
                    log_likelihood += count * np.log(np.float64(p))
            ratio[start + i] = r[i]
        ra, rb, rc, rd = r[0], r[1], r[2], r[3]
        for k in range(K):
            gain[k] += (ra * a[k] + rb * b[k]) + (rc * c[k] + rd * d[k])
    return log_likelihood + np.log(product), length


@nb.njit(cache=True, nogil=True, fastmath=_FAST)
def expect_pairs(
    q_indptr, q_indices, q_counts, d_indptr, d_indices, d_counts, phi_q, phi_d, theta,
    pseudo_count, new_theta, q_ratio, d_ratio, value, start, stop,
):  # fmt: skip
    """E-step of pairs and M-step of their theta (Gao et al., eq. 4-6).

    Args:
        theta: float32 [B, K]. pseudo_count: alpha - 1.
        new_theta: float32 [B, K], written. q_ratio, d_ratio: float32 [nnz], written.
        value: float64 [B], written: log P(q_i, d_i) under theta and phi.
    """
    K = theta.shape[1]
    gain = np.empty(K, np.float32)
    for b in range(start, stop):
        gain[:] = 0.0
        lq, nq = _add_side(
            q_indptr[b], q_indptr[b + 1], q_indices, q_counts, phi_q, theta[b], gain, q_ratio
        )
        ld, nd = _add_side(
            d_indptr[b], d_indptr[b + 1], d_indices, d_counts, phi_d, theta[b], gain, d_ratio
        )
        value[b] = lq + ld
        norm = np.float32(1.0 / max(nq + nd + K * pseudo_count, 1e-30))
        for k in range(K):
            mean = (theta[b, k] * gain[k] + np.float32(pseudo_count)) * norm
            new_theta[b, k] = max(mean, np.float32(1e-30))


@nb.njit(cache=True, nogil=True, fastmath=_NO_NAN)
def _tilt(theta, exponent, factor, bits, out):
    """out = theta exp(factor exponent - shift), shift = the largest exponent; returns shift.

    exp by its Taylor polynomial after taking out powers of two (relative error 3e-7 below
    exponents of 1 under the shift, 5e-6 at 80), because this form is vectorised.
    """
    K = len(theta)
    shift = -np.inf
    for k in range(K):
        shift = max(shift, factor * exponent[k])
    power = bits.view(np.float32)
    for k in range(K):
        x = np.float32(max(factor * exponent[k] - shift, -80.0))
        n = np.floor(x * np.float32(1.4426950408889634) + np.float32(0.5))
        bits[k] = (np.int32(n) + np.int32(127)) << np.int32(23)
        # ln 2 in two parts (Cody, Waite), the first of which n multiplies exactly.
        r = (x - n * np.float32(0.693359375)) + n * np.float32(2.12194440e-4)
        e = np.float32(1.0 / 720.0)
        e = e * r + np.float32(1.0 / 120.0)
        e = e * r + np.float32(1.0 / 24.0)
        e = e * r + np.float32(1.0 / 6.0)
        e = e * r + np.float32(0.5)
        e = e * r + np.float32(1.0)
        e = e * r + np.float32(1.0)
        out[k] = theta[k] * e
    for k in range(K):
        out[k] *= power[k]
    return shift


@nb.njit(cache=True, nogil=True, fastmath=_NO_NAN)
def project_pairs(
    q_indptr, q_indices, q_counts, d_indptr, d_indices, d_counts, phi_q, phi_d, theta,
    pseudo_count, multiplier, tolerance, limit, q_theta, d_theta, new_theta, q_ratio, d_ratio,
    value, evaluations, start, stop,
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
        value: float64 [B], written: E_Q[log P(q, d, z)] + H(Q).
        evaluations: int32 [B], written: gradients computed.
        others: see ``expect_pairs``.
    """
    K = theta.shape[1]
    q_gain, d_gain = np.empty(K, np.float32), np.empty(K, np.float32)
    gradient, scale = np.zeros(K, np.float32), np.zeros(K, np.float32)
    lam, best, step = np.zeros(K), np.zeros(K), np.zeros(K, np.float32)
    bits = np.empty(K, np.int32)
    for b in range(start, stop):
        u, v = q_theta[b], d_theta[b]
        lam[:] = multiplier[b]
        q0, q1, d0, d1 = q_indptr[b], q_indptr[b + 1], d_indptr[b], d_indptr[b + 1]
        nq, nd = np.float32(q_counts[q0:q1].sum()), np.float32(d_counts[d0:d1].sum())
        safe = nq * nd / (nq + nd)
        highest = -np.inf
        done = 0
        while True:
            q_gain[:] = 0.0
            d_gain[:] = 0.0
            q_shift = _tilt(theta[b], lam, -1.0 / nq, bits, u)
            d_shift = _tilt(theta[b], lam, 1.0 / nd, bits, v)
            lq, _ = _add_side(q0, q1, q_indices, q_counts, phi_q, u, q_gain, q_ratio)
            ld, _ = _add_side(d0, d1, d_indices, d_counts, phi_d, v, d_gain, d_ratio)
            worst = np.float32(0.0)
            moved, curved = np.float32(0.0), np.float32(0.0)
            one_q, one_d = np.float32(1.0) / nq, np.float32(1.0) / nd
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
                best[:] = lam
            elif dual < highest - _SLACK:
                lam[:] = best
                step[:] = 0.0
                length = np.float32(-1.0)
            if length > 0.0:
                for k in range(K):
                    step[k] = length * gradient[k] / scale[k]
                    lam[k] += step[k]
        multiplier[b] = lam
        evaluations[b] = done
        value[b] = lq + nq * q_shift + ld + nd * d_shift
        norm = np.float32(1.0 / max(nq + nd + K * pseudo_count, 1e-30))
        for k in range(K):
            value[b] += lam[k] * gradient[k]
            expected = u[k] * q_gain[k] + v[k] * d_gain[k]
            new_theta[b, k] = max((expected + np.float32(pseudo_count)) * norm, np.float32(1e-30))


@nb.njit(cache=True, nogil=True, fastmath=_FAST)
def add_words(words, starts, owner, position, ratio, theta, sums, first, last):
    """sums[w] += sum_i r_iw theta_i for the words of slots first..last of a block.

    Args:
        words: int32 [S]. starts: int64 [S + 1]: slot s owns entries ``starts[s]:starts[s + 1]``.
        owner, position: int32 [nnz]: an entry's pair in the block, and its place in ``ratio``.
        theta: float32 [B, K]. sums: float64 [V, K].
    """
    K = theta.shape[1]
    part = np.empty(K, np.float32)
    for s in range(first, last):
        total = sums[words[s]]
        for run in range(starts[s], starts[s + 1], _RUN):
            part[:] = 0.0
            for p in range(run, min(run + _RUN, starts[s + 1])):
                r = ratio[position[p]]
                topics = theta[owner[p]]
                for k in range(K):
                    part[k] += r * topics[k]
            for k in range(K):
                total[k] += part[k]


@nb.njit(cache=True, nogil=True, fastmath=_FAST)
def sum_logs(X, out, start, stop):
    """out[i] = sum_k log X[i, k] for rows start..stop, 0 for a row that starts with 0.

    X holds normal positive numbers. Exponents are added up as integers, and the mantissas, in
    1..2, multiplied: one logarithm for up to 96 numbers.
    """
    K = X.shape[1]
    bits = X.view(np.int32)
    mantissa_bits = np.empty(K, np.int32)
    mantissa = mantissa_bits.view(np.float32)
    for i in range(start, stop):
        out[i] = 0.0
        if X[i, 0] <= 0.0:
            continue
        exponents = np.int32(0)
        for k in range(K):
            exponents += (bits[i, k] >> np.int32(23)) - np.int32(127)
            mantissa_bits[k] = (bits[i, k] & np.int32(0x7FFFFF)) | np.int32(0x3F800000)
        out[i] = exponents * np.log(2.0)
        for first in range(0, K, 96):
            product = np.float32(1.0)
            for k in range(first, min(first + 96, K)):
                product *= mantissa[k]
            out[i] += np.log(np.float64(product))


@nb.njit(cache=True, nogil=True, fastmath=_FAST)
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


@nb.njit(cache=True, nogil=True, fastmath=_FAST)
def normalise_words(counts, norm, pseudo_count, phi, start, stop):
    """phi_w = (counts_w + beta - 1) / norm for known words (phi_w not 0) of start..stop, and
    counts_w = 0, ready for the next pass.

    Not below 1e-30: with beta = 1 a probability could reach 0 and its word count as unknown.
    """
    factor = 1.0 / norm
    for w in range(start, stop):
        if phi[w, 0] > 0.0:
            for k in range(phi.shape[1]):
                share = (counts[w, k] + pseudo_count) * factor[k]
                phi[w, k] = max(np.float32(share), np.float32(1e-30))
                counts[w, k] = 0.0


@nb.njit(cache=True, nogil=True, fastmath=_FAST)
def fold_in(indptr, indices, counts, phi, pseudo_count, iterations, theta, start, stop):
    """theta of texts under given phi (Gao et al., section 3: folding-in), from theta on entry."""
    K = theta.shape[1]
    gain = np.empty(K, np.float32)
    ratio = np.empty(len(indices), np.float32)
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


@nb.njit(cache=True, nogil=True, fastmath=_FAST)
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
