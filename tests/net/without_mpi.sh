#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Runs a program without MPI on two nodes of this machine that share nothing but a link: namespaces
# of their own for network, host name, processes, and mounts, with a /dev/shm each.
#
#   without_mpi.sh [--ipv6] RANKS-PER-NODE PROGRAM ARGUMENTS...
#
# The link has addresses of IPv4 and IPv6. Ranks are told the subnet of those of IPv4, or with --ipv6
# the interface by its name and the store's address of IPv6.
#
# Exits with the status of the first rank that failed. Where this cannot be done it says
# "SuCL test skipped: " and why.
set -u
PATH=$PATH:/usr/sbin:/sbin
store=10.78.0.1 network=10.78.0.0/24
if [ "$1" = --ipv6 ]; then
  store=fd78::1 network=sucl0
  shift
fi
ranks=$1
shift

skip() {
  echo "SuCL test skipped: $1"
  exit 0
}
[ "$(id -u)" = 0 ] || skip "making network namespaces takes root"
for tool in ip unshare mount timeout; do
  command -v "$tool" >/dev/null || skip "there is no $tool (Debian: iproute2, util-linux, mount)"
done

first=sucl$$c second=sucl$$d
folder=$(mktemp -d)
# shellcheck disable=SC2317  # the trap calls it
cleanup() {
  ip netns del "$first" 2>/dev/null
  ip netns del "$second" 2>/dev/null
  rm -rf "$folder"
}
trap cleanup EXIT
{
  ip netns add "$first" && ip netns add "$second" &&
    ip link add sucl0 netns "$first" type veth peer name sucl0 netns "$second"
} 2>"$folder/why" || skip "two networks cannot be made: $(head -1 "$folder/why")"
number=1
for node in "$first" "$second"; do
  ip -n "$node" addr add "10.78.0.$number/24" dev sucl0 &&
    { ip -n "$node" addr add "fd78::$number/64" dev sucl0 nodad || [ "$network" != sucl0 ] ||
      skip "there is no IPv6"; } &&
    ip -n "$node" link set sucl0 up && ip -n "$node" link set lo up || exit 1
  number=2
done

# libfabric passes over an interface that is not running yet.
for node in "$first" "$second"; do
  for _ in $(seq 200); do
    ip -n "$node" -o link show dev sucl0 | grep -q 'state UP' && break
    sleep 0.05
  done
done

# The namespaces are new, so the port is free.
export SUCL_TCP_SIZE=$((2 * ranks)) SUCL_TCP_ADDRESS=$store SUCL_TCP_PORT=20000
export SUCL_TCP_SECRET=$$.$RANDOM.$RANDOM SUCL_TCP_INTERFACE=$network
# shellcheck disable=SC2016  # the inner shell expands them
node='hostname "$1"; mount -t tmpfs tmpfs /dev/shm || exit 1
from=$2; to=$3; shift 3; pids=
for rank in $(seq "$from" "$to"); do SUCL_TCP_RANK=$rank timeout 100 "$@" & pids="$pids $!"; done
worst=0
for pid in $pids; do wait "$pid" || { status=$?; [ $worst != 0 ] || worst=$status; }; done
exit $worst'
pids=()
for index in 0 1; do
  [ "$index" = 0 ] && where=$first || where=$second
  ip netns exec "$where" unshare --uts --mount --pid --fork --mount-proc sh -c "$node" node \
    "$where" $((index * ranks)) $((index * ranks + ranks - 1)) "$@" &
  pids+=($!)
done
worst=0
for pid in "${pids[@]}"; do
  wait "$pid" || {
    status=$?
    [ $worst != 0 ] || worst=$status
  }
done
exit $worst
