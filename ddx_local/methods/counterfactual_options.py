"""The counterfactual method's options, with the paper's values."""

from dataclasses import dataclass
from typing import Literal

from ddx_local.methods.bounds import check_bounds
from ddx_local.methods.gaps import Weights

PARTS = ("editing", "rounds", "reports", "roles", "clinician")
"""What `without` can switch off, for the paper's ablations."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of counterfactual reasoning.

    Args:
        specialists: Specialists at most.
        candidates: K, diagnoses under test.
        samples: Samples of the differential; the candidates are the K most often named.
        edits: N, edits of a specialist for each diagnosis.
        rounds: R, further rounds after the first.
        top: Counterfactuals that a specialist is shown.
        consensus: Share of the specialists that must agree.
        least_sip: An edit must preserve at least this much (SIP).
        least_edit_sim: An edit must be at least this similar in spelling.
        gap: signed (the same label before and after) or paper (equation 2); it decides the combined score.
        w_sem: Weight of the similarity of meaning in SIP.
        w_edit: Weight of the similarity of spelling in SIP.
        w_signal: Weight of the signal (the gap, or the shift where that is larger) in the combined score.
        w_shift: What the shift of the diagnosis counts beside the gap.
        w_sip: Weight of SIP in the combined score.
        without: Parts to leave out, for ablations: editing, rounds, reports, roles, clinician.
    """

    specialists: int = 5
    candidates: int = 3
    samples: int = 1
    edits: int = 2
    rounds: int = 3
    top: int = 3
    consensus: float = 0.75
    least_sip: float = 0.85
    least_edit_sim: float = 0.80
    gap: Literal["signed", "paper"] = "signed"
    w_sem: float = 0.7
    w_edit: float = 0.3
    w_signal: float = 0.8
    w_shift: float = 0.75
    w_sip: float = 0.2
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_bounds(self, {"specialists": (2, 8), "candidates": (2, 8), "samples": (1, 50), "edits": (1, 5)})
        check_bounds(self, {"rounds": (0, 10), "top": (1, 10)})
        shares = ("consensus", "least_sip", "least_edit_sim", "w_sem", "w_edit", "w_signal", "w_shift", "w_sip")
        check_bounds(self, dict.fromkeys(shares, (0, 1)))
        if self.gap not in ("signed", "paper"):
            raise ValueError("gap must be signed or paper")
        if unknown := [name for name in self.without if name not in PARTS]:
            raise ValueError(f"without: no part {unknown[0]!r}; known: {', '.join(PARTS)}")

    @property
    def weights(self) -> Weights:
        return Weights(self.w_sem, self.w_edit, self.w_signal, self.w_shift, self.w_sip)
