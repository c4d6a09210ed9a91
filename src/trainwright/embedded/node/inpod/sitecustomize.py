"""Makes each line of output one write, in every Python process of a pod.

torchrun runs its workers unbuffered (`python -u`), and there `print` writes the text and the newline apart. Ranks of
one pod share a pipe, so their lines mix: `rank 0 is hererank 1 is here`. Line buffering shows a line as soon as it is
finished, and whole. The node puts this directory last on PYTHONPATH; a `sitecustomize` of the user's own comes first
and wins, and one that Python was installed with is loaded from here.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys


def write_whole_lines() -> None:
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and not stream.isatty():
            reconfigure(line_buffering=True, write_through=False)


def load_the_one_we_hide() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


write_whole_lines()
load_the_one_we_hide()
