# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Operations that are issued together."""

from typing import Any, List, Optional

from . import _core
from ._operations import Array, Events, Operations
from .communicator import Communicator, Event, _events
from .errors import InvalidArgumentError
from .types import KINDS


class GroupMember(Operations[None]):
    """What one communicator puts into a group: operations of any kind, which start with the group.
    Of `Group.on`."""

    def __init__(self, group: "Group", communicator: Communicator):
        self._group, self._on = group, communicator

    def _post(self, kind, send, recv, op=0, root=0, deps=None, arrays=None, source=0, tag=0):
        if deps is not None:
            raise InvalidArgumentError.of("an operation of a group was given deps",
                                          "Pass them where the group starts: submit(deps=...)")
        self._group._core.add_on(self._on._core, kind, send, recv, arrays, op, root, source, tag)


class Group:
    """Operations that are issued together, so that none waits for another. As a context manager it
    runs them at the end of the block.

    That of `Communicator.group` takes messages, which are one operation:

        with comm.group() as g:
            g.recv(halo, source=left)
            g.send(edge, dest=right)

    One of no communicator takes operations of several, as of the ranks that one thread has from
    `Runtime.worlds`. All are started before any is waited for:

        with sucl.Group() as g:
            for rank, x in zip(ranks, arrays):
                g.on(rank).allreduce(x)
    """

    def __init__(self, communicator: Optional[Communicator] = None):
        if communicator is None:
            self._core = _core.Group()
        else:
            self._core = _core.Group(_checked(communicator)._core)

    def on(self, communicator: Communicator) -> GroupMember:
        """What is called on the result is an operation of that communicator, started with the
        group. Messages of a communicator are one operation, where the first of them is."""
        return GroupMember(self, _checked(communicator))

    def send(self, data: Array, dest: int, tag: int = 0) -> None:
        """As `Operations.send`, when the group starts."""
        self._core.add(KINDS["send"], data, None, dest, 0, tag)

    def recv(self, data: Array, source: int, tag: int = 0) -> None:
        """As `Operations.recv`, when the group starts."""
        self._core.add(KINDS["recv"], None, data, source, source, tag)

    def sendrecv(self, send: Array, dest: int, recv: Array, source: int, tag: int = 0) -> None:
        """As `Operations.sendrecv`, when the group starts."""
        self._core.add(KINDS["sendrecv"], send, recv, dest, source, tag)

    def submit(self, *, deps: Events = None) -> Event:
        """Starts all, as one operation; the group is empty again. All or nothing is started.
        `InvalidArgumentError` where it is several operations: see `submit_each`."""
        return Event(self._core.submit(_events(deps)))

    def submit_each(self, *, deps: Events = None) -> List[Event]:
        """Starts all; the events are those of the operations, in order. Where it raises, those
        before were started."""
        return [Event(one) for one in self._core.submit_each(_events(deps))]

    def run(self, *, deps: Events = None) -> None:
        """Runs all, and returns when they are done. One operation runs in the blocking form,
        several in the form that returns events, so that other ranks call that form too."""
        self._core.run(_events(deps))

    def __enter__(self) -> "Group":
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.run()


def _checked(communicator: Any) -> Communicator:
    if not isinstance(communicator, Communicator):
        raise InvalidArgumentError.of(f"a {type(communicator).__name__} is no communicator",
                                      "Pass one, as sucl.world()")
    return communicator
