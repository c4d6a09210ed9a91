"""The completion of bash."""

from __future__ import annotations

from collections.abc import Sequence

from trainwright.cli.completion.words import ANYTHING, DIRECTORIES, DYNAMIC, FILES, Completed, Value

HEAD = r"""# bash completion of trainwright; load it with: source <(trainwright completion bash)
_trainwright_words() {
    COMPREPLY+=($(compgen -W "$1" -- "$cur"))
}

_trainwright_names() {
    _trainwright_words "$(trainwright completion --list "$1" 2>/dev/null)"
}

_trainwright_files() {
    COMPREPLY+=($(compgen "$1" -- "$cur"))
}

_trainwright() {
    local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} i
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _trainwright_words "@commands@"
        return
    fi
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            _trainwright_files -f
            return
        fi
    done
    case $command:$previous in
"""
MIDDLE = r"""    esac
    case $command in
"""
END = r"""    esac
}

complete -o filenames -F _trainwright trainwright
"""


def script(commands: Sequence[Completed]) -> str:
    names = " ".join(["help", "--help", "--version", *(command.name for command in commands)])
    lines = [HEAD.replace("@commands@", names)]
    for command in commands:
        for flag in command.flags:
            if flag.value is not None:
                patterns = " | ".join(f"{command.name}:{name}" for name in flag.names)
                lines.append(f"    {patterns})\n{_body(flag.value)}        return\n        ;;\n")
    lines.append(MIDDLE)
    for command in commands:
        flags = " ".join(name for flag in command.flags for name in flag.names)
        lines.append(
            f"    {command.name})\n"
            f'        [[ $cur == -* ]] && _trainwright_words "{flags}" && return\n'
            f"{_body(command.words)}        ;;\n"
        )
    lines.append(
        f'    help)\n        _trainwright_words "{" ".join(command.name for command in commands)}"\n        ;;\n'
    )
    return "".join([*lines, END])


def _body(value: Value) -> str:
    lines = [f'        _trainwright_words "{" ".join(value.choices)}"'] if value.choices else []
    for source in value.sources:
        if source in DYNAMIC:
            lines.append(f"        _trainwright_names {source}")
        elif source != ANYTHING:
            lines.append(f"        _trainwright_files {({FILES: '-f', DIRECTORIES: '-d'})[source]}")
    return "".join(f"{line}\n" for line in lines)
