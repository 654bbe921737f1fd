"""For sites that already run `vllm serve`: this server's whole app under `/ddx-local` of theirs (`vllm.endpoint_plugins`).

It is loaded where `VLLM_PLUGINS` names `ddx-local`. It brings its own keys (vLLM's `--api-key` guards other prefixes) and
answers nothing without one. vLLM must run a model of ours under its card's name, with
`--logits-processors ddx_local.engines.vllm_forced:ForcedDecoding` for label probabilities.
"""

import asyncio
from typing import Any

PREFIX = "/ddx-local"


class DdxEndpoints:
    """An `EndpointPlugin` of vLLM."""

    name = "ddx-local"
    required_tasks = ("generate",)

    def attach_router(self, app: Any) -> None:
        """Mount the place of our app; what stands there answers 503 until the state is there."""
        self._held = _Held()
        app.mount(PREFIX, self._held)

    async def init_state(self, engine_client: Any, state: Any, args: Any) -> None:
        """Build our app over the engine that runs."""
        from ddx_local.audit import Audit, beside
        from ddx_local.server import keys
        from ddx_local.server.app import Server, Setup
        from ddx_local.settings import load
        from ddx_local.store import Store

        if engine_client is None:
            return
        settings = load()
        name = state.vllm_config.model_config.served_model_name
        store = Store(settings.store_path)
        server = Server(
            Setup(
                settings=settings.model_copy(update={"engine": "vllm", "model": name}),
                open_engine=lambda: _over(engine_client, settings, str(name)),
                store=store,
                audit=Audit(beside(store.path)),
                keys=keys.Keys(keys.default_path(), always=True),
                hosts=frozenset(("localhost", "127.0.0.1", "[::1]", str(getattr(args, "host", None) or "localhost"))),
            )
        )
        self._held.app = server.gate
        self._held.task = asyncio.ensure_future(server.room.run())


class _Held:
    """A place in another app; `app` comes later."""

    def __init__(self) -> None:
        self.app: Any = None
        self.task: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self.app is not None:
            await self.app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 503, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


async def _over(client: Any, settings: Any, name: str) -> Any:
    """Our engine over a client that vLLM opened."""
    from ddx_local import launch, models
    from ddx_local.clinical.similarity import Similarities
    from ddx_local.engines.chat import Chat
    from ddx_local.engines.vllm_served import ServedVllmEngine
    from ddx_local.engines.vllm_settings import VllmSettings
    from ddx_local.flow import Similarity
    from ddx_local.launch import Opened
    from ddx_local.server.engine_room import Running

    card = models.card(name)
    folder = models.snapshot(name)
    config = client.vllm_config
    choice = VllmSettings(
        folder=folder,
        card=card,
        weights_sha256=models.weights_sha256(folder),
        device=str(config.device_config.device_type),
        dtype=str(config.model_config.dtype).removeprefix("torch."),
        max_model_len=config.model_config.max_model_len,
    )
    chat = await asyncio.to_thread(Chat.load, folder, card)
    engine = ServedVllmEngine(choice, chat, client)
    consultants: dict[type, Any] = {Similarity: Similarities(models.snapshot(settings.embedding_model))}
    consultants.update(launch.consultants_of_files(consultants, keep=True))
    # Raw requests are vLLM's own routes' there.
    return Running(Opened(engine, consultants), None, lambda: engine.dead)
