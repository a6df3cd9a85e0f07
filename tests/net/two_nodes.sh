#!/usr/bin/env bash
# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# Runs a program on two nodes of this machine: network namespaces with host names of their own, and
# a link between them that has a rate (bits a second) and a latency (seconds).
#
#   two_nodes.sh RATE DELAY RANKS-PER-NODE MPIEXEC PROGRAM ARGUMENTS...
#
# MPIEXEC is Open MPI's. Exit status 77: this cannot be done here; the last line says why.
set -u
rate=$1 delay=$2 ranks=$3 mpiexec=$4
shift 4
here=$(cd "$(dirname "$0")" && pwd)

skip() {
  echo "skipped: $1"
  exit 77
}
[ "$(id -u)" = 0 ] || skip "making network namespaces takes root"
for tool in ip unshare python3; do
  command -v "$tool" >/dev/null || skip "there is no $tool (Debian: iproute2, util-linux, python3)"
done
[ -c /dev/net/tun ] || skip "there is no /dev/net/tun"

first=sucl$$a second=sucl$$b
folder=$(mktemp -d)
link=
cleanup() {
  [ -z "$link" ] || kill "$link" 2>/dev/null
  ip netns del "$first" 2>/dev/null
  ip netns del "$second" 2>/dev/null
  rm -rf "$folder"
}
trap cleanup EXIT
{ ip netns add "$first" && ip netns add "$second"; } 2>"$folder/why" ||
  skip "network namespaces cannot be made: $(head -1 "$folder/why")"

"$here/link.py" "$rate" "$delay" "$first" 10.77.0.1 "$second" 10.77.0.2 \
  >"$folder/ready" 2>"$folder/why" &
link=$!
for _ in $(seq 100); do
  [ -s "$folder/ready" ] && break
  kill -0 "$link" 2>/dev/null || break
  sleep 0.1
done
[ -s "$folder/ready" ] || skip "the link cannot be made: $(tail -1 "$folder/why")"

# Starts Open MPI's daemon on the other node, as ssh would.
cat >"$folder/agent" <<END
#!/bin/sh
shift
exec ip netns exec $second unshare --uts sh -c "hostname $second; \$*"
END
chmod +x "$folder/agent"

# shellcheck disable=SC2016  # the inner shell expands them
ip netns exec "$first" unshare --uts sh -c 'hostname "$0"; exec "$@"' "$first" \
  "$mpiexec" --allow-run-as-root --bind-to none --host "10.77.0.1:$ranks,10.77.0.2:$ranks" \
  --prtemca plm_ssh_agent "$folder/agent" --mca pml ob1 --mca btl self,sm,tcp \
  --mca btl_tcp_if_include 10.77.0.0/24 -n $((2 * ranks)) "$@"
