"""Single instructions of the processor that numba has no name for."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def prefetch(typing_context: Any, array: Any, row: Any, column: Any) -> Any:
    """Ask for the cache line of ``array[row, column]``, a C-contiguous matrix, to be brought into
    the second level of the cache; reads nothing. (The first level has room for few outstanding
    lines, and the loads themselves need them.)"""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        matrix = context.make_array(signature.args[0])(context, builder, args[0])
        indices = [
            context.cast(builder, value, kind, types.intp)
            for value, kind in zip(args[1:], signature.args[1:], strict=True)
        ]
        at = cgutils.get_item_pointer(context, builder, signature.args[0], matrix, indices)
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        instruction = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        # To read; to be kept in the second level and above; of data.
        flags = [ir.Constant(flag, value) for value in (0, 2, 1)]
        builder.call(instruction, [builder.bitcast(at, byte), *flags])
        return context.get_dummy_value()

    return types.void(array, row, column), generate


@intrinsic
def as_float(typing_context: Any, bits: Any) -> Any:
    """The float32 that the bits of an int32 mean."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), generate


@intrinsic
def as_int(typing_context: Any, number: Any) -> Any:
    """The bits of a float32, as an int32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), generate
