"""A server for tests: the real app in real uvicorn on a real socket, in a thread, with the demonstration's engine."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from ddx_local.audit import Audit
from ddx_local.clinical.similarity import spelling_similarity
from ddx_local.flow import Similarity
from ddx_local.launch import Opened, consultants_of_files
from ddx_local.server import keys as keys_
from ddx_local.server.app import Server, Setup
from ddx_local.server.demo import DemoEngine
from ddx_local.server.engine_room import Running
from ddx_local.server.limits import Bounds
from ddx_local.server.serving import Place, listen, serve
from ddx_local.settings import Settings
from ddx_local.store import Store

CASE = (
    "A 61-year-old man has had a sudden painful swelling of the right big toe since last night. He had several beers and a "
    "large plate of shellfish. The joint is red, hot and exquisitely tender. Temperature 37.7 C. Uric acid 9.4 mg/dL."
)


@dataclass
class Served:
    """A server that answers, its parts, and keys of it by scope."""

    url: str
    server: Server
    engine: DemoEngine
    store: Store
    audit: Audit
    keys: dict[str, str]
    errors: list[BaseException] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    stop: Callable[[], None] = lambda: None

    def client(self, scope: str = "admin", **more: Any) -> openai.OpenAI:
        key = self.keys.get(scope, "none")
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=60, **more)

    def http(self, scope: str | None = "admin", **more: Any) -> httpx.Client:
        headers = {"authorization": f"Bearer {self.keys[scope]}"} if scope and self.keys else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False, **more)


@contextmanager
def serving(
    folder: Path,
    *,
    with_keys: bool = True,
    bounds: Bounds | None = None,
    delay: float = 0.0,
    on_disk: bool = True,
    **more: Any,
) -> Iterator[Served]:
    """Serve until the block ends."""
    key_path = folder / "keys.json"
    scopes = keys_.SCOPES if with_keys else ()
    made = {scope: keys_.add(key_path, scope, [scope])[1] for scope in scopes}
    store = Store(folder / "runs.sqlite" if on_disk else None)
    audit = Audit(folder / "audit.sqlite" if on_disk else None)
    engine = DemoEngine(delay=delay)

    async def open_engine() -> Running:
        consultants: dict[type, Any] = {Similarity: spelling_similarity}
        consultants.update(consultants_of_files(consultants))
        return Running(Opened(engine, consultants))

    setup = Setup(
        settings=Settings(engine="scripted"),
        open_engine=open_engine,
        store=store,
        audit=audit,
        keys=keys_.Keys(key_path),
        bounds=bounds or Bounds(),
        demo=True,
    )
    served = Served("", None, engine, store, audit, made)  # type: ignore[arg-type]
    setup = replace(setup, report=served.reports.append, **more)
    place = Place("127.0.0.1", 0)
    opened = listen(place)
    served.url = f"http://127.0.0.1:{opened.getsockname()[1]}"
    begun = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        served.server = Server(setup)
        await serve(served.server, place, opened, begun.set)

    def work() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            served.errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert begun.wait(60)
    served.stop = lambda: loops[0].call_soon_threadsafe(served.server.room.over.set)
    try:
        _until_ready(served)
        yield served
    finally:
        if thread.is_alive():
            served.stop()
        thread.join(60)
        assert not thread.is_alive()
        store.close()
        audit.close()


def _until_ready(served: Served) -> None:
    with served.http() as http:
        for _ in range(6000):
            if http.get("/readyz").status_code == 200:
                return
            threading.Event().wait(0.01)
    raise AssertionError("the server never became ready")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for a module's tests that leave it as it is."""
    with serving(tmp_path_factory.mktemp("served")) as found:
        yield found


@pytest.fixture(scope="session")
def schemas(shared_data: Path) -> dict[str, Any]:
    """OpenAI's own schemas of replies, under `components`."""
    import json

    found: dict[str, Any] = json.loads((shared_data / "openai-chat-schemas.json").read_text())
    return found
