"""Side-by-side benchmarks: `python -m benchmarks [subject …] [--quick] [--json FILE]`.

How they measure, and why so, is in docs/decisions/0012-benchmarks.md.
"""
