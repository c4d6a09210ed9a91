"""One file of a plugin directory: read with care, run as a module, asked for its plugins.

A file says which plugins it has, by what makes each of them, as an entry point does:

    PLUGINS = [PlainJob]

In: a path in the directory. Out: the file's plugins, or `PluginUnusable`. Whoever can write such a file acts as the
operator, so only a regular file is read that belongs to root or to our own user and that nobody else can write, and a
symbolic link is followed only inside the directory, as those of a mounted ConfigMap are.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import stat
import sys
from pathlib import Path
from types import ModuleType

import msgspec

from trainwright.pipeline.errors import PluginUnusable
from trainwright.pipeline.framework import Framework, Plugin
from trainwright.plugins.found import Factory, make_plugin, text_of

MOST_BYTES = 1 << 20  # as much as a ConfigMap can hold
LIST = "PLUGINS"
_numbers = itertools.count()


class PluginFile(msgspec.Struct, frozen=True):
    """A file whose plugins can run."""

    name: str
    digest: str
    plugins: tuple[Plugin, ...]
    module: str
    """The name under which `sys.modules` has it; another one each time, for two versions may stand side by side."""


def read(path: Path, root: Path) -> bytes:
    """The content of a file in the directory `root`."""
    try:
        real = Path(os.path.realpath(path, strict=True))
        if not real.is_relative_to(os.path.realpath(root)):
            raise PluginUnusable(path.name, f"it is a link that leaves the directory, to {real}")
        opened = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise PluginUnusable(path.name, f"it cannot be read: {error.strerror}") from error
    try:
        _check_owner(path.name, os.fstat(opened))
        return _read_all(path.name, opened)
    finally:
        os.close(opened)


def load(path: Path, source: bytes) -> PluginFile:
    """Run the source and make the plugins that it names."""
    module = ModuleType(f"trainwright_plugin_files.{path.stem}_{next(_numbers)}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where typing and msgspec look up what annotations name
    try:
        _run(module, path, source)
        plugins = tuple(make_plugin(path.name, factory) for factory in _factories(module, path))
        _check_plugins(plugins, path)
    except PluginUnusable:
        del sys.modules[module.__name__]
        raise
    return PluginFile(path.name, digest_of(source), plugins, module.__name__)


def unload(file: PluginFile) -> None:
    """Let go of a file's module."""
    sys.modules.pop(file.module, None)


def digest_of(source: bytes) -> str:
    return hashlib.sha256(source).hexdigest()


def _check_owner(name: str, about: os.stat_result) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise PluginUnusable(name, "it is no regular file")
    if about.st_uid not in (0, os.geteuid()):
        raise PluginUnusable(name, f"it belongs to user {about.st_uid}, neither to root nor to our user {os.geteuid()}")
    if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = oct(stat.S_IMODE(about.st_mode))[2:]
        raise PluginUnusable(name, f"its mode {mode} lets others than its owner write it (chmod go-w)")


def _read_all(name: str, opened: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := os.read(opened, 1 << 16):
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise PluginUnusable(name, f"it is larger than {MOST_BYTES >> 10} KiB")
    return b"".join(parts)


def _run(module: ModuleType, path: Path, source: bytes) -> None:
    try:
        code = compile(source, str(path), "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 - to be run is what the file is there for
    except SyntaxError as error:
        at = f"line {error.lineno}: " if error.lineno and error.filename == str(path) else ""
        raise PluginUnusable(path.name, f"{at}{error.msg}") from error
    except (Exception, SystemExit) as error:  # the call into a plugin: a module may do anything
        raise PluginUnusable(path.name, f"{_line(error, path)}{text_of(error)}") from error


def _line(error: BaseException, path: Path) -> str:
    """Where in the file an error came from."""
    trace, line = error.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"line {line}: " if line else ""


def _factories(module: ModuleType, path: Path) -> list[Factory]:
    factories = vars(module).get(LIST)
    if not isinstance(factories, (list, tuple)) or not factories or not all(map(callable, factories)):
        raise PluginUnusable(path.name, f"it names no plugin: end it with {LIST} = [YourPlugin]")
    return list(factories)


def _check_plugins(plugins: tuple[Plugin, ...], path: Path) -> None:
    names = [plugin.name for plugin in plugins]
    if len(set(names)) < len(names):
        raise PluginUnusable(path.name, f"two of its plugins have one name: {', '.join(names)}")
    for failed in Framework(plugins).unwatchable.values():
        raise PluginUnusable(path.name, str(failed))
