"""How a model's chat format turns messages into tokens, and whether it does so rightly. It loads no weights.

An engine renders the chat template to text and tokenises that text without special tokens (`chat_ids`). Two faults of
this step cost accuracy without any error: a BOS token that is written twice, and one that is not written at all
(lm-evaluation-harness issues 1841, 1854 and 2676). Both are found here by tokenising, not by reading configurations.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ddx_local.model_card import ChatQuirks
from ddx_local.model_store import Finding

_SYSTEM, _USER = "ddx-local-system", "ddx-local-user"
_SYSTEM_CHAT = ({"role": "system", "content": _SYSTEM}, {"role": "user", "content": _USER})
# Families that were trained with a BOS before every text, by the `model_type` of their config.json.
_BOS_FAMILIES = ("gemma", "mistral", "mixtral")


def load_tokenizer(folder: Path) -> Any:
    """The folder's tokenizer, from its files alone and without any code of the folder's own."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(folder.resolve()), local_files_only=True, trust_remote_code=False)


def chat_text(tokenizer: Any, messages: Sequence[Mapping[str, str]]) -> str:
    """The chat as the template writes it, up to where the answer begins."""
    return str(tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True))


def chat_ids(tokenizer: Any, messages: Sequence[Mapping[str, str]]) -> tuple[int, ...]:
    """The token ids that an engine gives to the model for a chat."""
    return tuple(tokenizer(chat_text(tokenizer, messages), add_special_tokens=False).input_ids)


def chat_findings(folder: Path, quirks: ChatQuirks | None) -> tuple[Finding, ...]:
    """What is wrong with a chat model's tokenizer, template and BOS.

    Args:
        folder: A model folder whose files are known to be safe.
        quirks: What the model's card states, None without a card.
    """
    try:
        tokenizer = load_tokenizer(folder)
    except ImportError:
        hint = "Install ddx-local with the extra cpu, gpu or transformers."
        return (Finding("warning", "", "chat template and BOS were not checked: transformers is not installed", hint),)
    except Exception as error:  # transformers raises whatever its parsers raise
        return (
            _error("tokenizer.json", f"the tokenizer does not load: {_one_line(error)}", "Take the source's files."),
        )
    model_type = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("model_type") or ""
    stated = quirks.add_bos if quirks else None
    if stated is None and model_type.startswith(_BOS_FAMILIES):
        stated = True
    findings = _plain_bos_findings(tokenizer) if stated else ()
    template = _template(tokenizer)
    if template is None:
        what = "there is no chat template, in chat_template.jinja or in tokenizer_config.json"
        hint = "Put the family's template there, or `chat_template` on the card."
        return (*findings, _error("chat_template.jinja", what, hint))
    messages, template_findings = _renderable(tokenizer, quirks)
    findings += template_findings
    if "strftime_now" in template:
        what = "the chat template writes today's date into the prompt, so tomorrow's answer may differ"
        hint = "Pass `date_string` when rendering, or remove it."
        findings += (Finding("warning", "chat_template.jinja", what, hint),)
    if messages and tokenizer.bos_token_id is not None:
        findings += _chat_bos_findings(tokenizer, messages, stated, template)
    return findings


def _renderable(tokenizer: Any, quirks: ChatQuirks | None) -> tuple[Sequence[Mapping[str, str]], tuple[Finding, ...]]:
    """Messages that the template renders (none where it renders nothing), and what was wrong on the way to them."""
    file = "chat_template.jinja"
    takes_system = quirks is None or quirks.system_role
    fault = _render_fault(tokenizer, _SYSTEM_CHAT) if takes_system else None
    if takes_system and fault is None:
        return _SYSTEM_CHAT, ()
    user_fault = _render_fault(tokenizer, _SYSTEM_CHAT[1:])
    if user_fault is not None:
        return (), (_error(file, f"the chat template does not render: {user_fault}", "Take the source's template."),)
    if not takes_system:
        return _SYSTEM_CHAT[1:], ()
    what = f"the chat template does not take a system message: {fault}"
    hint = "Set `system_role = false` on the model's card."
    return _SYSTEM_CHAT[1:], (Finding("warning" if quirks is None else "error", file, what, hint),)


def _render_fault(tokenizer: Any, messages: Sequence[Mapping[str, str]]) -> str | None:
    try:
        text = chat_text(tokenizer, messages)
    except Exception as error:  # Jinja errors, and whatever the template raises itself
        return _one_line(error)
    lost = [message["role"] for message in messages if message["content"] not in text]
    return f"the {' and '.join(lost)} message is not in the text" if lost else None


def _plain_bos_findings(tokenizer: Any) -> tuple[Finding, ...]:
    """For a family that begins every text with one BOS."""
    file, hint = "tokenizer_config.json", "Have tokenizer.json's post-processor write it, or take the source's files."
    if tokenizer.bos_token_id is None:
        return (_error(file, "the tokenizer has no BOS token, and this family needs one before every text", hint),)
    count = _leading(tokenizer("a").input_ids, tokenizer.bos_token_id)
    what = f"plain text begins with {count} BOS tokens, and this family needs exactly one"
    return () if count == 1 else (_error(file, what, hint),)


def _chat_bos_findings(
    tokenizer: Any, messages: Sequence[Mapping[str, str]], stated: bool | None, template: str
) -> tuple[Finding, ...]:
    """Counts the BOS tokens of a rendered chat.

    Args:
        tokenizer: The folder's; it has a BOS token.
        messages: A chat that the template renders.
        stated: Whether the family begins every text with a BOS; None: the template and the tokenizer show it.
        template: The chat template's text.
    """
    bos = tokenizer.bos_token_id
    shown = "bos_token" in template or _leading(tokenizer("a").input_ids, bos) > 0
    count = _leading(chat_ids(tokenizer, messages), bos)
    hint = "Write the BOS exactly once, in the chat template; a model answers worse with two of them, or with none."
    if count > 1:
        return (_error("chat_template.jinja", f"a rendered chat begins with {count} BOS tokens", hint),)
    if count == 0 and (shown if stated is None else stated):
        return (_error("chat_template.jinja", "a rendered chat begins without the BOS that this family needs", hint),)
    if count == 0 and stated is None:
        what = "the tokenizer has a BOS token, but neither its text nor the chat template writes one"
        doubt = (
            "Compare with the source's tokenizer files: a conversion may have lost it. Else set `add_bos` on the card."
        )
        return (Finding("warning", "chat_template.jinja", what, doubt),)
    return ()


def _leading(ids: Sequence[int], token: int) -> int:
    return next((place for place, found in enumerate(ids) if found != token), len(ids))


def _template(tokenizer: Any) -> str | None:
    """The template's text; a tokenizer may hold several by name, then the one called default."""
    template = tokenizer.chat_template
    if isinstance(template, Mapping):
        template = template.get("default")
    return str(template) if template else None


def _one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200] if lines else ''}"


def _error(file: str, message: str, hint: str) -> Finding:
    return Finding("error", file, message, hint)
