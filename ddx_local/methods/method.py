"""What is known of a method beside its flow: options, folders of prompts, rounds, roles. It knows no particular one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ddx_local.case import Case, Differential
from ddx_local.flow import Flow


@dataclass(frozen=True, slots=True)
class Method:
    """One method.

    Args:
        name: On the command line.
        summary: One line.
        citation: The paper.
        folders: Of its prompts and grammars; more than one where a method builds on another.
        options: Its frozen `Options`, with the paper's values.
        flow: Makes the flow of a case.
        embedding: Whether a run with these options consults the embedding model.
        rounds: What happens, for `methods show`.
        roles: Its fixed role names, which `--role` may bind to another model: of a question without a role its step's
            name, of numbered roles (`presenter 2`) the name without the number.
    """

    name: str
    summary: str
    citation: str
    folders: tuple[str, ...]
    options: type[Any]
    flow: Callable[[Case, Any], Flow[Differential]]
    embedding: Callable[[Any], bool]
    rounds: tuple[str, ...]
    roles: tuple[str, ...] = ()
