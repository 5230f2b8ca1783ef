# SPDX-License-Identifier: Apache-2.0
# /etc/profile.d/kshim.sh: every user's programs are watched, beside what is preloaded already (XALT, for one).
# The spool is made once: install -d -m 1777 /var/spool/kshim. Another user may have made the folder of this one there: then nothing is watched.
kshim_folder=/var/spool/kshim/$(id -un)
[ -e "$kshim_folder" ] || mkdir -m 0750 "$kshim_folder" 2>/dev/null
if [ -r /usr/lib/libkshim.so ] && [ -z "${KSHIM_DISABLE:-}" ] && [ -O "$kshim_folder" ] && [ ! -L "$kshim_folder" ]; then
  case ":${LD_PRELOAD:-}:" in
  *libkshim.so*) ;;
  *) export LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}/usr/lib/libkshim.so" ;;
  esac
  export KSHIM_REPORT="$kshim_folder/%h.%p.jsonl"
  export KSHIM_LOG=off KSHIM_MODE=0640 KSHIM_SAMPLE=100 KSHIM_MAX_BYTES=4M KSHIM_MAX_FILES=1000
  export KSHIM_PROGRAMS='!/bin/*;!/usr/bin/*;/usr/bin/python*'
fi
unset kshim_folder
