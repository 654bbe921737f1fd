"""A suite: data, methods, models, seeds, matcher, prices. One TOML file, checked before anything is opened.

An arm is one method with one set of options under a label. Its role says what it is for: the baseline, a placebo (the same
baseline again, with other seeds), a method, or an equal-budget baseline whose samples are chosen so that it uses as many
tokens as the arm named by `tokens_of`.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ddx_local import jobs, options
from ddx_local.data import data_dir
from ddx_local.errors import UsageError, nearest
from ddx_local.evaluation.datasets import sources
from ddx_local.evaluation.suite_match import Match as Match
from ddx_local.evaluation.suite_match import checked_match as checked_match
from ddx_local.evaluation.suite_match import known, match_of
from ddx_local.home import expanded
from ddx_local.launch import ENGINES
from ddx_local.settings import Settings

ROLES = ("baseline", "placebo", "method", "equal-budget")
PLACEBO_SEED = 1_000_003
"""Added to the seeds of a placebo, so that it is another draw of the same system."""


@dataclass(frozen=True, slots=True)
class Data:
    source: str
    path: str = ""
    sha256: str = ""
    limit: int | None = None
    cases: tuple[str, ...] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    medqa: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Arm:
    """`k`: free (the method's own), fixed:N, or oracle (the number of golds of each case: not comparable with the others)."""

    label: str
    method: str
    options: Mapping[str, Any]
    role: str = "method"
    k: str = "free"
    tokens_of: str = ""


@dataclass(frozen=True, slots=True)
class Suite:
    """All that is needed to run it again; `engine` holds settings by name, prices are per million tokens."""

    name: str
    description: str
    data: Data
    arms: tuple[Arm, ...]
    models: tuple[str, ...]
    seeds: tuple[int, ...]
    engine: Mapping[str, Any] = field(default_factory=dict)
    match: Match = field(default_factory=Match)
    price_in: float = 0.0
    price_out: float = 0.0
    allow_unequal_budget: bool = False

    def arm(self, role: str) -> Arm | None:
        """The first arm of a role."""
        return next((arm for arm in self.arms if arm.role == role), None)


_TOP = ("name", "description", "models", "seeds", "data", "method", "engine", "match", "judge", "cost", "budget")


def find(name: str) -> Path:
    """A suite's file: a path, or the name of one that ships. Raises `UsageError` with the nearest names."""
    path = Path(name)
    if path.suffix == ".toml":
        if not path.is_file():
            raise UsageError(f"suite {name}: no such file", "See `ddx-local bench list --suites`.")
        return path
    known = {item.stem: item for item in shipped()}
    if name not in known:
        raise UsageError(f"no suite `{name}`: {nearest(name, list(known))}", "Give one of these, or a .toml file.")
    return known[name]


def shipped() -> tuple[Path, ...]:
    return tuple(sorted((data_dir("bench") / "suites").glob("*.toml")))


def read(path: Path) -> Suite:
    """Read and check a suite.

    Raises:
        UsageError: Not TOML, an unknown key or name (the nearest are shown), a value out of range.
    """
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"suite {path}: cannot be read: {error}") from None
    return parse(data, path)


def parse(data: Mapping[str, Any], path: Path) -> Suite:
    """The same from its decoded TOML; relative data paths are against the suite's folder."""
    where = f"suite {path.name}"
    known(data, _TOP, where)
    arms = tuple(_arm(item, where) for item in data.get("method", ()))
    if not arms:
        raise UsageError(f"{where}: has no [[method]]", 'Name at least one, such as `name = "zero-shot"`.')
    labels = [arm.label for arm in arms]
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise UsageError(f"{where}: two methods are called `{twice[0]}`", "Give each a `label` of its own.")
    for role in ("baseline", "placebo"):
        if sum(arm.role == role for arm in arms) > 1:
            raise UsageError(f"{where}: has more than one {role}")
    for arm in arms:
        if arm.role == "equal-budget" and arm.tokens_of not in labels:
            raise UsageError(f"{where}, `{arm.label}`: tokens_of names no method: {nearest(arm.tokens_of, labels)}")
    base, placebo = (next((arm for arm in arms if arm.role == role), None) for role in ("baseline", "placebo"))
    if (
        placebo
        and base
        and (placebo.method, dict(placebo.options), placebo.k) != (base.method, dict(base.options), base.k)
    ):
        raise UsageError(
            f"{where}: the placebo differs from the baseline", "It must be the same method with the same options."
        )
    seeds = tuple(data.get("seeds", (0,)))
    if not seeds or len(set(seeds)) < len(seeds) or not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise UsageError(f"{where}: seeds must be different whole numbers from 0")
    engine = dict(data.get("engine", {}))
    if "name" in engine:
        engine["engine"] = engine.pop("name")
    known(engine, [*Settings.model_fields], f"{where}, [engine]")
    if engine.get("engine", "vllm") not in ENGINES:
        raise UsageError(
            f"{where}, [engine]: no engine `{engine['engine']}`: {nearest(engine['engine'], list(ENGINES))}"
        )
    cost, budget = data.get("cost", {}), data.get("budget", {})
    known(cost, ("input", "output"), f"{where}, [cost]")
    known(budget, ("allow_unequal", "tokens"), f"{where}, [budget]")
    if "tokens" in budget:
        engine["budget_tokens"] = budget["tokens"]
    return Suite(
        name=str(data.get("name", path.stem)),
        description=str(data.get("description", "")),
        data=_data(data.get("data", {}), path.parent, where),
        arms=arms,
        models=tuple(data.get("models", (Settings.model_fields["model"].default,))),
        seeds=seeds,
        engine=engine,
        match=match_of(data.get("match", {}), data.get("judge", {}), where),
        price_in=float(cost.get("input", 0)),
        price_out=float(cost.get("output", 0)),
        allow_unequal_budget=bool(budget.get("allow_unequal", False)),
    )


def _data(given: Mapping[str, Any], folder: Path, where: str) -> Data:
    known(
        given,
        ("source", "path", "sha256", "limit", "cases", "where", "medqa", "columns", "options"),
        f"{where}, [data]",
    )
    source = given.get("source", "vignettes")
    if source not in sources():
        raise UsageError(f"{where}, [data]: no data set `{source}`: {nearest(source, list(sources()))}")
    if (limit := given.get("limit")) is not None and (type(limit) is not int or limit < 1):
        raise UsageError(f"{where}, [data]: limit must be a whole number from 1")
    extra = {**given.get("options", {}), **({"columns": given["columns"]} if "columns" in given else {})}
    return Data(
        source=source,
        path=_placed(given.get("path", ""), folder),
        sha256=given.get("sha256", ""),
        limit=limit,
        cases=tuple(given.get("cases", ())),
        where=dict(given.get("where", {})),
        medqa=_placed(given.get("medqa", ""), folder),
        options=extra,
    )


def _placed(path: str, folder: Path) -> str:
    return str((folder / expanded(path)).resolve()) if path else ""


def _arm(given: Mapping[str, Any], where: str) -> Arm:
    known(given, ("name", "label", "options", "role", "k", "tokens_of"), f"{where}, [[method]]")
    if "name" not in given:
        raise UsageError(f"{where}, [[method]]: has no `name`", "See `ddx-local methods list`.")
    method = jobs.method(given["name"])
    label, role, k = given.get("label", method.name), given.get("role", "method"), str(given.get("k", "free"))
    if role not in ROLES:
        raise UsageError(f"{where}, `{label}`: no role `{role}`: {nearest(role, list(ROLES))}")
    chosen = dict(given.get("options", {}))
    if k not in ("free", "oracle") and not (k.startswith("fixed:") and k[6:].isdecimal()):
        raise UsageError(f"{where}, `{label}`: k must be free, oracle or fixed:N")
    if k.startswith("fixed:"):
        chosen["k"] = int(k[6:])
    # Wrong options are a fault of the suite: found here, not after an hour of other methods.
    options.parse(method.options, {**chosen, **({"k": 1} if k == "oracle" else {})}, method.name)
    return Arm(label, method.name, chosen, role, k, str(given.get("tokens_of", "")))
