# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""python -m sucl: the program `sucl`, as in python -m sucl info."""

from ._program import main

main()
