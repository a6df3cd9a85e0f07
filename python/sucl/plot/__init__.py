# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Pictures of measurements: `python -m sucl.plot` draws those of `sucl bench`, in the style of
`sucl.plot.style`, which all plots of SuCL share."""
