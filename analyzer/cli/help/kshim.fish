# fish completion of kshim: kshim completion fish
# SPDX-License-Identifier: Apache-2.0
function __kshim_words
  for line in (kshim __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
    switch $line
      case ':file'
        __fish_complete_path (commandline -ct)
      case ':folder'
        __fish_complete_directories (commandline -ct)
      case '*'
        echo $line
    end
  end
end
complete -c kshim -f -a '(__kshim_words)'
