# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Names of operations, reduction operators and element types."""

from typing import Any

from .errors import InvalidArgumentError, InvalidTypeError

#: The other rank of a message that goes nowhere.
NO_RANK = -1

#: Kinds of operation, and SuCL's numbers of them.
KINDS = {name: number for number, name in enumerate((
    "barrier", "broadcast", "reduce", "allreduce", "reduce_scatter", "reduce_scatter_block",
    "allgather", "allgatherv", "alltoall", "alltoallv", "gather", "gatherv", "scatter", "scatterv",
    "scan", "exscan", "send", "recv", "sendrecv", "group"))}

#: Reduction operators, as the argument `op` names them, and SuCL's numbers of them.
OPS = {name: number for number, name in enumerate((
    "sum", "prod", "min", "max", "avg", "logical_and", "logical_or", "logical_xor", "bit_and",
    "bit_or", "bit_xor", "minloc", "maxloc"), 1)}

#: Element types, and SuCL's numbers of them. `bytes` are elements that are moved, not reduced.
TYPES = {name: number for number, name in enumerate((
    "bytes", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "fp16",
    "bf16", "fp32", "fp64", "complex_fp32", "complex_fp64", "int16_loc", "int32_loc", "int64_loc",
    "fp32_loc", "fp64_loc", "bool", "fp8_e4m3", "fp8_e5m2"))}

# What array libraries call them.
_DTYPES = {
    "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64",
    "complex64": "complex_fp32", "complex128": "complex_fp64", "float8_e4m3fn": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2"}


def op_number(op):
    """SuCL's number of a reduction operator.

    >>> op_number("sum")
    1
    """
    try:
        return OPS[op]
    except (KeyError, TypeError):
        raise InvalidArgumentError.of(
            f"there is no op {op!r}", f"Pass one of {', '.join(OPS)}") from None


def kind_number(kind):
    """SuCL's number of a kind of operation.

    >>> kind_number("allreduce")
    3
    """
    try:
        return KINDS[kind]
    except (KeyError, TypeError):
        raise InvalidArgumentError.of(
            f"there is no operation {kind!r}", f"Pass one of {', '.join(KINDS)}") from None


def dtype_name(dtype):
    """The name of a dtype of numpy, torch or another library, or of its name or numpy's code.

    >>> dtype_name("float32"), dtype_name("<f4")
    ('float32', 'float32')
    """
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    name = name.rpartition(".")[2]
    if name in TYPES or name in _DTYPES:
        return name
    try:
        import numpy

        return numpy.dtype(name).name
    except (ImportError, TypeError):
        return name


def type_number(dtype):
    """SuCL's number of an element type, by its own name or that of a dtype.

    >>> type_number("float32") == type_number("fp32")
    True
    """
    name = dtype_name(dtype)
    try:
        return TYPES[_DTYPES.get(name, name)]
    except KeyError:
        raise InvalidTypeError.of(
            f"there is no element type {name!r}", f"Pass one of {', '.join(TYPES)}") from None


def defined(op: str, dtype: Any) -> bool:
    """Whether a reduction operator is defined for an element type, or a dtype of numpy or another
    library.

    >>> defined("sum", "bfloat16"), defined("max", "complex64")
    (True, False)
    """
    from . import _core

    return _core.defined(op_number(op), type_number(dtype))


def loc_dtype(value: Any) -> Any:
    """numpy's dtype of a value with an index, for the ops minloc and maxloc.

    Args:
        value: int16, int32, int64, float32 or float64.

    >>> loc_dtype("float32").names
    ('value', 'index')
    """
    import numpy

    return numpy.dtype([("value", value), ("index", "int32")], align=True)
