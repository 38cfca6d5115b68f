"""The packages that sign payments change nothing of the process that loads them."""

from __future__ import annotations

import subprocess
import sys

from support.x402_packages import needs_payment_packages

pytestmark = needs_payment_packages

PROGRAM = """
import sys
before = sys.getrecursionlimit()
from bardo.services.payments.packages import load
for module in ("eth_account", "x402.http.utils", "x402.schemas", "x402.schemas.v1"):
    load(module)
assert sys.getrecursionlimit() == before, sys.getrecursionlimit()
from bardo.simulators import x402
assert x402._packages() is not None
assert sys.getrecursionlimit() == before, sys.getrecursionlimit()
sys.setrecursionlimit(before + 1)
assert sys.getrecursionlimit() == before + 1
"""


def test_the_recursion_limit_stays() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
