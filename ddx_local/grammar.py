r"""Grammar templates: a small Lark dialect with typed slots, expanded to Lark text for llguidance, with a size bound.

A template is a list of rules over string literals, groups, `|`, `?`, `{m}`, `{m,n}`, names of other rules of the file,
and slots `{{kind arguments}}`. Every kind owns its expansion, its escaping and its bound in UTF-8 bytes:

    {{text 80}}             JSON string of 1 to 80 characters, in the alphabet of the slots' texts
    {{name 128}}            the same for a name of 2 to 128: letters, digits and - ' ( ) , / + . ~ only; a name may hold up
                            to 4 Latin letters with marks or Greek letters (Sjögren, β) whatever the slots' texts hold
    {{int 1 10}}            whole number
    {{choice S}}            one item of list slot S
    {{quote S 60}}          verbatim piece of text slot S of 12 to 60 characters; `null` where the text has none
    {{quotes S 60 1 2}}     array of 1 to 2 such pieces; `[]` where the text has none
    {{permutation S}}       array of all items of S, each once, in any order (at most 64)
    {{subset S 0 2}}        array of 0 to 2 different items of S, in any order (at most 64)
    {{each S rule}}         array with the rule once for each item of S, in order; `{{item}}` in the rule is the item
    {{list rule 1 5}}       array of 1 to 5 times the rule; `[]` where the rule has no output (a choice of nothing)

Bounds may be numbers or names of slots that hold numbers. Rules cannot recur: every output has a longest length, so
that prompt + longest output is known to fit before anything is asked. In bytes, since no tokenizer needs more tokens.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import llguidance

from ddx_local.clinical.quotes import chunks, longest_quote_bytes
from ddx_local.grammar_template import GrammarError, parse, read_repeat, read_slot, unescaped

LEAST_QUOTE = 12
"""Characters of the shortest quote: shorter ones ("he ", "of ") say nothing."""

MOST_MARKED = 4
"""Letters beyond ASCII in a name, where the slots' texts have none."""

MOST_ITEMS = 64
"""llguidance keeps the used items of a permutation in one 64-bit word."""

Slots = Mapping[str, str | tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Expanded:
    """Lark text for the engine, and the longest output in UTF-8 bytes."""

    lark: str
    longest: int


@dataclass(frozen=True, slots=True)
class _Part:
    """An expanded piece: a Lark expression and its bound; None stands for what cannot be satisfied."""

    expression: str
    longest: int


def expand(template: str, slots: Slots) -> Expanded:
    """Fill a template's slots.

    Args:
        template: The text of a `.lark` file of ours.
        slots: Values by name: texts, or lists as tuples.

    Returns:
        Lark text that llguidance compiles, and its longest output in bytes.

    Raises:
        GrammarError: An unknown kind, rule or slot, a rule that recurs, bounds that cross, a slot of the wrong type, an
            item that stands twice among different ones, more than 64 of them.
    """
    rules = parse(template)
    if "start" not in rules:
        raise GrammarError("the template has no rule `start`")
    expander = _Expander(rules, slots)
    part = expander.rule("start", None, ())
    if part is None:
        raise GrammarError("the grammar allows no output: a choice outside a list has no items")
    lines = [f"start: {part.expression}", *expander.definitions.values()]
    return Expanded("\n".join(lines) + "\n", part.longest)


def accepts(lark: str, text: str) -> bool:
    """Whether a text is a whole output of a grammar: what an engine's `finish_reason` alone does not tell."""
    matcher = llguidance.LLMatcher(byte_tokenizer(), lark)
    tokens = list(text.encode())
    return bool(matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting())


@cache
def byte_tokenizer() -> Any:
    """Bytes as tokens: what checks and walks of grammars need, without a model."""
    return llguidance.LLTokenizer("byte")


class _Expander:
    """One expansion: the definitions that it needs are collected as it goes."""

    def __init__(self, rules: Mapping[str, tuple[str, ...]], slots: Slots) -> None:
        self.rules = rules
        self.slots = slots
        self.definitions: dict[str, str] = {}
        self.spans: dict[tuple[str, int], _Part | None] = {}
        self.kinds: dict[str, Callable[..., _Part | None]] = {
            "text": self._text,
            "name": self._name,
            "int": self._int,
            "choice": self._choice,
            "quote": self._quote,
            "quotes": self._quotes,
            "permutation": self._permutation,
            "subset": self._subset,
        }

    def rule(self, name: str, item: str | None, within: tuple[str, ...]) -> _Part | None:
        if name not in self.rules:
            raise GrammarError(f"no rule `{name}`")
        if name in within:
            raise GrammarError(f"rule `{name}` recurs; every output must have a longest length")
        tokens = list(self.rules[name])
        part = self._alternation(tokens, item, (*within, name))
        if tokens:
            raise GrammarError(f"rule `{name}`: `{tokens[0]}` is out of place")
        return part

    def _alternation(self, tokens: list[str], item: str | None, within: tuple[str, ...]) -> _Part | None:
        options = [self._sequence(tokens, item, within)]
        while tokens and tokens[0] == "|":
            tokens.pop(0)
            options.append(self._sequence(tokens, item, within))
        possible = [option for option in options if option is not None]
        if not possible:
            return None
        if len(possible) == 1:
            return possible[0]
        return _Part(
            "(" + " | ".join(option.expression for option in possible) + ")", max(option.longest for option in possible)
        )

    def _sequence(self, tokens: list[str], item: str | None, within: tuple[str, ...]) -> _Part | None:
        parts: list[_Part] = []
        possible = True
        while tokens and tokens[0] not in ("|", ")"):
            part = self._atom(tokens, item, within)
            if part is None:
                possible = False
            else:
                parts.append(part)
        if not possible:
            return None
        return _Part(" ".join(part.expression for part in parts), sum(part.longest for part in parts))

    def _atom(self, tokens: list[str], item: str | None, within: tuple[str, ...]) -> _Part | None:
        token = tokens.pop(0)
        part: _Part | None
        if token.startswith("{{"):
            part = self._slot(token, item, within)
        elif token.startswith('"'):
            part = _Part(token, len(unescaped(token).encode()))
        elif token == "(":
            part = self._alternation(tokens, item, within)
            if not tokens or tokens.pop(0) != ")":
                raise GrammarError("a parenthesis is not closed")
            part = part and _Part(f"({part.expression})", part.longest)
        else:
            part = self.rule(token, item, within)
        if tokens and tokens[0] == "?":
            tokens.pop(0)
            return _Part(f"({part.expression})?", part.longest) if part else _Part('""', 0)
        if tokens and re.fullmatch(r"\{[\s\d,]+\}", tokens[0]):
            least, most = read_repeat(tokens.pop(0))
            return part and _repeated(part, least, most)
        return part

    def _slot(self, token: str, item: str | None, within: tuple[str, ...]) -> _Part | None:
        kind, arguments = read_slot(token)
        if kind == "item":
            if item is None:
                raise GrammarError("{{item}} stands outside {{each}}")
            return _literal(item)
        if kind == "each":
            return self._each(arguments[0], arguments[1], within)
        if kind == "list":
            return self._list(self.rule(arguments[0], item, within), *self._bounds(*arguments[1:]))
        return self.kinds[kind](*arguments)

    def _each(self, name: str, rule: str, within: tuple[str, ...]) -> _Part | None:
        parts = [self.rule(rule, item, within) for item in self._items(name)]
        if any(part is None for part in parts):
            return None
        inner = ' ", " '.join(part.expression for part in parts if part)
        longest = sum(part.longest for part in parts if part) + 2 * max(len(parts) - 1, 0) + 2
        return _Part(f'"[" {inner} "]"' if parts else '"[]"', longest)

    def _list(self, part: _Part | None, least: int, most: int) -> _Part:
        if part is None or most == 0:
            return _Part('"[]"', 2)
        again = _Part(f'", " {part.expression}', part.longest + 2)
        tail = _repeated(again, max(least - 1, 0), most - 1)
        some = _Part(f'"[" {part.expression} {tail.expression} "]"', part.longest + tail.longest + 2)
        return some if least > 0 else _Part(f'("[]" | {some.expression})', some.longest)

    def _text(self, most: str) -> _Part:
        count, width = self._number(most), self._alphabet()
        first, inner = "A-Za-z0-9" + _BEYOND_ASCII[width], r" !#-\[\]-~" + _BEYOND_ASCII[width]
        return self._terminal(f"TEXT_{count}", f'/"[{first}][{inner}]{{0,{count - 1}}}"/', width * count + 2)

    def _name(self, most: str) -> _Part:
        count, width = self._number(most), self._alphabet()
        first = "A-Za-z0-9" + (_BEYOND_ASCII[width] or _IN_NAMES)
        inner = f"{first}\\-'\\(\\),\\/+.~"
        body = f"[{first}][{inner} ]{{0,{count - 2}}}[{first}\\)]"  # a name neither begins nor ends in a blank
        if width > 1:
            return self._terminal(f"NAME_{count}", f'/"{body}"/', width * count + 2)
        few = f"[ -~]*([{_IN_NAMES}][ -~]*){{0,{MOST_MARKED}}}"  # all of them would double the longest output
        return self._terminal(f"NAME_{count}", f'/"{body}"/ & /{few}/', count + min(count, MOST_MARKED) + 2)

    def _int(self, least: str, most: str) -> _Part:
        low, high = self._bounds(least, most)
        numbers = [str(number) for number in range(low, high + 1)]
        return _Part("(" + " | ".join(f'"{number}"' for number in numbers) + ")", max(map(len, numbers)))

    def _choice(self, name: str) -> _Part | None:
        literals = [_literal(item) for item in dict.fromkeys(self._items(name))]
        if not literals:
            return None
        return _Part(
            "(" + " | ".join(part.expression for part in literals) + ")", max(part.longest for part in literals)
        )

    def _quote(self, name: str, most: str) -> _Part:
        part = self._span(name, self._number(most))
        return _Part(f'"\\"" {part.expression} "\\""', part.longest + 2) if part else _Part('"null"', 4)

    def _quotes(self, name: str, most: str, fewest: str, greatest: str) -> _Part:
        part = self._span(name, self._number(most))
        quoted = part and _Part(f'"\\"" {part.expression} "\\""', part.longest + 2)
        return self._list(quoted, *self._bounds(fewest, greatest))

    def _span(self, name: str, most: int) -> _Part | None:
        if (name, most) not in self.spans:  # a long case takes its time, and `each` asks for every item
            self.spans[name, most] = self._new_span(name, most)
        return self.spans[name, most]

    def _new_span(self, name: str, most: int) -> _Part | None:
        text = self.slots.get(name)
        if not isinstance(text, str):
            raise GrammarError(f"slot `{name}` must hold a text to be quoted")
        longest = longest_quote_bytes(text, LEAST_QUOTE, most)
        if longest == 0:
            return None
        escaped = [json.dumps(chunk, ensure_ascii=False)[1:-1] for chunk in chunks(text)]
        upper = name.upper()
        words = json.dumps({"substring_chunks": escaped}, ensure_ascii=False)
        self.definitions[f"SUB_{upper}"] = f"SUB_{upper}: %regex {words}"
        return self._terminal(f"SPAN_{upper}_{most}", f"SUB_{upper} & /(.|\\n){{{LEAST_QUOTE},{most}}}/", longest)

    def _permutation(self, name: str) -> _Part:
        items = self._items(name)
        return self._distinct(name, len(items), len(items))

    def _subset(self, name: str, least: str, most: str) -> _Part:
        count, (low, high) = len(self._items(name)), self._bounds(least, most)
        return self._distinct(name, min(low, count), min(high, count))

    def _distinct(self, name: str, least: int, most: int) -> _Part:
        """Array of `least` to `most` different items, in linear size: a parametric rule knows which are used."""
        items = tuple(dict.fromkeys(self._items(name)))
        if len(items) != len(self._items(name)):
            raise GrammarError(f"slot `{name}` holds an item twice")
        if len(items) > MOST_ITEMS:
            raise GrammarError(f"slot `{name}` holds {len(items)} items, at most {MOST_ITEMS} can be told apart")
        if most == 0:
            return _Part('"[]"', 2)
        literals = [_literal(item) for item in items]
        rule, used = f"pick_{name}_{least}_{most}", f"[0:{len(items)}]"

        def options(comma: str, following: str) -> list[str]:
            clear = [f"bit_clear({bit})" for bit in range(len(items))]
            free = clear if most == len(items) else [f"and({bit}, bit_count_lt({used}, {most}))" for bit in clear]
            return [
                f"{comma}{part.expression} {following}::set_bit({bit}) %if {free[bit]}"
                for bit, part in enumerate(literals)
            ]

        # A count of 64 cannot be written (63 is the most), "all of them" can.
        end = [f'"" %if is_ones({used})' if least == len(items) else f'"" %if bit_count_ge({used}, {least})']
        first = options("", f"{rule}_more") + (['""'] if least == 0 else [])
        self.definitions[rule] = f"{rule}::_ : " + " | ".join(first)
        self.definitions[f"{rule}_more"] = f"{rule}_more::_ : " + " | ".join(end + options('", " ', f"{rule}_more"))
        lengths = sorted((part.longest for part in literals), reverse=True)[:most]
        return _Part(f'"[" {rule}::0 "]"', sum(lengths) + 2 * (most - 1) + 2)

    def _terminal(self, name: str, body: str, longest: int) -> _Part:
        self.definitions[name] = f"{name}: {body}"
        return _Part(name, longest)

    def _items(self, name: str) -> tuple[str, ...]:
        value = self.slots.get(name)
        if not isinstance(value, tuple):
            raise GrammarError(f"slot `{name}` must hold a list")
        return value

    def _number(self, word: str) -> int:
        value = word if word.isdigit() else self.slots.get(word)
        if not isinstance(value, str) or not value.isdigit():
            raise GrammarError(f"slot `{word}` must hold a number")
        return int(value)

    def _bounds(self, least: str, most: str) -> tuple[int, int]:
        low, high = self._number(least), self._number(most)
        if low > high:
            raise GrammarError(f"the bounds {low} and {high} cross")
        return low, high

    def _alphabet(self) -> int:
        """UTF-8 bytes of the widest letter in the slots' texts: free text may be written in the case's own script."""
        texts = [text for value in self.slots.values() for text in ((value,) if isinstance(value, str) else value)]
        letters = {letter for text in texts if not text.isascii() for letter in text if letter.isalpha()}
        return max((len(letter.encode(errors="replace")) for letter in letters), default=1)


_IN_NAMES = r"\u{C0}-\u{D6}\u{D8}-\u{F6}\u{F8}-\u{24F}\u{391}-\u{3A9}\u{3B1}-\u{3C9}"
"""Latin letters with marks and Greek ones, of two bytes each: names of diseases have them in any language."""

_BEYOND_ASCII = {
    1: "",
    2: r"\u{A1}-\u{7FF}",
    3: r"\u{A1}-\u{7FF}\u{900}-\u{1FFF}\u{3001}-\u{D7FF}\u{F900}-\u{FDFF}\u{FF01}-\u{FFEF}",
    4: r"\u{A1}-\u{7FF}\u{900}-\u{1FFF}\u{3001}-\u{D7FF}\u{F900}-\u{FDFF}\u{FF01}-\u{FFEF}\u{10000}-\u{3FFFF}",
}


def _literal(text: str) -> _Part:
    """The JSON form of a text as a Lark string, which may not hold control characters (DEL is one)."""
    encoded = json.dumps(text, ensure_ascii=False)
    return _Part(json.dumps(encoded), len(encoded.encode(errors="replace")))


def _repeated(part: _Part, least: int, most: int) -> _Part:
    if most == 0:
        return _Part('""', 0)
    return _Part(f"({part.expression}){{{least},{most}}}", part.longest * most)
