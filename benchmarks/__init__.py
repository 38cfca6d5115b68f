"""Side-by-side benchmarks: `python -m benchmarks [subject …] [--quick] [--json FILE]`.

How they measure, and why so, is in docs/decisions/0008-how-bardo-is-tested-and-measured.md.
"""
