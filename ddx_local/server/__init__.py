"""`ddx-local serve`: an OpenAI-compatible endpoint and the clinicians' panel, on this machine alone."""
