"""The commands that read files and need no cluster, and the files as they see them.

documents     objects from YAML and JSON, with the line of each field
offline       a cluster made of files
configured    the plugins of a configuration file
render, validate, explain, diff, init, convert    the commands
origins       where a value comes from, as text: for `explain`
hints, here   what to do about a validation error; whether this machine would run it: for `validate`
starters      the texts of `init`
"""
