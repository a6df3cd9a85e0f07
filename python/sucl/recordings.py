# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Sequences of operations that are recorded once and replayed many times."""

from typing import Any, Callable

from ._operations import Events
from .communicator import Event, _events


class Executable:
    """What `Communicator.record` has recorded. It keeps the arrays of its operations.

    Every rank replays it in the same order as others and equally often, one thread at a time.
    Replays of a communicator follow one another; other operations are ordered with them by the
    program: by an in-order queue, by events, or by waiting.
    """

    __slots__ = ("_communicator", "_core")

    def __init__(self, core: Any, communicator: Any):
        self._core = core
        self._communicator = communicator  # which lives as long as this

    def replay(self, *, deps: Events = None) -> Event:
        """Executes all of it once more. Raises what earlier replays have found, and
        `ShutDownError` after the end of the communicator."""
        return Event(self._core.replay(_events(deps)))

    def update(self, calls: Callable[[], Any]) -> None:
        """Replaces the sequence by what `calls` starts, as `Communicator.record` does: for other
        arrays or operations. Every rank calls it; waits for replays that are in flight. If `calls`
        raises, the sequence stays what it was."""
        self._core.update(calls)

    @property
    def is_graph(self) -> bool:
        """Whether replays launch a graph, without calling the function."""
        return self._core.is_graph()
