# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""Plans of collectives without running them: built, proved, searched for and simulated.

Every function is a command of the program `sucl`, which says more: ``sucl plan search --help``.
Options are those of the command, with `_` for `-`; they are strings, numbers or True. What the
command writes as JSON is returned. What is wrong raises `Error` with the command's message.

>>> found = search(machine="frontier", ranks=8, bytes="64Ki")
>>> found["sizes"][0]["best"]["verified"]
True
>>> "alps" in [machine["name"] for machine in machines()]
True
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Union

from ._program import program
from .errors import Error

Plan = Union[None, str, Path, Dict[str, Any]]


def _words(options):
    for name, value in options.items():
        if value is None or value is False:
            continue
        yield "--" + name.replace("_", "-")
        if value is not True:
            yield str(value)


# What launchers set for each process of a job. The program is no rank of the caller's job.
_OF_A_RANK = ("SUCL_TCP_ID", "SUCL_TCP_RANK", "SUCL_TCP_SIZE", "SUCL_TCP_ADDRESS",
              "SUCL_TCP_SECRET", "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT",
              "SLURM_PROCID", "PALS_RANKID")
_OF_AN_MPI = ("PMI_", "PMIX_", "PRTE_", "ORTE_", "OMPI_COMM_WORLD_", "OMPI_MCA_orte_",
              "OMPI_MCA_ess_")


def _environment_alone():
    return {name: value for name, value in os.environ.items()
            if name not in _OF_A_RANK and not name.startswith(_OF_AN_MPI)}


def _run(words, given=None):
    ended = subprocess.run([program(), *map(str, words)], input=given, capture_output=True,
                           text=True, check=False, env=_environment_alone())
    if ended.returncode != 0:
        raise Error(ended.stderr.strip() or f"sucl ended with status {ended.returncode}")
    return ended.stdout


def _plan_command(command, plan, options):
    words = ["plan", command]
    given = json.dumps(plan) if isinstance(plan, dict) else None
    if plan is not None:
        words.append("-" if given else str(plan))
    return json.loads(_run([*words, *_words(options), "--json", "-"], given))


def build(plan: Plan = None, **options: Any) -> Dict[str, Any]:
    """Makes the plan of a collective, proves it, and returns it.

    >>> made = build(collective="allreduce", ranks=4, bytes="1Ki", recipe="ring")
    >>> verify(made)["right"]
    True
    """
    return _plan_command("build", plan, options)


def verify(plan: Plan = None, **options: Any) -> Dict[str, Any]:
    """The verdict on a plan: a file's, or one of `build`."""
    return _plan_command("verify", plan, options)


def simulate(plan: Plan = None, **options: Any) -> Dict[str, Any]:
    """How long a plan takes on a machine, as ``machine="frontier"``.

    >>> made = build(collective="allreduce", ranks=8, bytes="1Mi", recipe="ring")
    >>> simulate(made, machine="frontier")["seconds"] > 0
    True
    """
    return _plan_command("simulate", plan, options)


def search(**options: Any) -> Dict[str, Any]:
    """The best plans of a collective on a machine, by the simulator."""
    return _plan_command("search", None, options)


def compare(**options: Any) -> Dict[str, Any]:
    """Times of several plans over the size, on a machine."""
    return _plan_command("compare", None, options)


def machines() -> List[Dict[str, Any]]:
    """The machines that are described."""
    return _plan_command("machines", None, {})


def tune(*collectives: str, **options: Any) -> str:
    """Measures what is fastest here, as ``sucl tune``, with ranks that it starts; returns the text
    of a tuning table, for `Communicator.use_tuning`. Takes ``seconds``, 60 of them."""
    output: Optional[str] = options.pop("output", None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(output) if output else Path(folder) / "tuned.toml"
        _run(["tune", *collectives, *_words(options), "--output", path])
        return path.read_text()


def info() -> Dict[str, Any]:
    """What `sucl info` finds: devices, modules, settings and where they come from."""
    return json.loads(_run(["info", "--json"]))
