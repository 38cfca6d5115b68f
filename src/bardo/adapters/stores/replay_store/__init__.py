"""Where the reasoning of earlier replies is kept for clients that drop it."""

from bardo.adapters.stores.replay_store.keeper import ReplayKeeper, open_keeper

__all__ = ["ReplayKeeper", "open_keeper"]
