# tool-cli completion fish | source
function __tool_cli
    set -l found (tool-cli __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c tool-cli -f -a '(__tool_cli)'
