# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""The recipes in packaging/, without the programs that use them: recipes.py SOURCE BUILD PREFIX.

- The recipe of Spack is loaded with doubles of the directives that it uses. For every choice of its
  variants, what it gives CMake are settings that the build knows, and its tests pass on the
  installation in PREFIX.
- So are those of the conda recipe, whose tests find what they look for in that installation.
- The Containerfile copies what there is before it sets up.
"""

import importlib.util
import itertools
import os
import re
import subprocess
import sys
import types
from pathlib import Path

SOURCE, BUILD, PREFIX = (Path(argument) for argument in sys.argv[1:4])
PACKAGE = SOURCE / "packaging/spack/spack_repo/sucl/packages/sucl/package.py"


class Folder(str):
    """A folder, as Spack gives it to recipes: `prefix.bin.sucl`."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Folder(os.path.join(self, name))


class Spec:
    """One choice of the variants, with the dependencies that are conditional on it."""

    def __init__(self, chosen, needed):
        self.chosen, self.needed = chosen, needed

    def satisfies(self, constraint):
        if constraint is None:
            return True
        if constraint[0] in "+~":
            return self.chosen[constraint[1:]] == (constraint[0] == "+")
        name, value = constraint.split("=")
        return self.chosen[name] == value

    def __getitem__(self, name):
        if not any(self.satisfies(when) for when in self.needed.get(name, [])):
            sys.exit(f"FAILED: {PACKAGE} uses {name} where it does not depend on it: {self.chosen}")
        prefix = Folder(f"/of/{name}")
        return types.SimpleNamespace(prefix=prefix, mpicxx=str(prefix.bin.mpicxx))


def define(name, value):
    if isinstance(value, bool):
        return f"-D{name}:BOOL={'ON' if value else 'OFF'}"
    return f"-D{name}:STRING={value}"


ran = []


def which(program, required):
    def run(*arguments, output=None, error=None):
        ran.append(list(arguments))
        done = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            sys.exit(f"FAILED: {program} {' '.join(arguments)}: {done.returncode}\n{done.stdout}")
        return done.stdout
    assert required
    run.split = str.split
    return run


def load_spack():
    """The recipe's class, and what it has said by directives."""
    said = {"depends_on": [], "variant": [], "version": [], "requires": [], "license": [],
            "generator": []}

    def directive(name):
        return lambda *words, **more: said[name].append((words, more))

    package = types.ModuleType("spack.package")
    for name in ("depends_on", "license", "requires", "variant", "version"):
        setattr(package, name, directive(name))
    package.which = which
    cmake = types.ModuleType("spack_repo.builtin.build_systems.cmake")
    cmake.CMakePackage = type("CMakePackage", (), {"define": staticmethod(define)})
    cmake.generator = directive("generator")
    for name in ("spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["spack.package"] = package
    sys.modules[cmake.__name__] = cmake
    spec = importlib.util.spec_from_file_location("package", PACKAGE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Sucl, said


def settings():
    """What the build can be told, from its cache."""
    text = (BUILD / "CMakeCache.txt").read_text()
    return set(re.findall(r"^([A-Za-z_]\w*):", text, re.MULTILINE))


def text_of(file):
    return (SOURCE / file).read_text()


def check_spack():
    recipe, said = load_spack()
    assert recipe.git == f"file://{SOURCE.resolve()}", recipe.git
    assert re.sub(r"\s+", " ", recipe.__doc__).startswith("One API for communication between SYCL")
    needed, lowest = {}, {}
    for (spec,), more in said["depends_on"]:
        name = re.match(r"[\w-]+", spec)[0]
        needed.setdefault(name, []).append(more.get("when"))
        lowest[name] = (re.findall(r"@([\d.]+):", spec) or [None])[0]
    cmake = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)", text_of("CMakeLists.txt"))[1]
    assert lowest["cmake"] == cmake, lowest
    values = {name: more.get("values", (False, True)) for (name,), more in said["variant"]}
    for name, more in ((words[0], more) for words, more in said["variant"]):
        assert more["default"] in values[name] and more["description"], name
    implementations = re.search(r"SUCL_SYCL PROPERTY STRINGS ([\w ]+)",
                                text_of("cmake/SuclSettings.cmake"))[1].split()
    known, choices = settings(), 0
    for choice in itertools.product(*values.values()):
        chosen = dict(zip(values, choice))
        for tested in (False, True):
            built = recipe()
            built.spec, built.run_tests = Spec(chosen, needed), tested
            given = {}
            for argument in built.cmake_args():
                name, value = re.fullmatch(r"-D(\w+):\w+=(.*)", argument).groups()
                given[name] = value
            # SUCL_ACPP and the like are settings of any build.
            unknown = set(given) - known
            assert not unknown, f"no such settings: {unknown}"
            assert given["SUCL_SYCL"] in implementations, given
            assert (given["SUCL_MPI"] == "none") != chosen["mpi"], given
            assert (given["SUCL_LIBFABRIC_INCLUDE_DIR"] == "OFF") != chosen["fabric"], given
            assert given["SUCL_BUILD_TESTS"] == ("ON" if tested else "OFF"), given
            choices += 1
    built.prefix = Folder(PREFIX)
    tests = [name for name in dir(built) if name.startswith("test_")]
    assert tests
    for name in tests:
        assert getattr(built, name).__doc__, f"{name} says nothing of itself"
        getattr(built, name)()
    print(f"Spack: {choices} choices, {len(tests)} tests of the installation")
    return ran


def check_conda(done):
    """Its tests and its settings; tests/packaging/conda.py has it read by its own program."""
    recipe = text_of("packaging/conda/recipe.yaml")
    unknown = set(re.findall(r"-D(\w+)=", recipe)) - settings()
    assert not unknown, f"no such settings: {unknown}"
    contents = re.search(r"package_contents:\n(.*?)\n  - script:", recipe, re.DOTALL)[1]
    paths, form = [], None
    for line in contents.splitlines():
        word = line.strip(" -:")
        form = {"include": "include/{}", "lib": "lib/lib{}.so", "bin": "bin/{}",
                "files": "{}"}[word] if line.endswith(":") else form
        if not line.endswith(":"):
            paths.append(form.format(word.replace("${{ mpi }}", "*")))
    for path in paths:
        assert list(PREFIX.glob(path)), f"{path} is not installed"
    commands = re.findall(r"^      - sucl (.*)$", recipe, re.MULTILINE)
    assert commands and paths
    for command in commands:
        # A command that Spack's tests have, too, has been run.
        if command.split() not in done:
            which(PREFIX / "bin/sucl", required=True)(*command.split())
    print(f"conda: {len(paths)} paths, {len(commands)} tests of the installation")


def check_container():
    """What is copied one by one is there; hadolint sees to the rest."""
    text = text_of("packaging/container/Containerfile")
    copied = " ".join(re.findall(r"^COPY (?!--from|\. )(.*) \S+$", text, re.MULTILINE)).split()
    assert copied
    for path in copied:
        assert (SOURCE / path).exists(), path
    needed = re.findall(r"\$root/((?:scripts|requirements)/?[\w.]*)", text_of("scripts/setup.sh"))
    for path in needed:
        assert any(path.startswith(part) for part in copied), f"set-up needs {path}"
    print(f"container: {len(copied)} things copied before set-up")


check_conda(check_spack())
check_container()
