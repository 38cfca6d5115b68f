"""Skip tests where the packages that sign payments are missing, without loading them.

Loading them changes the recursion limit of the process, which other tests of the same process need as it is.
"""

from __future__ import annotations

from importlib.util import find_spec

import pytest

PACKAGES = ("eth_account", "x402")
needs_payment_packages = pytest.mark.skipif(
    any(find_spec(name) is None for name in PACKAGES), reason="the extra bardo[x402] is not installed"
)
