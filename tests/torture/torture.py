#!/usr/bin/env python3
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Runs everything that is to show that SuCL can be relied on, in about an hour on two cores.

    torture.py --build build/default [--part PART] [--minutes 60] [--seed 1]

random: 10^6 random operations under every MPI, with 2 to 4 ranks and several backends. interposed:
10^6 random collectives of MPI programs under the interposer. kills: 500 jobs that lose a rank.
files: 10^6 damaged files for every reader. soak: all forms for 30 minutes.
--minutes scales all of that. Each part leaves PART.json in --output, and the parts that are there
make summary.json and summary.md; --document writes the latter as a page of the documentation.
Exit status: 0, or 1 if one of the parts that were run has failed.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PARTS = ("random", "interposed", "files", "kills", "soak")
FORMATS = ("configuration", "tuning_table", "plan_text", "plan_json", "machine", "msccl_xml",
           "mscclpp_json", "record")
OPERATIONS, CALLS, KILLS, FILES, SOAK_SECONDS = 1_000_000, 1_000_000, 500, 1_000_000, 1800
# Which backend executes operations: environment and arguments, and the share of the steps.
BACKENDS = {
    "plans and messages": ({}, [], 10),
    "MPI": ({"SUCL_THRESHOLD": "-1"}, ["--messages-in-order"], 3),
    "plans on several nodes": ({"SUCL_NODE_SIZE": "2"}, ["--messages-in-order"], 2),
    "no single-copy reads": ({"SUCL_BACKEND_IPC_READS": "false"}, [], 2),
    "memory by sockets": ({"SUCL_BACKEND_IPC_HANDOVER": "socket"}, [], 1)}

# How far the interposer goes: environment, and the share of the calls.
INTERPOSED = {
    "as it is": {},
    "all that SuCL can": {"SUCL_INTERPOSE_AFTER": "0", "SUCL_INTERPOSE_TRIALS": "0"},
    "many trials": {"SUCL_INTERPOSE_AFTER": "0", "SUCL_INTERPOSE_TRIALS": "15"}}
THREADS = ("single", "serialized", "multiple")


def quoted(command):
    return " ".join(str(w).replace(str(ROOT) + "/", "") for w in command)


def last_json(text):
    """The last line that is an object."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    return None


class Torture:
    def __init__(self, options):
        self.options = options
        self.scale = options.minutes / 60
        self.build = pathlib.Path(options.build).resolve()
        self.sucl = self.build / "bin" / "sucl"
        self.tests = self.build / "tests"
        self.output = pathlib.Path(options.output).resolve()
        self.output.mkdir(parents=True, exist_ok=True)

    def job(self, ranks, mpi, program, arguments, environment=None, seconds=1200,
            options=("--timeout", "60")):
        """Runs a program as a job; its status, what it printed and the command."""
        command = [self.sucl, "run", "-n", str(ranks), "--mpi", mpi, *options, "--",
                   self.tests / program, *map(str, arguments)]
        try:
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                                  env=dict(os.environ, OMPI_MCA_btl="^ofi", **(environment or {})),
                                  timeout=seconds, errors="replace", check=False)
        except subprocess.TimeoutExpired as e:
            return -1, "", f"the job did not end within {e.timeout} s", quoted(command)
        return done.returncode, done.stdout, done.stderr, quoted(command)

    def random(self):
        o = self.options
        runs, faults, total, wrong, differing, number = [], [], 0, 0, 0, 0
        wanted = max(1000, int(OPERATIONS * self.scale))
        cells = [(mpi, ranks, backend) for backend in BACKENDS for mpi in o.mpis
                 for ranks in o.ranks]
        shares = sum(BACKENDS[c][2] for _, _, c in cells)
        while total < wanted and len(faults) < 20:
            for mpi, ranks, backend in cells:
                environment, extra, share = BACKENDS[backend]
                # A step has 1.2 operations.
                steps = max(50, int(wanted / 1.15 * share / shares))
                number += 1
                seed = o.seed * 1000 + number
                status, out, err, command = self.job(
                    ranks, mpi, "torture_random", ["--seed", seed, "--steps", steps, *extra],
                    environment)
                found = last_json(out) or {"operations": 0, "wrong": 0, "differing": 0}
                total += found["operations"]
                wrong += found["wrong"]
                differing += found["differing"]
                runs.append({"mpi": mpi, "ranks": ranks, "backend": backend, "seed": seed,
                             **{k: found.get(k) for k in ("operations", "seconds")}})
                if status != 0:
                    variables = " ".join(f"{k}={v}" for k, v in environment.items())
                    faults.append({"command": f"{variables} {command}".strip(), "status": status,
                                   "output": err[-3000:]})
                    print(f"FAILED {variables} {command}\n{err[-3000:]}", flush=True)
                if total >= wanted:
                    break
        return {"ok": not faults, "operations": total, "wrong": wrong, "differing": differing,
                "failed_runs": len(faults), "runs": runs, "faults": faults}

    def interposed(self):
        o = self.options
        runs, faults, total, wrong, unknown, number = [], [], 0, 0, 0, 0
        wanted = max(3000, int(CALLS * self.scale))
        cells = [(mpi, ranks, how, level) for ranks in o.ranks for level in THREADS
                 for how in INTERPOSED for mpi in o.mpis]
        while total < wanted and len(faults) < 20:
            for mpi, ranks, how, level in cells:
                number += 1
                seed = o.seed * 1000 + number
                # Two algorithms of Intel MPI's cannot be used by two threads.
                environment = {**INTERPOSED[how], "I_MPI_COLL_INTRANODE": "pt2pt"}
                # SuCL reads no array of a call that has returned.
                early = ["early"] if how == "all that SuCL can" else []
                status, out, err, command = self.job(
                    ranks, mpi, f"pmpi_fuzz_{mpi}", [seed, 2000, level, *early], environment,
                    options=["--interpose"])
                if "everything is passed on" in err:  # as for a setting that is refused
                    status = status or 1
                found = last_json(out) or {"calls": 0, "wrong": 0, "unknown": 0}
                total += found["calls"]
                wrong += found["wrong"]
                unknown += found["unknown"]
                runs.append({"mpi": mpi, "ranks": ranks, "backend": f"{how}, {level}",
                             "seed": seed, "operations": found["calls"],
                             "unknown": found["unknown"]})
                if status != 0:
                    variables = " ".join(f"{k}={v}" for k, v in environment.items())
                    faults.append({"command": f"{variables} {command}", "status": status,
                                   "output": err[-3000:]})
                    print(f"FAILED {variables} {command}\nstatus {status}\n{err[-3000:]}",
                          flush=True)
                if total >= wanted:
                    break
        return {"ok": not faults, "operations": total, "wrong": wrong, "unknown": unknown,
                "failed_runs": len(faults), "runs": runs, "faults": faults}

    def kills(self):
        o = self.options
        file = self.output / "kills-cases.json"
        cases = max(12, int(KILLS * self.scale))
        command = [sys.executable, "-B", str(ROOT / "tests/torture/kills.py"), "--sucl",
                   str(self.sucl), "--victim", str(self.tests / "torture_victim"), "--cases",
                   str(cases), "--seed", str(o.seed), "--mpis", ",".join([*o.mpis, "local"]),
                   "--ranks",
                   ",".join(map(str, o.ranks)), "--jobs", str(o.jobs), "--json", str(file)]
        file.unlink(missing_ok=True)
        subprocess.run(command, check=False)
        summary = json.loads(file.read_text()) if file.exists() else {"cases": 0, "failed": 1}
        return {"ok": summary["failed"] == 0 and summary["cases"] > 0, **summary}

    def files(self):
        o = self.options
        each = max(1000, int(FILES * self.scale / len(FORMATS)))

        def one(format_):
            command = [str(self.tests / f"fuzz_{format_}"), "--mutations", str(each), "--seed",
                       str(o.seed), "--keep", str(self.output / f"broken-{format_}"),
                       str(ROOT / "tests/fuzz/corpus" / format_)]
            begun = time.monotonic()
            done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                                  check=False)
            found = last_json(done.stdout) or {"inputs": 0}
            if done.returncode != 0:
                print(f"FAILED {quoted(command)}\n{done.stderr[-2000:]}", flush=True)
            return {"format": format_, "status": done.returncode, "command": quoted(command),
                    "seconds": round(time.monotonic() - begun, 1), **found}

        with concurrent.futures.ThreadPoolExecutor(2) as threads:
            runs = list(threads.map(one, FORMATS))
        return {"ok": all(r["status"] == 0 for r in runs), "files": sum(r["inputs"] for r in runs),
                "broken": sum(r["status"] != 0 for r in runs),
                "slowest_ms": max(r.get("slowest_ms", 0) for r in runs),
                "peak_MiB": max(r.get("peak_MiB", 0) for r in runs), "runs": runs}

    def soak(self):
        o = self.options
        seconds = max(15, int(SOAK_SECONDS * self.scale))
        status, out, err, command = self.job(2, o.mpis[0], "torture_soak",
                                             ["--seconds", seconds, "--seed", o.seed],
                                             seconds=seconds + 600)
        if status != 0:
            print(f"FAILED {command}\n{err[-3000:]}", flush=True)
        return {"ok": status == 0, "mpi": o.mpis[0], "command": command,
                "output": "" if status == 0 else err[-3000:], **(last_json(out) or {})}

    def run(self, part):
        print(f"== {part}", flush=True)
        begun = time.time()
        result = getattr(self, part)()
        result.update(part=part, seed=self.options.seed, minutes_setting=self.options.minutes,
                      took=round(time.time() - begun), date=time.strftime("%Y-%m-%d"),
                      version=version(), machine=machine(),
                      command=f"make torture PART={part} MINUTES={self.options.minutes:g} "
                              f"SEED={self.options.seed} MPIS={','.join(self.options.mpis)}")
        (self.output / f"{part}.json").write_text(json.dumps(result, indent=1) + "\n")
        print(f"== {part}: {'passed' if result['ok'] else 'FAILED'} in {result['took']} s",
              flush=True)
        return result["ok"]


def version():
    git = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
                         capture_output=True, text=True, check=False)
    return git.stdout.strip() or "unknown"


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{os.cpu_count()} cores, {model.group(1) if model else platform.machine()}, Linux " \
           f"{platform.release()}"


def line_of_random(r):
    return (f"{r['operations']:,} operations", f"{r['wrong']} wrong, {r['differing']} whose bits "
            f"differ between ranks, {r['failed_runs']} runs that failed")


def line_of_interposed(r):
    return (f"{r['operations']:,} collectives of MPI programs under the interposer",
            f"{r['wrong']} wrong, {r['failed_runs']} runs that failed; {r['unknown']:,} more for "
            "which MPI itself fails")


def line_of_kills(r):
    return (f"{r['cases']} ranks lost", f"{r['failed']} cases that failed; the slowest survivor "
            f"ended {r.get('slowest', 0)} s after the strike (timeout {r.get('timeout', 3):g} s)")


def line_of_files(r):
    return (f"{r['files']:,} damaged files", f"{r['broken']} readers that broke; slowest "
            f"{r['slowest_ms']:.0f} ms, most memory {r['peak_MiB']:.0f} MiB")


def line_of_soak(r):
    if "private_KiB" not in r:
        return "soak", "did not end"
    first, last = r["private_KiB"]
    return (f"{r['seconds']} s of all forms: {r['operations']:,} operations on rank 0, "
            f"{r['communicators']:,} communicators made and ended",
            f"{r['wrong']} wrong, {r['differing']} differing, {r['grown']} ranks that grew; rank 0 "
            f"held {first / 1024:.1f} MiB after the first minute and {last / 1024:.1f} at the end")


def table_of(runs):
    """Operations by backend and MPI, and those for which there is no reference."""
    sums, unknown = {}, {}
    for r in runs:
        row = sums.setdefault(r["backend"], {})
        row[r["mpi"]] = row.get(r["mpi"], 0) + (r["operations"] or 0)
        if "unknown" in r:
            unknown[r["mpi"]] = unknown.get(r["mpi"], 0) + r["unknown"]
    if unknown:
        sums["MPI itself fails"] = unknown
    mpis = sorted({r["mpi"] for r in runs})
    yield "| executed by | " + " | ".join(mpis) + " |"
    yield "|---" * (len(mpis) + 1) + "|"
    for backend, row in sums.items():
        yield f"| {backend} | " + " | ".join(f"{row.get(m, 0):,}" for m in mpis) + " |"


def page(results):
    """What the parts found, human-readable."""
    lines = ["# Reliability", "",
             "What `make torture` found: [how it works](../../CONTRIBUTING.md#torture).",
             "`make torture PART=document` makes this page from its results.", "",
             "| part | tried | found | seed | machine | version | date, duration |",
             "|---|---|---|---|---|---|---|"]
    describe = {"random": line_of_random, "interposed": line_of_interposed,
                "kills": line_of_kills, "files": line_of_files,
                "soak": line_of_soak}
    for part in PARTS:
        if part not in results:
            continue
        r = results[part]
        tried, found = describe[part](r)
        lines.append(f"| {part} | {tried} | {found} | {r['seed']} | {r['machine']} | "
                     f"{r['version']} | {r['date']}, {r['took'] / 60:.1f} min |")
    lines += ["", "There is no picture: what counts is whether anything failed.", "",
              "Commands:", ""]
    lines += [f"    {results[p]['command']}" for p in PARTS if p in results]
    if "random" in results:
        lines += ["", "## Operations", ""]
        lines += table_of(results["random"]["runs"])
    if "interposed" in results:
        lines += ["", "## Collectives under the interposer", ""]
        lines += table_of(results["interposed"]["runs"])
    if results.get("kills", {}).get("failures"):
        lines += ["", "## Cases that failed", ""]
        for f in results["kills"]["failures"][:40]:
            lines.append(f"* `{f['case']}`: " + " ".join("; ".join(f["failures"]).split())[:300])
    return "\n".join(lines) + "\n"


def options_of(arguments):
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default=str(ROOT / "build/default"), help="build folder")
    p.add_argument("--part", choices=(*PARTS, "all", "document"), default="all")
    p.add_argument("--minutes", type=float, default=60, help="about that long on two cores")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--mpis", type=lambda t: t.split(","), default=["openmpi", "mpich", "impi"])
    p.add_argument("--ranks", type=lambda t: [int(n) for n in t.split(",")], default=[2, 3, 4])
    p.add_argument("--jobs", type=int, default=2, help="jobs of kills at once")
    p.add_argument("--output", default=str(ROOT / "build/torture"), help="folder for results")
    p.add_argument("--document", help="page to write from all results in the folder")
    return p.parse_args(arguments)


def main(arguments):
    options = options_of(arguments)
    torture = Torture(options)
    parts = {"all": PARTS, "document": ()}.get(options.part, (options.part,))
    good = [torture.run(part) for part in parts]
    results = {part: json.loads((torture.output / f"{part}.json").read_text())
               for part in PARTS if (torture.output / f"{part}.json").exists()}
    (torture.output / "summary.json").write_text(json.dumps(
        {part: {k: v for k, v in r.items() if k not in ("runs", "faults", "failures")}
         for part, r in results.items()}, indent=1) + "\n")
    text = page(results)
    (torture.output / "summary.md").write_text(text)
    if options.document:
        pathlib.Path(options.document).write_text(text)
    print(text)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
