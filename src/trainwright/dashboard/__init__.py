"""The live page, a client of the API like any other: so far what a user may read about one TrainJob (`evidence`).

This file imports nothing, so that a command pays only for the modules it uses.
"""
