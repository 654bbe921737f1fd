r"""Grammar templates as text: rules, tokens, slots and their arguments. It knows the syntax, not what a slot expands to.

The syntax is described in `ddx_local.grammar`.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache


class GrammarError(ValueError):
    """A template that is wrong in itself, or slots that do not fit it: a fault of the program, not of a user."""


ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "text": ("number",),
    "name": ("number",),
    "int": ("number", "number"),
    "choice": ("slot",),
    "quote": ("slot", "number"),
    "quotes": ("slot", "number", "number", "number"),
    "permutation": ("slot",),
    "subset": ("slot", "number", "number"),
    "each": ("slot", "rule"),
    "list": ("rule", "number", "number"),
    "item": (),
}

_TOKEN = re.compile(
    r"""\s*(?:(?P<slot>\{\{[^}]*\}\})|(?P<repeat>\{\s*\d+\s*(?:,\s*\d+\s*)?\})|(?P<literal>"(?:[^"\\]|\\.)*")"""
    r"""|(?P<name>[a-z_]+)|(?P<mark>[()|?]))"""
)
_RULE = re.compile(r"^([a-z_]+)\s*:", re.MULTILINE)


@lru_cache(maxsize=256)
def parse(template: str) -> Mapping[str, tuple[str, ...]]:
    """Rule name -> its tokens. Comment lines begin with `//`."""
    text = "\n".join(line for line in template.splitlines() if not line.lstrip().startswith("//"))
    heads = list(_RULE.finditer(text))
    if text[: heads[0].start() if heads else len(text)].strip():
        raise GrammarError("the template begins with something that is no rule")
    rules: dict[str, tuple[str, ...]] = {}
    ends = [head.start() for head in heads[1:]] + [len(text)]
    for head, end in zip(heads, ends, strict=False):
        body = text[head.end() : end]
        if head.group(1) in rules:
            raise GrammarError(f"rule `{head.group(1)}` is given twice")
        rules[head.group(1)] = tuple(_tokens(body))
    return rules


def slots_of(template: str) -> frozenset[str]:
    """Names of the slots that a template reads."""
    names: set[str] = set()
    for tokens in parse(template).values():
        for token in tokens:
            if not token.startswith("{{"):
                continue
            kind, arguments = read_slot(token)
            for role, argument in zip(ARGUMENTS[kind], arguments, strict=True):
                if role == "slot" or (role == "number" and not argument.isdigit()):
                    names.add(argument)
    return frozenset(names)


def _tokens(body: str) -> list[str]:
    tokens, position = [], 0
    body = body.strip()
    while position < len(body):
        match = _TOKEN.match(body, position)
        if match is None:
            raise GrammarError(f"cannot read the template at: {body[position : position + 30]!r}")
        tokens.append(match.group().strip())
        position = match.end()
    return tokens


def read_slot(token: str) -> tuple[str, list[str]]:
    """Kind and arguments of a slot."""
    kind, *arguments = token[2:-2].split() or [""]
    if kind not in ARGUMENTS:
        raise GrammarError(f"no slot kind `{kind}`; known: {', '.join(sorted(ARGUMENTS))}")
    if len(arguments) != len(ARGUMENTS[kind]):
        raise GrammarError(f"`{token}`: `{kind}` takes {len(ARGUMENTS[kind])} arguments, not {len(arguments)}")
    return kind, arguments


def unescaped(token: str) -> str:
    try:
        return str(json.loads(token))
    except ValueError:
        raise GrammarError(f"{token}: escapes of a literal are JSON's") from None


def read_repeat(token: str) -> tuple[int, int]:
    numbers = [int(number) for number in re.findall(r"\d+", token)]
    if numbers[0] > numbers[-1]:
        raise GrammarError(f"`{token}`: the bounds cross")
    return numbers[0], numbers[-1]
