"""MAC's book-keeping: the discussion as text for later prompts, who stands where, and the differential at the end. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ddx_local.case import Case, Differential, ReasoningTrace
from ddx_local.clinical import labels
from ddx_local.methods import voting
from ddx_local.methods.fitting import Section, titled
from ddx_local.methods.lists import Named, entry, grouped, named, roles
from ddx_local.methods.mac_steps import Supervision, View
from ddx_local.methods.proposals import in_words

SUPERVISOR_ROLE = "supervisor"


@dataclass
class Discussion:
    """Everything that was said: per round the doctors' views, and what the supervisor said after them."""

    views: list[dict[str, View]] = field(default_factory=list)
    supervised: list[Supervision] = field(default_factory=list)

    def sections(self) -> list[Section]:
        """The discussion in order; it only grows at its end."""
        found = []
        for number, answers in enumerate(self.views, start=1):
            found.append(_doctors(number, answers))
            found += [_supervisor(number, said) for said in self.supervised[number - 1 : number]]
        return found

    def candidates(self) -> tuple[str, ...]:
        """What the doctors name now, each diagnosis once under its first name."""
        return tuple(group[0][2].diagnosis for group in self.groups(-1))

    def agreed(self) -> tuple[str, ...]:
        """The candidate that every doctor names first, or none."""
        firsts = [view.differential[0].diagnosis for view in self.views[-1].values()]
        if len(labels.merge(firsts)) > 1:
            return ()
        return tuple(group[0][2].diagnosis for group in self.groups(-1) if any(place == 1 for _, place, _ in group))[:1]

    def received(self, role: str) -> tuple[str, ...]:
        """The last challenges to a doctor."""
        return tuple(text for to, text in self.supervised[-1].challenges if to == role)

    def groups(self, round_: int) -> list[list[Named]]:
        return grouped(named({role: view.differential for role, view in self.views[round_].items()}))


def _doctors(number: int, answers: Mapping[str, View]) -> Section:
    full, brief = [], []
    for role, view in answers.items():
        lines = [f"{role}: {view.comment}"]
        lines += [f"- {in_words(item)}" for item in view.differential]
        lines += [f"- Tests: {'; '.join(view.tests)}"] if view.tests else []
        full.append("\n".join(lines))
        brief.append(f"{role}: " + "; ".join(item.diagnosis for item in view.differential))
    # Only what is first for someone, so that this is always shorter than the lists.
    firsts = voting.majority([_first(view, answers) for view in answers.values()])
    bare = "; ".join(f"{name} first for {firsts.scores[name]:.0f}" for name in firsts.ranking)
    title = f"ROUND {number}, THE DOCTORS:"
    return {
        "full": titled(title, full),
        "brief": titled(title, brief),
        "bare": f"{title} {bare}",
    }


def _first(view: View, answers: Mapping[str, View]) -> str:
    """A doctor's first diagnosis, by the name that the first doctor with the same one gives it."""
    firsts = [other.differential[0].diagnosis for other in answers.values()]
    return next(name for name in firsts if labels.same(name, view.differential[0].diagnosis))


def _supervisor(number: int, said: Supervision) -> Section:
    title = f"ROUND {number}, THE SUPERVISOR:"
    standing = f"Most likely now: {said.ranking[0]}; others: {', '.join(said.ranking[1:]) or 'none'}"
    lines = [f"{title} {said.summary}", *(f"- Open: {point}" for point in said.disagreements)]
    lines += [f"- To {to}: {text}" for to, text in said.challenges]
    return {"full": "\n".join([*lines, standing]), "brief": f"{title} {standing}", "bare": f"{title} {standing}"}


def result(case: Case, discussion: Discussion) -> Differential:
    """The supervisor's last ranking, with the places and quotes of the doctors' last lists."""
    said = discussion.supervised[-1]
    groups = {group[0][2].diagnosis: group for group in discussion.groups(-1)}
    everything = [named({role: view.differential for role, view in answers.items()}) for answers in discussion.views]
    entries = []
    for rank, name in enumerate(said.ranking, start=1):
        names = [item.diagnosis for _, _, item in groups[name]]
        rounds = [_naming(answers, names) for answers in everything]
        entered = next(number for number, found in enumerate(rounds, start=1) if found)
        made = entry(case, rank, 1 / rank, groups[name], f"round {entered}")
        by = roles([item for found in rounds for item in found])
        entries.append(replace(made, votes={**made.votes, SUPERVISOR_ROLE: rank}, proposed_by=by))
    tests = "; ".join(said.tests)
    return Differential(
        score_kind="reciprocal_place",
        entries=tuple(entries),
        panel=(*discussion.views[-1], SUPERVISOR_ROLE),
        trace=ReasoningTrace(said.summary, f"Tests that would help: {tests}" if tests else "", said.agreed),
    )


def _naming(found: Sequence[Named], names: Sequence[str]) -> list[Named]:
    return [item for item in found if any(labels.same(item[2].diagnosis, name) for name in names)]
