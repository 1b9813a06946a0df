# source <(tool-cli completion zsh)
_tool_cli() {
  local -a found
  found=("${(@f)$(tool-cli __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  (( ${#found} )) && [[ -n $found[1] ]] && compadd -- "${found[@]}" || _files
}
compdef _tool_cli tool-cli
