"""SCoT's record: what was said so far, as text for the prompts of later rounds, in three degrees of detail.

The record only grows at its end, so that the prompts of later rounds share their beginning with those of earlier ones. A
lower degree of detail is taken only where the full one does not fit the context, and the flow notes it. Pure.
"""

from collections.abc import Mapping, Sequence

from ddx_local.methods.fitting import Section, titled
from ddx_local.methods.master_list import Entry, Proposed
from ddx_local.methods.scot_steps import Exchange, Finding, Positions, Relevance, Stance


def panel(roles: Sequence[str]) -> Section:
    line = f"PANEL: {', '.join(roles)}"
    return {"full": line, "brief": line, "bare": line}


def relevance(answers: Mapping[str, Relevance]) -> Section:
    full = [f"- {role}: relevance {answer.relevance} of 5; {answer.reason}" for role, answer in answers.items()]
    brief = ", ".join(f"{role} {answer.relevance}" for role, answer in answers.items())
    return {"full": _titled_or_none("RELEVANCE", full), "brief": f"RELEVANCE (of 5): {brief}", "bare": ""}


def triage(answers: Mapping[str, Sequence[Finding]]) -> Section:
    items = [(role, finding) for role, findings in answers.items() for finding in findings]
    full = [f"- {item.urgency}: {item.finding}{_quoted(item.quote)}; {item.step} ({role})" for role, item in items]
    brief = dict.fromkeys(f"- {item.urgency}: {item.finding}" for _, item in items)
    return {"full": _titled_or_none("TRIAGE", full), "brief": _titled_or_none("TRIAGE", list(brief)), "bare": ""}


def additions(entries: Sequence[Entry], proposed: Sequence[Proposed]) -> Section:
    """What 5a added, also where it joined an entry that was there; empty where nothing was added."""
    new = [tuple(item for item in entry.proposed if item in proposed) for entry in entries]
    return lists([Entry(items, "refinement") for items in new if items], "ADDITIONS") if any(new) else {}


def lists(entries: Sequence[Entry], title: str = "PROPOSALS") -> Section:
    """The independent lists, by entry of the master list."""
    full = []
    for entry in entries:
        for item in entry.proposed:
            proof = " ".join(f'"{quote}"' for quote in item.proposal.evidence)
            full.append(f"- {item.role}, place {item.place}: {item.proposal.diagnosis}. {proof} {item.proposal.reason}")
    brief = [f"- {entry.diagnosis}: proposed by {', '.join(entry.roles)}" for entry in entries]
    return {"full": _titled_or_none(title, full), "brief": _titled_or_none(title, brief), "bare": ""}


def positions(title: str, answers: Mapping[str, Positions]) -> Section:
    """Stances by diagnosis; who said what with which quote, or only who takes which position."""
    names = list(dict.fromkeys(name for answer in answers.values() for name in answer.stances))
    full, brief, bare = [], [], []
    for name in names:
        stances = {role: answer.stances[name] for role, answer in answers.items() if name in answer.stances}
        full.append(f"- {name}: " + "; ".join(_said(role, stance) for role, stance in stances.items()))
        brief.append(f"- {name}: " + "; ".join(f"{role} {stance.position}" for role, stance in stances.items()))
        counts = [f"{_count(stances, position)} {position}" for position in ("support", "challenge")]
        bare.append(f"- {name}: {', '.join(counts)}")
    return {
        "full": _titled_or_none(title, full),
        "brief": _titled_or_none(title, brief),
        "bare": _titled_or_none(title, bare),
    }


def exchange(answers: Mapping[str, Exchange]) -> Section:
    full, brief = [], []
    for role, answer in answers.items():
        for name, stance in answer.challenges.items():
            full.append(f"- {role} challenges {name}{_quoted(stance.quote)}: {stance.reason}")
            brief.append(f"- {role} challenges {name}")
        for name, text in answer.answers.items():
            full.append(f"- {role} answers for {name}: {text}")
            brief.append(f"- {role} defends {name}")
    return {"full": _titled_or_none("EXCHANGE", full), "brief": _titled_or_none("EXCHANGE", brief), "bare": ""}


def ballots(answers: Mapping[str, Sequence[str]]) -> Section:
    full = [f"- {role}: {' > '.join(ballot)}" for role, ballot in answers.items()]
    return {"full": _titled_or_none("BALLOTS", full), "brief": "", "bare": ""}


def _said(role: str, stance: Stance) -> str:
    return f"{role} {stance.position}{_quoted(stance.quote)}, {stance.reason}"


def _count(stances: Mapping[str, Stance], position: str) -> int:
    return sum(stance.position == position for stance in stances.values())


def _quoted(quote: str | None) -> str:
    return f' ("{quote}")' if quote else ""


def _titled_or_none(title: str, lines: Sequence[str]) -> str:
    """Lines under their title; "TITLE: none" where nobody said anything, so that a round that was held is not passed over."""
    return titled(f"{title}:", lines) if lines else f"{title}: none"
