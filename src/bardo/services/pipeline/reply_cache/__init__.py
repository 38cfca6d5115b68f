"""Kept replies: the stores that hold them, and the effects by which the layer `cache` finds and keeps them."""
