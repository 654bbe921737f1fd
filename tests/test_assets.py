"""Prompts and grammars: loaded, paired, filled in one pass, digested; the shipped ones and made-up ones with faults."""

import importlib
import pkgutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import llguidance
import pytest

import ddx_local.methods
from ddx_local.assets import Assets
from ddx_local.data import data_dir
from ddx_local.flow import Ask, Step, Weigh
from ddx_local.grammar import byte_tokenizer
from ddx_local.grammar_template import GrammarError
from ddx_local.request import Message

METHODS = sorted(path.name for path in data_dir("prompts").iterdir() if path.is_dir())
STEPS = [name for method in METHODS for name in Assets().names(method)]
CASE = 'A man of {{age}} says "{{case}} {{record}}" \\ and has fever.\n{ not } {{a slot}} since the flight.'

VALUES: dict[str, str | tuple[str, ...]] = {"text": "Some text.", "list": ("one", "two", "three"), "number": "3"}


def shared(folder: str) -> str:
    """The slot that the common beginning of a folder's prompts holds: the case, or of roles that do not see it the record."""
    return "case" if "{{case}}" in (data_dir("prompts") / folder / "_shared.md").read_text("utf-8") else "record"


def example(assets: Assets, name: str, **given: str | tuple[str, ...]) -> Ask[Any]:
    """A question with plausible slots."""
    slots = {slot: VALUES[kind] for slot, kind in assets.template(name).slots.items()}
    return Ask(Step(name, lambda answer: answer), {**slots, **given})


@pytest.mark.parametrize("name", STEPS)
def test_every_shipped_step_fills_into_two_messages_and_a_grammar_that_compiles(name: str) -> None:
    filled = Assets().fill(example(Assets(), name, **{shared(name.split("/")[0]): CASE}))
    assert [message.role for message in filled.messages] == ["system", "user"]
    assert all(message.content.strip() == message.content != "" for message in filled.messages)
    assert CASE in filled.messages[1].content, "braces of the case must survive"
    assert filled.messages[1].content.replace(CASE, "").count("{{") == 0
    if filled.grammar is None:
        assert filled.answer_prefix or filled.longest > 0, "free text without a bound"
        return
    assert filled.longest > 2
    fault = llguidance.LLMatcher.validate_grammar(filled.grammar, byte_tokenizer())
    assert not fault, fault[:300]


@pytest.mark.parametrize("method", METHODS)
def test_prompts_and_grammars_pair(method: str) -> None:
    names = set(Assets().names(method))
    grammars = {f"{method}/{path.stem}" for path in (data_dir("grammars") / method).glob("*.lark")}
    assert names
    assert grammars <= names, "a grammar without a prompt"
    assert {name for name in names if Assets().template(name).grammar} == grammars
    assert not [path for path in (data_dir("grammars") / method).iterdir() if path.suffix != ".lark"]


def test_no_folder_of_grammars_is_without_prompts() -> None:
    assert sorted(path.name for path in data_dir("grammars").iterdir()) == METHODS


def test_every_step_of_the_methods_has_its_files_and_every_file_a_step() -> None:
    found = pkgutil.iter_modules(ddx_local.methods.__path__, "ddx_local.methods.")
    modules = [importlib.import_module(name) for name in (*(module.name for module in found), "ddx_local.memory")]
    steps = {value.name for module in modules for value in vars(module).values() if isinstance(value, Step)}
    assert steps == set(STEPS)


@pytest.mark.parametrize("method", METHODS)
def test_all_prompts_of_a_folder_share_their_beginning_up_to_the_end_of_the_case_or_of_the_record(method: str) -> None:
    assets = Assets()
    filled = [assets.fill(example(assets, name, **{shared(method): CASE})) for name in assets.names(method)]
    assert len({item.messages[0] for item in filled}) == 1
    users = [item.messages[1].content for item in filled]
    assert len({user[: user.index(CASE)] for user in users}) == 1
    assert users == [user for user in users if user.count(CASE) == 1], "the case stands once in a prompt"


def test_prompts_of_one_round_differ_only_after_the_record() -> None:
    assets = Assets()
    for name in assets.names("scot"):
        if "record" not in assets.template(name).slots:
            continue
        one, two = (
            assets.fill(example(assets, name, record="THE RECORD", role=role, style=style)).messages[1].content
            for role, style in (("cardiology", "bold"), ("nephrology", "careful"))
        )
        assert one != two
        place = one.index("THE RECORD") + len("THE RECORD")
        assert one[:place] == two[:place]


def test_an_unknown_step_or_method_is_named() -> None:
    with pytest.raises(GrammarError, match="scot/nothing"):
        Assets().template("scot/nothing")
    with pytest.raises(GrammarError, match="nothing/panel"):
        Assets().template("nothing/panel")
    assert Assets().names("nothing") == ()


SHARED = "You are a physician.\n---\nTHE CASE\n{{case}}\n(end)\n"
PROMPT = '+++\nslots = { case = "text", items = "list", n = "number" }\ntemperature = 0.5\n+++\nItems, {{n}}:\n{{items}}\nGo.\n'
GRAMMAR = 'start: "[" {{choice items}} ", " {{list one 1 n}} ", " {{quote case 60}} "]"\none: {{int 1 2}}\n'


def made(folder: Path, prompt: str = PROMPT, shared: str = SHARED, grammar: str | None = GRAMMAR) -> Assets:
    for kind in ("prompts", "grammars"):
        (folder / kind / "toy").mkdir(parents=True, exist_ok=True)
    (folder / "prompts/toy/step.md").write_text(prompt, "utf-8")
    (folder / "prompts/toy/_shared.md").write_text(shared, "utf-8")
    lark = folder / "grammars/toy/step.lark"
    lark.unlink(missing_ok=True)
    if grammar is not None:
        lark.write_text(grammar, "utf-8")
    return Assets(folder / "prompts", folder / "grammars")


def asked(**slots: Any) -> Ask[Any]:
    given = {"case": CASE, "items": ("a", "b"), "n": "2", **slots}
    return Ask(Step("toy/step", str), {name: value for name, value in given.items() if value is not None})


def test_a_filled_question_is_the_shared_beginning_then_the_steps_own_tail(tmp_path: Path) -> None:
    filled = made(tmp_path).fill(asked())
    assert filled.messages == (
        Message("system", "You are a physician."),
        Message("user", f"THE CASE\n{CASE}\n(end)\n\nItems, 2:\n- a\n- b\nGo."),
    )
    assert filled.temperature == 0.5
    assert filled.top_p == 1.0


def test_an_empty_list_says_so(tmp_path: Path) -> None:
    prompt, grammar = PROMPT, "start: {{list one 0 n}} {{quote case 60}}\none: {{choice items}}"
    filled = made(tmp_path, prompt, grammar=grammar).fill(asked(items=()))
    assert "Items, 2:\n(none)\nGo." in filled.messages[1].content


def test_slots_are_filled_in_one_pass_so_that_what_looks_like_a_slot_in_a_value_stays(tmp_path: Path) -> None:
    filled = made(tmp_path).fill(asked(case="{{items}} {{n}}", items=("{{case}}", "{{n}}")))
    assert filled.messages[1].content == "THE CASE\n{{items}} {{n}}\n(end)\n\nItems, 2:\n- {{case}}\n- {{n}}\nGo."


def test_the_answers_bound_leaves_room_for_the_end_token(tmp_path: Path) -> None:
    filled = made(
        tmp_path, grammar='start: "[" {{choice items}} {{list one 1 n}}? {{quotes case 60 0 1}}? "]"\none: "1"'
    )
    short = filled.fill(asked(case="short", items=("a", "bcd")))
    assert short.longest == len('["bcd"[1, 1][]]') + 1


def test_a_questions_temperature_goes_before_the_steps(tmp_path: Path) -> None:
    assets = made(tmp_path)
    assert assets.fill(replace(asked(), temperature=0.0)).temperature == 0.0
    assert assets.fill(Weigh(Step("toy/step", str), asked().slots, ("A",))).temperature == 0.5


def test_a_step_without_a_grammar_answers_in_free_text_of_at_most_max_tokens(tmp_path: Path) -> None:
    prompt = '+++\nslots = { case = "text" }\nmax_tokens = 77\ntop_p = 0.9\n+++\nTell me.\n'
    filled = made(tmp_path, prompt, grammar=None).fill(asked(items=None, n=None))
    assert (filled.grammar, filled.longest, filled.temperature, filled.top_p) == (None, 77, 0.3, 0.9)


def test_an_answer_prefix_needs_neither_grammar_nor_bound(tmp_path: Path) -> None:
    prompt = '+++\nslots = { case = "text" }\nanswer_prefix = "Diagnosis: "\n+++\nName it.\n'
    assert made(tmp_path, prompt, grammar=None).fill(asked(items=None, n=None)).answer_prefix == "Diagnosis: "


@pytest.mark.parametrize(
    ("slots", "message"),
    [
        ({"n": None}, r"given slots \['case', 'items'\], needs \['case', 'items', 'n'\]"),
        ({"more": "x"}, "given slots .*'more'"),
        ({"items": "a, b"}, "`items` must be a list"),
        ({"items": ["a", "b"]}, "`items` must be a list"),
        ({"case": ("a", "b")}, "`case` must be a text"),
        ({"case": 7}, "`case` must be a text"),
        ({"n": ("2",)}, "`n` must be a number"),
        ({"n": 2}, "`n` must be a number"),
        ({"n": "two"}, "`n` must be a number"),
        ({"n": "-2"}, "`n` must be a number"),
    ],
)
def test_slots_that_are_missing_unknown_or_of_the_wrong_type_are_named(
    tmp_path: Path, slots: dict[str, Any], message: str
) -> None:
    with pytest.raises(GrammarError, match=f"`toy/step`: .*{message}|`toy/step`: {message}"):
        made(tmp_path).fill(asked(**slots))


NO_GRAMMAR = '+++\nslots = { case = "text" }\n+++\nGo.\n'


@pytest.mark.parametrize(
    ("prompt", "shared", "grammar", "message"),
    [
        ("Go.\n", SHARED, GRAMMAR, "front matter"),
        ("\n" + PROMPT, SHARED, GRAMMAR, "front matter"),
        ("+++\nslots = {}\nGo.\n", SHARED, GRAMMAR, "front matter"),
        (PROMPT, "You are a physician.\nTHE CASE\n{{case}}\n", GRAMMAR, "`---`"),
        (PROMPT.replace("temperature", "warmth"), SHARED, GRAMMAR, "unknown front matter .*warmth"),
        (PROMPT.replace("= 0.5", "= half"), SHARED, GRAMMAR, "not TOML"),
        (PROMPT.replace('"number"', '"int"'), SHARED, GRAMMAR, "unknown slot kind 'int'"),
        (PROMPT.replace("{{items}}", ""), SHARED, 'start: "1"', "declared slots .*items.* but read"),
        (PROMPT.replace("{{n}}", "{{n}} {{other}}"), SHARED, GRAMMAR, "but read .*other"),
        (PROMPT, SHARED, GRAMMAR.replace("{{int 1 2}}", "{{choice others}}"), "but read .*others"),
        (PROMPT.replace("{{n}}", "{{n}} {{N}}"), SHARED, GRAMMAR, "braces"),
        (PROMPT.replace("temperature = 0.5", "max_tokens = 9"), SHARED, GRAMMAR, "not both"),
        (NO_GRAMMAR, SHARED, None, "needs a grammar file or max_tokens"),
        (PROMPT, SHARED, GRAMMAR.replace("quote case 60", "quote case"), "takes 2 arguments"),
    ],
)
def test_files_that_are_wrong_or_contradict_each_other_are_refused_when_the_step_is_loaded(
    tmp_path: Path, prompt: str, shared: str, grammar: str | None, message: str
) -> None:
    with pytest.raises(GrammarError, match=message):
        made(tmp_path, prompt, shared, grammar).template("toy/step")


def test_a_step_without_its_shared_beginning_is_refused(tmp_path: Path) -> None:
    assets = made(tmp_path)
    (tmp_path / "prompts/toy/_shared.md").unlink()
    with pytest.raises(GrammarError, match=r"_shared\.md"):
        assets.template("toy/step")


def test_the_digest_of_a_step_changes_with_any_byte_of_its_three_files(tmp_path: Path) -> None:
    files = [
        (PROMPT, SHARED, GRAMMAR),
        (PROMPT.replace("Go.", "Go!"), SHARED, GRAMMAR),
        (PROMPT.replace("0.5", "0.6"), SHARED, GRAMMAR),
        (PROMPT + "\n", SHARED, GRAMMAR),
        (PROMPT, SHARED.replace("(end)", "(End)"), GRAMMAR),
        (PROMPT, SHARED.replace("a physician", "the physician"), GRAMMAR),
        (PROMPT, SHARED, GRAMMAR.replace("int 1 2", "int 1 3")),
        (PROMPT, SHARED, GRAMMAR + " "),
    ]
    digests = [made(tmp_path, *texts).template("toy/step").digest for texts in files]
    assert len(set(digests)) == len(files)
    assert made(tmp_path, *files[0]).template("toy/step").digest == digests[0]


def test_the_digest_of_a_question_changes_with_every_text_that_the_engine_sees(tmp_path: Path) -> None:
    def digest(assets: Assets, **slots: Any) -> str:
        return assets.fill(asked(**slots)).prompt_digest

    digests = [
        digest(made(tmp_path)),
        digest(made(tmp_path), case=CASE + " "),
        digest(made(tmp_path), items=("a", "c")),
        digest(made(tmp_path), items=("b", "a")),
        digest(made(tmp_path), n="1"),
        digest(made(tmp_path, PROMPT.replace("Go.", "Go!"))),
        digest(made(tmp_path, shared=SHARED.replace("(end)", "(End)"))),
        digest(made(tmp_path, shared=SHARED.replace("a physician", "the physician"))),
        digest(made(tmp_path, grammar=GRAMMAR.replace("int 1 2", "int 1 3"))),
        digest(made(tmp_path, PROMPT.replace("temperature = 0.5", 'answer_prefix = "So: "'))),
    ]
    assert len(set(digests)) == len(digests)
    assert digest(made(tmp_path)) == digests[0]


def test_text_does_not_slip_from_the_system_message_to_the_users_without_a_change_of_digest(tmp_path: Path) -> None:
    one = made(tmp_path, shared="AB\n---\nC {{case}}").fill(asked()).prompt_digest
    two = made(tmp_path, shared="A\n---\nBC {{case}}").fill(asked()).prompt_digest
    assert one != two
