# Completion of redlock for fish. Commands and options come from `redlock --help`, so they are those
# of the installed version.

# Prints the short form, the name, what follows and a text for each option, with tabs between them.
function __redlock_options
    command $argv --help 2>/dev/null | string replace -rf \
        '^ +(-[a-zA-Z])?(?:, | {4})?(--[a-z-]+)(?: ([^ ]+)|\[=[A-Z]+\])?  +(.*)$' '$1\t$2\t$3\t$4'
    printf '\t--no-clock-guard\t\tswitch the clock guard off\n'
end

function __redlock_complete
    set -l words (commandline -opc)
    set -l tool $words[1]
    set -l current (commandline -ct)
    set -l subcommand
    set -l options (__redlock_options $tool)
    set -l takes (string match -r '^[^\t]*\t[^\t]*\t[^\t]+' -- $options | string split \t | string match -- '-*')
    set -l skip 0
    for word in $words[2..-1]
        if test $skip = 1
            set skip 0
        else if string match -q -- '-*' $word
            contains -- $word $takes; and set skip 1
        else if test -z "$subcommand"
            set subcommand $word
            set options (__redlock_options $tool $subcommand)
            set takes (string match -r '^[^\t]*\t[^\t]*\t[^\t]+' -- $options | string split \t | string match -- '-*')
        end
    end
    set -l value_of
    test $skip = 1; and set value_of $words[-1]
    set -l prefix ''
    if string match -q -- '--*=*' $current
        set value_of (string replace -r '=.*' '' -- $current)
        set prefix $value_of=
    end
    switch "$value_of"
        case --nodes-file --output --cacert --cacertdir --cert --key
            __fish_complete_path (string replace -- "$prefix" '' $current)
        case --order
            printf '%s\n' $prefix{fair,none}
        case --restart-guard
            printf '%s\n' $prefix{off,observed,strict}
        case ''
            if string match -q -- '-*' $current
                for option in $options
                    set -l parts (string split \t -- $option)
                    printf '%s\t%s\n' $parts[2] $parts[4]
                    test -n "$parts[1]"; and printf '%s\t%s\n' $parts[1] $parts[4]
                end
            else if test -z "$subcommand" -o "$subcommand" = help
                command $tool --help 2>/dev/null | string replace -rf '^  ([a-z]+) (.*)$' '$1\t$2'
            end
    end
end

# What run and elect start.
complete -c redlock -n 'contains -- -- (commandline -opc)' \
    -x -a '(__fish_complete_subcommand --fcs-skip=(contains -i -- -- (commandline -opc)))'
complete -c redlock -n 'not contains -- -- (commandline -opc)' -f -a '(__redlock_complete)'
