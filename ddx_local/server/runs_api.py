"""The routes of runs: begin, watch, comment, go on, cancel, history, export, delete. They know HTTP and the store, no method."""

import re
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass

from ddx_local import DISCLAIMER, jobs, memory
from ddx_local.audit import Audit
from ddx_local.errors import EngineError, UsageError
from ddx_local.methods.table import METHODS
from ddx_local.server import fields as f
from ddx_local.server import run_shown
from ddx_local.server.cases_api import Json, case_text
from ddx_local.server.engine_room import EngineRoom
from ddx_local.server.errors import ApiError, invalid, not_found
from ddx_local.server.keeping import kept_alive
from ddx_local.server.live_run import LiveRun
from ddx_local.server.replies import Call, Reply, Stream, as_json, event
from ddx_local.server.runs import Runs, case_of
from ddx_local.server.strict_json import read_object
from ddx_local.server.telling import Teller
from ddx_local.server.wishes import wanted
from ddx_local.settings import Settings
from ddx_local.store import RunRow, Store
from ddx_local.supervise import Comment

_RUN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{8}")


@dataclass(frozen=True)
class RunRoutes:
    """The handlers; `keep_alive` is in seconds."""

    settings: Settings
    room: EngineRoom
    runs: Runs
    store: Store
    audit: Audit
    keep_alive: float

    async def create(self, call: Call) -> Reply:
        body = {name: value for name, value in read_object(call.body).items() if value is not None}
        if not set(body) <= {"text", "sections", "method", "options", "seed", "supervise"}:
            raise invalid(
                "The body may have text or sections, method, options, seed, supervise.", code="unsupported_parameter"
            )
        method = METHODS.get(f.text({"method": self.settings.default_method, **body}, "method", 100))
        if method is None:
            raise invalid(f"There is no such method. Methods: {', '.join(METHODS)}.", "method")
        given = body.get("options", {})
        if not isinstance(given, dict):
            raise invalid("`options` must be an object.", "options")
        text = case_text({name: body[name] for name in ("text", "sections") if name in body})
        wish = wanted(
            case=case_of(text),
            method=method,
            values={name: value for name, value in given.items() if value is not None},
            seed=f.whole(body, "seed", 0, (1 << 63) - 1, self.settings.seed),
            settings=self.settings,
            pausing=f.flag(body, "supervise"),
        )
        run = self.runs.begin(wish, call.actor)
        call.object_id = run.run_id
        await run.begun()
        if run.failure is not None:
            raise run.failure
        return as_json({"run_id": run.run_id, "method": run.method}, 201, location=f"/ddx/v1/runs/{run.run_id}")

    async def history(self, call: Call) -> Reply:
        limit = call.query.get("limit", "100")
        if not limit.isdigit() or not 1 <= int(limit[:6]) <= 1000:
            raise invalid("`limit` must be a whole number from 1 to 1000.", "limit")
        rows = self.store.runs()
        counts: dict[str, int] = {}
        for row in rows:
            status = self._status(row)
            counts[status] = counts.get(status, 0) + 1
        shown = [{**asdict(row), "status": self._status(row)} for row in rows[: int(limit)]]
        return as_json({"runs": shown, "counts": counts})

    async def show(self, call: Call) -> Reply:
        row = self._row(call)
        live = self.runs.live.get(row.run_id)
        header, cases = jobs.recorded(self.store, row.run_id)
        documents = [] if live else jobs.documents(self.store, row.run_id)
        found: Json = {
            **asdict(row),
            "status": self._status(row),
            "waiting": live is not None and live.waiting is not None,
            "pausing": live is not None and live.pausing,
            "seed": header.seed,
            "options": dict(header.options),
            "cases": [{"case_id": case.id, "text": case.text} for case in cases],
            "results": list(documents),
            "heat": [run_shown.heat_of(document, case.text) for document, case in zip(documents, cases, strict=False)],
        }
        return as_json(found)

    async def events(self, call: Call) -> Stream:
        row = self._row(call)
        after = call.query.get("after", call.headers.get("last-event-id", "0"))
        if not after.isdigit() or len(after) > 9:
            raise invalid("`after` must be a whole number.", "after")
        live = self.runs.live.get(row.run_id)
        chunks = self._live(live, int(after)) if live else self._recorded(row, int(after))
        return Stream(kept_alive(chunks, self.keep_alive))

    async def comment(self, call: Call) -> Reply:
        run = self._living(call)
        body = read_object(call.body)
        if not set(body) <= {"text", "by", "about"}:
            raise invalid("The body may have text, by and about.", code="unsupported_parameter")
        about = body.get("about") or ""
        if not isinstance(about, str) or len(about) > 100:
            raise invalid("`about` must be a role's name.", "about")
        try:
            said = Comment(f.text({"by": "clinician", **body}, "by", 100), f.text(body, "text", 1 << 20), about)
        except UsageError as error:
            raise invalid(f"{error.message}. {error.hint}", "text") from None
        run.comments.append(said)
        return as_json({"waiting": run.waiting is not None, "comments": len(run.comments)}, 202)

    async def go_on(self, call: Call) -> Reply:
        run = self._living(call)
        pausing = f.flag(read_object(call.body), "pause", run.pausing)
        run.go_on(pausing=pausing)
        return as_json({"pausing": pausing})

    async def pause(self, call: Call) -> Reply:
        run = self._living(call)
        run.pausing = True
        return as_json({"pausing": True}, 202)

    async def cancel(self, call: Call) -> Reply:
        run = self._living(call)
        run.cancel()
        await run.result()
        return as_json({"status": "cancelled"})

    async def summary(self, call: Call) -> Reply:
        row = self._row(call)
        if row.run_id in self.runs.live:
            raise ApiError(409, "The run is still going on.", code="run_not_over")
        return as_json(await self._summarised([row.run_id]))

    async def summaries(self, call: Call) -> Reply:
        """The newest runs in a few sentences."""
        last = f.whole(read_object(call.body), "last", 1, 100, 10)
        rows = [row.run_id for row in self.store.runs() if row.run_id not in self.runs.live][:last]
        if not rows:
            raise not_found("There are no runs yet.", "run_not_found")
        return as_json(await self._summarised(rows))

    async def export_json(self, call: Call) -> Reply:
        return run_shown.as_json_file(self.store, self._row(call))

    async def export_html(self, call: Call) -> Reply:
        return run_shown.as_html_file(self.store, self._row(call))

    async def delete(self, call: Call) -> Reply:
        row = self._row(call)
        if row.run_id in self.runs.live:
            raise ApiError(409, "The run is still going on; cancel it first.", code="run_not_over")
        # Before, not after: what cannot be recorded is not done.
        self.audit.append(call.actor, "run.remove", row.run_id, "ok", method=row.method)
        self.store.remove(row.run_id)
        return Reply(status=204)

    async def _summarised(self, rows: list[str]) -> Json:
        try:
            found = await memory.summarize(self.store, rows, self.room.running().opened, seed=self.settings.seed)
        except EngineError as error:
            self.room.died(error.message)
            raise
        return {**asdict(found), "runs": rows[: len(rows) - found.left_out], "disclaimer": DISCLAIMER}

    def _row(self, call: Call) -> RunRow:
        run_id = call.values["run_id"]
        row = (
            next((item for item in self.store.runs() if item.run_id == run_id), None)
            if _RUN_ID.fullmatch(run_id)
            else None
        )
        if row is None:
            raise not_found("There is no such run. See /ddx/v1/runs.", "run_not_found")
        call.object_id = row.run_id
        return row

    def _living(self, call: Call) -> LiveRun:
        row = self._row(call)
        live = self.runs.live.get(row.run_id)
        if live is None:
            raise ApiError(
                409, "The run does not go on here: it is over, or another process works on it.", code="run_is_over"
            )
        return live

    def _status(self, row: RunRow) -> str:
        """A run that says `running` and is none of this server's was interrupted, or is another process's."""
        return "interrupted" if row.status == "running" and row.run_id not in self.runs.live else row.status

    async def _live(self, run: LiveRun, after: int) -> AsyncIterator[bytes]:
        teller = Teller()
        for number, what, _ in tuple(run.items):
            if number <= after:
                teller.tell(what, lambda _: "")
        async for number, what, texts in run.follow(after):
            message = teller.tell(what, lambda address, texts=texts: texts.get(address, ""))  # type: ignore[misc]
            if message is not None:
                yield event(message, number)
        if not any(type(what).__name__ == "RunFinished" for _, what, _ in run.items):
            yield event({"type": "end", "status": "failed", "seconds": 0})

    async def _recorded(self, row: RunRow, after: int) -> AsyncIterator[bytes]:
        teller = Teller()
        last = ""
        for number, what in enumerate(self.store.events(row.run_id), start=1):
            message = teller.tell(what, lambda address: self.store.text(row.run_id, address))
            last = type(what).__name__
            if message is not None and number > after:
                yield event(message, number)
        if last != "RunFinished":
            yield event({"type": "end", "status": "interrupted", "seconds": 0})
