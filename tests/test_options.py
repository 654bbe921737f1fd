"""Options of a method from text and from settings: types, names, ranges; an error says which and what is near."""

from dataclasses import dataclass
from typing import Any

import pytest

from ddx_local.errors import UsageError
from ddx_local.methods.baselines import BestOfNOptions
from ddx_local.methods.scot_options import Options
from ddx_local.methods.table import METHODS
from ddx_local.options import as_json, parse, parse_pairs


@dataclass(frozen=True, slots=True)
class Toy:
    count: int = 1
    share: float = 0.5
    on: bool = False
    name: str = "x"
    names: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()


def test_pairs_are_split_at_the_first_equals_sign_and_trimmed() -> None:
    assert parse_pairs(["k=3", " name = a = b ", "empty="]) == {"k": "3", "name": "a = b", "empty": ""}
    assert parse_pairs([]) == {}


@pytest.mark.parametrize("wrong", [["k"], ["=3"], [" = 3"], [""]])
def test_a_pair_without_a_name_or_an_equals_sign_is_refused(wrong: list[str]) -> None:
    with pytest.raises(UsageError, match="name=value"):
        parse_pairs(wrong)


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="k: given twice"):
        parse_pairs(["k=3", "k = 4"])


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("count", "7", 7),
        ("count", " 7 ", 7),
        ("count", 7, 7),
        ("count", "-7", -7),
        ("share", "0.25", 0.25),
        ("share", 0.25, 0.25),
        ("share", 1, 1.0),
        ("share", "1e-3", 0.001),
        ("on", "yes", True),
        ("on", "TRUE", True),
        ("on", "1", True),
        ("on", True, True),
        ("on", "off", False),
        ("on", "0", False),
        ("name", "a, b", "a, b"),
        ("names", "a, b ,c", ("a", "b", "c")),
        ("names", "a", ("a",)),
        ("names", "", ()),
        ("names", ["a", " b "], ("a", "b")),
        ("names", [], ()),
        ("counts", "1,2", (1, 2)),
        ("counts", [1, 2], (1, 2)),
    ],
)
def test_a_value_is_read_by_the_type_of_its_field(name: str, given: Any, value: Any) -> None:
    found = getattr(parse(Toy, {name: given}, "toy"), name)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("count", "seven"),
        ("count", "2.0"),
        ("count", ""),
        ("count", 2.7),
        ("count", True),
        ("count", None),
        ("count", [1]),
        ("share", "half"),
        ("share", False),
        ("on", "maybe"),
        ("on", 2),
        ("on", ""),
        ("names", 5),
        ("names", None),
        ("counts", "1,b"),
    ],
)
def test_a_value_of_the_wrong_type_is_an_error_that_names_the_option(name: str, given: Any) -> None:
    with pytest.raises(UsageError, match=name) as error:
        parse(Toy, {name: given}, "toy")
    assert "must be" in error.value.message


def test_an_unknown_option_is_refused_with_the_nearest_names_and_where_to_look() -> None:
    with pytest.raises(UsageError, match="method `scot` has no option `agent`: did you mean agents") as error:
        parse(Options, {"agent": "3"}, "scot")
    assert "ddx-local methods show scot" in error.value.hint
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"agents": "0"}, "agents must be 1 to 12"),
        ({"without": "vote"}, "no round 'vote'"),
        ({"same_at": "nan"}, "same_at"),
    ],
)
def test_a_value_out_of_range_is_a_usage_error_with_the_options_own_words(values: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        parse(Options, values, "scot")
    assert "methods show" in error.value.hint


def test_scot_is_configured_by_text() -> None:
    options = parse(
        Options, parse_pairs(["agents=3", "without=triage, voting", "relevance_weighting=on", "same_at=0.95"]), "scot"
    )
    assert options == Options(agents=3, without=("triage", "voting"), relevance_weighting=True, same_at=0.95)


def test_nothing_given_is_the_default() -> None:
    for method in METHODS.values():
        assert parse(method.options, {}, method.name) == method.options()


@pytest.mark.parametrize("name", sorted(METHODS))
def test_options_survive_a_round_trip_through_json_values(name: str) -> None:
    kind = METHODS[name].options
    assert parse(kind, as_json(kind()), name) == kind()


def test_json_values_are_plain() -> None:
    values = as_json(Options(without=("triage",)))
    assert values["without"] == ["triage"]
    assert set(values) == set(Options.__dataclass_fields__)
    assert as_json(BestOfNOptions(n=3)) == {"n": 3, "k": 5, "temperature": 0.7, "threshold": 0.5}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_option_has_a_documented_meaning(name: str) -> None:
    kind = METHODS[name].options
    for field in kind.__dataclass_fields__:
        assert f"        {field}: " in str(kind.__doc__)


def test_a_long_value_is_not_repeated_whole() -> None:
    with pytest.raises(UsageError, match="must be a whole number") as caught:
        parse(Toy, {"count": "1" * 5000}, "toy")
    assert len(caught.value.message) < 150
