"""The salt of the request that is being worked on: what keeps apart the API keys of a server that share one engine.

Neither the time of an answer (the KV cache) nor of a probability (the cache of scores) tells one key what another asked.
"""

from contextvars import ContextVar

SALT: ContextVar[str] = ContextVar("ddx_local_salt", default="")
"""'' where nobody has to be kept apart."""
