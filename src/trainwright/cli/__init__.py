"""The command line: the only package that reads flags, files and the environment, and wires objects together.

`commands` has the table of commands; `main` imports a command's module only when it is called, so that `trainwright
render` loads no HTTP client. Exit codes: 0 success, 1 refused or failed, 2 wrong usage.
"""
