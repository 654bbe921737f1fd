"""Bounds of a method's options. It knows fields and numbers, not what they are for."""

from collections.abc import Mapping


def check_bounds(options: object, limits: Mapping[str, tuple[float | str, float]]) -> None:
    """Check that each field lies within its bounds, both of which are allowed.

    Args:
        options: The options of a method, once their fields are set.
        limits: Field -> (least, most), in the order in which they are checked; `least` may name another field.

    Raises:
        ValueError: "FIELD must be LEAST to MOST", of the first field that is out of bounds.
    """
    for name, (least, most) in limits.items():
        lowest = getattr(options, least) if isinstance(least, str) else least
        if not lowest <= getattr(options, name) <= most:
            raise ValueError(f"{name} must be {least} to {most}")
