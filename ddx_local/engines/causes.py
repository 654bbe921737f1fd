"""Errors of libraries in one line: their root cause, without tracebacks, line breaks and advertisements."""


def root_cause(error: BaseException) -> str:
    """The innermost exception in one line: what a library hides behind "see root cause above"."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    text = " ".join((_validation(error) or str(error)).split())
    text = f"{text[:300]} ..." if len(text) > 300 else text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _validation(error: BaseException) -> str:
    """What a pydantic error says first, without its advertisements; empty for any other error."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return ""
    first = error.errors()[0]
    message = str(first["msg"]).removeprefix("Value error, ")
    return f"{first['loc'][0]}: {message}" if first["loc"] else message
