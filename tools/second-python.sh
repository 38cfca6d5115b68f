#!/usr/bin/env bash
# Run what may differ between Pythons (the mark each_python) on 3.11 or 3.13, whichever the main environment is not, when this machine has it.
set -euo pipefail
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
    "$venv/bin/python" tools/run_tests.py -m each_python
done
