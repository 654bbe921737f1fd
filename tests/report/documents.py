"""A result document for the reports' tests, made by hand with plain numbers, and the pieces that it is made of."""

from pathlib import Path
from typing import Any

from ddx_local import DISCLAIMER

ROOT = Path(__file__).resolve().parents[2]
CASE_ID = "exertional-chest-pressure"
TEXT = (ROOT / "bench" / "cases" / f"{CASE_ID}.txt").read_text("utf-8")

STENOSIS = "Severe calcific aortic valve stenosis"
CORONARY = "Stable angina from obstructive coronary artery disease"
CARDIOMYOPATHY = "Hypertrophic obstructive cardiomyopathy"

CARDIOLOGIST, INTERNIST = "cardiologist", "general internal medicine doctor"
SURGEON, HEMATOLOGIST = "cardiothoracic surgeon", "hematologist"
LAB = "clinical laboratory scientist"

PULSE = "The carotid pulse is small and rises slowly"
MURMUR = "A harsh systolic murmur that peaks late is loudest at the right upper sternal border"
VALSALVA = "gets softer during the strain of a Valsalva maneuver"
SECOND_SOUND = "the second heart sound is soft and single"
PRESSURE = "pressure behind the breastbone when he walks uphill that goes within five minutes of rest"
REST = "within five minutes of rest"
FAINT = "nearly blacked out while carrying shopping upstairs"
SMOKING = "stopped smoking 20 years ago"
ANEMIA = "Hemoglobin 10.7 g/dL with a mean cell volume of 74 fL, ferritin 9 ug/L"
STOOLS = "His stools were dark for a few days last month"
TROPONIN = "high-sensitivity troponin T 17 and 18 ng/L three hours apart"
WAVES = "tall R waves and T-wave inversion in V5 and V6"


def place(quote: str, text: str = TEXT) -> dict[str, Any]:
    start = text.index(quote)
    return {"quote": quote, "start": start, "end": start + len(quote)}


def evidence(quote: str, supports: bool, *by: str) -> dict[str, Any]:
    return {**place(quote), "supports": supports, "by": list(by)}


def edit(
    diagnosis: str, operation: str, changes: dict[str, str], before: float, after: float, **more: Any
) -> dict[str, Any]:
    """An edit of the case; what is not given has a usual value. `changes` maps a quote (an anchor) to its replacement."""
    spans = sorted(((place(quote), new) for quote, new in changes.items()), key=lambda item: item[0]["start"])
    patches = [
        {"start": span["end"] if operation == "insert" else span["start"], "end": span["end"], "replacement": new}
        for span, new in spans
    ]
    gap = round(before - after, 6)
    return {
        "by": CARDIOLOGIST,
        "round": "1",
        "diagnosis": diagnosis,
        "operation": operation,
        "patches": patches,
        "p_before": before,
        "p_after": after,
        "gap": gap,
        "gap_raw": gap / 10,
        "gap_paper": abs(gap),
        "gap_paper_raw": abs(gap) / 10,
        "noise_floor": 0.02,
        "sip": 0.95,
        "edit_sim": 0.93,
        "shift": 0.0,
        "combined": 0.8 * abs(gap) + 0.2 * 0.95,
        "kept": True,
    } | more


def entry(rank: int, diagnosis: str, score: float, **more: Any) -> dict[str, Any]:
    return {
        "rank": rank,
        "diagnosis": diagnosis,
        "icd10": None,
        "score": score,
        "votes": {},
        "probability": score,
        "evidence": [],
        "proposed_by": ["differential"],
        "entered_in": "differential",
        "critical": False,
        "reasoning": "",
        "stances": {},
    } | more


def batch(name: str, questions: int, prompt: int, computed: int, generated: int, seconds: float) -> dict[str, Any]:
    return {
        "name": name,
        "questions": questions,
        "prompt_tokens": prompt,
        "prompt_tokens_computed": computed,
        "generated_tokens": generated,
        "seconds": seconds,
    }


def made_by_hand() -> dict[str, Any]:
    """A counterfactual result as a good model would give it."""
    batches = [
        batch("triage + differential", 2, 1204, 1204, 187, 6.2),
        batch("report + edit", 20, 14210, 3904, 2610, 41.8),
        batch("probability", 31, 23100, 4020, 0, 12.4),
        batch("stance", 6, 9120, 3301, 1420, 33.0),
        batch("trace", 1, 3890, 1544, 388, 9.7),
    ]
    sums = {name: sum(item[name] for item in batches) for name in batches[0] if name not in ("name", "questions")}
    return {
        "schema": "ddx-local/result/1",
        "case_id": CASE_ID,
        "run_id": "20260301-101500-0badcafe",
        "method": "counterfactual",
        "options": {"specialists": 5, "candidates": 3, "edits": 2, "rounds": 3, "gap": "signed", "without": []},
        "model": {
            "name": "gemma-3-4b-it",
            "fingerprint": {
                "weights_sha256": "9f2c" * 16,
                "engine": "vllm",
                "engine_version": "0.32.0",
                "dtype": "float32",
            },
            "roles": {"judge": {"name": "qwen3-4b", "fingerprint": {"dtype": "bfloat16"}}},
        },
        "engine": "vllm",
        "seed": 7,
        "created_at": "2026-03-01T10:15:00.000+00:00",
        "package_version": "0.1.0",
        "score_kind": "probability",
        "status": "finished",
        "error": None,
        "panel": [CARDIOLOGIST, INTERNIST, SURGEON, HEMATOLOGIST, LAB, "independent clinician"],
        "differential": [
            entry(
                1,
                STENOSIS,
                0.71,
                critical=True,
                votes={CARDIOLOGIST: 1, INTERNIST: 1, SURGEON: 1, HEMATOLOGIST: 2, LAB: 3},
                stances={
                    CARDIOLOGIST: "support",
                    INTERNIST: "support",
                    SURGEON: "support",
                    HEMATOLOGIST: "neutral",
                    LAB: "challenge",
                },
                reasoning="A slow-rising carotid pulse, a late-peaking murmur over both carotids and a single second heart "
                "sound point to a severely narrowed valve; exertional pressure and near-syncope are its symptoms.",
                evidence=[
                    evidence(PULSE, True, CARDIOLOGIST, SURGEON),
                    evidence(MURMUR, True, CARDIOLOGIST, INTERNIST, SURGEON),
                    evidence(SECOND_SOUND, True, CARDIOLOGIST, "trace"),
                    evidence(FAINT, True, INTERNIST),
                    evidence(PRESSURE, True, INTERNIST),
                    evidence(TROPONIN, False, LAB),
                ],
            ),
            entry(
                2,
                CORONARY,
                0.22,
                votes={CARDIOLOGIST: 2, INTERNIST: 2, SURGEON: 2, HEMATOLOGIST: 1, LAB: 1},
                stances={CARDIOLOGIST: "challenge", HEMATOLOGIST: "support", LAB: "support", SURGEON: "neutral"},
                reasoning="Effort pressure that goes with rest in an ex-smoker, made worse by anemia, fits; the murmur and "
                "the pulse are left unexplained.",
                evidence=[
                    evidence(REST, True, HEMATOLOGIST, LAB),
                    evidence(SMOKING, True, LAB),
                    evidence(MURMUR, False, CARDIOLOGIST),
                ],
            ),
            entry(
                3,
                CARDIOMYOPATHY,
                0.07,
                entered_in="refinement",
                votes={CARDIOLOGIST: 3, INTERNIST: 3, SURGEON: 3, HEMATOLOGIST: 3, LAB: 2},
                stances={INTERNIST: "withdrawn"},
                reasoning="An outflow murmur with near-syncope, but it gets softer where this would get louder.",
                evidence=[evidence(WAVES, True, INTERNIST), evidence(VALSALVA, False, CARDIOLOGIST, SURGEON)],
            ),
        ],
        "cant_miss": [
            {
                "diagnosis": "Acute coronary syndrome",
                "why": "Exertional pressure with a troponin just over its limit.",
                **place(TROPONIN),
                "test": "a third troponin and a repeated electrocardiogram",
                "by": [LAB],
            },
            {
                "diagnosis": "Gastrointestinal bleeding",
                "why": "Dark stools with iron deficiency; with a narrow valve the bowel may bleed (Heyde syndrome).",
                **place(STOOLS),
                "test": "endoscopy",
                "by": [HEMATOLOGIST, INTERNIST],
            },
        ],
        "triage": [
            {
                "finding": "Near-syncope on effort with signs of outflow obstruction",
                **place(FAINT),
                "urgency": "urgent",
                "step": "No effort and no nitrates; echocardiogram today",
                "by": CARDIOLOGIST,
            },
            {
                "finding": "Iron-deficiency anemia",
                "quote": None,
                "start": None,
                "end": None,
                "urgency": "routine",
                "step": "Look for the source of bleeding, replace iron",
                "by": HEMATOLOGIST,
            },
        ],
        "counterfactuals": [
            edit(STENOSIS, "negate", {PULSE: "The carotid pulse is full and rises fast"}, 0.71, 0.37, by=SURGEON),
            edit(STENOSIS, "remove", {MURMUR: ""}, 0.71, 0.43),
            edit(STENOSIS, "weaken", {SECOND_SOUND: "the second heart sound is a little soft"}, 0.71, 0.58),
            edit(STENOSIS, "remove", {FAINT: ""}, 0.71, 0.67, by=INTERNIST),
            edit(STENOSIS, "replace", {ANEMIA: "Hemoglobin 14.1 g/dL"}, 0.71, 0.72, by=HEMATOLOGIST),
            edit(STENOSIS, "replace", {VALSALVA: "gets louder during a Valsalva maneuver"}, 0.71, 0.48),
            edit(CORONARY, "replace", {REST: "only after an hour of rest"}, 0.22, 0.09, by=LAB),
            edit(CORONARY, "remove", {MURMUR: ""}, 0.22, 0.46),
            edit(CORONARY, "negate", {SMOKING: "never smoked"}, 0.22, 0.17, by=LAB, noise_floor=0.03),
            edit(CORONARY, "insert", {TROPONIN: " rising to 120 ng/L"}, 0.22, 0.38, by=LAB),
            edit(CORONARY, "remove", {f"{PULSE}, the apex beat is sustained": ""}, 0.22, 0.23, by=SURGEON),
            edit(CARDIOMYOPATHY, "replace", {VALSALVA: "gets louder during a Valsalva maneuver"}, 0.07, 0.33),
            edit(CARDIOMYOPATHY, "weaken", {WAVES: "T-wave flattening in V6", FAINT: "felt tired"}, 0.07, 0.04),
            edit(CARDIOMYOPATHY, "remove", {PRESSURE: "", ANEMIA: ""}, 0.07, 0.31, kept=False, edit_sim=0.71, sip=0.8),
        ],
        "conflicts": [
            {"kept": STENOSIS, "over": "vasovagal syncope", "why": "effort brings it on", "by": "judge"},
        ],
        "uncertainty": "no pressure gradient was measured",
        "trace": {
            "conclusion": "Pulse, murmur and second heart sound carry aortic stenosis: changing any of them takes 0.13 to 0.34 "
            "from its probability. Coronary disease gains where the murmur is taken away, so that it lives on what stenosis "
            "leaves unexplained.",
            "would_change": "A normal valve on echocardiography, or a murmur that gets louder during Valsalva.",
            "by_consensus": True,
            "outside": "Heyde syndrome",
        },
        "rounds": batches,
        "totals": {
            "calls": sum(item["questions"] for item in batches),
            "batches": len(batches),
            **sums,
            "parse_failures": 0,
            "length_stops": 0,
        },
        "degraded": [{"kind": "condensed", "detail": "stance: the reports were left out of the record of two roles"}],
        "notes": [{"kind": "edits", "detail": "round 1: 2 edits left out (nothing changed, or a second insertion)"}],
        "comments": [
            {
                "round": 2,
                "by": "supervisor",
                "about": "",
                "text": "Please weigh the anemia too.",
                "at": "2026-03-01T10:16:00.000+00:00",
            }
        ],
        "disclaimer": DISCLAIMER,
    }
