"""The thread that owns a transformers model: it loads it, feeds it from a queue between passes, and ends with it.

It knows work by name; what the work is about is the batch's.
"""

import copy
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from ddx_local.engines.causes import root_cause
from ddx_local.engines.tasks import Deliver
from ddx_local.engines.transformers_load import load, start_error
from ddx_local.engines.transformers_settings import TransformersSettings
from ddx_local.errors import EngineError

if TYPE_CHECKING:
    from ddx_local.engines.transformers_batch import Batch

GATHER = 0.005
"""Seconds that an idle engine waits for more after a request: those of a round come one by one, and cost least together."""

Command = Callable[["Batch"], None]


class Owner(threading.Thread):
    """All of torch runs in this thread. `ready` is settled when the model is loaded, or could not be."""

    def __init__(self, settings: TransformersSettings, tokenizer: Any) -> None:
        super().__init__(name="transformers-owner", daemon=True)
        self.ready: Future[None] = Future()
        # From here on nobody can cancel it: who gives up waiting closes the owner instead.
        self.ready.set_running_or_notify_cancel()
        self._settings = settings
        # A tokenizer may not be used by two threads at once.
        self._tokenizer = copy.deepcopy(tokenizer)
        self._inbox: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._waiting: dict[str, Deliver] = {}
        self._ended = ""
        self._state = threading.Lock()

    def put(self, name: str, command: Command, deliver: Deliver) -> None:
        """Have something done; `deliver` gets what the batch delivers under this name, which is unique."""
        with self._state:
            if not self._ended:
                self._waiting[name] = deliver
                self._inbox.put(command)
                return
        deliver(EngineError(self._ended))

    def forget(self, name: str, deliver: Deliver) -> None:
        """Drop the beginnings of prompts that are kept."""

        def command(batch: "Batch") -> None:
            batch.forget()
            self._deliver(name, None)

        self.put(name, command, deliver)

    def abort(self, name: str) -> None:
        """Stop work that nobody waits for any more: it is gone before the next pass."""
        self._waiting.pop(name, None)

    def close(self) -> None:
        """End after the current pass; who waits gets an `EngineError`, and so does who comes later."""
        self._inbox.put(None)

    def run(self) -> None:
        try:
            batch = self._build()
        except BaseException as error:
            self._end("the engine did not start")
            self.ready.set_exception(start_error(error, self._settings))
            return
        self.ready.set_result(None)
        try:
            self._work(batch)
        except BaseException as error:
            self._end(f"the engine died: {root_cause(error)}")
        else:
            self._end("the engine is closed")

    def _build(self) -> "Batch":
        loaded = load(self._settings, int(self._tokenizer.eos_token_id))
        from ddx_local.engines.transformers_batch import Batch
        from ddx_local.engines.transformers_grammar import Grammars
        from ddx_local.engines.transformers_rows import Network

        vocabulary = loaded.model.get_output_embeddings().weight.shape[0]
        return Batch(
            Network(loaded.model),
            Grammars(self._tokenizer, vocabulary, sorted(loaded.ends)),
            self._tokenizer,
            loaded.ends,
            room=loaded.room,
            most=self._settings.max_sequences,
            wanted=self._waiting.__contains__,
            deliver=self._deliver,
        )

    def _work(self, batch: "Batch") -> None:
        import torch

        with torch.inference_mode():
            passes = batch.passes()
            while self._take(batch):
                next(passes)

    def _take(self, batch: "Batch") -> bool:
        """Do what is in the inbox; waits only while there is nothing to compute. False: the owner is to end."""
        wait = None if batch.idle else 0.0
        while True:
            try:
                command = self._inbox.get(timeout=wait) if wait != 0.0 else self._inbox.get_nowait()
            except queue.Empty:
                return True
            if command is None:
                return False
            command(batch)
            wait = GATHER if wait != 0.0 else 0.0

    def _deliver(self, name: str, result: Any) -> None:
        if deliver := self._waiting.pop(name, None):
            deliver(result)

    def _end(self, reason: str) -> None:
        with self._state:
            self._ended = reason
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for deliver in waiting:
            deliver(EngineError(reason))
