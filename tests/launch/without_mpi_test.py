# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Jobs without MPI: by `sucl run --launcher local`, by variables of other launchers, by an id and
by a store of the program's own.

    without_mpi_test.py SUCL PROGRAM [TEST...]
"""

import glob
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

SUCL, PROGRAM = sys.argv[1:3]
PMIX_LAUNCHER = os.environ.get("SUCL_TEST_PMIX_LAUNCHER", "")
LIMIT = 240  # seconds; only a job that hangs takes so long
TCP_TIMEOUT = "100s"  # of ranks for each other, so that a rank that waits says for whom before that
MODULES = os.path.join(os.path.dirname(SUCL), "../lib/sucl")
FABRIC = os.path.exists(os.path.join(MODULES, "libsucl_backend_fabric.so"))
FOREIGN = ("SUCL_", "OMPI_", "PMI", "SLURM_", "PALS_", "I_MPI", "MASTER_", "RANK", "WORLD_SIZE")


def environment(**more):
    """This one without any MPI on the path, nor a word of a launcher."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
    clean["PATH"] = ":".join(p for p in clean.get("PATH", "").split(":")
                             if not os.path.exists(os.path.join(p, "mpiexec")))
    clean.update({"SUCL_TCP_TIMEOUT": TCP_TIMEOUT, **{k: str(v) for k, v in more.items()}})
    return clean


def free_port():
    """A port that is free, as is the next one. Not of those that the system gives to connections:
    it might give them to one before rank 0 listens."""
    while True:
        port = random.randrange(12000, 30000)
        with socket.socket() as s, socket.socket() as next_one:
            try:
                s.bind(("127.0.0.1", port))
                next_one.bind(("127.0.0.1", port + 1))
                return port
            except OSError:
                pass


class Job(unittest.TestCase):
    def run_local(self, ranks, *words, options=(), **variables):
        done = subprocess.run(
            [SUCL, "run", "--launcher", "local", "-n", str(ranks), *options, "--", *words],
            env=environment(**variables), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=LIMIT)
        self.text = done.stdout + done.stderr
        return done.returncode

    def start(self, *words, **variables):
        child = subprocess.Popen([PROGRAM, *words], env=environment(**variables),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True)
        self.addCleanup(child.stdin.close)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def finish(self, children):
        """The output of each, and its exit code. Where one waits for ever, the others tell why."""
        ended = []
        for child in children:
            try:
                ended.append((child.communicate(timeout=LIMIT)[0], child.returncode))
            except subprocess.TimeoutExpired as late:
                ended.append((f"It has not ended. {late.output or b''}", None))
                child.kill()
        return ended

    def check_all_right(self, children):
        ended = self.finish(children)
        for _, code in ended:
            self.assertEqual(code, 0, "\n".join(text for text, _ in ended))

    def check_all_say(self, children, pattern):
        ended = self.finish(children)
        for text, code in ended:
            self.assertEqual(code, 3, "\n".join(text for text, _ in ended))
            self.assertRegex(text, pattern)

    def test_local_ranks(self):
        for ranks in (1, 2, 4):
            self.assertEqual(self.run_local(ranks, PROGRAM, "check"), 0, self.text)
            self.assertIn(f"{ranks} ranks by SuCL over TCP", self.text)
            self.assertNotIn("FAILED", self.text)
            if ranks > 1:
                self.assertIn("executed by plan", self.text)

    def test_input_goes_to_rank_0(self):
        done = subprocess.run(
            [SUCL, "run", "--launcher", "local", "-n", "3", "--", "sh", "-c",
             'echo "$SUCL_TCP_RANK has $(cat)"'],
            env=environment(), input="word", capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(sorted(done.stdout.splitlines()), ["0 has word", "1 has ", "2 has "])

    def test_exit_codes(self):
        self.assertEqual(self.run_local(3, PROGRAM, "exit", "7"), 7, self.text)
        self.assertIn("rank 1 ended with status 7", self.text)
        self.assertEqual(self.run_local(2, "sh", "-c", "kill -SEGV $$"), 128 + signal.SIGSEGV)
        self.assertRegex(self.text, r"rank \d was ended by signal 11 \(SIGSEGV")
        self.assertEqual(self.run_local(1, "/nonexistent/program"), 127)

    def test_a_killed_rank_is_named(self):
        code = self.run_local(3, PROGRAM, "die", "2", options=("--timeout", "30"))
        self.assertEqual(code, 128 + signal.SIGKILL, self.text)
        self.assertIn("rank 2 was ended by signal 9", self.text)
        self.assertEqual(len(re.findall(r"rank [01]: it is named", self.text)), 2, self.text)

    def test_what_scripts_have_started_ends_with_them(self):
        """A stopped program would keep the output open, too."""
        program = "kill -STOP $$; sleep 1000"
        for options in ((), ("--timeout", "1")):
            code = self.run_local(
                2, "sh", "-c", f"[ $SUCL_TCP_RANK = 0 ] && exit 3; sh -c '{program}'; exit 4",
                options=options)
            self.assertEqual(code, 3, self.text)
            self.assertIn("rank 0 ended with status 3", self.text)

    def test_signals_reach_the_ranks(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            job = subprocess.Popen(
                [SUCL, "run", "--launcher", "local", "-n", "2", "--", "sh", "-c",
                 f'trap "echo caught; exit 9" {number.value}; echo ready; '
                 "while :; do sleep 0.1; done"],
                env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True)
            for _ in range(2):
                self.assertEqual(job.stdout.readline(), "ready\n")
            job.send_signal(number)
            text = job.communicate(timeout=LIMIT)[0]
            self.assertEqual(job.returncode, 9, text)
            self.assertEqual(text.count("caught"), 2, text)

    def test_ranks_end_with_the_launcher(self):
        job = subprocess.Popen(
            [SUCL, "run", "--launcher", "local", "-n", "2", "--", "sh", "-c",
             "echo $$; while :; do sleep 0.1; done"],
            env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        ranks = [int(job.stdout.readline()) for _ in range(2)]
        job.kill()
        job.wait()
        job.stdout.close()
        until = time.monotonic() + LIMIT
        for rank in ranks:
            while os.path.exists(f"/proc/{rank}"):
                with open(f"/proc/{rank}/stat", encoding="utf-8") as file:
                    if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                        break
                self.assertLess(time.monotonic(), until, f"{rank} lives on")
                time.sleep(0.05)

    def check_nothing_connects(self, ranks, *patterns, variables):
        """Every rank says so, and why."""
        self.assertNotEqual(
            self.run_local(ranks, PROGRAM, "check", options=("--timeout", "60"), **variables), 0)
        for pattern in (f"the ranks of the communicator are on {ranks} nodes",
                        "this job runs without MPI", "mpiexec", *patterns):
            self.assertEqual(len(re.findall(pattern, self.text)), ranks, (pattern, self.text))

    def test_nothing_carries_data_between_nodes(self):
        self.check_nothing_connects(2, variables={"SUCL_NODE_SIZE": 1,
                                                  "SUCL_BACKEND_FABRIC_ENABLED": 0})

    @unittest.skipUnless(FABRIC, "built without libfabric")
    def test_between_nodes(self):
        for size, backend in ((2, "plan"), (1, "fabric")):
            self.assertEqual(0, self.run_local(4, PROGRAM, "check", options=("--timeout", "60"),
                                               SUCL_NODE_SIZE=size), self.text)
            self.assertIn(f"4 ranks on {4 // size} nodes: executed by {backend}", self.text)

    @unittest.skipUnless(FABRIC, "built without libfabric")
    def test_long_messages_between_nodes(self):
        """In pieces, which are combined and sent on while others come; results are compared."""
        self.assertEqual(0, self.tool("bench", "allreduce", "broadcast", "reduce", "-n", "3",
                                      "--launcher", "local", "--memory", "system", "--form",
                                      "blocking,event", "--against", "none", "--sizes", "5Mi",
                                      "--iterations", "2", "--warmup", "1", SUCL_NODE_SIZE=1),
                         self.text)
        self.assertIn("all 6 results valid", self.text)

    @unittest.skipUnless(FABRIC, "built without libfabric")
    def test_a_crash_keeps_its_signal(self):
        """Whatever handlers libfabric's providers install."""
        code = self.run_local(2, PROGRAM, "crash", "1", options=("--timeout", "30"),
                              SUCL_NODE_SIZE=1)
        self.assertEqual(code, 128 + signal.SIGSEGV, self.text)
        self.assertIn("rank 1 was ended by signal 11", self.text)

    @unittest.skipUnless(FABRIC, "built without libfabric")
    def test_a_killed_rank_of_another_node_is_named(self):
        for size, rank in ((2, 2), (1, 0)):
            code = self.run_local(4, PROGRAM, "die", str(rank), options=("--timeout", "30"),
                                  SUCL_NODE_SIZE=size)
            self.assertEqual(code, 128 + signal.SIGKILL, self.text)
            self.assertEqual(len(re.findall(r"rank \d: it is named", self.text)), 3, self.text)

    @unittest.skipUnless(FABRIC, "built without libfabric")
    def test_no_such_library_provider_or_interface(self):
        for variable, value, said, cure in (
                ("LIBRARY", "/nowhere/libfabric.so.1", "libfabric cannot be loaded: /nowhere",
                 "Correct fabric.library"),
                ("PROVIDER", "carrier_pigeons", 'has no provider "carrier_pigeons"',
                 "Set fabric.provider .* to one of: .*tcp"),
                ("INTERFACE", "eth77", "no provider at the interface 'eth77'",
                 "Set fabric.interface")):
            self.check_nothing_connects(2, said, cure, variables={
                "SUCL_NODE_SIZE": 1, f"SUCL_FABRIC_{variable}": value})

    @unittest.skipUnless(FABRIC, "built without libfabric")
    def test_a_wrong_setting_of_the_network(self):
        self.assertNotEqual(
            self.run_local(2, PROGRAM, "check", options=("--timeout", "60"),
                           SUCL_NODE_SIZE=1, SUCL_FABRIC_INTERFACE="10.1.0.0/77"), 0)
        for pattern in ("'10.1.0.0/77' is no subnet .configuration", "Write one as"):
            self.assertEqual(len(re.findall(pattern, self.text)), 2, (pattern, self.text))

    @unittest.skipUnless(FABRIC, "built without libfabric")
    def test_one_rank_without_the_library(self):
        done = self.run_local(2, "sh", "-c", "[ $SUCL_TCP_RANK = 0 ] || "
                              'export SUCL_FABRIC_LIBRARY=/nowhere/libfabric.so; exec "$0" check',
                              PROGRAM, options=("--timeout", "60"), SUCL_NODE_SIZE=1)
        self.assertNotEqual(done, 0)
        self.assertEqual(self.text.count("rank 1: libfabric cannot be loaded"), 2, self.text)

    def test_a_communicator_of_mpi_is_refused(self):
        self.assertEqual(self.run_local(2, PROGRAM, "adopt"), 0, self.text)

    def test_an_empty_environment(self):
        done = subprocess.run([PROGRAM, "check"], env={}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_variables_of_torchrun(self):
        port = free_port()
        with socket.socket() as agent:  # torchrun's own store
            agent.bind(("127.0.0.1", port))
            agent.listen()
            self.check_all_right([
                self.start("check", MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=r, WORLD_SIZE=3,
                           LOCAL_RANK=r, TORCHELASTIC_RUN_ID="test") for r in range(3)])

    @unittest.skipUnless(shutil.which("torchrun"), "torchrun is not on PATH")
    def test_torchrun(self):
        done = subprocess.run(["torchrun", "--nproc-per-node", "3", "--no-python", PROGRAM,
                               "check"], env=environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("3 ranks by SuCL over TCP (the variables of torchrun)", done.stdout)

    @unittest.skipUnless(PMIX_LAUNCHER, "no launcher that serves PMIx is there")
    def test_a_pmix_launcher(self):
        """Open MPI's launcher; no MPI is loaded, because it is told so or because there is none."""
        def run(**variables):
            done = subprocess.run([PMIX_LAUNCHER, "-n", "3", "--oversubscribe", PROGRAM, "check"],
                                  env=environment(OMPI_ALLOW_RUN_AS_ROOT=1,
                                                  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1, **variables),
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=LIMIT)
            return done.returncode, done.stdout + done.stderr

        code, text = run(SUCL_CONTROL_PLANE="tcp")
        self.assertEqual(code, 0, text)
        self.assertIn("3 ranks by SuCL over TCP (the launcher's PMIx)", text)
        code, text = run(SUCL_CONTROL_PLANE="tcp", SUCL_PMIX_LIBRARY="/nonexistent/libpmix.so.2")
        self.assertNotEqual(code, 0, text)
        self.assertIn("a PMIx launcher has started this process, and its library cannot be loaded",
                      text)
        code, text = run(LD_LIBRARY_PATH=self.built_without_mpi())
        self.assertEqual(code, 0, text)
        self.assertIn("3 ranks by SuCL over TCP (the launcher's PMIx)", text)

    def built_without_mpi(self):
        """A folder with SuCL's libraries as they are built without MPI."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        built = os.path.join(os.path.dirname(os.path.dirname(SUCL)), "lib")
        os.mkdir(os.path.join(folder, "sucl"))
        for path in glob.glob(built + "/*.so*") + glob.glob(built + "/sucl/*.so"):
            if "_mpi_" not in path:
                os.symlink(path, os.path.join(folder, os.path.relpath(path, built)))
        return folder

    def start_by_pmi(self, launcher, rank, **more):
        """With the variables of a cluster's launcher that serves PMI too, where there is no MPI."""
        variables = {
            "pals": {"PALS_RANKID": rank, "PALS_APID": f"test-{os.getpid()}",
                     "MASTER_ADDR": "127.0.0.1"},
            "slurm": {"SLURM_PROCID": rank, "SLURM_LOCALID": rank, "SLURM_STEP_NUM_TASKS": 2,
                      "SLURM_STEP_ID": 0, "SLURM_JOB_ID": os.getpid(),
                      "SLURM_STEP_NODELIST": "127.0.0.1"}}[launcher]
        return self.start("check", SUCL_TCP_SECRET="of the job",
                          **{"PMI_RANK": rank, "PMI_SIZE": 2, **variables, **more})

    def test_variables_of_pmi_without_a_module_of_mpi(self):
        folder = self.built_without_mpi()
        for launcher, why in (("pals", "PALS"), ("slurm", "Slurm")):
            ended = self.finish([self.start_by_pmi(launcher, rank, LD_LIBRARY_PATH=folder)
                                 for rank in range(2)])
            for text, code in ended:
                self.assertEqual(code, 0, text)
            self.assertIn(f"2 ranks by SuCL over TCP (the variables of {why})",
                          "".join(text for text, _ in ended))

    def test_variables_of_another_launcher_are_not_of_the_job(self):
        """As in a job that mpiexec has started on the nodes of a job of Slurm's."""
        folder = self.built_without_mpi()
        for size in (1, 3):
            self.check_all_say([self.start_by_pmi("slurm", 0, LD_LIBRARY_PATH=folder,
                                                  PMI_SIZE=size)],
                               "libsucl_mpi_mpich.so")

    def test_variables_of_slurm(self):
        self.check_all_right([
            self.start("check", SLURM_PROCID=r, SLURM_LOCALID=r, SLURM_STEP_NUM_TASKS=2,
                       SLURM_STEP_ID=0, SLURM_JOB_ID=os.getpid(),
                       SLURM_STEP_NODELIST="127.0.0.1", SUCL_TCP_SECRET="of the job")
            for r in (1, 0)])

    def test_ipv6(self):
        try:
            with socket.socket(socket.AF_INET6) as s:
                s.bind(("::1", 0))
        except OSError:
            self.skipTest("there is no IPv6 here")
        self.check_all_right(self.by_variables(2, SUCL_TCP_ADDRESS="::1"))

    def by_variables(self, ranks, **more):
        variables = {"SUCL_TCP_SIZE": ranks, "SUCL_TCP_ADDRESS": "127.0.0.1",
                     "SUCL_TCP_PORT": free_port(), "SUCL_TCP_TIMEOUT": "60s", **more}
        return [self.start("check", SUCL_TCP_RANK=r, **variables) for r in range(ranks)]

    def patient_but_rank_0(self, others, **more):
        """Rank 0 says when all give up. It is started after the others and waits for as long as
        they may come later than it on a busy machine, no longer."""
        variables = {"SUCL_TCP_ADDRESS": "127.0.0.1", "SUCL_TCP_PORT": free_port(), **more}
        job = [self.start("check", SUCL_TCP_RANK=r, SUCL_TCP_TIMEOUT="5s" if r == 0 else "60s",
                          **{k: v(r) if callable(v) else v for k, v in variables.items()})
               for r in (*others, 0)]
        return job[-1:] + job[:-1]

    def test_an_interface_by_name(self):
        self.check_all_right(self.by_variables(3, SUCL_TCP_INTERFACE="lo"))
        self.check_all_say(self.by_variables(2, SUCL_TCP_INTERFACE="eth77", SUCL_TCP_TIMEOUT="3s"),
                           "no interface of this machine is called 'eth77'")

    def test_a_name_without_an_address(self):
        job = self.by_variables(2, SUCL_TCP_ADDRESS="no-such-host.invalid", SUCL_TCP_TIMEOUT="3s")
        self.check_all_say(job[1:], "no-such-host.invalid.* has no address here")
        self.check_all_say(job[:1], "rank 1 has not arrived")

    def test_an_id(self):
        first = self.start("--make", "0", "3", "check")
        name = first.stdout.readline().strip()
        self.check_all_right([first] + [self.start("--id", name, str(r), "3", "check")
                                        for r in (1, 2)])

    def test_ranks_that_were_forked_after_the_id(self):
        self.check_all_right([self.start("--fork", "3")])

    def test_a_store_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            self.check_all_right([self.start("--store", folder, str(r), "3", "check")
                                  for r in range(3)])

    def test_a_wrong_id(self):
        self.check_all_say([self.start("--id", "sucl1-zz", "0", "2", "check")], "is no id of a job")

    def test_two_of_one_rank(self):
        first = self.start("--make", "0", "3", "check")
        name = first.stdout.readline().strip()
        self.check_all_say([first] + [self.start("--id", name, "1", "3", "check")
                                      for _ in range(2)], "two processes say that they are rank 1")

    def test_two_of_rank_0(self):
        port = free_port()
        common = {"SUCL_TCP_SIZE": 2, "SUCL_TCP_ADDRESS": "127.0.0.1", "SUCL_TCP_PORT": port}
        self.check_all_say([self.start("check", SUCL_TCP_RANK=0, **common) for _ in range(2)],
                           "two processes say that they are rank 0")

    def test_sizes_that_differ(self):
        first = self.start("--make", "0", "3", "check")
        name = first.stdout.readline().strip()
        others = [self.start("--id", name, "1", "3", "check"),
                  self.start("--id", name, "2", "4", "check")]
        self.check_all_say([first] + others, "says that the job has 4 ranks")

    def test_one_that_does_not_come(self):
        job = self.patient_but_rank_0([1, 2], SUCL_TCP_SIZE=3)
        job[1].kill()
        self.check_all_say([job[0], job[2]], r"rank 1 (has not arrived|has died|has ended)")

    def test_another_secret(self):
        job = self.patient_but_rank_0([1], SUCL_TCP_SIZE=2, SUCL_TCP_SECRET=lambda r: f"secret {r}")
        self.check_all_say(job[1:], "does not accept this process")
        self.check_all_say(job[:1], "rank 1 has not arrived.*did not know the secret")

    def test_a_port_that_another_program_has(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            job = [self.start("check", SUCL_TCP_RANK=0, SUCL_TCP_SIZE=2,
                              SUCL_TCP_ADDRESS="127.0.0.1", SUCL_TCP_PORT=port)]
            self.check_all_say(job, "cannot listen at .*SUCL_TCP_PORT")

    def test_a_port_that_a_connection_has(self):
        """Which may be one that the system has given it: rank 0 gets it afterwards."""
        with socket.socket() as server, socket.socket() as client:
            server.bind(("127.0.0.1", 0))
            server.listen()
            port = free_port()
            client.bind(("127.0.0.1", port))
            client.connect(server.getsockname())
            taken, _ = server.accept()
            job = [self.start("check", SUCL_TCP_RANK=r, SUCL_TCP_SIZE=2,
                              SUCL_TCP_ADDRESS="127.0.0.1", SUCL_TCP_PORT=port) for r in range(2)]
            self.assertIn("by a connection of another process", job[0].stdout.readline())
            taken.close()
        self.check_all_right(job)

    def check_one_differs(self, rank, change, everywhere, on_it=""):
        """In a job of `sucl run`, where a script changes the environment of one rank: it does not
        compute alone, and the others do not wait for it."""
        script = f'if [ "$SUCL_TCP_RANK" = {rank} ]; then {change}; fi; exec "$0" check'
        self.assertEqual(self.run_local(3, "sh", "-c", script, PROGRAM), 3, self.text)
        self.assertNotIn("ranks by", self.text)
        self.assertEqual(len(re.findall("error: ", self.text)), 3, self.text)
        self.assertEqual(len(re.findall(everywhere, self.text)), 2 if on_it else 3, self.text)
        self.assertRegex(self.text, on_it or everywhere)

    def test_one_rank_of_another_environment(self):
        for change, everywhere in (
                ("SUCL_TCP_SIZE=1", "SUCL_TCP_RANK is 1, and SUCL_TCP_SIZE is 1"),
                ("SUCL_TCP_SIZE=2", "says that the job has 2 ranks, and 3 were started"),
                ("SUCL_TCP_SIZE=4", "says that the job has 4 ranks, and 3 were started"),
                ("SUCL_TCP_SIZE=x", "SUCL_TCP_SIZE is 'x', which is no number"),
                ("SUCL_TCP_RANK=3", "SUCL_TCP_RANK is 3, and SUCL_TCP_SIZE is 3"),
                ("SUCL_TCP_RANK=2", "two processes say that they are rank 2"),
                ("unset SUCL_TCP_RANK", "SUCL_TCP_RANK is not set .* SUCL_TCP_SIZE is 3"),
                ("unset SUCL_TCP_SIZE", "SUCL_TCP_SIZE is not set .* SUCL_TCP_RANK is 1")):
            self.check_one_differs(1, change, everywhere)
        self.check_one_differs(0, "SUCL_TCP_SIZE=1", "says that the job has 1 rank, and 3 were")

    def test_one_rank_without_an_environment(self):
        own = "unset SUCL_TCP_ID SUCL_TCP_RANK SUCL_TCP_SIZE"
        for rank, change, on_it in (
                (0, own, "`sucl run` has started 3 ranks, but the environment of this process"),
                (1, own + " SUCL_CONTROL_PLANE", "`sucl run` has started 3 ranks, but the env"),
                (2, 'exec env -i "$0" check', "`sucl run` has started 3 ranks, but the env"),
                (2, "unset SUCL_TCP_ID", "it is not known where the ranks of the job find")):
            self.check_one_differs(
                rank, change, f"rank {rank} ended with status 3 before all ranks had found", on_it)

    def test_one_rank_that_does_not_start(self):
        script = '[ "$SUCL_TCP_RANK" = 1 ] || exec "$0" check'
        self.assertEqual(self.run_local(3, "sh", "-c", script, PROGRAM), 3, self.text)
        self.assertEqual(len(re.findall("rank 1 ended with status 0 before all", self.text)), 2,
                         self.text)

    def test_a_process_that_shall_be_alone(self):
        script = 'unset SUCL_TCP_ID; export SUCL_TCP_RANK=0 SUCL_TCP_SIZE=1; exec "$0" check'
        self.assertEqual(self.run_local(3, "sh", "-c", script, PROGRAM), 0, self.text)
        self.assertEqual(self.text.count("1 ranks by SuCL over TCP"), 3, self.text)

    def check_variables_differ(self, rank, pattern, change):
        """A job of torchrun's variables."""
        port = free_port()
        job = []
        for r in range(3):
            variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": r,
                         "WORLD_SIZE": 3, **(change if r == rank else {})}
            job.append(self.start("check", **{k: v for k, v in variables.items() if v is not None}))
        self.check_all_say(job, pattern)

    def test_variables_of_one_rank(self):
        for rank in (0, 1):
            self.check_variables_differ(rank, "RANK is 7, and WORLD_SIZE is 3", {"RANK": 7})
            self.check_variables_differ(rank, "RANK is 'x', which is no number", {"RANK": "x"})
            self.check_variables_differ(rank, "RANK is not set", {"RANK": None})
            self.check_variables_differ(rank, "WORLD_SIZE is not set", {"WORLD_SIZE": None})
        self.check_variables_differ(1, "RANK is 1, and WORLD_SIZE is 1", {"WORLD_SIZE": 1})
        self.check_variables_differ(1, "two processes say that they are rank 2", {"RANK": 2})
        self.check_variables_differ(2, "says that the job has 4 ranks", {"WORLD_SIZE": 4})

    def test_rank_0_that_computes_alone(self):
        """While it does, the others learn of it, and it of them."""
        common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
        alone = self.start("stay", RANK=0, WORLD_SIZE=1, **common)  # until its input ends
        self.assertEqual(alone.stdout.readline(), "started\n")
        self.check_all_say([self.start("check", RANK=1, WORLD_SIZE=2, **common)],
                           r"rank 0 \(process \d+\) says that the job has 1 rank")
        self.assertIn("other ranks of that job have come", alone.stdout.readline())
        self.assertEqual(self.finish([alone])[0][1], 1)

    def tool(self, *words, **variables):
        """The program itself; its exit code."""
        done = subprocess.run([SUCL, *words], env=environment(**variables),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=LIMIT)
        self.text = done.stdout + done.stderr
        return done.returncode

    def test_benchmarks_and_tuning(self):
        with tempfile.TemporaryDirectory() as folder:
            results = os.path.join(folder, "bench.json")
            self.assertEqual(0, self.tool("bench", "allreduce", "-n", "2", "--launcher", "local",
                                          "--memory", "system", "--sizes", "8,4Ki", "--iterations",
                                          "20", "--json", results), self.text)
            self.assertIn("all 4 results valid", self.text)
            self.assertIn("SuCL over TCP", self.text)
            table = os.path.join(folder, "tuned.toml")
            self.assertEqual(0, self.tool("tune", "allreduce", "-n", "2", "--launcher", "local",
                                          "--seconds", "1", "--sizes", "8,4Ki", "--output", table),
                             self.text)
            self.assertEqual(0, self.run_local(2, PROGRAM, "check", SUCL_TUNING_TABLE=table),
                             self.text)
        self.assertEqual(2, self.tool("bench", "allreduce", "--launcher", "local", "--against",
                                      "mpi"))
        self.assertIn("raw MPI is compared with in a job of MPI", self.text)

    def test_the_control_plane_can_be_forced(self):
        self.check_all_say([self.start("check", SUCL_CONTROL_PLANE="tcp")],
                           "nothing says which rank this process is")
        self.check_all_right([self.start("check", SUCL_CONTROL_PLANE="mpi")])
        # A launcher has started more: none of them computes alone.
        port = free_port()
        self.check_all_say([self.start("check", SUCL_CONTROL_PLANE="mpi", RANK=rank, WORLD_SIZE=2,
                                       MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
                            for rank in range(2)],
                           r"started 2 processes \(WORLD_SIZE\), but the control plane shall be "
                           "mpi")

    def test_srun(self):
        """By a program that does what srun does, on this machine."""
        with tempfile.TemporaryDirectory() as folder:
            srun = os.path.join(folder, "srun")
            with open(srun, "w", encoding="utf-8") as file:
                file.write('#!/bin/sh\n[ "$1" = -n ] && [ "$3" = --export=ALL ] || exit 99\n'
                           "n=$2; shift 4\ni=0\nwhile [ $i -lt $n ]; do\n"
                           "SLURM_PROCID=$i SLURM_STEP_NUM_TASKS=$n SLURM_STEP_ID=0 "
                           'SLURM_JOB_ID=1 "$@" & i=$((i + 1))\ndone\nwait\n')
            os.chmod(srun, 0o755)
            variables = environment()
            variables["PATH"] = folder + ":" + variables["PATH"]
            done = subprocess.run([SUCL, "run", "--launcher", "srun", "-n", "2", "--", PROGRAM,
                                   "check"], env=variables, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=LIMIT)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("2 ranks by SuCL over TCP", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
