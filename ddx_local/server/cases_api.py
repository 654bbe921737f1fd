"""What the panel asks before a run: the Information Editor's split of a text, the methods with their options, the server's state."""

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args, get_origin, get_type_hints

from ddx_local import DISCLAIMER, __version__
from ddx_local.clinical import sections
from ddx_local.methods.table import METHODS, Method
from ddx_local.server import fields as f
from ddx_local.server.engine_room import EngineRoom
from ddx_local.server.errors import ApiError, invalid
from ddx_local.server.replies import Call, Reply, as_json
from ddx_local.server.runs import Runs, case_of
from ddx_local.server.strict_json import read_object
from ddx_local.server.wishes import LONGEST_CASE
from ddx_local.settings import Settings

Json = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Cases:
    """The handlers."""

    settings: Settings
    room: EngineRoom
    runs: Runs
    demo: bool
    needs_key: bool

    async def state(self, _: Call) -> Reply:
        return as_json(
            {
                "version": __version__,
                "ready": self.room.ready,
                "reason": self.room.reason,
                "model": self.runs.model,
                "engine": self.settings.engine,
                "default_method": self.settings.default_method,
                "demo": self.demo,
                "needs_key": self.needs_key,
                "runs_under_way": len(self.runs.live),
                "disclaimer": DISCLAIMER,
            }
        )

    async def methods(self, _: Call) -> Reply:
        return as_json({"methods": [_method(item, self.settings) for item in METHODS.values()]})

    async def split(self, call: Call) -> Reply:
        """A text as sections, or sections as a text."""
        body = read_object(call.body)
        _known(body, ("text", "sections"))
        text = case_text(body)
        spans = sections.split(text)
        return as_json(
            {
                "case_id": case_of(text).id,
                "text": text,
                "characters": len(text),
                "names": [{"name": name, "title": title} for name, title in sections.TITLES.items()],
                "sections": [
                    {
                        "name": span.name,
                        "title": sections.TITLES[span.name],
                        "start": span.start,
                        "end": span.end,
                        "by": span.by,
                    }
                    for span in spans
                ],
            }
        )


def case_text(body: Mapping[str, Any]) -> str:
    """The case of a request: `text`, or `sections` put together.

    Raises:
        ApiError: 400.
    """
    if ("text" in body) == ("sections" in body):
        raise invalid("Give `text` or `sections`.", "text")
    if "sections" not in body:
        text = f.text(body, "text", LONGEST_CASE)
    else:
        form = body["sections"]
        if not isinstance(form, dict) or not all(isinstance(item, str) for item in form.values()):
            raise invalid("`sections` must be an object of texts.", "sections")
        try:
            text = sections.join(form)
        except ValueError:
            raise invalid(f"`sections` may have {', '.join(sections.TITLES)}.", "sections") from None
    if not text.strip():
        raise invalid("The case is empty.", "text")
    if len(text) > LONGEST_CASE:
        raise ApiError(
            400, f"The case is longer than {LONGEST_CASE} characters.", code="context_length_exceeded", param="text"
        )
    if "\0" in text:
        raise invalid("The case holds a NUL character.", "text")
    return text


def _known(body: Mapping[str, Any], names: tuple[str, ...]) -> None:
    if not set(body) <= set(names):
        raise invalid(f"The body may have {', '.join(names)} alone.", code="unsupported_parameter")


def _method(method: Method, settings: Settings) -> Json:
    hints = get_type_hints(method.options)
    set_before = settings.method.get(method.name, {})
    return {
        "name": method.name,
        "summary": method.summary,
        "citation": method.citation,
        "rounds": list(method.rounds),
        "options": [
            {
                "name": field.name,
                "type": _type(hints[field.name]),
                "default": set_before.get(field.name, _default(field)),
                "choices": _choices(hints[field.name]),
            }
            for field in dataclasses.fields(method.options)
        ],
    }


def _type(hint: Any) -> str:
    if get_origin(hint) is tuple:
        return "list"
    return {bool: "boolean", int: "integer", float: "number"}.get(hint, "text")


def _choices(hint: Any) -> list[str] | None:
    arguments = get_args(hint)
    return [str(item) for item in arguments] if arguments and all(isinstance(item, str) for item in arguments) else None


def _default(field: Any) -> Any:
    value = field.default if field.default is not dataclasses.MISSING else None
    return list(value) if isinstance(value, tuple) else value
