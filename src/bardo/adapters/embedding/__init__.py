"""Models that embed texts or find personal data in them, on this machine."""
