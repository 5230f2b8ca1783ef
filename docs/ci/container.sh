#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The released command in a container without Python, network or CUDA: an archive that is unpacked, and nothing else.
#   container.sh KSHIM_FOLDER IMAGE PATH...     KSHIM_FOLDER: the unpacked kshim-VERSION-linux-x86_64.tar.gz
set -euo pipefail
kshim=$(cd "$1" && pwd)
image=$2
shift 2
exec "${CONTAINER_ENGINE:-podman}" run --rm --network none -v "$kshim:/opt/kshim:ro" -v "$PWD:/work:ro" -w /work "$image" /opt/kshim/bin/kshim scan "$@"
