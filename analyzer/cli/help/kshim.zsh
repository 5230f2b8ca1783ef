#compdef kshim
# SPDX-License-Identifier: Apache-2.0
# zsh completion of kshim: kshim completion zsh
_kshim() {
  local line
  local -a found
  for line in ${(f)"$(kshim __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"}; do
    case $line in
      :file) _files ;;
      :folder) _files -/ ;;
      *) found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
    esac
  done
  (( $#found )) && _describe kshim found
}
if [ "$funcstack[1]" = _kshim ]; then _kshim "$@"; else compdef _kshim kshim; fi
