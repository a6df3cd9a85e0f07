# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""What tests of the Python package share: types, ops, and what SuCL's results must be."""

import os
import sys
import unittest

import ml_dtypes
import numpy as np

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn,
          ml_dtypes.float8_e5m2]
COMPLEX = ["complex64", "complex128"]
LOCS = ["int16", "int32", "int64", "float32", "float64"]

_BITS = {"bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}
_LOGICAL = {"logical_and": np.logical_and, "logical_or": np.logical_or,
            "logical_xor": np.logical_xor}
_NUMBERS = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}


def ops_of(dtype):
    """The ops that are defined for a dtype."""
    if dtype in INTEGERS:
        return [*_NUMBERS, "avg", *_LOGICAL, *_BITS]
    if dtype in COMPLEX:
        return ["sum", "prod", "avg"]
    if dtype == "bool":
        return ["min", "max", *_LOGICAL]
    return [*_NUMBERS, "avg"]


def contribution(dtype, rank, n=6):
    """Elements of a rank that every type holds exactly, as it does their sums and products."""
    values = np.array([(i * 3 + rank * 5) % 3 for i in range(n)])
    if dtype in COMPLEX:
        return (values + 1j * (values % 2)).astype(dtype)
    return values.astype(dtype)


def reduced(dtype, op, all_of_them):
    """What a reduction over these contributions gives."""
    whole = np.stack(all_of_them)
    if op in _LOGICAL:
        return _LOGICAL[op].reduce(whole != 0, axis=0).astype(dtype)
    if op in _BITS:
        return _BITS[op].reduce(whole, axis=0)
    wide = whole if dtype in INTEGERS or dtype == "bool" else whole.astype(
        "complex128" if dtype in COMPLEX else "float64")
    if op == "avg":
        total = whole.astype("int64").sum(axis=0) if dtype in INTEGERS else wide.sum(axis=0)
        share = total // len(whole) if dtype in INTEGERS else total / len(whole)
        return share.astype(dtype)
    return _NUMBERS[op].reduce(wide, axis=0).astype(dtype)


class OnlyDlpack:
    """An array that offers DLPack and nothing else."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class OnlyInterface:
    """An array that offers one of the array interfaces and nothing else."""

    def __init__(self, name, **entries):
        setattr(self, name, entries)


class UsedDlpack:
    """An array that always gives the same capsule, which another library has consumed."""

    def __init__(self, array):
        self._capsule = array.__dlpack__()
        np.from_dlpack(self)

    def __dlpack__(self, **options):
        return self._capsule

    def __dlpack_device__(self):
        return 1, 0


class Dead:
    """An array whose memory is gone."""

    @property
    def __sycl_usm_array_interface__(self):
        raise RuntimeError("the memory was freed")


def main(comm=None):
    """Runs the tests of the calling file. Only rank 0 of a communicator writes of success."""
    quiet = comm is not None and comm.rank != 0
    done = unittest.main(exit=False, verbosity=0 if quiet else 1, failfast=True)
    sys.stdout.flush()
    status = 0 if done.result.wasSuccessful() else 1
    if status and comm is not None and comm.size > 1:
        os._exit(status)  # the others are told, and do not wait
    sys.exit(status)
