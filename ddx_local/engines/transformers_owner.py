"""The thread that owns a transformers model. It knows work by name; what the work is about is the batch's."""

import copy
from typing import TYPE_CHECKING, Any

from ddx_local.engines.owner import OwnerThread
from ddx_local.engines.tasks import Deliver
from ddx_local.engines.transformers_load import load, start_error
from ddx_local.engines.transformers_settings import TransformersSettings
from ddx_local.errors import EngineStartError

if TYPE_CHECKING:
    from ddx_local.engines.transformers_batch import Batch


class Owner(OwnerThread["Batch"]):
    """All of torch runs in this thread."""

    gather = 0.005

    def __init__(self, settings: TransformersSettings, tokenizer: Any) -> None:
        super().__init__("transformers-owner")
        self._settings = settings
        # A tokenizer may not be used by two threads at once.
        self._tokenizer = copy.deepcopy(tokenizer)

    def forget(self, name: str, deliver: Deliver) -> None:
        """Drop the beginnings of prompts that are kept."""

        def command(batch: "Batch") -> None:
            batch.forget()
            self.deliver(name, None)

        self.put(name, command, deliver)

    def abort(self, name: str) -> None:
        # The batch asks who is still waited for before its next pass.
        self._waiting.pop(name, None)

    def build(self) -> "Batch":
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
            deliver=self.deliver,
        )

    def work(self, engine: "Batch") -> None:
        import torch

        with torch.inference_mode():
            passes = engine.passes()
            while self.take(engine, idle=engine.idle):
                next(passes)

    def start_error(self, error: BaseException) -> EngineStartError:
        return start_error(error, self._settings)
