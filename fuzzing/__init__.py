"""Fuzzing: `python -m fuzzing [--target NAME] [--inputs N | --minutes M] [--seed N]` breaks known inputs and checks laws.

What holds for every input, and how a failure is run again, is in docs/explanation/how-bardo-is-tested.md.
"""
