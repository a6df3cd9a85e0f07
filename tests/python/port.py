# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The functions of C that the process group of torch is made on, called as it calls them."""

import ctypes as c
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import start
from sucl import _core
from sucl.types import KINDS, op_number, type_number

RANKS = 3
ALLREDUCE, SEND, RECV = KINDS["allreduce"], KINDS["send"], KINDS["recv"]
IN_PLACE = 1


class Operation(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("kind", c.c_int32), ("type", c.c_int32),
                ("op", c.c_int32), ("flags", c.c_uint32), ("root", c.c_int32),
                ("source", c.c_int32), ("tag", c.c_int32), ("element_size", c.c_uint64),
                ("sequence", c.c_uint64), ("send", c.c_void_p), ("recv", c.c_void_p),
                ("count", c.c_uint64), ("recv_count", c.c_uint64), ("arrays", c.c_void_p * 4),
                ("send_memory", c.c_int32), ("recv_memory", c.c_int32), ("stream", c.c_void_p),
                ("parts", c.c_void_p), ("part_count", c.c_uint64), ("plan", c.c_uint64),
                ("launch_target", c.c_void_p)]


class Failure(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("code", c.c_int32), ("rank", c.c_int32),
                ("reserved", c.c_int32), ("native_code", c.c_int64), ("text", c.c_char_p),
                ("fact", c.c_char_p), ("cure", c.c_char_p), ("operation", c.c_char_p),
                ("backend", c.c_char_p)]


class Calls(c.Structure):
    _fields_ = [
        ("struct_size", c.c_uint32), ("reserved", c.c_uint32),
        ("issue", c.CFUNCTYPE(c.c_int32, c.c_void_p, c.POINTER(Operation),
                              c.POINTER(c.c_void_p))),
        ("done", c.CFUNCTYPE(c.c_int32, c.c_void_p)),
        ("wait", c.CFUNCTYPE(c.c_int32, c.c_void_p, c.c_void_p, c.c_int64,
                             c.POINTER(c.c_int32))),
        ("arrived", c.CFUNCTYPE(c.c_int32, c.c_void_p, c.c_int32, c.c_int32,
                                c.POINTER(c.c_int32))),
        ("forget", c.CFUNCTYPE(None, c.c_void_p)),
        ("abort", c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)),
        ("failure", c.CFUNCTYPE(c.POINTER(Failure))),
        ("close", c.CFUNCTYPE(None, c.c_void_p))]


class Handle(c.Structure):
    _fields_ = [("calls", c.POINTER(Calls)), ("communicator", c.c_void_p)]


def inside(capsule):
    get = c.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c.c_void_p, [c.py_object, c.c_char_p]
    return Handle.from_address(get(capsule, b"sucl.port.1"))


class Group:
    def __init__(self, job, name, ranks):
        self.capsule = job.group(name, ranks)  # closes the communicator with its own end
        handle = inside(self.capsule)
        self.calls, self.own = handle.calls.contents, handle.communicator

    def issue(self, kind, array, peer=0, tag=0, op="sum"):
        o = Operation(struct_size=c.sizeof(Operation), kind=kind, type=type_number("float32"),
                      op=op_number(op) if kind == ALLREDUCE else 0,
                      flags=IN_PLACE if kind == ALLREDUCE else 0, root=peer, source=peer, tag=tag,
                      element_size=4, count=array.size, recv_count=array.size)
        setattr(o, "send" if kind == SEND else "recv", array.ctypes.data)
        operation = c.c_void_p()
        return self.calls.issue(self.own, c.byref(o), c.byref(operation)), operation

    def finish(self, operation, milliseconds=-1):
        """Whether it is done, and the status."""
        if not operation:
            return True, 0
        done = c.c_int32()
        status = self.calls.wait(self.own, operation, milliseconds, c.byref(done))
        if done:
            self.calls.forget(operation)
        return bool(done), status

    def run(self, kind, array, peer=0, tag=0):
        status, operation = self.issue(kind, array, peer, tag)
        assert status == 0, self.calls.failure().contents.text
        return self.finish(operation)

    def arrived(self, source, tag):
        found = c.c_int32(7)
        assert self.calls.arrived(self.own, source, tag, c.byref(found)) == 0
        return found.value


def start_ranks():
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen([sys.executable, __file__],
                                  env={**os.environ, "RANK": str(r), "FOLDER": folder})
                 for r in range(RANKS)]
        return max(abs(rank.wait()) for rank in ranks)


if "RANK" not in os.environ:
    sys.exit(start_ranks())
RANK = int(os.environ["RANK"])
JOB = _core.PortJob(start.FolderStore(os.environ["FOLDER"]), RANK, RANKS)
ALL = Group(JOB, "all", list(range(RANKS)))


class Port(unittest.TestCase):
    def test_1_sums(self):
        for n in (1, 1000, 1 << 20):
            x = np.full(n, RANK + 1, "float32")
            self.assertEqual(ALL.run(ALLREDUCE, x), (True, 0))
            self.assertTrue((x == 6).all())

    def test_2_a_group_that_its_members_alone_make(self):
        if RANK == 1:
            return
        pair = Group(JOB, "pair", [2, 0])  # rank 2 of the job is rank 0
        x = np.full(3, RANK + 1, "float32")
        self.assertEqual(pair.run(ALLREDUCE, x), (True, 0))
        self.assertTrue((x == 4).all())
        if RANK == 2:
            self.assertEqual(pair.run(SEND, x, peer=1, tag=5), (True, 0))
        else:
            self.assertEqual(pair.run(RECV, x, peer=0, tag=5), (True, 0))

    def test_3_messages_are_seen_before_they_are_received(self):
        x = np.full(100_000, RANK, "float32")
        sync = np.zeros(1, "float32")
        if RANK == 0:
            self.assertEqual(ALL.arrived(1, 3), 0)
            ALL.run(ALLREDUCE, sync)
            while ALL.arrived(1, 4) == 0:  # the test's time limit ends it
                pass
            self.assertEqual([ALL.arrived(1, 4), ALL.arrived(1, 3), ALL.arrived(2, 4)], [1, 0, 0])
            self.assertEqual(ALL.run(RECV, x, peer=1, tag=4), (True, 0))
            self.assertEqual([x[-1], ALL.arrived(1, 4)], [1, 0])
        else:
            ALL.run(ALLREDUCE, sync)
            if RANK == 1:
                self.assertEqual(ALL.run(SEND, x, peer=0, tag=4), (True, 0))

    def test_4_a_wait_ends_and_the_operation_goes_on(self):
        x = np.ones(2, "float32")
        if RANK == 0:
            status, operation = ALL.issue(RECV, x, peer=1, tag=9)
            self.assertEqual((status, ALL.finish(operation, 20)), (0, (False, 0)))
            self.assertEqual(ALL.calls.done(operation), 0)
            ALL.run(ALLREDUCE, np.zeros(1, "float32"))
            self.assertEqual(ALL.finish(operation), (True, 0))
            self.assertEqual(x.tolist(), [5, 5])
        else:
            ALL.run(ALLREDUCE, np.zeros(1, "float32"))
            if RANK == 1:
                ALL.run(SEND, np.full(2, 5, "float32"), peer=0, tag=9)

    def test_5_what_is_wrong_comes_in_parts(self):
        status, operation = ALL.issue(SEND, np.ones(1, "float32"), peer=RANKS)
        self.assertEqual((status, operation.value), (2, None))
        failure = ALL.calls.failure().contents
        self.assertEqual((failure.code, failure.rank), (2, RANK))
        self.assertIn(b"send to rank 3", failure.operation)
        self.assertTrue(failure.fact and failure.cure and failure.fact in failure.text)
        with self.assertRaisesRegex(Exception, "not this one"):
            JOB.group("without", [r for r in range(RANKS) if r != RANK])
        with self.assertRaisesRegex(Exception, "no GPU with the number 99"):
            JOB.group_on_gpu("nowhere", list(range(RANKS)), 99)

    def test_6_an_abort_ends_what_is_under_way_on_all_ranks(self):
        doomed = Group(JOB, "doomed", list(range(RANKS)))
        x = np.ones(1, "float32")
        if RANK == 0:
            doomed.calls.abort(doomed.own, b"it was enough")
        status, operation = doomed.issue(ALLREDUCE, x)
        if status == 0:
            _, status = doomed.finish(operation)
        self.assertNotEqual(status, 0)
        self.assertIn(b"it was enough", doomed.calls.failure().contents.text)
        self.assertEqual(ALL.run(ALLREDUCE, x), (True, 0))  # the others live


if __name__ == "__main__":
    done = unittest.main(exit=False, verbosity=int(RANK == 0), failfast=True)
    if not done.result.wasSuccessful():
        os._exit(1)  # the others are told, and do not wait
    JOB.shut_down()
    os._exit(0)  # the groups are at their end
