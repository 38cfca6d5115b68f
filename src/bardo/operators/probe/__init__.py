"""The probe: which reasoning settings a model honours, measured by sending requests and decided by distributions.

`cells` say what to send and `verdicts` what came of it, both pure; `prober` sends, within its limits, and can be resumed.
"""
