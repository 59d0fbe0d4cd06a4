"""Limited-memory BFGS whose state can be saved and resumed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ltr_base.quiet import ignored

MEMORY = 10  # pairs of steps and gradient changes that approximate the Hessian
ValueAndGradient = Callable[[NDArray[np.float32]], tuple[float, NDArray[np.float32]]]


class LBFGS:
    """Limited-memory BFGS of a function of one vector, one iteration at a time.

    Every array that an iteration reads is in ``state``, so that a run can be resumed.
    Steps satisfy the strong Wolfe conditions (:func:`scipy.optimize.line_search`), so the value
    never rises.

    Args:
        x: float32 [n], changed in place.
        value_and_gradient: returns (float, float32 [n]) for a vector.

    Reference:
        Nocedal, Wright: "Numerical optimization", algorithms 7.4 and 7.5.
    """

    def __init__(self, x: NDArray[np.float32], value_and_gradient: ValueAndGradient) -> None:
        self.x, self._function = x, value_and_gradient
        self.steps = np.zeros((MEMORY, len(x)), np.float32)
        self.changes = np.zeros((MEMORY, len(x)), np.float32)
        self.n = np.zeros(1, np.int64)
        self._last: tuple[NDArray[np.float32], float, NDArray[np.float32]] | None = None

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        return {"steps": self.steps, "changes": self.changes, "n_steps": self.n}

    def iterate(self) -> float:
        """Take one step; returns the value after it, the same if no step lowers it."""
        value, gradient = self._at(self.x)
        direction = self._direction(gradient)
        found = self._search(value, gradient, direction)
        if found is None and self.n[0]:
            self.n[0] = 0
            found = self._search(value, gradient, self._direction(gradient))
        if found is None:
            return value
        step, new_value, new_gradient = found
        change = new_gradient - gradient
        if float(step @ change) > 0:
            slot = self.n[0] % MEMORY
            self.steps[slot], self.changes[slot] = step, change
            self.n[0] += 1
        self.x += step
        self._last = (self.x.copy(), new_value, new_gradient)
        return new_value

    def _at(self, x: NDArray[np.float32]) -> tuple[float, NDArray[np.float32]]:
        if self._last is None or not np.array_equal(self._last[0], x):
            self._last = (x.copy(), *self._function(x))
        return self._last[1:]

    def _direction(self, gradient: NDArray[np.float32]) -> NDArray[np.float32]:
        n = int(self.n[0])
        if n == 0:
            # The first step is a hundredth of the vector's length.
            length = float(np.linalg.norm(gradient)) or 1.0
            return gradient * np.float32(-0.01 * float(np.linalg.norm(self.x)) / length)
        slots = [i % MEMORY for i in range(max(0, n - MEMORY), n)]
        r = gradient.copy()
        curvature = {i: float(self.steps[i] @ self.changes[i]) for i in slots}
        alpha = {}
        for i in reversed(slots):
            alpha[i] = float(self.steps[i] @ r) / curvature[i]
            r -= np.float32(alpha[i]) * self.changes[i]
        newest = self.changes[slots[-1]]
        r *= np.float32(curvature[slots[-1]] / float(newest @ newest))
        for i in slots:
            beta = float(self.changes[i] @ r) / curvature[i]
            r += np.float32(alpha[i] - beta) * self.steps[i]
        return -r

    def _search(
        self, value: float, gradient: NDArray[np.float32], direction: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], float, NDArray[np.float32]] | None:
        """(step, value, gradient) that satisfies the strong Wolfe conditions; None if none is
        found."""
        # Finding no step is a valid result here, which ends the descent.
        with ignored("The line search algorithm did not converge"):
            alpha = scipy.optimize.line_search(
                lambda x: self._at(x)[0],
                lambda x: self._at(x)[1],
                self.x,
                direction,
                gradient,
                value,
                maxiter=20,
            )[0]
        if alpha is None:
            return None
        step = np.float32(alpha) * direction
        new_value, new_gradient = self._at(self.x + step)
        # In float32 a step may be too short to lower the value.
        return (step, new_value, new_gradient) if new_value < value else None
