"""Failover as tests of other things use it: providers are asked again at once."""

from __future__ import annotations

from bardo.adapters.config.routing import FailoverSettings
from bardo.services.facts.failover import Failover

NO_PAUSES = Failover(FailoverSettings(backoff_seconds=0.0))
ONE_TRY = Failover(FailoverSettings(retries=0))
"""Each provider is asked once: for tests that count what reaches it."""
