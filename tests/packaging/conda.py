# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Looks at what rattler-build's library makes of the conda recipe: conda.py SOURCE."""

import re
import sys
from pathlib import Path

from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

SOURCE = Path(sys.argv[1]).resolve()
FOLDER = SOURCE / "packaging/conda"


def found(pattern, file):
    return re.search(pattern, (SOURCE / file).read_text())[1]


def check(variant):
    recipe, mpi = variant.recipe.to_dict(), variant.variant["mpi"]
    version = found(r'SUCL_VERSION_STRING "([^"]+)"', "include/sucl/version.hpp")
    assert recipe["package"] == {"name": "sucl", "version": version}, recipe["package"]
    source = (FOLDER / recipe["source"][0]["path"]).resolve()
    assert source == SOURCE, source
    assert recipe["build"]["string"].startswith(f"mpi_{mpi}_h"), recipe["build"]
    script = recipe["build"]["script"]
    assert script["env"] == {"SUCL_SYCL": "icpx", "SUCL_MPI": mpi}, script["env"]
    needs = recipe["requirements"]
    assert {"gcc_linux-64", "gxx_linux-64", "dpcpp_linux-64"} <= set(needs["build"]), needs
    cmake = found(r"cmake_minimum_required\(VERSION ([\d.]+)\)", "CMakeLists.txt")
    assert f"cmake >={cmake}" in needs["build"], needs
    assert mpi in needs["host"] and mpi in needs["run"] and "dpcpp-cpp-rt" in needs["run"], needs
    assert recipe["about"]["license"] == "Apache-2.0"
    for file in recipe["about"]["license_file"]:
        assert (SOURCE / file).exists(), file
    assert f"lib/sucl/libsucl_mpi_{mpi}.so" in recipe["tests"][0]["package_contents"]["files"]
    return recipe["build"]["string"]


def main():
    platform = RenderConfig(platform=PlatformConfig(target_platform="linux-64"))
    variants = VariantConfig.from_file(str(FOLDER / "variants.yaml"))
    rendered = Stage0Recipe.from_file(str(FOLDER / "recipe.yaml")).render(variants, platform)
    names = [check(variant) for variant in rendered]
    assert len(names) == len(set(names)) == 2, names
    print("conda:", *names)


main()
