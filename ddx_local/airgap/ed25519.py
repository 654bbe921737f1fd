"""Ed25519 signatures, verification alone, after RFC 8032 section 5.1.7: for a machine that has Python and nothing else.

It makes no keys and no signatures, so it holds no secret and need not run in constant time. 20 ms a signature.
"""

import hashlib

_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)

Point = tuple[int, int, int, int]


def verify(public: bytes, signature: bytes, message: bytes) -> bool:
    """Whether the owner of a public key signed a message.

    Args:
        public: 32 bytes.
        signature: 64 bytes.
        message: What was signed.
    """
    if len(public) != 32 or len(signature) != 64:
        return False
    key, nonce = _point(public), _point(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if key is None or nonce is None or scalar >= _L:
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % _L
    return _same(_times(scalar, _BASE), _plus(nonce, _times(challenge, key)))


def _plus(one: Point, other: Point) -> Point:
    a = (one[1] - one[0]) * (other[1] - other[0]) % _P
    b = (one[1] + one[0]) * (other[1] + other[0]) % _P
    c = 2 * one[3] * other[3] * _D % _P
    d = 2 * one[2] * other[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(scalar: int, point: Point) -> Point:
    found: Point = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            found = _plus(found, point)
        point = _plus(point, point)
        scalar >>= 1
    return found


def _same(one: Point, other: Point) -> bool:
    return (one[0] * other[2] - other[0] * one[2]) % _P == 0 and (one[1] * other[2] - other[1] * one[2]) % _P == 0


def _point(encoded: bytes) -> Point | None:
    """The point of 32 bytes, or None where they name none, or one in another way than its own."""
    y = int.from_bytes(encoded, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT % _P
    if (x * x - square) % _P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = _P - x
    return x, y, 1, x * y % _P


def _base() -> Point:
    found = _point((4 * pow(5, _P - 2, _P) % _P).to_bytes(32, "little"))
    assert found is not None
    return found


_BASE = _base()
