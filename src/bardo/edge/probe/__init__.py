"""The probe: which knobs of a model's thinking bite, found out by asking it, and decided by distributions.

`cells` say what to send and `verdicts` what came of it, both pure; `prober` sends, within its limits, and can be resumed.
"""
