# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0

from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


class Sucl(CMakePackage):
    """One API for communication between SYCL devices: collectives and point-to-point messages on
    buffers and USM, ordered by SYCL events, over loadable backends."""

    # The clone that this recipe lies in; a mirror of it serves as well.
    git = f"file://{Path(__file__).resolve().parents[6]}"

    license("Apache-2.0")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant(
        "sycl",
        default="oneapi",
        values=("oneapi", "adaptivecpp"),
        multi=False,
        description="SYCL implementation",
    )
    variant("mpi", default=True, description="Start and communicate by MPI")
    variant("fabric", default=True, description="Carry data between nodes by libfabric")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("tomlplusplus@3.2:", type="build")
    depends_on("cli11@2.1:", type="build")
    depends_on("nlohmann-json@3.10:", type="build")
    depends_on("googletest@1.12: +gmock", type="test")
    depends_on("python@3.9:", type="test")

    depends_on("hipsycl@24.06:", when="sycl=adaptivecpp")
    depends_on("mpi@3.1:", when="+mpi")
    depends_on("libfabric@1.17:", when="+fabric")

    requires("%oneapi", when="sycl=oneapi", msg="icpx compiles SYCL; or choose sycl=adaptivecpp")

    generator("ninja")

    def cmake_args(self):
        spec = self.spec
        args = [
            self.define("SUCL_MPI", spec["mpi"].mpicxx if spec.satisfies("+mpi") else "none"),
            self.define("SUCL_INSTALL_RUNTIME", False),
            self.define("SUCL_BUILD_TESTS", self.run_tests),
            self.define("SUCL_BUILD_EXAMPLES", False),
            self.define("SUCL_BUILD_PYTHON", False),
        ]
        if spec.satisfies("sycl=adaptivecpp"):
            args.append(self.define("SUCL_SYCL", "adaptivecpp"))
            args.append(self.define("SUCL_ACPP", spec["hipsycl"].prefix.bin.acpp))
        else:
            args.append(self.define("SUCL_SYCL", "icpx"))
        # A value, or else CMake takes the headers of the system.
        fabric = spec["libfabric"].prefix.include if spec.satisfies("+fabric") else False
        args.append(self.define("SUCL_LIBFABRIC_INCLUDE_DIR", fabric))
        return args

    def test_plan(self):
        """prove a plan of an allreduce right"""
        sucl = which(self.prefix.bin.sucl, required=True)
        out = sucl(
            *("plan", "verify", "--collective", "allreduce", "--ranks", "4"),
            *("--bytes", "1Ki", "--recipe", "ring"),
            output=str.split,
            error=str.split,
        )
        assert "right" in out, out

    def test_bench(self):
        """run allreduce on two ranks, which checks its results"""
        sucl = which(self.prefix.bin.sucl, required=True)
        sucl("bench", "allreduce", "-n", "2", "--memory", "device", "--sizes", "4:64")
