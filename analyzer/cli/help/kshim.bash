# bash completion of kshim: kshim completion bash
# SPDX-License-Identifier: Apache-2.0
_kshim() {
  local line word=${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      '') ;;
      :file) COMPREPLY+=($(compgen -f -- "$word")) ;;
      :folder) COMPREPLY+=($(compgen -d -- "$word")) ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done <<<"$(kshim __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)"
}
complete -o filenames -F _kshim kshim
