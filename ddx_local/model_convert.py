"""Turns one GGUF file into a folder of safetensors: `python -m ddx_local.model_convert GGUF OUT [QUIRKS]`.

A process of its own, so that its memory (1 GB for 135 million weights, 3.4 GB for Gemma's 268) comes back, and offline from its first
line. It knows no store and no card; QUIRKS is a `ChatQuirks` as JSON.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ddx_local.errors import ModelError
from ddx_local.model_card import ChatQuirks
from ddx_local.model_chat import chat_findings
from ddx_local.offline import go_offline


def convert(gguf_file: Path, out: Path, quirks: ChatQuirks) -> None:
    """Dequantises the weights to bfloat16 and writes model, tokenizer, chat template and generation settings.

    Args:
        gguf_file: Weights, tokenizer and template in one file.
        out: Folder to write, made if need be.
        quirks: What the card states; its template replaces the file's.

    Raises:
        ModelError: The tokenizer is of a kind that cannot be rebuilt, or the result has no sound chat format.
    """
    go_offline()
    import torch
    import transformers
    from gguf import GGUFReader

    fields = GGUFReader(gguf_file).fields
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    where = {"gguf_file": gguf_file.name, "local_files_only": True}
    folder = str(gguf_file.parent)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **where)
    _restore_pre_tokenizer(tokenizer, fields, gguf_file.name)
    _restore_bos(tokenizer, fields)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.bfloat16, quantization_config=transformers.GgufConfig(dequantize=True), **where
    )
    tokenizer.model_max_length = model.config.max_position_embeddings
    if quirks.chat_template is not None:
        tokenizer.chat_template = quirks.chat_template
    # How this process loaded the file is no property of the model.
    for key in ("is_local", "local_files_only"):
        tokenizer.init_kwargs.pop(key, None)
    model.save_pretrained(out)
    model.generation_config.save_pretrained(out)
    tokenizer.save_pretrained(out)
    for finding in chat_findings(out, quirks):
        if finding.level == "error":
            raise ModelError(f"{finding.file}: {finding.message}", hint=finding.hint)


def _restore_pre_tokenizer(tokenizer: Any, fields: Mapping[str, Any], name: str) -> None:
    r"""Puts back the text splitter that the GGUF file names and transformers 5.19 replaces by GPT-2's.

    Without it, blanks before a digit ("\n\n1.", "  20") become tokens that the model has not seen there. SmolLM's
    splitter takes every digit alone first, then splits as GPT-2 does: llama.cpp, LLAMA_VOCAB_PRE_TYPE_SMOLLM.
    SentencePiece's vocabularies ("llama") have no splitter. Gemma's, as transformers rebuilds it, gives the tokens of the
    sentencepiece library itself, but for runs of more than 31 blanks, which it divides in other places.
    """
    from tokenizers import pre_tokenizers

    if fields["tokenizer.ggml.model"].contents() != "gpt2":
        return
    match fields["tokenizer.ggml.pre"].contents():
        case "smollm":
            digits = pre_tokenizers.Digits(individual_digits=True)
            byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=True)
            tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, byte_level])
        case "gpt-2":
            pass
        case other:
            raise ModelError(f"{name}: pre-tokenizer {other!r} cannot be rebuilt", hint="Use safetensors.")


def _restore_bos(tokenizer: Any, fields: Mapping[str, Any]) -> None:
    """Begins plain text with the BOS where the GGUF file says so, which transformers 5.19 does not read.

    Gemma 3 270M without it: 5.9 instead of 2.5 nats for a token of plain English.
    """
    stated = fields.get("tokenizer.ggml.add_bos_token")
    if stated is not None and stated.contents():
        tokenizer.add_bos_token = True
        tokenizer.update_post_processor()


def main(arguments: list[str]) -> int:
    quirks = ChatQuirks(**json.loads(arguments[2])) if len(arguments) > 2 else ChatQuirks()
    try:
        convert(Path(arguments[0]), Path(arguments[1]), quirks)
    except ModelError as error:
        print(error.message, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
