#!/usr/bin/env python3
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""A link with a rate and a latency between two network namespaces, in user space: kernels are built
without netem often enough.

    link.py RATE DELAY NAMESPACE ADDRESS NAMESPACE ADDRESS

RATE is in bits a second in each direction, DELAY in seconds. Makes a TUN device `sucl0` in each
namespace, prints "ready", and carries packets until it is killed.
"""
import ctypes
import fcntl
import heapq
import os
import select
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
MTU = 9000
QUEUE_BYTES = 64 << 20


def enter(namespace):
    # os.setns is new in Python 3.12.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, 0) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def open_end(namespace, address):
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open("/run/netns/" + namespace, os.O_RDONLY)
    enter(there)
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"sucl0", IFF_TUN | IFF_NO_PI))
    for command in (
        "ip link set lo up",
        f"ip addr add {address}/24 dev sucl0",
        f"ip link set dev sucl0 mtu {MTU} up",
    ):
        subprocess.run(command.split(), check=True)
    enter(home)
    return tun


def main():
    rate, delay = float(sys.argv[1]), float(sys.argv[2])
    ends = [open_end(sys.argv[3], sys.argv[4]), open_end(sys.argv[5], sys.argv[6])]
    free_at, waiting = [0.0, 0.0], [0, 0]
    due = []  # (time, number, direction, packet)
    number = 0
    print("ready", flush=True)
    while True:
        now = time.monotonic()
        while due and due[0][0] <= now:
            _, _, way, packet = heapq.heappop(due)
            waiting[way] -= len(packet)
            try:
                os.write(ends[1 - way], packet)
            except OSError:
                pass  # as a full queue does
        wait = max(0.0, due[0][0] - now) if due else None
        for end in select.select(ends, [], [], wait)[0]:
            way = ends.index(end)
            for _ in range(64):
                try:
                    packet = os.read(end, MTU + 64)
                except BlockingIOError:
                    break
                if waiting[way] > QUEUE_BYTES:
                    continue
                now = time.monotonic()
                free_at[way] = max(now, free_at[way]) + 8 * len(packet) / rate
                waiting[way] += len(packet)
                number += 1
                heapq.heappush(due, (free_at[way] + delay, number, way, packet))


if __name__ == "__main__":
    main()
