"""Prompts and grammars: loaded by a step's name, checked as pairs, filled together, digested. No engine, no I/O later.

prompts/<method>/_shared.md   system text, a line `---`, then the beginning of the user's text (the case): it is the
                              same for all prompts of a case, so that they share one prefix in the KV cache
prompts/<method>/<step>.md    front matter between `+++` lines (TOML: slots, temperature, top_p, max_tokens), then
                              the step's own tail; `{{slot}}` only, no logic
grammars/<method>/<step>.lark the grammar of the answer (ddx_local.grammar); a step without one answers in free text
                              of at most `max_tokens`
prompts/comments.md           how a supervising person's comments stand between the beginning and the tail
"""

import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ddx_local.data import data_dir
from ddx_local.flow import Ask, Weigh
from ddx_local.grammar import Expanded, expand
from ddx_local.grammar_template import GrammarError, slots_of
from ddx_local.request import Message

_SLOT = re.compile(r"\{\{\s*([a-z_]+)\s*\}\}")
_KINDS = ("text", "list", "number")
_KEYS = ("slots", "temperature", "top_p", "max_tokens", "answer_prefix")


@dataclass(frozen=True, slots=True)
class Template:
    """One step's files, read. `slots` maps a slot's name to its kind: text, list or number."""

    name: str
    system: str
    opening: str
    tail: str
    slots: Mapping[str, str]
    grammar: str | None
    temperature: float
    top_p: float
    max_tokens: int | None
    answer_prefix: str
    digest: str


@dataclass(frozen=True, slots=True)
class Filled:
    """A question ready for an engine. `longest` bounds the answer in tokens; `prompt_digest` covers all texts of it."""

    messages: tuple[Message, ...]
    grammar: str | None
    longest: int
    temperature: float
    top_p: float
    prompt_digest: str
    answer_prefix: str = ""


@dataclass(frozen=True)
class Assets:
    """The prompts and grammars of two folders."""

    prompts: Path = field(default_factory=lambda: data_dir("prompts"))
    grammars: Path = field(default_factory=lambda: data_dir("grammars"))

    @cached_property
    def _templates(self) -> dict[str, Template]:
        return {}

    def template(self, name: str) -> Template:
        """The template of a step; raises `GrammarError` where its files are missing, unpaired or contradict each other."""
        if name not in self._templates:
            self._templates[name] = self._read(name)
        return self._templates[name]

    def names(self, method: str) -> tuple[str, ...]:
        """All steps that a method's prompt folder holds."""
        return tuple(
            f"{method}/{path.stem}" for path in sorted((self.prompts / method).glob("*.md")) if path.stem != "_shared"
        )

    def fill(self, question: Ask[Any] | Weigh, comments: Sequence[str] = ()) -> Filled:
        """Fill prompt and grammar of a question.

        Args:
            question: What is asked.
            comments: What a supervising person said about earlier rounds; it stands after the shared beginning.

        Raises:
            GrammarError: A slot is missing, unknown or of the wrong type.
        """
        template = self.template(question.step.name)
        _check_slots(template, question.slots)
        grammar: Expanded | None = expand(template.grammar, question.slots) if template.grammar else None
        temperature = question.temperature if isinstance(question, Ask) else None
        system = _substitute(template.system, question.slots)
        said = [_substitute(self._comments, {"comments": tuple(comments)})] if comments else []
        parts = _substitute(template.opening, question.slots), *said, _substitute(template.tail, question.slots)
        user = "\n\n".join(parts)
        messages = (Message("system", system), Message("user", user))
        longest = grammar.longest + 1 if grammar else template.max_tokens or 0  # + 1: the end token
        return Filled(
            messages=messages,
            grammar=grammar.lark if grammar else None,
            longest=longest,
            temperature=template.temperature if temperature is None else temperature,
            top_p=template.top_p,
            prompt_digest=_digest(system, user, grammar.lark if grammar else "", template.answer_prefix),
            answer_prefix=template.answer_prefix,
        )

    @cached_property
    def _comments(self) -> str:
        return (self.prompts / "comments.md").read_text("utf-8").strip()

    def _read(self, name: str) -> Template:
        method = name.split("/")[0]
        prompt, shared = self.prompts / f"{name}.md", self.prompts / method / "_shared.md"
        for path in (prompt, shared):
            if not path.is_file():
                raise GrammarError(f"step `{name}`: no file {path.name}")
        text, beginning = prompt.read_text("utf-8"), shared.read_text("utf-8")
        system, mark, opening = beginning.partition("\n---\n")
        parts = text.split("+++\n", 2)
        if not mark or len(parts) != 3 or parts[0]:
            raise GrammarError(
                f"step `{name}`: _shared.md needs a line `---`, {prompt.name} front matter in `+++` lines"
            )
        try:
            front = tomllib.loads(parts[1])
        except tomllib.TOMLDecodeError as error:
            raise GrammarError(f"step `{name}`: front matter of {prompt.name} is not TOML ({error})") from None
        if unknown := set(front) - set(_KEYS):
            raise GrammarError(f"step `{name}`: unknown front matter {sorted(unknown)}")
        lark = self.grammars / f"{name}.lark"
        grammar = lark.read_text("utf-8") if lark.is_file() else None
        template = Template(
            name=name,
            system=system.strip(),
            opening=opening.strip(),
            tail=parts[2].strip(),
            slots=front.get("slots", {}),
            grammar=grammar,
            temperature=float(front.get("temperature", 0.3)),
            top_p=float(front.get("top_p", 1.0)),
            max_tokens=front.get("max_tokens"),
            answer_prefix=front.get("answer_prefix", ""),
            digest=_digest(beginning, text, grammar or ""),
        )
        _check_pair(template)
        return template


def _check_pair(template: Template) -> None:
    """Prompt and grammar read exactly the slots that the front matter declares; an answer has one bound."""
    prompt = f"{template.system}\n{template.opening}\n{template.tail}"
    if "{{" in _SLOT.sub("", prompt):
        raise GrammarError(f"step `{template.name}`: the prompt holds braces that are no slot")
    read = set(_SLOT.findall(prompt))
    if template.grammar:
        read |= slots_of(template.grammar)
    declared = set(template.slots)
    if read != declared:
        raise GrammarError(f"step `{template.name}`: declared slots {sorted(declared)}, but read {sorted(read)}")
    if wrong := [kind for kind in template.slots.values() if kind not in _KINDS]:
        raise GrammarError(f"step `{template.name}`: unknown slot kind {wrong[0]!r}; known: {', '.join(_KINDS)}")
    if not template.answer_prefix and (template.grammar is None) == (template.max_tokens is None):
        raise GrammarError(f"step `{template.name}`: needs a grammar file or max_tokens, not both")


def _check_slots(template: Template, slots: Mapping[str, str | tuple[str, ...]]) -> None:
    if set(slots) != set(template.slots):
        raise GrammarError(f"step `{template.name}`: given slots {sorted(slots)}, needs {sorted(template.slots)}")
    for name, kind in template.slots.items():
        value = slots[name]
        fits = isinstance(value, tuple) if kind == "list" else isinstance(value, str)
        if not fits or (kind == "number" and not str(value).isdecimal()):
            raise GrammarError(f"step `{template.name}`: slot `{name}` must be a {kind}")


def _substitute(text: str, slots: Mapping[str, str | tuple[str, ...]]) -> str:
    """One pass, so that braces inside a case are never read as a slot. A list becomes lines with a dash."""

    def value(match: re.Match[str]) -> str:
        found = slots[match.group(1)]
        return found if isinstance(found, str) else "\n".join(f"- {item}" for item in found) or "(none)"

    return _SLOT.sub(value, text)


def _digest(*texts: str) -> str:
    whole = hashlib.sha256()
    for text in texts:
        data = text.encode(errors="surrogatepass")
        whole.update(len(data).to_bytes(8, "big") + data)
    return whole.hexdigest()
