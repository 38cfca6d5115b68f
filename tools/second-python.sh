#!/usr/bin/env bash
# Run the tests on 3.11 or 3.13, whichever the main environment is not, when this machine has it.
set -euo pipefail
# What these check is the same on every Python, or they try each Python themselves.
once=(tests/release tests/browser tests/servers tests/clients/test_run_agents.py tests/test_benchmark_*.py tests/test_benchmarks.py
    tests/test_check_facts.py tests/test_dialect_names.py tests/test_model_names.py tests/test_public_modules.py tests/test_reachable_modules.py)
current=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
for wanted in 3.13 3.11; do
    [ "$wanted" = "$current" ] && continue
    found=""
    for candidate in "python$wanted" "env PYENV_VERSION=$wanted.0 python3" "env PYENV_VERSION=$wanted python3"; do
        said=$($candidate -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true)
        if [ "$said" = "$wanted" ]; then found=$candidate; break; fi
    done
    if [ -z "$found" ]; then echo "Python $wanted is not on this machine: its run is skipped"; continue; fi
    venv=.venv-$wanted
    if [ ! -f "$venv/.ready" ] || [ pyproject.toml -nt "$venv/.ready" ] || [ tools/constraints.txt -nt "$venv/.ready" ]; then
        $found -m venv "$venv"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade pip
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --constraint tools/constraints.txt --editable . --group dev
        touch "$venv/.ready"
    fi
    "$venv/bin/python" -m pytest -n auto "${once[@]/#/--ignore=}"
done
