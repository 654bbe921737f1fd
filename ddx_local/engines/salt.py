"""The KV cache salt of the request that is being worked on: what an engine with a shared prefix cache keeps keys apart by."""

from contextvars import ContextVar

SALT: ContextVar[str] = ContextVar("ddx_local_kv_salt", default="")
"""'' where nobody has to be kept apart."""
