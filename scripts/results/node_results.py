#!/usr/bin/env python3
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Measures collectives between two nodes: network namespaces of this machine with a link of a rate.

    node_results.py SUCL [--rate 10gbit] [--runs 3] [--mpi openmpi,mpich,impi] [ARGUMENT...]

Runs `SUCL bench` with the ARGUMENTs, one rank on each node, started by each MPI in turns. Prints
a table of the medians: SuCL by the backend fabric, and that MPI over TCP. Takes root.
"""

import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

NODES = {"sucl-a": "10.77.0.1", "sucl-b": "10.77.0.2"}
SUBNET = "10.77.0.0/24"
SETTINGS = {
    "SUCL_NODE_SIZE": "1",
    "SUCL_DEFAULT_BACKEND": "fabric",
    "SUCL_FABRIC_INTERFACE": SUBNET,
}
DEFAULT = (
    "allreduce broadcast allgather alltoall --memory device --form blocking --against mpi "
    "--sizes 8,1Ki,64Ki,1Mi,16Mi,64Mi --seconds 0.2"
)
# What makes each library use TCP on that link.
OVER_TCP = {
    "openmpi": {
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "tcp,self",
        "OMPI_MCA_btl_tcp_if_include": SUBNET,
    },
    "mpich": {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "sucl0"},
    "impi": {"I_MPI_FABRICS": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "sucl0"},
}


def ip(*words, check=True):
    subprocess.run(["ip", *words], check=check, stderr=None if check else subprocess.DEVNULL)


def remove_nodes():
    for node in NODES:
        ip("netns", "del", node, check=False)


def make_nodes(rate):
    remove_nodes()
    for node in NODES:
        ip("netns", "add", node)
    first, second = NODES
    ip(*f"link add sucl0 netns {first} type veth peer name sucl0 netns {second}".split())
    for node, address in NODES.items():
        ip("-n", node, "addr", "add", f"{address}/24", "dev", "sucl0")
        ip(*f"-n {node} link set dev sucl0 mtu 9000 up".split())
        ip(*f"-n {node} link set lo up".split())
        # A burst of what the link carries between two ticks of a kernel with 250 a second.
        limit = f"tc qdisc add dev sucl0 root tbf rate {rate} burst 5mb latency 50ms"
        ip("netns", "exec", node, *limit.split())


def write_agent(folder):
    """What starts a command on a node, as ssh would."""
    hosts = folder / "hosts"
    names = "".join(f"{address} {node}\n" for node, address in NODES.items())
    hosts.write_text("127.0.0.1 localhost\n" + names)
    first, second = NODES
    agent = folder / "agent"
    agent.write_text(
        f"""#!/bin/bash
while [[ $1 == -* ]]; do
  case $1 in -l | -o | -p) shift 2 ;; *) shift ;; esac
done
host=$1
shift
case $host in {NODES[first]} | {first}) node={first} ;; *) node={second} ;; esac
exec ip netns exec "$node" unshare --uts --mount sh -c "
  hostname $node; mount --bind {hosts} /etc/hosts; $*"
"""
    )
    agent.chmod(0o755)
    return agent


def launch(flavour, sucl, words, agent):
    """The environment and the command line of a run."""
    told = subprocess.run(
        [sucl, "run", "--mpi", flavour, "-n", "2", "--print", "--", sucl, "bench", *words],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    environment = dict(os.environ)
    for line in told[:-1]:
        if line.startswith("export "):
            name, value = line[len("export ") :].split("=", 1)
            environment[name] = "".join(shlex.split(value))
    command = shlex.split(told[-1])
    program = command[command.index(sucl) :]
    environment.update(SETTINGS)
    environment.update(OVER_TCP[flavour])
    addresses = list(NODES.values())
    if flavour == "openmpi":
        passed = [w for n in {**SETTINGS, **OVER_TCP[flavour]} for w in ("-x", n)]
        hosts = ",".join(a + ":1" for a in addresses)
        how = [*command[1 : command.index("-n")], *passed]
        how += ["--prtemca", "plm_ssh_agent", str(agent), "--host", hosts]
    else:
        kind = "launcher" if flavour == "mpich" else "bootstrap"
        how = f"-{kind} ssh -{kind}-exec {agent} -iface sucl0 -ppn 1".split()
        how += ["-hosts", ",".join(addresses)]
    first = next(iter(NODES))
    start = f'hostname {first}; mount --bind {agent.parent / "hosts"} /etc/hosts; exec "$@"'
    inside = [*f"ip netns exec {first} unshare --uts --mount sh -c".split(), start, "sh"]
    return environment, [*inside, command[0], *how, "-n", "2", *program]


def measure(flavour, sucl, words, agent, file):
    environment, command = launch(flavour, sucl, [*words, "--json", str(file)], agent)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    if done.returncode != 0 or "results valid" not in done.stdout:
        sys.exit(f"{flavour}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(file.read_text())


def readable(size):
    for unit in ("", " KiB", " MiB"):
        if size < 1024 or unit == " MiB":
            return f"{size}{unit or ' B'}"
        size //= 1024


def significant(value):
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def print_table(runs, flavours):
    """Medians over the runs of each library: SuCL / MPI in microseconds, and their ratio."""
    times = {}
    for flavour, result in runs:
        for row in result["rows"]:
            key = (flavour, row["collective"], row["bytes"])
            times.setdefault(key, {}).setdefault(row["impl"], []).append(row["median_us"])
    sizes = sorted({size for _, _, size in times})
    print("| SuCL / MPI, us |" + "".join(f" {readable(n)} |" for n in sizes))
    print("|---|" + "---|" * len(sizes))
    ratios = {f: [] for f in flavours}
    for flavour, collective in dict.fromkeys((f, c) for f, c, _ in times):
        cells = []
        for size in sizes:
            both = times[flavour, collective, size]
            ratio = statistics.median(a / b for a, b in zip(both["sucl"], both["mpi"]))
            ratios[flavour].append(ratio)
            mine, its = (significant(statistics.median(both[who])) for who in ("sucl", "mpi"))
            cells.append(f" {mine} / {its} = {ratio:.2f} |")
        print(f"| {collective}, {flavour} |" + "".join(cells))
    for flavour, all_of_it in ratios.items():
        mean = statistics.geometric_mean(all_of_it)
        print(f"{flavour}: geometric mean {mean:.2f}, at most {max(all_of_it):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sucl")
    parser.add_argument("--rate", default="10gbit")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--mpi", default="openmpi,mpich,impi")
    options, words = parser.parse_known_args()
    options.sucl = str(pathlib.Path(options.sucl).resolve())
    words = words or DEFAULT.split()
    make_nodes(options.rate)
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        agent = write_agent(folder)
        flavours = options.mpi.split(",")
        runs = [
            (f, measure(f, options.sucl, words, agent, folder / f"{f}.{i}.json"))
            for i in range(options.runs)
            for f in flavours
        ]
    finally:
        remove_nodes()
    print_table(runs, flavours)


if __name__ == "__main__":
    main()
