"""Completion of commands, flags, values and names in bash, zsh and fish, generated from the parsers of the commands.

words      what can be typed after each command, read from argparse
bash, zsh, fish   the script of a shell, made from those words
names      names of jobs, runs, runtimes and contexts, asked for while the user types
command    `trainwright completion SHELL`
"""
