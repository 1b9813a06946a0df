# source <(READ_BY)
_FUNCTION() {
  local -a found
  found=("${(@f)$(COMMAND __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  (( ${#found} )) && [[ -n $found[1] ]] && compadd -- "${found[@]}" || _files
}
compdef _FUNCTION COMMAND
