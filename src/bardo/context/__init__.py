"""Layers that work on a call before it is sent: pure decisions over a request, with a receipt of what each did."""
