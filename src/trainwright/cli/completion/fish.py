"""The completion of fish."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainwright.cli.completion.words import DIRECTORIES, DYNAMIC, FILES, Completed, Flag, Value

HEAD = r"""# fish completion of trainwright; load it with: trainwright completion fish | source
function __trainwright_first
    test (count (commandline -opc)) -eq 1
end

function __trainwright_in
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test $words[2] = $argv[1]
end

complete -c trainwright -e
complete -c trainwright -f
"""


def script(commands: Sequence[Completed]) -> str:
    lines = [HEAD]
    for command in commands:
        lines.append(f"complete -c trainwright -n __trainwright_first -a {command.name} -d {_quoted(command.help)}\n")
    for command in commands:
        base = f"complete -c trainwright -n {_quoted(f'__trainwright_in {command.name}')}"
        lines += [f"{base} {line}\n" for line in _values(command.words)]
        lines += [f"{base} {_flag(flag)}\n" for flag in command.flags]
    return "".join(lines)


def _flag(flag: Flag) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names)
    about = f"-d {_quoted(flag.help)}"
    if flag.value is None:
        return f"{names} {about}"
    takes_files = FILES in flag.value.sources or DIRECTORIES in flag.value.sources
    return " ".join([names, "-r" if takes_files else "-x", *_values(flag.value), about])


def _values(value: Value) -> Iterator[str]:
    """The flags of `complete` that say what can stand there; one for each source."""
    if FILES in value.sources or DIRECTORIES in value.sources:
        yield "-F"
    words = [*value.choices, *(f"(trainwright completion --list {name})" for name in value.sources if name in DYNAMIC)]
    if words:
        yield f"-a {_quoted(' '.join(words))}"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
