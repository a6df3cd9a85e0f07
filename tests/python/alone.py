# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The Python package in one process: what it makes of arrays, errors, the program, doctests."""

import array
import contextlib
import doctest
import importlib
import os
import subprocess
import sys
import unittest
from pathlib import Path

import ml_dtypes
import numpy as np
import sucl
import support


def seen(thing):
    return sucl._core.describe_array(thing)


def numpy_like(**changed):
    x = np.zeros(4)
    return support.OnlyInterface("__array_interface__", **{
        "data": (x.ctypes.data, False), "shape": (4,), "typestr": "<f8", "version": 3, **changed})


class Arrays(unittest.TestCase):
    def test_every_type_of_numpy_is_known(self):
        names = {"int8": "int8", "uint64": "uint64", "float16": "fp16", "float32": "fp32",
                 "float64": "fp64", "complex64": "complex_fp32", "complex128": "complex_fp64",
                 "bool": "bool", ml_dtypes.bfloat16: "bf16", ml_dtypes.float8_e4m3fn: "fp8_e4m3",
                 ml_dtypes.float8_e5m2: "fp8_e5m2", "M8[s]": "bytes", "S7": "bytes",
                 "V24": "bytes", "longdouble": "bytes"}
        for dtype, name in names.items():
            x = np.zeros((2, 3), dtype)
            self.assertEqual(seen(x), (name, x.itemsize, 6, False, x.ctypes.data), dtype)

    def test_pairs_with_an_index_are_known(self):
        for value in support.LOCS:
            name = {"float32": "fp32", "float64": "fp64"}.get(value, value) + "_loc"
            self.assertEqual(seen(np.zeros(3, sucl.loc_dtype(value)))[0], name)

    def test_protocols_see_the_same(self):
        x = np.arange(6, dtype="float32").reshape(2, 3)
        interface = {k: x.__array_interface__[k] for k in ("data", "shape", "typestr", "version")}
        expected = ("fp32", 4, 6, False, x.ctypes.data)
        for form in (x, memoryview(x), support.OnlyDlpack(x),
                     support.OnlyInterface("__array_interface__", **interface),
                     support.OnlyInterface("__cuda_array_interface__", **interface),
                     support.OnlyInterface("__sycl_usm_array_interface__", **interface,
                                           syclobj=None)):
            self.assertEqual(seen(form), expected, form)
        self.assertEqual(seen(array.array("d", [1, 2]))[:3], ("fp64", 8, 2))
        self.assertEqual(seen(bytearray(5))[:4], ("uint8", 1, 5, False))
        self.assertEqual(seen(b"12345")[:4], ("uint8", 1, 5, True))
        self.assertEqual(seen(np.float32(1))[:3], ("fp32", 4, 1))

    def test_sycl_offset_and_strides_are_in_elements(self):
        x = np.zeros((4, 3))
        form = support.OnlyInterface(
            "__sycl_usm_array_interface__", data=(x.ctypes.data, False), shape=(2, 3), offset=6,
            strides=(3, 1), typestr="<f8", version=1, syclobj=None)
        self.assertEqual(seen(form), ("fp64", 8, 6, False, x.ctypes.data + 48))

    def test_a_buffer_may_be_the_data_of_an_interface(self):
        memory = bytearray(64)
        where = np.frombuffer(memory, "u1").ctypes.data
        for data, read_only in ((memory, False), (memoryview(memory).toreadonly(), True)):
            form = support.OnlyInterface("__array_interface__", data=data, offset=16, shape=(2, 3),
                                         typestr="<f8", version=3)
            self.assertEqual(seen(form), ("fp64", 8, 6, read_only, where + 16))

    def test_what_cannot_be_used_is_an_error(self):
        dead = memoryview(bytearray(8))
        dead.release()
        x = np.zeros((4, 4), "int32")
        wrong = [
            (x[:, ::2], sucl.InvalidMemoryError, "not contiguous"),
            (x.T, sucl.InvalidMemoryError, "not contiguous"),
            (x[::-1], sucl.InvalidMemoryError, "not contiguous"),
            (support.OnlyDlpack(x.T), sucl.InvalidMemoryError, "not contiguous"),
            (dead, sucl.InvalidMemoryError, "released"),
            (x.astype(">i4"), sucl.InvalidTypeError, "byte order"),
            (support.OnlyInterface("__array_interface__", data=(1, False)),
             sucl.InvalidArgumentError, "incomplete"),
            (numpy_like(data=()), sucl.InvalidArgumentError, "incomplete"),
            (numpy_like(data=("a", False)), sucl.InvalidArgumentError, "makes no sense"),
            (numpy_like(shape=4), sucl.InvalidArgumentError, "not iterable"),
            (numpy_like(data=bytearray(8)), sucl.InvalidMemoryError, "more elements than the"),
            (numpy_like(data=bytearray(99), offset="a"), sucl.InvalidArgumentError,
             "makes no sense"),
            (support.OnlyInterface("__sycl_usm_array_interface__", data=(1, False), shape=(1,),
                                   typestr="<f8", offset="a", syclobj=None),
             sucl.InvalidArgumentError, "makes no sense"),
            (numpy_like(typestr=5), sucl.InvalidArgumentError, "makes no sense"),
            (numpy_like(typestr="<f99999999999999999999"), sucl.InvalidCountError, "larger than"),
            (numpy_like(shape=(-4,)), sucl.InvalidCountError, "extent of -4"),
            (numpy_like(shape=(2**40, 2**40)), sucl.InvalidCountError, "larger than"),
            (numpy_like(typestr="|O8"), sucl.InvalidTypeError, "objects of Python"),
            (numpy_like(typestr="|V16", descr=[("a", "<f8"), ("b", "|O")]),
             sucl.InvalidTypeError, "objects of Python"),
            (np.array([None, 1]), sucl.InvalidTypeError, "objects of Python"),
            (np.zeros(3, [("value", "f4"), ("name", object)]), sucl.InvalidTypeError,
             "objects of Python"),
            (np.ma.masked_array([1.0, 2.0], [True, False]), sucl.InvalidTypeError,
             "masked elements"),
            (support.Dead(), sucl.InvalidMemoryError, "was freed"),
            (support.UsedDlpack(x), sucl.InvalidMemoryError, "used before"),
            (3.0, sucl.InvalidArgumentError, "is a float"),
            ([1.0], sucl.InvalidArgumentError, "is a list")]
        for thing, error, text in wrong:
            with self.assertRaisesRegex(error, text) as caught:
                seen(thing)
            self.assertTrue(caught.exception.fact and caught.exception.cure)
        # A field may be called as the letter of objects is.
        self.assertEqual(seen(np.zeros(3, [("O", "f4"), ("XO", "f8")]))[0], "bytes")
        # Masks that hide nothing change nothing.
        self.assertEqual(seen(np.ma.masked_array([1.0, 2.0]))[2], 2)
        self.assertEqual(seen(np.ma.masked_array([1.0, 2.0], [False, False]))[2], 2)
        # Dimensions of one element or none have any strides.
        self.assertEqual(seen(x[:1, :][::2])[2], 4)
        self.assertEqual(seen(x[:0, ::2])[2], 0)


class Copies(unittest.TestCase):
    """Of the process, and of its interpreter."""

    def test_a_forked_child_cannot_wait(self):
        comm, x = sucl.world(), np.zeros(2)
        event = comm.recv(x, 0, 7)
        child = os.fork()
        if child == 0:
            refused = 0
            for call in (event.wait, event.done, lambda: event.wait(60),
                         lambda: comm.allreduce(x)):
                with contextlib.suppress(sucl.ShutDownError):
                    call()
                    os._exit(1)
                refused += 1
            os._exit(40 + refused if "another process" in repr(event) else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 44)
        comm.send(np.ones(2), 0, 7)
        self.assertTrue(event.wait())
        self.assertEqual(x.tolist(), [1, 1])

    def test_a_subinterpreter_cannot_have_it(self):
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            interpreters = importlib.import_module("_interpreters")
        other = interpreters.create()
        code = ("try:\n    import sucl\nexcept ImportError as e:\n"
                "    assert 'interpreter' in str(e), e\nelse:\n    raise SystemError")
        failed = interpreters.run_string(other, f"import sys\nsys.path[:] = {sys.path!r}\n{code}")
        self.assertIsNone(failed)
        interpreters.destroy(other)
        sucl.world().blocking.barrier()


class Errors(unittest.TestCase):
    def test_classes_are_those_of_python_too(self):
        for error, base in [(sucl.InvalidCountError, ValueError), (sucl.LateError, TimeoutError),
                            (sucl.InvalidTypeError, TypeError),
                            (sucl.OutOfMemoryError, MemoryError),
                            (sucl.PeerLostError, ConnectionError)]:
            self.assertTrue(issubclass(error, base) and issubclass(error, sucl.Error))

    def test_numbers_are_checked(self):
        comm, x = sucl.world(), np.ones(2)
        for call in (lambda: comm.broadcast(x, root=0.5),
                     lambda: comm.broadcast(x, root=2**40),
                     lambda: comm.send(x, 0, tag=2**31),
                     lambda: comm.group().send(x, "0"),
                     lambda: comm.allgatherv(x, x.copy(), [2.0]),
                     lambda: comm.allgatherv(x, x.copy(), [2**62 * 2]),
                     lambda: comm.allgatherv(x, x.copy(), 2),
                     lambda: comm.allreduce(x, deps=comm.barrier()),
                     lambda: comm.split(1.5),
                     lambda: comm.allocate(-1),
                     lambda: comm.allocate(2, object),
                     lambda: comm.explain("allreduce", -1)):
            with self.assertRaises(sucl.Error) as caught:
                call()
            self.assertTrue(caught.exception.fact and caught.exception.cure)
        comm.broadcast(x, root=np.int64(0)).wait()
        comm.allgatherv(x, x.copy(), np.array([2])).wait()

    def test_names_are_checked(self):
        comm = sucl.world()
        for call in (lambda: comm.allreduce(np.ones(1), op="summ"),
                     lambda: comm.explain("allreduces", 8),
                     lambda: comm.explain("allreduce", 8, "float33"),
                     lambda: sucl.runtime().world("tpu"),
                     lambda: sucl.runtime().world(3),
                     lambda: sucl.Runtime.join(object(), 0, 1),
                     lambda: sucl.Runtime.join("no id", 0, 1)):
            with self.assertRaises(sucl.Error) as caught:
                call()
            self.assertTrue(caught.exception.cure)


class Program(unittest.TestCase):
    def run_module(self, *words):
        return subprocess.run([sys.executable, "-m", "sucl", *words], capture_output=True,
                              text=True, check=True).stdout

    def test_the_module_is_the_program(self):
        self.assertIn(sucl.__version__, self.run_module("version"))
        self.assertIn("platform", self.run_module("info"))

    def test_what_the_program_refuses_is_an_error(self):
        with self.assertRaisesRegex(sucl.Error, "radix|recipe|rings"):
            sucl.plans.build(collective="allreduce", ranks=4, bytes="1Ki", recipe="rings")
        self.assertEqual(sucl.plans.info()["sucl"]["version"], sucl.__version__)

    def test_programs_are_those_of_its_environment(self):
        says = ("import os, sys; from sucl import _program; sys.prefix = {prefix!r}; "
                "os.execv = lambda program, words: print(os.environ['PATH']); _program.main()")
        for prefix, path in ((sys.base_prefix, "/usr/bin:/bin"),
                             ("/env", "/env/bin:/usr/bin:/bin")):
            said = subprocess.run([sys.executable, "-c", says.format(prefix=prefix)], text=True,
                                  capture_output=True, check=True,
                                  env={**os.environ, "PATH": "/usr/bin:/bin"}).stdout
            self.assertEqual(said.strip(), path)

    def test_where_things_are(self):
        said = subprocess.run([sys.executable, "-c", "from sucl._program import config; config()",
                               "--prefix"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(Path(said.strip()), Path(sucl.__file__).resolve().parent)


class Documents(unittest.TestCase):
    def test_examples_in_docstrings(self):
        for name in ("types", "composition", "runtime", "plans", "partition", "values"):
            module = importlib.import_module(f"sucl.{name}") if name != "runtime" else \
                sys.modules["sucl.runtime"]
            self.assertEqual(doctest.testmod(module).failed, 0, name)

    def test_help_says_what_every_call_does(self):
        for kind in sucl.KINDS:
            if kind != "group":
                self.assertGreater(len(getattr(sucl.Communicator, kind).__doc__), 40, kind)


if __name__ == "__main__":
    support.main()
