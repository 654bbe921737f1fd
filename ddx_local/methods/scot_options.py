"""SCoT's options, with the paper's values."""

from dataclasses import dataclass

from ddx_local.methods.bounds import check_bounds

ROUNDS = ("relevance", "triage", "merge", "refinement", "voting", "cant_miss")
"""What `without` can switch off; the independent lists (round 3) cannot be."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of SCoT.

    Args:
        agents: Seats of the panel; two in five are innovative, the others conservative. 1 is the single-agent ablation.
        k: Diagnoses of a differential at most.
        temperature_innovative: Sampling temperature of the innovative seats.
        temperature_conservative: Sampling temperature of the conservative seats.
        same_at: Cosine similarity from which two names are one diagnosis (not calibrated yet).
        ask_at: Cosine similarity from which the model is asked whether they are (not calibrated yet).
        most: Entries of the master list at most.
        relevance_weighting: Weigh an agent's votes by the relevance that it gave its specialty.
        without: Rounds to leave out, for ablations: relevance, triage, merge, refinement, voting, cant_miss.
    """

    agents: int = 5
    k: int = 5
    temperature_innovative: float = 0.7
    temperature_conservative: float = 0.3
    same_at: float = 0.90
    ask_at: float = 0.75
    most: int = 12
    relevance_weighting: bool = False
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_bounds(self, {"agents": (1, 12), "k": (1, 10), "most": ("k", 20)})
        if not (0 <= self.temperature_innovative <= 2 and 0 <= self.temperature_conservative <= 2):
            raise ValueError("temperatures must be 0 to 2")
        if not 0 < self.ask_at <= self.same_at <= 1:
            raise ValueError("ask_at and same_at must be in (0, 1], ask_at not above same_at")
        if unknown := [name for name in self.without if name not in ROUNDS]:
            raise ValueError(f"without: no round {unknown[0]!r}; known: {', '.join(ROUNDS)}")
        if self.relevance_weighting and "relevance" in self.without:
            raise ValueError("relevance_weighting needs the relevance round, which `without` leaves out")
