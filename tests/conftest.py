"""What holds for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long an example takes is the machine's affair: a busy one must not make a law untrue.
settings.register_profile("bardo", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bardo")
