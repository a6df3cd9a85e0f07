# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""What handles a signal raises on the first rank while a call of that rank blocks: that ends the
call, and the communicator on all ranks.
"""

import signal
import sys
import time

import numpy as np
import sucl

comm = sucl.world()
with_queue = sucl.runtime().world("cpu")
FIRST = comm.rank == 0
LAST = comm.size - 1


class Interrupted(Exception):
    pass


def interrupt(*_):
    raise Interrupted("by the program")


def group(own, received):
    with own.group() as g:
        g.recv(received, LAST)


def groups(own, received):
    with sucl.Group() as g:
        g.on(own).recv(received, LAST)
        g.on(own).allreduce(np.zeros(3))


def after_event(own, received):
    own.blocking.broadcast(np.zeros(3), deps=[own.recv(received, LAST)])


CASES = {
    "recv": lambda own, x: own.blocking.recv(x, LAST),
    "allreduce": lambda own, x: own.blocking.allreduce(x),
    "long allreduce": lambda own, x: own.blocking.allreduce(np.zeros(1 << 20)),
    "persistent": lambda own, x: own.persistent.allreduce(x).run(),
    "user_op": lambda own, x: sucl.UserOp(np.maximum).allreduce(own.blocking, x),
    "group": group,
    "groups": groups,
    "after an event": after_event,
}


def has_ended(own):
    try:
        own.check()
    except sucl.Error:
        return True
    return False


def interrupted(call, own):
    """What a signal makes of a call that waits."""
    for delay in (0.1, 1, 10):  # where the signal comes before the call waits: once more
        signal.setitimer(signal.ITIMER_REAL, delay)
        try:
            call(own, np.zeros(5))
        except (Interrupted, sucl.Error) as error:
            if has_ended(own):
                return error
    return None


def found():
    """What the other ranks find without a call."""
    for _ in range(6000):
        try:
            own.check()
        except sucl.Error as error:
            return error
        time.sleep(0.01)
    return None


signal.signal(signal.SIGALRM, interrupt)
wrong = []
for name, call in CASES.items():
    for of in (comm, with_queue):
        own = of.dup()
        error = interrupted(call, own) if FIRST else found()
        told = isinstance(error, sucl.PeerLostError) and "raised Interrupted" in str(error)
        if not (isinstance(error, Interrupted) if FIRST else told):
            wrong.append(f"{name}: {error!r}")
        try:
            own.blocking.barrier()
            wrong.append(f"{name}: a barrier succeeded afterwards")
        except sucl.PeerLostError:
            pass
        comm.blocking.barrier()

# What waits for events leaves their operations as they are.
received = np.zeros(1)
if FIRST:
    event = comm.recv(received, LAST, 3)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        comm.wait()
        wrong.append("wait() was not interrupted")
    except Interrupted:
        pass
comm.blocking.barrier()
if comm.rank == LAST:
    comm.send(np.ones(1), 0, 3).wait()
if FIRST:
    event.wait()
    if received[0] != 1:
        wrong.append("nothing was received")
comm.blocking.barrier()
sys.stdout.write(f"rank {comm.rank}: {wrong or 'all was told'}\n")
sys.stdout.flush()
