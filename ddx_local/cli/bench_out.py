"""Where a benchmark lies and where its reports go: store and record, files by flag, saved scorings."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddx_local.cli.out import check_writable, json_text, print_json, write_private
from ddx_local.errors import StoreError, UsageError, nearest
from ddx_local.evaluation import verify as verifying
from ddx_local.evaluation.record import Bench, Record, beside
from ddx_local.evaluation.report_html import html
from ddx_local.evaluation.report_text import latex, markdown, text
from ddx_local.evaluation.score import CaseScore
from ddx_local.settings import load
from ddx_local.store import Store

_RENDER: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "--html": html,
    "--markdown": markdown,
    "--latex": latex,
    "--json": json_text,
}


@dataclass(frozen=True, slots=True)
class Out:
    """Where a report goes; standard output gets its text unless `quiet` or JSON goes there."""

    html: Path | None = None
    json: str | None = None
    markdown: Path | None = None
    latex: Path | None = None
    quiet: bool = False

    def check(self) -> None:
        """Find out before the work that a file cannot be written; raises `UsageError`."""
        for flag, path in self._files():
            check_writable(path, flag)

    def _files(self) -> list[tuple[str, Path]]:
        named = (("--html", self.html), ("--markdown", self.markdown), ("--latex", self.latex))
        found = [(flag, path) for flag, path in named if path is not None]
        return found + ([("--json", Path(self.json))] if self.json not in (None, "-") and self.json else [])

    def give(self, report: Mapping[str, Any]) -> None:
        body = dict(report)
        for flag, path in self._files():
            write_private(
                path, _RENDER[flag](body), flag, f"It is recorded: `ddx-local bench report {body['bench_id']}`."
            )
        if self.json == "-":
            print_json(body)
        elif not self.quiet:
            print(text(body), end="")


def opened(path: Path, *, must_exist: bool = False) -> tuple[Store, Record]:
    """The store and the bench record beside it."""
    if must_exist and not path.exists():
        raise StoreError(f"run store {path}: no such file", "Give the --store of the benchmark.")
    return Store(path), Record(beside(path))


def look(store_path: Path | None) -> tuple[Store | None, Record | None]:
    """What is there, without making a file."""
    path = load(**({"store": store_path} if store_path else {})).store_path
    if store_path is not None and not path.exists():
        raise StoreError(
            f"--store {store_path}: no such file", "Give the store of an earlier benchmark, or leave it out."
        )
    place = beside(path)
    return (Store(path), Record(place)) if path.exists() and place is not None and place.exists() else (None, None)


def found(name: str, store_path: Path | None) -> tuple[Store, Record, Bench]:
    """A benchmark by name; raises `UsageError` where there is none."""
    store, record = look(store_path)
    if store is None or record is None:
        raise UsageError(f"no benchmark `{name}`: none was run yet", "Try `ddx-local bench run quick`.")
    return store, record, record.load(record.find(name))


def chosen(saved: Mapping[str, Any], label: str | None, bench: Bench) -> Any:
    """One of the saved scorings: the first, or by the beginning of its label."""
    if not saved:
        raise UsageError(
            f"benchmark {bench.row.bench_id} is not scored yet",
            f"`ddx-local bench report {bench.row.bench_id}` does it.",
        )
    if label is None:
        return next(iter(saved.values()))
    matches = [key for key in saved if key == label or key.startswith(label)]
    if not matches:
        raise UsageError(f"--matcher {label}: no such scoring: {nearest(label, list(saved))}")
    return saved[matches[0]]


def rows(record: Record, bench: Bench, label: str | None = None) -> list[CaseScore]:
    """The scored rows of a benchmark."""
    return verifying.saved_rows(chosen(record.scores(bench.row.bench_id), label, bench))


def elsewhere(store: Store) -> str:
    """The flag that names a store which is not the usual one."""
    return f" --store {shlex.quote(str(store.path))}" if store.path != load().store_path else ""
