"""Errors as clients see them: OpenAI's shape, a status, and never a word of what was sent. Pure.

It maps this program's own errors to statuses; a fault of the program becomes a 500 without place or text.
"""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from ddx_local.errors import (
    CaseError,
    ContextLengthExceeded,
    DdxLocalError,
    EngineError,
    InputError,
    StoreError,
    UsageError,
)

Json = dict[str, Any]


class ApiError(Exception):
    """An answer that is an error.

    Args:
        status: HTTP status.
        message: What is wrong and what to do, without any of the request's text.
        type: OpenAI's class of the error.
        code: OpenAI's code, or None.
        param: The field that is at fault, a name of ours or of OpenAI's, or None.
        headers: To be sent with it.
    """

    def __init__(
        self,
        status: int,
        message: str,
        type: str = "invalid_request_error",  # noqa: A002  # OpenAI's name
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.type = type
        self.code = code
        self.param = param
        self.headers = dict(headers or {})

    def body(self) -> Json:
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


def invalid(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    """400: the request cannot be read as it is."""
    return ApiError(400, message, code=code, param=param)


def unsupported(param: str, what: str = "is not supported here") -> ApiError:
    """400: a field that this server refuses; the name is one that we know, never the client's own words."""
    return ApiError(400, f"`{param}` {what}; leave it out.", code="unsupported_parameter", param=param)


def unauthorized(message: str, challenge: str = "Bearer") -> ApiError:
    """401."""
    return ApiError(
        401,
        message,
        "authentication_error",
        "invalid_api_key",
        headers={"WWW-Authenticate": f'{challenge} realm="ddx-local"'},
    )


def forbidden(message: str, code: str = "forbidden") -> ApiError:
    """403."""
    return ApiError(403, message, "permission_error", code)


def not_found(
    message: str = "There is no such route here. See /ddx/v1/openapi.json.", code: str = "not_found"
) -> ApiError:
    """404."""
    return ApiError(404, message, code=code)


def no_model(valid: Sequence[str], asked: str) -> ApiError:
    """404 with the valid ids, those nearest to the asked one first; the asked name itself is not repeated."""
    close = difflib.get_close_matches(asked[:200], valid, n=3, cutoff=0.3)
    ordered = [*close, *(name for name in valid if name not in close)]
    return ApiError(
        404, f"There is no such model. Valid ids: {', '.join(ordered)}.", code="model_not_found", param="model"
    )


def not_allowed(methods: Sequence[str]) -> ApiError:
    """405."""
    allow = ", ".join(sorted(methods))
    return ApiError(405, f"This route takes {allow}.", code="method_not_allowed", headers={"Allow": allow})


def busy(message: str, seconds: float, code: str = "rate_limit_exceeded") -> ApiError:
    """429: come back later."""
    after = str(max(1, round(seconds + 0.5)))
    return ApiError(429, message, "rate_limit_error", code, headers={"Retry-After": after})


def unavailable(reason: str, seconds: int = 5) -> ApiError:
    """503: the engine is loading, or gone."""
    return ApiError(503, reason, "server_error", "service_unavailable", headers={"Retry-After": str(seconds)})


def internal() -> ApiError:
    """500: a fault of this program, which says nothing of itself."""
    message = "The server failed on this request. Please report it with the x-request-id."
    return ApiError(500, message, "server_error", "internal_error")


def of(error: BaseException) -> ApiError:
    """What a client is told about an error of this program."""
    match error:
        case ApiError():
            return error
        case ContextLengthExceeded():
            total = error.prompt_tokens + error.answer_tokens
            message = (
                f"The context holds {error.context_tokens} tokens, but {error.prompt_tokens} of the prompt and "
                f"{error.answer_tokens} for the longest answer make {total}. Shorten the text or lower max_tokens."
            )
            return ApiError(400, message, code="context_length_exceeded", param="messages")
        case EngineError():
            return unavailable("The engine is gone; the server has to be started again.", 30)
        case StoreError():
            return ApiError(
                503, "The run store cannot be used.", "server_error", "store_unavailable", headers={"Retry-After": "30"}
            )
        case UsageError() | InputError():
            # Their messages quote what was given; only the hint is ours alone.
            return invalid(f"This cannot be done as it is asked. {error.hint}".strip())
        case CaseError():
            return ApiError(422, f"The case failed ({error.kind}). {error.hint}", "case_error", "case_failed")
        case DdxLocalError():
            return ApiError(500, f"The server cannot do this ({error.kind}).", "server_error", "internal_error")
        case _:
            return internal()
