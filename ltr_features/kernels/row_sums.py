"""Sums over rows of a matrix by the processor's vectors, which numba's loops come to only partly.

Both functions take a C-contiguous float32 matrix, whose width is a multiple of :data:`LANES`
(pad by 0), and :data:`TOGETHER` of its rows at once, ``rows[at + i]`` for i from 0; int64 indices.
On processors with shorter vectors, one here is several there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

#: float32 numbers in a vector.
LANES = 16
#: Rows that are worked on together.
TOGETHER = 4

_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_ZEROS = ir.Constant(_VECTOR, [0.0] * LANES)
_FUSED = ("contract",)


class _Rows:
    """Addresses of what the two functions read and write."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        line, matrix, rows, factors = (
            context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 1, 2, 4)
        )
        self.builder = builder
        self.line = line.data
        self.width = builder.extract_value(matrix.shape, 1)
        self.rows, self.factors = [], []
        for i in range(TOGETHER):
            at, first = (builder.add(args[j], args[j].type(i)) for j in (3, 5))
            row = builder.load(builder.gep(rows.data, [at]))
            self.rows.append(builder.gep(matrix.data, [builder.mul(row, self.width)]))
            self.factors.append(builder.gep(factors.data, [first]))

    @contextmanager
    def columns(self) -> Iterator[tuple[Any, list[Any]]]:
        """A loop over the columns: where the line's vector is, and the vectors of the rows."""
        zero, step = self.width.type(0), self.width.type(LANES)
        with cgutils.for_range_slice(self.builder, zero, self.width, step, inc=True) as (k, _):
            line, *rows = (
                self.builder.bitcast(self.builder.gep(p, [k]), _VECTOR.as_pointer())
                for p in (self.line, *self.rows)
            )
            yield line, [self.builder.load(row, align=4) for row in rows]


@intrinsic
def dot_rows(
    typing_context: Any, line: Any, matrix: Any, rows: Any, at: Any, out: Any, first: Any
) -> Any:
    """``out[first + i] = line . matrix[rows[at + i]]``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        over = _Rows(context, builder, signature, args)
        sums = [cgutils.alloca_once_value(builder, _ZEROS) for _ in over.rows]
        with over.columns() as (line, rows):
            x = builder.load(line, align=4)
            for total, row in zip(sums, rows, strict=True):
                product = builder.fmul(x, row, flags=_FUSED)
                builder.store(builder.fadd(builder.load(total), product, flags=_FUSED), total)
        kind = ir.FunctionType(ir.FloatType(), [ir.FloatType(), _VECTOR])
        name = f"llvm.vector.reduce.fadd.v{LANES}f32"
        reduce = cgutils.get_or_insert_function(builder.module, kind, name)
        for total, factor in zip(sums, over.factors, strict=True):
            parts = [ir.Constant(ir.FloatType(), 0.0), builder.load(total)]
            builder.store(builder.call(reduce, parts, fastmath=("reassoc", "nsz")), factor)
        return context.get_dummy_value()

    return types.void(line, matrix, rows, at, out, first), generate


@intrinsic
def add_rows(
    typing_context: Any, line: Any, matrix: Any, rows: Any, at: Any, factors: Any, first: Any
) -> Any:
    """``line += sum over i of factors[first + i] matrix[rows[at + i]]``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        over = _Rows(context, builder, signature, args)
        first_lane = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        factors = []
        for factor in over.factors:
            alone = builder.insert_element(_ZEROS, builder.load(factor), ir.IntType(32)(0))
            factors.append(builder.shuffle_vector(alone, _ZEROS, first_lane))
        with over.columns() as (line, rows):
            total = builder.load(line, align=4)
            for factor, row in zip(factors, rows, strict=True):
                total = builder.fadd(total, builder.fmul(factor, row, flags=_FUSED), flags=_FUSED)
            builder.store(total, line, align=4)
        return context.get_dummy_value()

    return types.void(line, matrix, rows, at, factors, first), generate
