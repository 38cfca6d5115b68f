"""Bots: Telegram and Discord. Rendering is pure; the bots load their library when they are started."""
