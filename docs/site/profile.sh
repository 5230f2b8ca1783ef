# SPDX-License-Identifier: Apache-2.0
# /etc/profile.d/kshim.sh: every user's programs are watched, beside what is preloaded already (XALT, for one).
# The spool is made once: install -d -m 1777 /var/spool/kshim
if [ -r /usr/lib/libkshim.so ] && [ -z "${KSHIM_DISABLE:-}" ]; then
  case ":${LD_PRELOAD:-}:" in
  *libkshim.so*) ;;
  *) export LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}/usr/lib/libkshim.so" ;;
  esac
  export KSHIM_REPORT="/var/spool/kshim/$(id -un)/%h.%p.jsonl"
  export KSHIM_LOG=off KSHIM_MODE=0640 KSHIM_SAMPLE=100 KSHIM_MAX_BYTES=4M KSHIM_MAX_FILES=1000
  export KSHIM_PROGRAMS='!/bin/*;!/usr/bin/*;/usr/bin/python*'
fi
