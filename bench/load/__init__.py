"""Load on the server: many clients at once on the scripted engine."""
