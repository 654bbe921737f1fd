"""JSON of an input, read so that nothing of it is lost: no key twice, no number that cannot be kept. It knows no form of case."""

import json
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from ddx_local.clinical.taken import shown
from ddx_local.errors import InputError

_HINT = "A case is a UTF-8 text file, or a JSON object with a `text` field."


def parse(text: str, name: str, hint: str = _HINT) -> Any:
    """A JSON value; numbers with a point or an exponent are `Decimal`, which keeps their digits.

    Args:
        text: The JSON.
        name: The file, and the line in it, for errors.
        hint: What to do where it is none.

    Raises:
        InputError: No JSON, too deep, a number that is too large, or an object with a key twice, of which JSON's readers
            keep one and drop the other.
    """
    try:
        return json.loads(text, parse_float=_decimal, object_pairs_hook=_object)
    except _TwiceError as error:
        raise InputError(
            f"{name}: an object has the key `{shown(error.key)}` twice", "Keep one of them, or rename one."
        ) from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}" if "\n" in text.strip() else f"at character {error.colno}"
        raise InputError(f"{name}: is not valid JSON ({place})", hint) from None
    except ValueError:
        raise InputError(f"{name}: holds a number that is too large", "Write it as a text, or leave it out.") from None
    except RecursionError:
        raise InputError(f"{name}: its JSON is nested too deeply", hint) from None


class _TwiceError(ValueError):
    def __init__(self, key: str) -> None:
        super().__init__("a key stands twice")
        self.key = key


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = Counter(key for key, _ in pairs)
        raise _TwiceError(keys.most_common(1)[0][0])
    return found


def _decimal(number: str) -> Decimal:
    try:
        return Decimal(number)
    except InvalidOperation:
        raise ValueError("an exponent beyond what a Decimal holds") from None
