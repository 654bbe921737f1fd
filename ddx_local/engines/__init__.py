"""What answers requests: one protocol, several engines."""
