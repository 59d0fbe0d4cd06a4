"""Feed-forward networks with one output, trained by list- and pairwise losses; callers check.

``parameters`` float64: for each layer its weights [inputs, units], row by row, then its biases
[units] (the last layer, one unit, has none: it would move all scores alike). ``sizes`` int64:
inputs, units of each hidden layer, 1. Hidden units are tanh.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr_base.compiled import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@kernel()
def forward(x: NDArray[np.float32], parameters: Floats, sizes: Ints, units: Floats) -> float:
    """The score of one row; ``units`` float64 [sum of sizes] gets the output of every layer."""
    for j in range(sizes[0]):
        units[j] = x[j]
    source, weight = 0, 0
    for layer in range(1, len(sizes)):
        n_in, n_out = sizes[layer - 1], sizes[layer]
        target = source + n_in
        out = units[target : target + n_out]
        out[:] = 0.0
        for j in range(n_in):
            value, row = units[source + j], parameters[weight + j * n_out :]
            for k in range(n_out):
                out[k] += value * row[k]
        weight += n_in * n_out
        if layer < len(sizes) - 1:
            for k in range(n_out):
                out[k] = np.tanh(out[k] + parameters[weight + k])
            weight += n_out
        source = target
    return units[source]


@kernel()
def backward(
    share: float, parameters: Floats, sizes: Ints, units: Floats, delta: Floats, gradient: Floats
) -> None:
    """Add ``share`` times the gradient of one row's score to ``gradient``; ``units`` is from
    ``forward``, ``delta`` float64 [sum of sizes] is working space."""
    source, weight = np.sum(sizes), len(parameters)
    source -= 1
    delta[source] = share
    for layer in range(len(sizes) - 1, 0, -1):
        n_in, n_out = sizes[layer - 1], sizes[layer]
        target = source
        source -= n_in
        if layer < len(sizes) - 1:
            weight -= n_out
            for k in range(n_out):
                out = units[target + k]
                delta[target + k] *= 1.0 - out * out
                gradient[weight + k] += delta[target + k]
        weight -= n_in * n_out
        gradients = delta[target : target + n_out]
        for j in range(n_in):
            value = units[source + j]
            here = weight + j * n_out
            row = gradient[here : here + n_out]
            for k in range(n_out):
                row[k] += value * gradients[k]
            if layer > 1:  # gradients of the inputs are not needed
                row = parameters[here : here + n_out]
                total = 0.0
                for k in range(n_out):
                    total += row[k] * gradients[k]
                delta[source + j] = total


@kernel()
def list_gradients(scores: Floats, targets: Floats, gradients: Floats) -> float:
    """Cross entropy of softmax(scores) to ``targets`` (sum 1); its derivatives go to
    ``gradients``."""
    largest = scores.max()
    total = 0.0
    for i in range(len(scores)):
        gradients[i] = np.exp(scores[i] - largest)
        total += gradients[i]
    loss = 0.0
    for i in range(len(scores)):
        loss -= targets[i] * (scores[i] - largest - np.log(total))
        gradients[i] = gradients[i] / total - targets[i]
    return loss


@kernel()
def pair_gradients(scores: Floats, labels: Floats, gradients: Floats) -> float:
    """Mean over the pairs (i, j) with label i > label j of log(1 + exp(s_j - s_i)); its gradient
    goes to ``gradients``."""
    gradients[:] = 0.0
    loss, n_pairs = 0.0, 0
    lowest = labels.min()
    for i in range(len(scores)):
        if labels[i] == lowest:
            continue
        for j in range(len(scores)):
            if labels[i] > labels[j]:
                n_pairs += 1
                small = np.exp(-abs(scores[i] - scores[j]))
                loss += max(scores[j] - scores[i], 0.0) + np.log1p(small)
                above = scores[i] > scores[j]
                pull = small / (1.0 + small) if above else 1.0 / (1.0 + small)
                gradients[i] -= pull
                gradients[j] += pull
    if n_pairs > 0:
        gradients /= n_pairs
        loss /= n_pairs
    return loss


class Queries(NamedTuple):
    """Rows to learn from, those of a query adjacent."""

    X: NDArray[np.float32]  # [n, inputs]
    targets: Floats  # [n]: labels (pairwise), else each row's share of its query, sum 1
    offsets: Ints  # [m + 1]


@kernel()
def batch_gradient(
    rows: Queries, batch: Ints, pairwise: bool, parameters: Floats, sizes: Ints, gradient: Floats
) -> float:
    """Mean loss of the queries in ``batch``; ``gradient`` gets its gradient."""
    gradient[:] = 0.0
    longest = 0
    for q in batch:
        longest = max(longest, rows.offsets[q + 1] - rows.offsets[q])
    units = np.empty((longest, sizes.sum()))
    delta = np.empty(sizes.sum())
    scores, gradients = np.empty(longest), np.empty(longest)
    loss = 0.0
    for q in batch:
        start, n = rows.offsets[q], rows.offsets[q + 1] - rows.offsets[q]
        for i in range(n):
            scores[i] = forward(rows.X[start + i], parameters, sizes, units[i])
        wanted = rows.targets[start : start + n]
        if pairwise:
            loss += pair_gradients(scores[:n], wanted, gradients[:n])
        else:
            loss += list_gradients(scores[:n], wanted, gradients[:n])
        for i in range(n):
            if gradients[i] != 0.0:
                backward(gradients[i], parameters, sizes, units[i], delta, gradient)
    gradient /= len(batch)
    return loss / len(batch)


@kernel()
def train_epoch(
    rows: Queries,
    order: Ints,
    batch_size: int,
    pairwise: bool,
    rate: float,
    decay: float,
    parameters: Floats,
    sizes: Ints,
    moments: Floats,
    step: int,
) -> int:
    """One pass over the queries in the order given, by Adam with decoupled weight decay.

    ``moments`` float64 [2, number of parameters] and ``parameters`` are updated in place; ``step``
    counts the batches so far, and the new count is returned. Kingma, Ba, ICLR 2015; Loshchilov,
    Hutter, ICLR 2019.
    """
    gradient = np.empty(len(parameters))
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        batch_gradient(rows, batch, pairwise, parameters, sizes, gradient)
        step += 1
        first, second = 1.0 - 0.9**step, 1.0 - 0.999**step
        for p in range(len(parameters)):
            g = gradient[p]
            moments[0, p] += 0.1 * (g - moments[0, p])
            moments[1, p] += 0.001 * (g * g - moments[1, p])
            change = moments[0, p] / first / (np.sqrt(moments[1, p] / second) + 1e-8)
            parameters[p] -= rate * (change + decay * parameters[p])
    return step


@kernel()
def network_scores(X: NDArray[np.float32], parameters: Floats, sizes: Ints) -> Floats:
    """float64 [n]: the score of each row."""
    units = np.empty(sizes.sum())
    scores = np.empty(len(X))
    for i in range(len(X)):
        scores[i] = forward(X[i], parameters, sizes, units)
    return scores
