"""A model that assigns the sentences which have no section yet: drives the flow of `methods.sections_model`, keeps nothing."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ddx_local.case import Case
from ddx_local.clinical.sections import Section
from ddx_local.launch import open_all
from ddx_local.methods.sections_model import Options, assign, is_open
from ddx_local.run import unrecorded
from ddx_local.settings import Settings, load


def assigned(cases: Sequence[tuple[Case, Sequence[Section]]], flags: Mapping[str, Any]) -> list[tuple[Section, ...]]:
    """The sections of cases, with the open sentences assigned by a model; it is opened only where there are any.

    Raises:
        DdxLocalError: Of the model, the engine, or a case (its sentences do not fit the context).
    """
    if not any(is_open(section) for _, sections in cases for section in sections):
        return [tuple(sections) for _, sections in cases]
    from ddx_local import offline

    offline.go_offline()
    settings = load(**flags)
    return asyncio.run(_all(cases, settings))


async def _all(cases: Sequence[tuple[Case, Sequence[Section]]], settings: Settings) -> list[tuple[Section, ...]]:
    opened = await open_all(settings, embedding=False, say=lambda text: print(text, file=sys.stderr))
    try:
        return [
            await unrecorded(assign(case.text, sections, Options()), case, opened.engine, settings.seed)
            for case, sections in cases
        ]
    finally:
        await opened.engine.aclose()
