"""Write a bill of materials (CycloneDX, JSON) of bardo with the packages of the container: python tools/make_sbom.py DIST OUTPUT.

DIST is the folder with bardo's wheel. The packages are installed into an environment that is thrown away, by deploy/requirements.txt; it is
read by cyclonedx-py, of the group `release`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

LOCK = Path(__file__).parents[1] / "deploy" / "requirements.txt"


def write_sbom(dist: Path, output: Path) -> None:
    """Install bardo from `dist` and all that it needs, and write what was installed. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=False)
        python = Path(folder, "Scripts" if os.name == "nt" else "bin", "python")
        install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-compile"]
        subprocess.run([*install, "--require-hashes", "--requirement", str(LOCK)], check=True)
        # By its name: a wheel installed by its path would leave this path in the list.
        subprocess.run([*install, "--no-index", "--no-deps", "--find-links", str(dist), "bardo"], check=True)
        reader = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"]
        subprocess.run([*reader, "--output-file", str(output), str(python)], check=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write_sbom(Path(sys.argv[1]), Path(sys.argv[2]))
