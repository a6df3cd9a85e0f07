# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Tests of the program `sucl` from outside: a class of this file or of *_cases.py.

SUCL_TEST_UPDATE=1 rewrites the golden files; case.py has the other variables.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from browser_cases import Plans, Timelines, Topologies  # noqa: E402, F401
from case import FLAVOUR, FLAVOURS, HERE, LIMIT, PROGRAM, Case  # noqa: E402
from measure_cases import Bench, BenchChoices, Tune  # noqa: E402, F401
from play_cases import Play  # noqa: E402, F401
from topology_cases import Topology  # noqa: E402, F401
from trace_cases import Trace  # noqa: E402, F401


class Help(Case):
    def golden(self, name, text):
        path = HERE / "golden" / name
        if os.environ.get("SUCL_TEST_UPDATE"):
            path.write_text(text)
        self.assertEqual(text, path.read_text(), f"differs from {path}")

    def test_help_texts(self):
        self.golden("help.txt", self.sucl("--help").stdout)
        for command in ("plan build", "plan show", "plan verify", "plan simulate", "plan play",
                        "plan search", "plan compare", "plan machines", "plan algorithms"):
            text = self.sucl(*command.split(), "--help").stdout
            self.golden(command.replace(" ", "_") + ".txt", text)
            self.assertIn("Examples:", text)
        self.golden("plan.txt", self.sucl("plan", "--help").stdout)
        self.golden("trace.txt", self.sucl("trace", "--help").stdout)
        self.golden("trace_view.txt", self.sucl("trace", "view", "--help").stdout)
        for command in ("run", "info", "doctor", "bench", "tune", "diagnose", "dump"):
            text = self.sucl(command, "--help").stdout
            self.golden(f"{command}.txt", text)
            self.assertIn("Examples:", text)
            self.assertEqual(text, self.sucl("help", command).stdout)

    def test_manual_and_completion(self):
        """Every option of --help is in the page and is completed; shells can read the files."""
        self.sucl("describe", "share")
        share = self.path("share")
        bash = share / "bash-completion/completions/sucl"
        for name, page in (("run", "sucl-run"), ("plan search", "sucl-plan-search")):
            options = set(re.findall(r"--[a-z][a-z-]+", self.sucl(*name.split(), "--help").stdout
                                     .split("Options:")[1].split("Examples:")[0]))
            text = (share / f"man/man1/{page}.1").read_text().replace("\\-", "-")
            self.assertGreater(len(options), 3)
            for option in options:
                self.assertIn(option, text)
            listed = self.completed(bash, f"sucl {name} --")
            self.assertLessEqual({o for o in options if f"\\fB{o}" in text}, listed)
        self.assertIn("doctor", self.completed(bash, "sucl d"))
        self.assertNotIn("run", self.completed(bash, "sucl plan "))
        for shell, file in (("zsh", "zsh/site-functions/_sucl"),
                            ("fish", "fish/vendor_completions.d/sucl.fish")):
            self.assertIn("--timeout" if shell == "zsh" else "-l timeout",
                          (share / file).read_text())
            if shutil.which(shell):
                subprocess.run([shell, "-n", share / file], check=True)
        if shutil.which("man"):
            page = share / "man/man1/sucl-plan-search.1"
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", page],
                                  capture_output=True, text=True, stdin=subprocess.DEVNULL)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def completed(self, file, line):
        script = (f"source {file}; COMP_WORDS=({line}{'' if line[-1] != ' ' else chr(39) * 2}); "
                  "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); compopt() { :; }; _sucl; "
                  "printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        return set(done.stdout.split())

    def test_version(self):
        self.assertRegex(self.sucl("--version").stdout, r"^sucl \d+\.\d+\.\d+\n$")

    def test_nothing_asked_is_wrong_usage(self):
        self.assertIn("Usage: sucl COMMAND", self.sucl(code=2).stdout)


class Doctor(Case):
    """Each finding, where the system is so; what this machine is like does not matter."""

    def findings(self, *arguments, code=0, limits="", **variables):
        """By what they are about. `limits`: of ulimit."""
        environment = {n: v for n, v in os.environ.items() if not n.startswith("SUCL_")} | variables
        command = f'{f"ulimit {limits}; " if limits else ""}exec "$0" doctor --json "$@"'
        done = subprocess.run(["bash", "-c", command, PROGRAM, *map(str, arguments)],
                              cwd=self.folder.name, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        found = {}
        for line in json.loads(done.stdout):
            self.assertEqual(line["state"] == "ok", line["cost"] == "" == line["cure"], line)
            found.setdefault(line["about"], []).append(line)
        return found

    def root(self, ptrace="1", shm=True, device=None):
        """A folder with what the doctor looks at of a system."""
        scope = self.path("root") / "proc/sys/kernel/yama/ptrace_scope"
        scope.parent.mkdir(parents=True)
        scope.write_text(ptrace + "\n")
        (self.path("root") / "dev").mkdir()
        if shm:
            (self.path("root") / "dev/shm").symlink_to("/dev/shm")
        if device:
            (self.path("root") / "dev" / device).write_text("")
        return "--root", self.path("root")

    def test_well(self):
        found = self.findings(*self.root())
        self.assertEqual({"SYCL": "ok", "ptrace": "ok", "MPI": "ok"},
                         {k: found[k][0]["state"] for k in ("SYCL", "ptrace", "MPI")})
        self.assertEqual(len(found["MPI"]), len(FLAVOURS))
        text = self.sucl("doctor").stdout
        self.assertRegex(text, r"(?m)^ok      SYCL: ")

    def test_system(self):
        found = self.findings(*self.root(ptrace="2", shm=False), code=1, limits="-n 200")
        self.assertIn("sysctl kernel.yama.ptrace_scope=1", found["ptrace"][0]["cure"])
        self.assertEqual(found["/dev/shm"][0]["state"], "BROKEN")
        self.assertIn("--shm-size", found["/dev/shm"][0]["cure"])
        self.assertEqual(found["open files"][0]["fact"], "limit: 200")
        self.assertIn("ulimit -n", found["open files"][0]["cure"])

    def test_limits(self):
        found = self.findings(*self.root(), limits="-l 16")
        self.assertIn("ulimit -l unlimited", found["locked memory"][0]["cure"])

    def test_a_working_directory_that_has_gone(self):
        for command in ("info", "doctor"):
            gone = f"mkdir gone && cd gone && rmdir ../gone && exec {PROGRAM} {command}"
            done = subprocess.run(["sh", "-c", gone], cwd=self.folder.name, capture_output=True,
                                  text=True, timeout=LIMIT, check=False)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("the working directory cannot be found", done.stderr)

    def test_no_proc(self):
        hidden = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
        mount = "mount -t tmpfs none /proc"
        try:
            subprocess.run([*hidden, mount], capture_output=True, timeout=LIMIT, check=True)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("no file system can be mounted here")
        done = subprocess.run([*hidden, f"{mount} && exec {PROGRAM} info"], capture_output=True,
                              text=True, timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("there is no /proc", done.stderr)

    def test_no_device(self):
        found = self.findings(*self.root(), code=1, ONEAPI_DEVICE_SELECTOR="level_zero:*",
                              ACPP_VISIBILITY_MASK="ze")
        self.assertEqual(found["SYCL"][0]["state"], "BROKEN")
        self.assertEqual(found["SYCL"][0]["cure"], "unset what hides devices: "
                         "ONEAPI_DEVICE_SELECTOR=level_zero:* and ACPP_VISIBILITY_MASK=ze")

    def test_a_driver_that_is_not_there(self):
        gone = "/gone/libintelocl.so"
        found = self.findings(*self.root(), code=1, OCL_ICD_FILENAMES=gone)
        self.assertRegex(found["SYCL"][0]["cure"],
                         f"^OCL_ICD_FILENAMES names {gone}, which cannot be read: unset OCL_ICD")
        self.assertNotIn("ONEAPI_DEVICE_SELECTOR", json.dumps(found))

    def test_gpu_without_sycl(self):
        found = self.findings(*self.root(device="nvidiactl"), ONEAPI_DEVICE_SELECTOR="opencl:cpu")
        self.assertEqual(found["GPU"][0]["state"], "slow")
        self.assertIn("libcuda.so.1", found["GPU"][0]["cure"])

    def test_mpi_that_has_gone(self):
        text = (Path(PROGRAM).parent.parent / "lib/sucl/environment.toml").read_text()
        without = re.sub(r'launcher = "[^"]*', 'launcher = "/gone', text)
        gone = self.path("environment.toml", without)
        found = self.findings(*self.root(), code=1, SUCL_ENVIRONMENT=str(gone))
        self.assertIn("its launcher /gone is missing", found["MPI"][0]["fact"])
        none = self.path("none.toml", re.sub(r"(?s)\n\[mpi\.[a-z]+\].*", "\n", text))
        found = self.findings("--root", self.path("root"), SUCL_ENVIRONMENT=str(none))
        self.assertEqual(found["MPI"][0]["state"], "slow")
        self.assertIn("--launcher local", found["MPI"][0]["cost"])

    def test_wrong_configuration(self):
        wrong = self.path("wrong.toml", "nonsense = 1\n")
        found = self.findings(*self.root(), "--config", wrong, code=1)
        self.assertIn("nonsense", found["configuration"][0]["fact"])


class Plan(Case):
    RING = ("--collective", "allreduce", "--ranks", "4", "--bytes", "1Ki", "--recipe", "ring")

    def json(self, *arguments, code=0):
        return json.loads(self.sucl("plan", *arguments, "--json", "-", code=code).stdout)

    def test_files_in_and_out(self):
        self.sucl("plan", "build", *self.RING, "--output", "ring.plan")
        self.sucl("plan", "build", *self.RING, "--output", "ring.json")
        text = self.json("verify", "ring.plan")
        self.assertTrue(text["right"])
        self.assertTrue(text["identical"])
        self.assertEqual(text["hash"], self.json("verify", "ring.json")["hash"])
        self.assertEqual(self.sucl("plan", "build", *self.RING).stdout,
                         (Path(self.folder.name) / "ring.plan").read_text())

    def test_a_wrong_plan_is_found(self):
        self.sucl("plan", "build", *self.RING, "--output", "ring.plan")
        text = (Path(self.folder.name) / "ring.plan").read_text()
        self.path("wrong.plan", text.replace("  reduce ", "  copy ", 1))
        self.assertIn("wrong: ", self.sucl("plan", "verify", "wrong.plan", code=1).stdout)
        verdict = self.json("verify", "wrong.plan", code=1)
        self.assertFalse(verdict["right"])
        self.assertGreaterEqual(verdict["rank"], 0)
        refused = self.sucl("plan", "simulate", "wrong.plan", "--machine", "delta", code=1).stderr
        self.assertIn("the plan is wrong: ", refused)
        self.assertNotIn("report", refused)
        self.path("broken.plan", "sucl-plan 1\nnonsense\n")
        self.assertIn("broken.plan", self.sucl("plan", "verify", "broken.plan", code=1).stderr)
        self.assertIn("none.plan", self.sucl("plan", "show", "none.plan", code=1).stderr)
        self.assertIn("is a directory", self.sucl("plan", "show", ".", code=1).stderr)
        self.path("empty.plan", "# no words\n")
        self.assertIn("empty", self.sucl("plan", "verify", "empty.plan", code=1).stderr)
        self.path("binary.plan", "\x1b[2J" + 100 * "\x07")
        self.assertRegex(self.sucl("plan", "verify", "binary.plan", code=1).stderr,
                         r"found '\?\[2J\?+\.\.\.'")

    def test_work_is_bounded(self):
        self.assertGreater(self.json("verify", *self.RING)["steps"], 20)
        for command in (["verify"], ["build"], ["simulate", "--machine", "delta"]):
            refused = self.sucl("plan", *command, *self.RING, "--effort", "10", code=1).stderr
            self.assertIn("takes more than 10 steps", refused)
        ranks = "".join(f"rank {r} scratch 0\n" for r in range(50000))
        self.path("many.plan", "sucl-plan 1\ncollective alltoall ranks 50000 element 1 counts 0\n"
                  "algorithm none\nlevel 0 all via any\n" + ranks)
        self.assertIn("takes more than 4000000000 steps",
                      self.sucl("plan", "verify", "many.plan", code=1).stderr)
        many = 1000001 * "  fence\n"
        self.path("long.plan", "sucl-plan 1\ncollective allreduce ranks 1 element 1 counts 1\n"
                  "algorithm long\nlevel 0 all via any\nrank 0 scratch 0\nchannel 0\n" + many)
        self.assertIn("more than the 1000000 that are drawn",
                      self.sucl("plan", "show", "long.plan", "--timeline", "t.svg", code=1).stderr)
        levels = "".join(f"level {n} l via any\n" for n in range(255))
        self.path("levels.plan", "sucl-plan 1\ncollective broadcast ranks 50000 root 0 element 1 "
                  "counts 1\nalgorithm none\n" + levels + ranks)
        self.sucl("plan", "show", "levels.plan")
        self.assertIn("has 4294967296 counts", self.sucl(
            "plan", "build", "--collective", "alltoallv", "--ranks", 65536, "--bytes", 4,
            "--recipe", "direct", code=2).stderr)

    def test_show_and_pictures(self):
        shown = self.json("show", *self.RING)
        self.assertEqual(shown["instructions"]["send"], 4 * 6)
        self.assertEqual(shown["levels"][0]["bytes"], 4 * 6 * 256)
        self.sucl("plan", "show", *self.RING, "--timeline", "order.svg", "--matrix", "matrix.svg")
        self.sucl("plan", "simulate", *self.RING, "--machine", "delta", "--timeline", "time.svg")
        for name in ("order.svg", "matrix.svg", "time.svg"):
            root = ElementTree.parse(Path(self.folder.name) / name).getroot()
            self.assertGreater(len(root), 10, name)
        shown = self.sucl("plan", "show", *self.RING, "--rank", "2").stdout
        self.assertIn("rank 2, channel 0", shown)

    def test_simulate_and_search(self):
        simulated = self.json("simulate", *self.RING, "--machine", "perlmutter")
        found = self.json("search", "--machine", "perlmutter", *self.RING[:-4], "--sizes",
                          "1Ki,1Mi", "--toml", "best.toml")
        self.assertEqual([size["bytes"] for size in found["sizes"]], [1024, 1 << 20])
        best = found["sizes"][0]["best"]
        self.assertLessEqual(best["seconds"], simulated["seconds"])
        self.assertTrue(best["verified"])
        written = (Path(self.folder.name) / "best.toml").read_text()
        self.assertIn(f'recipe = "{best["recipe"]}"', written)

    def test_compare_and_machines(self):
        compared = self.json("compare", "--machine", "delta", "--ranks", "8", "--sizes", "1Ki,1Mi",
                             "--recipe", "ring", "--recipe", "search", "--svg", "chart.svg")
        self.assertEqual(compared["columns"], ["bytes", "ring", "search"])
        self.assertEqual(len(compared["rows"]), 2)
        ElementTree.parse(Path(self.folder.name) / "chart.svg")
        tables = self.json("compare", "--paper", "rings", "--bytes", "1Mi")
        self.assertEqual(len(tables[0]["rows"]), 5)
        names = [machine["name"] for machine in self.json("machines")]
        self.assertIn("frontier", names)
        self.path("mine.toml", self.sucl("plan", "machines", "frontier").stdout)
        self.sucl("plan", "simulate", *self.RING, "--machine", "./mine.toml")


class Errors(Case):
    WRONG = (
        (["bnech"], "no command 'bnech'. Did you mean 'bench'"),
        (["--verison"], "no option '--verison'. Did you mean '--version'"),
        (["run", "--tiemout", "3", "--", "true"], "no option --tiemout. Did you mean '--timeout'"),
        (["run", "-n", "0", "--", "true"], "--ranks: Value 0 not in range"),
        (["run", "--timeout", "soon", "--", "true"], "--timeout: .*'soon'"),
        (["run", "--config", "none.toml", "--", "true"], "no file 'none.toml'"),
        (["run", "--mpi", FLAVOURS[0] + "i", "--", "true"], f"Did you mean '{FLAVOURS[0]}'"),
        (["run", "-n", "2"], "no program to run"),
        (["info", "--jsn"], "no option --jsn. Did you mean '--json'"),
        (["info", "more"], "'more' is one word too many"),
        (["bench"], "no collective to measure"),
        (["bench", "allredcue"], "no collective 'allredcue'. Did you mean 'allreduce'"),
        (["bench", "scan", "--types", "flaot32"],
         "no element type 'flaot32'. Did you mean 'float32'"),
        (["bench", "scan", "--ops", "smu"], "no reduction operator 'smu'. Did you mean 'sum'"),
        (["bench", "scan", "--ops", "bit_and"], "bit_and is not defined for any of the --types"),
        (["bench", "scan", "--memory", "bufer"], "no memory 'bufer'. Did you mean 'buffer'"),
        (["bench", "scan", "--form", "evnt"], "no form 'evnt'. Did you mean 'event'"),
        (["bench", "scan", "--against", "mpl"], "no implementation 'mpl'. Did you mean 'mpi'"),
        (["bench", "scan", "--device", "cpu,gpo"], "no device 'gpo'. Did you mean 'gpu'"),
        (["bench", "scan", "--sizes", "4:64Mu"], "--sizes: .*64Mu"),
        (["bench", "scan", "--iterations", "0"], "--iterations: Value 0 not in range"),
        (["bench", "scan", "--json", "/no/such/folder/f"],
         "cannot write to the folder '/no/such/folder'"),
        (["bench", "reduce", "-n", "2", "--root", "2"], "--root 2, but the 2 ranks"),
        (["plan", "biuld"], "no plan command 'biuld'. Did you mean 'build'"),
        (["plan", "show"], "no plan. Give a file, or --collective"),
        (["plan", "build", "--ranks", "4", "--bytes", "1Ki", "--recipe", "rnig"],
         "no algorithm 'rnig'. Did you mean 'ring'"),
        (["plan", "build", "--ranks", "4", "--bytes", "6", "--recipe", "ring"],
         "6 bytes are no whole number of elements of 4 bytes"),
        (["plan", "build", "--ranks", "4", "--bytes", "1Ki"], "--recipe is missing"),
        (["plan", "verify", "--ranks", "6", "--bytes", "8", "--recipe", "exchange(radices=2)"],
         "--recipe: exchange: the radices multiply to 2"),
        (["plan", "search", "--ranks", "4", "--bytes", "8"], "--machine is missing"),
        (["plan", "search", "--machine", "fronteir", "--ranks", "4", "--bytes", "8"],
         "--machine: .*Did you mean 'frontier'"),
        (["plan", "search", "--machine", "frontier", "--ranks", "4"], "give --bytes for one size"),
        (["plan", "compare", "--paper", "ring"], "no paper table 'ring'. Did you mean 'rings'"),
    )

    def test_wrong_usage(self):
        for arguments, message in self.WRONG:
            with self.subTest(arguments=arguments):
                done = self.sucl(*arguments, code=2)
                self.assertEqual(done.stdout, "")
                self.assertRegex(done.stderr, message)
                self.assertEqual(done.stderr.count("\n"), 1, "one line is enough")

    def test_missing_programs(self):
        self.path("text", "no program")
        for name, message in (("./nothing", "no file './nothing'"), ("text", "write './text'"),
                              ("no-such-program", "no program 'no-such-program' on PATH"),
                              ("./text", "not an executable file")):
            with self.subTest(name=name):
                self.assertIn(message, self.sucl("run", "--", name, code=127).stderr)

    def test_missing_launcher(self):
        environment = self.path("environment.toml", 'format = 1\n[mpi]\ndefault = "mine"\n'
                                '[mpi.mine]\nfamily = "mpich"\nlauncher = "/nowhere/mpiexec"\n')
        done = self.sucl("run", "--", "true", code=1, SUCL_ENVIRONMENT=str(environment))
        self.assertRegex(done.stderr,
                         "launcher of mine, '/nowhere/mpiexec', cannot be run: .*setup")

    def test_launcher(self):
        environment = str(self.path("environment.toml", "format = 1\n"))
        text = 'echo "$SUCL_TCP_RANK of $SUCL_TCP_SIZE by $SUCL_CONTROL_PLANE"'
        done = self.sucl("run", "-n", "2", "--", "sh", "-c", text, SUCL_ENVIRONMENT=environment)
        self.assertEqual(sorted(done.stdout.splitlines()), ["0 of 2 by tcp", "1 of 2 by tcp"])
        done = self.sucl("run", "--launcher", "loca", "--", "true", code=2)
        self.assertIn("Did you mean 'local'", done.stderr)
        for option in ("--mpi=mpich", "--interpose"):
            done = self.sucl("run", "--launcher", "local", option, "--", "true", code=2)
            self.assertIn("--launcher mpi", done.stderr)
        done = self.sucl("run", "--launcher", "local", "-n", "2", "--print", "--", "true", "b c")
        self.assertIn("SUCL_TCP_RANK=1 ", done.stdout)
        done = self.sucl("run", "--launcher", "srun", "--", "true", code=1, PATH="/nowhere:/bin")
        self.assertIn("there is no srun on PATH", done.stderr)

    def test_environment_file(self):
        for text, message in (("format = 7", "has format 7"), ("format = ", "environment.toml:1"),
                              ("a" + 100000 * ".a" + " = 1", "a key has more than"),
                              (None, "No such file")):
            with self.subTest(text=text):
                self.path("environment.toml").unlink(missing_ok=True)
                path = self.path("environment.toml", text)
                done = self.sucl("run", "--", "true", code=1, SUCL_ENVIRONMENT=str(path))
                self.assertIn(message, done.stderr)


class Run(Case):
    def run_ranks(self, *arguments, code=0, **variables):
        return self.sucl("run", "--mpi", FLAVOUR, *arguments, code=code, **variables)

    def test_ranks_and_environment(self):
        text = 'echo "$SUCL_MPI_FLAVOUR $SUCL_VALIDATE $SUCL_TIMEOUT $SUCL_TRACE $1"'
        done = self.run_ranks("-n", 3, "--validate", "--timeout", 1.5, "--trace", "t%r.json", "--",
                              "sh", "-c", text, "sh", "--own")
        trace = re.escape(str(Path(self.folder.name).resolve() / "t%r.json"))
        lines = re.findall(rf"^{FLAVOUR} true 1500ms {trace} --own$", done.stdout, re.MULTILINE)
        self.assertEqual(len(lines), 3, done.stdout)

    def test_dashes_are_optional(self):
        done = self.run_ranks("-n", 1, "sh", "-c", "echo rank --mpi")
        self.assertIn("rank --mpi", done.stdout)

    def test_exit_code_is_the_jobs(self):
        self.run_ranks("-n", 2, "--", "sh", "-c", "exit 3", code=3)

    def read_by(self, *options):
        """What a loop over lines reads after the first job, and what that job's ranks have read."""
        self.path("ranks").write_text("")
        rank = "r=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$SUCL_TCP_RANK}}; "
        script = ('while read line; do echo "$line" >>lines; "$@"; done')
        self.path("lines").write_text("")
        done = subprocess.run(
            ["bash", "-c", script, "bash", PROGRAM, "run", *options, "-n", "2", "--", "sh", "-c",
             rank + 'echo "$r: $(cat | paste -sd,)" >>ranks'], cwd=self.folder.name,
            input="first\nsecond\nthird\n", capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.path("lines").read_text().split(), sorted(
            self.path("ranks").read_text().splitlines())

    def test_who_reads_standard_input(self):
        for launcher in (("--mpi", FLAVOUR), ("--launcher", "local")):
            with self.subTest(launcher=launcher):
                lines, ranks = self.read_by(*launcher, "--stdin", "none")
                self.assertEqual(lines, ["first", "second", "third"])
                self.assertEqual(ranks, ["0: "] * 3 + ["1: "] * 3)
                self.assertEqual(self.read_by(*launcher, "--stdin", "0"),
                                 (["first"], ["0: second,third", "1: "]))
                self.assertEqual(self.read_by(*launcher, "--stdin", "all"),
                                 (["first"], ["0: second,third", "1: second,third"]))

    def test_a_bench_leaves_standard_input(self):
        done = subprocess.run(
            ["bash", "-c", '"$@" >printed; cat', "bash", PROGRAM, "bench", "barrier", "--mpi",
             FLAVOUR, "-n", "2"], cwd=self.folder.name, input="for others\n",
            capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual((done.returncode, done.stdout), (0, "for others\n"), done.stderr)

    def test_a_failed_rank_is_named(self):
        rank = "r=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; [ $r != 1 ] || "
        for command, end, code in (("kill -KILL $$", r"was ended by signal 9 \(SIGKILL", 137),
                                   ("kill -SEGV $$", r"was ended by signal 11 \(SIGSEGV", 139),
                                   ("kill -ABRT $$", r"was ended by signal 6 \(SIGABRT", 134),
                                   ("exit 3", "ended with status 3", 3)):
            for watched in ((), ("--timeout", 60)):
                with self.subTest(command=command, watched=watched):
                    done = self.run_ranks("-n", 3, *watched, "--", "sh", "-c",
                                          rank + command + "; sleep 1; echo lives on", code=code)
                    self.assertRegex(done.stderr, "sucl: rank 1 " + end)
                    self.assertNotRegex(done.stderr, "sucl: rank [02]")
                    if watched:
                        self.assertEqual(done.stdout.count("lives on"), 2, done.stdout)

    def test_a_stopped_rank_is_not_waited_for(self):
        text = "r=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; [ $r = 0 ] || kill -STOP $$; exit 4"
        done = self.run_ranks("-n", 2, "--timeout", 1, "--", "sh", "-c", text, code=4)
        self.assertIn("rank 1 is stopped", done.stderr)

    def test_no_rank_outlives_the_job(self):
        pids = Path(self.folder.name) / "pids"
        job = subprocess.Popen([PROGRAM, "run", "--mpi", FLAVOUR, "-n", "2", "--", "sh", "-c",
                                f"echo $$ >> {pids}; exec sleep 600"], cwd=self.folder.name,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        self.await_true(lambda: pids.exists() and pids.read_text().count("\n") == 2)
        job.kill()
        job.wait()
        ranks = pids.read_text().split()
        self.await_true(lambda: not any(Path("/proc", pid).exists() for pid in ranks))

    def await_true(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_too_many_ranks_are_refused(self):
        done = self.run_ranks("-n", 1 << 20, "--", "true", code=1, SLURM_JOB_ID=None)
        self.assertRegex(done.stderr, r"1048576 ranks .* has \d+ processors. Start at most \d+")

    def test_print_runs_nothing(self):
        done = self.run_ranks("-n", 2, "--print", "--", "sh", "-c", "touch here")
        self.assertFalse(self.path("here").exists())
        self.assertIn(f"export SUCL_MPI_FLAVOUR={FLAVOUR}\n", done.stdout)
        self.assertRegex(done.stdout, r"-n 2 \S*/sh -c 'touch here'\n$")
        done = self.run_ranks("--print", "--stdin", "none", "--", "true")
        self.assertRegex(done.stdout, r"/true </dev/null\n$")
        done = self.run_ranks("--print", "--stdin", "all", "--", "true", code=2)
        self.assertIn("--print cannot show it", done.stderr)

    def test_printed_commands_work(self):
        script = self.run_ranks("-n", 2, "--print", "--", "sh", "-c", "echo it works").stdout
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.stdout.count("it works"), 2, done.stdout + done.stderr)


class Info(Case):
    def test_json(self):
        info = json.loads(self.sucl("info", "--json").stdout)
        self.assertEqual(set(info), {"sucl", "environment", "sycl", "job", "mpi", "without_mpi",
                                     "backends", "configuration", "tuning"})
        self.assertTrue(info["without_mpi"]["found"])
        self.assertIsNone(info["tuning"])
        self.assertIn(info["sycl"]["implementation"], ("dpcpp", "adaptivecpp"))
        platforms = info["sycl"]["platforms"]
        self.assertTrue(platforms, info["sycl"]["problem"])
        for platform in platforms:
            self.assertTrue(platform["canonical"], platform)
            for device in platform["devices"]:
                self.assertGreater(device["memory_bytes"], 0)
        names = [mpi["name"] for mpi in info["mpi"]]
        self.assertEqual(sorted(names), sorted(FLAVOURS))
        self.assertEqual(names[0], FLAVOURS[0], "the default comes first")
        for mpi in info["mpi"]:
            self.assertTrue(mpi["loads"], mpi)
            self.assertTrue(mpi["launcher_found"])
            self.assertRegex(mpi["library"], r"MPI")
            self.assertIn("allreduce", mpi["supports"]["kinds"])
        backends = {backend["name"]: backend for backend in info["backends"]}
        self.assertTrue(backends["mpi"]["found"])
        self.assertIn("fp32", backends["mpi"]["supports"]["reductions"]["sum"])
        self.assertRegex(backends["ipc"]["description"], "single-copy reads of other memory: "
                         r"(possible|not possible \(.+\))$")
        keys = {row["key"]: row for row in info["configuration"]["values"]}
        self.assertEqual(keys["watchdog.timeout"]["origin"], "default")
        self.assertTrue(all(row["help"] or "." in row["key"] for row in keys.values()))

    def test_origins(self):
        config = self.path("mine.toml", "[log]\nlevel = \"info\"\n")
        info = json.loads(self.sucl("info", "--json", "--config", config, SUCL_TIMEOUT="30").stdout)
        keys = {row["key"]: row for row in info["configuration"]["values"]}
        self.assertIn("SUCL_TIMEOUT", keys["watchdog.timeout"]["origin"])
        self.assertRegex(keys["log.level"]["origin"], r"mine\.toml:2")

    def test_text(self):
        done = self.sucl("info")
        for word in ("SYCL:", "MPI:", "Backends:", "Configuration:", "watchdog.timeout", *FLAVOURS):
            self.assertIn(word, done.stdout)
        self.assertIn("single-copy reads of other memory: ", done.stdout)

    def test_missing_backend_says_why(self):
        config = self.path("mine.toml", '[backends.mine]\npath = "/no/such.so"\nplatforms = "*"\n')
        info = json.loads(self.sucl("info", "--json", "--config", config).stdout)
        mine = [backend for backend in info["backends"] if backend["name"] == "mine"][0]
        self.assertFalse(mine["found"])
        self.assertIn("/no/such.so", mine["problem"]["message"])
        self.assertTrue(mine["problem"]["hint"])

    def test_wrong_configuration(self):
        config = self.path("mine.toml", "treshold = 4\n")
        done = self.sucl("info", "--config", config, code=1)
        self.assertIn("treshold", done.stdout)
        self.assertIn("'threshold'", done.stdout)
        self.assertIn("SYCL:", done.stdout, "the rest is shown all the same")


if __name__ == "__main__":
    unittest.main()
