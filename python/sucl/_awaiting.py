# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Operations that asyncio awaits. One thread looks after all of them: a thread for each would leave
none for an operation that the others wait for, once there are more than an executor has."""

import threading
import time
from typing import Any, List, Tuple

_SHORTEST, _LONGEST = 20e-6, 1e-3  # seconds between two looks


class _Watch:
    """What is awaited, and the thread that looks whether it is done, which ends with the last."""

    def __init__(self):
        self._lock = threading.Lock()
        self._new: List[Tuple[Any, Any]] = []
        self._runs = False

    def future_of(self, core: Any, loop: Any):
        """A future of the loop that ends when the operation does."""
        future = loop.create_future()
        with self._lock:
            self._new.append((core, future))
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._look, name="sucl-await", daemon=True).start()
        return future

    def _look(self):
        awaited: List[Tuple[Any, Any]] = []
        pause = _SHORTEST
        while True:
            with self._lock:
                if self._new:
                    awaited += self._new
                    self._new.clear()
                    pause = _SHORTEST
                elif not awaited:
                    self._runs = False
                    return
            left = []
            for core, future in awaited:
                if future.cancelled():
                    continue
                if _is_over(core):
                    _end(future)
                else:
                    left.append((core, future))
            pause = _SHORTEST if len(left) < len(awaited) else min(2 * pause, _LONGEST)
            awaited = left
            core = future = left = None  # the thread keeps no array alive
            time.sleep(pause)


def _is_over(core):
    try:
        return core.done()
    except Exception:  # what is awaited says why when it is waited for
        return True


def _end(future):
    def done():
        if not future.done():
            future.set_result(None)

    try:
        future.get_loop().call_soon_threadsafe(done)
    except RuntimeError:
        pass  # the loop has been closed


_watch = _Watch()
future_of = _watch.future_of
