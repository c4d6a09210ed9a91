"""The completion of zsh."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainwright.cli.completion.words import DIRECTORIES, DYNAMIC, FILES, Completed, Flag, Value

HEAD = r"""#compdef trainwright
# zsh completion of trainwright; load it with: source <(trainwright completion zsh)
_trainwright_names() {
    local -a names
    names=(${(f)"$(trainwright completion --list $1 2>/dev/null)"})
    compadd -a names
}

_trainwright() {
    local -a commands
    commands=(
"""
MIDDLE = r"""    )
    if ((CURRENT == 2)); then
        _describe -t commands command commands
        return
    fi
    local command=$words[2]
    shift words
    ((CURRENT--))
    case $command in
"""
END = r"""        help) _describe -t commands command commands ;;
    esac
}

compdef _trainwright trainwright
"""


def script(commands: Sequence[Completed]) -> str:
    lines = [HEAD]
    lines += [f"        {_quoted(f'{command.name}:{command.help}')}\n" for command in commands]
    lines.append(MIDDLE)
    for command in commands:
        lines.append(f"        {command.name})\n            _arguments \\\n")
        lines += [f"                {_flag(flag)} \\\n" for flag in command.flags]
        lines.append(f"                {_quoted(f'*:{_action(command.words)}')}\n            ;;\n")
    return "".join([*lines, END])


def _flag(flag: Flag) -> str:
    about = re.sub(r"([\[\]:\\])", r"\\\1", flag.help)
    value = "" if flag.value is None else f":{_action(flag.value)}"
    marks = ["=" if name.startswith("--") and flag.value is not None else "" for name in flag.names]
    others = "*" if flag.repeats else f"({' '.join(flag.names)})" if len(flag.names) > 1 else ""
    each = [_quoted(f"{others}{name}{mark}[{about}]{value}") for name, mark in zip(flag.names, marks, strict=True)]
    return " ".join(each)


def _action(value: Value) -> str:
    if value.choices and not value.sources:
        return f"value:({' '.join(value.choices)})"
    parts = [f"_trainwright_names {source}" for source in value.sources if source in DYNAMIC]
    if value.choices:
        parts.insert(0, f"compadd {' '.join(value.choices)}")
    if FILES in value.sources:
        parts.append("_files")
    if DIRECTORIES in value.sources:
        parts.append("_files -/")
    return f"value:{{{'; '.join(parts)}}}" if parts else "value: "


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
