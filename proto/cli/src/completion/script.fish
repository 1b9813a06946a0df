# READ_BY | source
function __FUNCTION
    set -l found (COMMAND __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c COMMAND -f -a '(__FUNCTION)'
