# source <(READ_BY)
_FUNCTION() {
  local IFS=$'\n' line=${COMP_LINE:0:COMP_POINT} words=() gap word i cut
  # Bash splits words at = and : too; what has no blank before it is the rest of the word before.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    gap=${line%%[![:blank:]]*}
    line=${line#"$gap"}
    word=${COMP_WORDS[i]}
    if ((i == COMP_CWORD)) || [[ $line != "$word"* ]]; then word=$line; fi
    line=${line#"$word"}
    if [[ -z $gap && ${#words[@]} -gt 0 ]]; then words[-1]+=$word; else words+=("$word"); fi
  done
  word=${words[-1]}
  COMPREPLY=($(COMMAND __complete "${words[@]:1}" 2>/dev/null))
  # What is before the last split is on the line already.
  cut=${word%"${word##*[$COMP_WORDBREAKS]}"}
  COMPREPLY=("${COMPREPLY[@]#"$cut"}")
  if [[ ${COMPREPLY[0]} == */ ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -o default -F _FUNCTION COMMAND
