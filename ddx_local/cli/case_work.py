"""Behind `ddx-local case`: reads a file, finds its sections, and tells people or programs what is there."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ddx_local.cli.out import check_writable, json_text, one_or_list, print_json, write_private
from ddx_local.cli.say import harmless
from ddx_local.clinical import sections
from ddx_local.clinical.intake import parse_columns, read_all
from ddx_local.clinical.sections import NAMES, TITLES, UNASSIGNED, Section
from ddx_local.clinical.taken import Reading, Remark, Taken
from ddx_local.errors import DdxLocalError, InputError, UsageError

SCHEMA = "ddx-local/sections/1"

LEAST_BYTES_PER_TOKEN = 6
"""Few texts have more bytes to a token: a case that is too long by this measure is too long by any."""

LIKELY_BYTES_PER_TOKEN = 4

Json = dict[str, Any]


def reading(columns: Sequence[str] | None, *, with_diagnoses: bool) -> Reading:
    """What the options of a command line say about reading."""
    return Reading(parse_columns(columns or ()), with_diagnoses)


def split(file: str, how: Reading, *, json_out: bool, out: Path | None, flags: Mapping[str, Any]) -> None:
    """`case split`."""
    if flags["model"] is None and flags["engine"] != "scripted" and any(value is not None for value in flags.values()):
        raise UsageError("--engine, --device and --seed: go with --model", "Name a model: `ddx-local models list`.")
    if flags["model"] is not None:
        from ddx_local import models

        models.card(flags["model"])  # a name that is none is said so also where no sentence is open
    found = read_all([file], how)
    if out is not None:
        check_writable(out, "--out", [taken.source for taken in found])
    divided = [taken.sections or sections.split(taken.case.text) for taken in found]
    if flags["model"] is not None or flags["engine"] == "scripted":
        from ddx_local.cli.case_model import assigned

        divided = assigned([(taken.case, spans) for taken, spans in zip(found, divided, strict=True)], flags)
    documents = [_document(taken, spans) for taken, spans in zip(found, divided, strict=True)]
    if out is not None:
        write_private(out, json_text(one_or_list(documents)), "--out", "Nothing was written.")
    if json_out:
        print_json(one_or_list(documents))
    elif out is None:
        for taken, spans in zip(found, divided, strict=True):
            _print_sections(taken, spans)
    tell(found)


def show(file: str, how: Reading, *, json_out: bool) -> None:
    """`case show`."""
    found = read_all([file], how)
    if json_out:
        print_json(one_or_list([{"id": taken.case.id, "text": taken.case.text, **_about(taken)} for taken in found]))
    else:
        clean = harmless if sys.stdout.isatty() else str
        for taken in found:
            head = f"== {taken.case.id} ==\n" if len(found) > 1 else ""
            end = "" if taken.case.text.endswith("\n") else "\n"
            sys.stdout.write(clean(f"{head}{taken.case.text}{end}"))
    tell(found)


def check(file: str, how: Reading, *, json_out: bool, model: str | None) -> None:
    """`case check`; the error of a file that cannot be diagnosed ends the command with its own exit code."""
    name, context = _context(model)
    try:
        found = read_all([file], how)
        for taken in found:
            _fits(taken, name, context)
    except DdxLocalError as error:
        if not json_out:
            raise
        told = {"kind": error.kind, "message": error.message, "hint": error.hint}
        print_json({"file": file, "can_be_diagnosed": False, "error": told})
        raise typer.Exit(error.exit_code) from None
    reports = [_report(taken, context) for taken in found]
    if json_out:
        print_json({"file": file, "can_be_diagnosed": True, "error": None, "cases": reports})
        return
    for report in reports:
        _print_report(report)
    print(
        f"{file}: {len(found)} case{'s' * (len(found) != 1)} can be diagnosed: `ddx-local diagnose {shlex.quote(file)}`"
    )


def tell(found: Sequence[Taken]) -> None:
    """On standard error: what of an input did not become case text, and what was guessed, once for all cases."""
    from ddx_local.clinical.taken import counted

    for remark in counted(remark for taken in found for remark in taken.remarks):
        print(f"ddx-local: {remark}", file=sys.stderr)


def _document(taken: Taken, spans: Sequence[Section]) -> Json:
    """What `case split --json` gives; intake takes it back as a case with these sections."""
    parts = [{"name": span.name, "start": span.start, "end": span.end, "by": span.by} for span in spans]
    return {"schema": SCHEMA, "id": taken.case.id, "text": taken.case.text, "sections": parts, **_about(taken)}


def _about(taken: Taken) -> Json:
    return {"form": taken.form, "remarks": [_remark(remark) for remark in taken.remarks]}


def _remark(remark: Remark) -> Json:
    return {"kind": remark.kind, "what": remark.what, "count": remark.count, "why": remark.why}


def _shares(length: int, spans: Sequence[Section]) -> dict[str, float]:
    """Section -> its share of a text's characters."""
    return {
        name: sum(span.end - span.start for span in spans if span.name == name) / length
        for name in (*NAMES, UNASSIGNED)
    }


def _report(taken: Taken, context: int | None) -> Json:
    text = taken.case.text
    spans = taken.sections or sections.split(text)
    tokens = len(text.encode()) // LIKELY_BYTES_PER_TOKEN + 1
    remarks = list(taken.remarks)
    if context and tokens > context // 2:
        why = f"it has about {tokens:,} tokens, and the context holds {context:,}: some methods may not fit"
        remarks.append(Remark("warning", "length", why))
    return {
        "id": taken.case.id,
        "form": taken.form,
        "encoding": "UTF-8",  # anything else is refused
        "characters": len(text),
        "tokens_about": tokens,
        "sections": {name: round(share, 3) for name, share in _shares(len(text), spans).items() if share},
        "remarks": [_remark(remark) for remark in remarks],
    }


def _context(model: str | None) -> tuple[str, int | None]:
    from ddx_local import models
    from ddx_local.settings import load

    settings = load(model=model)
    if settings.engine == "scripted" and model is None:
        return "", settings.max_model_len
    return settings.model, settings.max_model_len or models.card(settings.model).context_length


def _fits(taken: Taken, name: str, context: int | None) -> None:
    least = len(taken.case.text.encode()) // LEAST_BYTES_PER_TOKEN
    if context and least > context:
        raise InputError(
            f"case `{taken.case.id}`: has at least {least:,} tokens, but the context of {name or 'the engine'} holds {context:,}",
            "Give the part that matters, or a model with a longer context (`ddx-local models list`).",
        )


def _print_sections(taken: Taken, spans: Sequence[Section]) -> None:
    console = Console(highlight=False)
    table = Table(
        title=Text(harmless(f"{taken.case.id} ({taken.form}, {len(taken.case.text)} characters)")), title_justify="left"
    )
    table.add_column("Section", no_wrap=True)
    table.add_column("By", no_wrap=True)
    table.add_column("Characters", justify="right", no_wrap=True)
    table.add_column("Text", ratio=1)
    for span in spans:
        title = "Unassigned" if span.name == UNASSIGNED else TITLES[span.name]
        words = " ".join(harmless(taken.case.text[span.start : span.end]).split())
        shown = words if len(words) <= 160 else f"{words[:100]} … {words[-55:]}"
        table.add_row(title, span.by, f"{span.start}-{span.end}", Text(shown))
    console.print(table)


def _print_report(report: Json) -> None:
    size = f"{report['characters']:,} characters, about {report['tokens_about']:,} tokens"
    print(f"{report['id']}: {report['form']} in {report['encoding']}, {size}")
    told = ", ".join(f"{name.replace('_', ' ')} {share:.0%}" for name, share in report["sections"].items())
    print(f"  sections: {told}")
    for remark in report["remarks"]:
        print(f"  {Remark(remark['kind'], remark['what'], remark['why'], remark['count'])}")
