"""The command line: the only room that reads flags, files and the environment, and wires objects together.

`main` names the commands and imports the module of a command only when it is called, so that `trainwright render` pays
for no HTTP client and `trainwright --help` for nothing at all. Exit codes: 0 done, 1 refused or failed, 2 wrong usage.
"""
