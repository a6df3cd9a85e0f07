# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Jobs of Python processes that find each other by an id, a store of the program's, or torchrun's
variables."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import support

RANK = """
import sys, numpy, sucl
sys.path.insert(0, {here!r})
import start
r, p = int(sys.argv[1]), int(sys.argv[2])
with start.{how} as runtime:
    x = numpy.full(3, r + 1)
    runtime.world().blocking.allreduce(x)
    assert (x == p * (p + 1) // 2).all(), x
    print(runtime.control_plane)
"""


class FolderStore:
    """A store in a folder that the processes share."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def _path(self, key):
        return self.folder / key.replace("/", "_")

    def put(self, key, value):
        part = self._path(key).with_suffix(f".{os.getpid()}")
        part.write_bytes(value)
        part.rename(self._path(key))

    def get(self, key):
        return self._path(key).read_bytes()

    def wait(self, key, seconds):
        end = time.monotonic() + seconds
        while not self._path(key).exists():
            if time.monotonic() > end:
                return False
            time.sleep(0.005)
        return True


class BrokenStore(FolderStore):
    def put(self, key, value):
        raise KeyError("this store is broken")

    wait = put


class ForgetfulStore(FolderStore):
    def wait(self, key, seconds):
        super().wait(key, seconds)


def by_id(rank, size):
    import sucl

    store = FolderStore(os.environ["STORE"])
    if rank == 0:
        store.put("id", sucl.unique_id("loopback").encode())
    store.wait("id", 60)
    return sucl.Runtime.join(store.get("id").decode(), rank, size)


def by_store(rank, size):
    import sucl

    return sucl.Runtime.join(FolderStore(os.environ["STORE"]), rank, size)


def strict(_rank, _size):
    import sucl

    runtime = sucl.Runtime(determinism="strict")
    assert 'determinism = "strict"' in runtime.world().explain("allreduce", 8)
    assert "SUCL_DETERMINISM" not in os.environ
    return runtime


def raises(rank, size):
    import numpy

    comm = by_store(rank, size).world()
    if rank == 0:
        raise RuntimeError("a mistake of rank 0")
    comm.allreduce(numpy.ones(3)).wait()


def ends(rank, size):
    """Events of before a clean end are done; a rank that gives up has those of its own fail."""
    import numpy
    import sucl

    def join(name):
        folder = Path(os.environ["STORE"]) / name
        folder.mkdir(exist_ok=True)
        return sucl.Runtime.join(FolderStore(folder), rank, size)

    runtime = join("ends")
    comms = [runtime.world(), runtime.world("cpu")]
    events = [c.allreduce(numpy.ones(n)) for c in comms for n in (3, 99999)]
    group = comms[0].group()
    group.sendrecv(numpy.ones(3), rank, numpy.zeros(3), rank)
    events.append(group.submit())
    runtime.shut_down()
    for event in events:
        assert event.done() and event.wait() and event.wait(0.0)
    with contextlib.suppress(sucl.ShutDownError):
        comms[0].check()
        raise SystemExit("a communicator that has ended was found well")
    given_up = join("is given up")
    comm = given_up.world()
    event = comm.recv(numpy.zeros(1), 1 - rank)
    with contextlib.suppress(KeyError), given_up:
        raise KeyError("leaves the block")
    with contextlib.suppress(sucl.Error):
        event.wait()
        raise SystemExit("an operation that was given up was done")
    return join("after")


def by_broken_store(rank, size):
    import sucl

    return sucl.Runtime.join(BrokenStore(os.environ["STORE"]), rank, size)


def by_forgetful_store(rank, size):
    import sucl

    return sucl.Runtime.join(ForgetfulStore(os.environ["STORE"]), rank, size)


class Start(unittest.TestCase):
    def job(self, how, size=2, **variables):
        code = RANK.format(here=str(Path(__file__).parent), how=f"{how}(r, p)")
        with tempfile.TemporaryDirectory() as folder:
            ranks = [subprocess.Popen(
                [sys.executable, "-c", code, str(r), str(size)], text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                env={**os.environ, "STORE": folder, **variables, "RANK": str(r)})
                for r in range(size)]
            said = [r.communicate(timeout=120)[0] for r in ranks]
        return [r.returncode for r in ranks], "".join(said)

    def test_by_an_id(self):
        status, said = self.job("by_id")
        self.assertEqual(status, [0, 0], said)

    def test_by_a_store(self):
        status, said = self.job("by_store", 3)
        self.assertEqual(status, [0, 0, 0], said)

    def test_a_rank_that_ends_by_an_exception(self):
        status, said = self.job("raises")
        self.assertEqual(status, [1, 1], said)
        self.assertIn("a mistake of rank 0", said)
        self.assertIn("PeerLostError", said)

    def test_with_another_determinism(self):
        status, said = self.job("strict", 1)
        self.assertEqual(status, [0], said)

    def test_events_after_the_end(self):
        status, said = self.job("ends")
        self.assertEqual(status, [0, 0], said)

    def test_what_a_store_raises_is_raised(self):
        status, said = self.job("by_broken_store")
        self.assertNotIn(0, status)
        self.assertIn("this store is broken", said)
        status, said = self.job("by_forgetful_store")
        self.assertNotIn(0, status)
        self.assertIn("the store's wait() has returned None", said)


if __name__ == "__main__":
    support.main()
