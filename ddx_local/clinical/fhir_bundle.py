"""A FHIR R4 bundle as resources with their references: one patient, whose they all are. It knows no clinical meaning.

What is no R4, holds no patient or two, or belongs to somebody else is refused; what cannot be read is remarked.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from ddx_local.clinical.fhir_models import ADMINISTRATIVE, KINDS, Patient, Reference, Resource
from ddx_local.clinical.fhir_version import other_release
from ddx_local.clinical.taken import Remark, shown
from ddx_local.errors import InputError

MOST_RESOURCES = 20_000

HINT = "Export it as a FHIR R4 (4.0.1) Bundle in JSON: one patient with what was known before the diagnosis."

_ERRORS = ("entered-in-error", "cancelled", "nullified")


@dataclass(frozen=True, slots=True)
class Held:
    """A resource of a bundle: its place (from 1), its kind, and the names that references may call it by."""

    place: int
    kind: str
    resource: Resource
    names: tuple[str, ...]

    def where(self, name: str) -> str:
        """What an error calls it: never its id, which may be a patient's number."""
        return f"{name}, entry {self.place} ({self.kind})"


@dataclass(frozen=True, slots=True)
class Bundle:
    """One patient's resources.

    Args:
        patient: Whose they are.
        held: All other resources that can be read, in the bundle's order.
        known: Name -> resource, of everything in the bundle; None for what is there and cannot be read.
        patient_names: The names of the patient.
        withheld: Words and codes of the diagnoses that do not become text, in small letters.
    """

    patient: Patient
    held: tuple[Held, ...]
    known: Mapping[str, Held | None]
    patient_names: frozenset[str]
    withheld: frozenset[str] = frozenset()

    def find(self, reference: Reference | None, owner: Resource) -> Held | None:
        """What a reference of `owner` means; None where it leads nowhere."""
        name = reference.reference if reference else None
        if not name:
            return None
        if name.startswith("#"):
            return _contained(owner, name[1:])
        return self.known.get(_last_two(name)) or self.known.get(name)


def bundle(data: Mapping[str, Any], where: str, remarks: list[Remark]) -> Bundle:
    """Read a bundle.

    Raises:
        InputError: No bundle, not R4, no patient or two, or a resource of another patient.
    """
    entries = list(_entries(data, where, remarks))
    for place, raw, _ in [(0, data, ""), *entries]:
        release = other_release(raw)
        if release:
            at = f", entry {place}" if place else ""
            raise InputError(f"{where}{at}: is FHIR {release[0]}, not R4 (its sign: {shown(release[1])})", HINT)
    patients = [(place, raw) for place, raw, _ in entries if raw.get("resourceType") == "Patient"]
    distinct = {str(raw.get("id")) if raw.get("id") else f"entry {place}": (place, raw) for place, raw in patients}
    if not distinct:
        raise InputError(f"{where}: holds no Patient", "Add the Patient resource: age and sex are part of every case.")
    if len(distinct) > 1:
        raise InputError(f"{where}: holds {len(distinct)} patients; a case is one", "Give one bundle for each patient.")
    place, raw = next(iter(distinct.values()))
    patient = _model(raw, f"{where}, entry {place} (Patient)")
    known: dict[str, Held | None] = {}
    patient_names: set[str] = set()
    held = []
    for place, raw, url in entries:
        kind = str(raw.get("resourceType", ""))
        names = tuple(
            name for name in (f"{kind}/{raw.get('id')}" if raw.get("id") else "", url, _last_two(url)) if name
        )
        found = None
        if kind == "Patient":
            patient_names.update(names)
        else:
            found = _held(place, kind, raw, names, remarks)
        known.update(dict.fromkeys(names, found))
        if found:
            held.append(found)
    whole = Bundle(patient, tuple(held), known, frozenset(patient_names))
    return replace(whole, held=tuple(item for item in held if _is_of(item, whole, where, remarks)))


def _entries(
    data: Mapping[str, Any], where: str, remarks: list[Remark]
) -> Iterator[tuple[int, Mapping[str, Any], str]]:
    """(place, resource, full URL) of each entry that holds a resource."""
    kind = data.get("resourceType")
    if kind != "Bundle":
        raise InputError(f"{where}: is a FHIR {shown(str(kind))}, not a Bundle", HINT)
    entries = data.get("entry", [])
    if not isinstance(entries, list):
        raise InputError(f"{where}: its `entry` is no list", HINT)
    if len(entries) > MOST_RESOURCES:
        raise InputError(f"{where}: holds more than {MOST_RESOURCES:,} resources", "Export the current episode alone.")
    links = data.get("link", [])
    if isinstance(links, list) and any(isinstance(link, dict) and link.get("relation") == "next" for link in links):
        remarks.append(
            Remark("warning", "Bundle.link", "the bundle is one page of several; what stands on the others is missing")
        )
    for place, entry in enumerate(entries, 1):
        resource = entry.get("resource") if isinstance(entry, dict) else None
        if not isinstance(resource, dict) or not isinstance(resource.get("resourceType"), str):
            remarks.append(Remark("not understood", "Bundle.entry", "it holds no resource"))
            continue
        url = entry.get("fullUrl")
        yield place, resource, url if isinstance(url, str) else ""


def _held(place: int, kind: str, raw: Mapping[str, Any], names: tuple[str, ...], remarks: list[Remark]) -> Held | None:
    """A resource that can be read and counts, or a remark."""
    if kind not in KINDS:
        if kind in ADMINISTRATIVE:
            remarks.append(
                Remark("left out", shown(kind), "it says who, where or for how much, not what the patient has")
            )
        else:
            remarks.append(Remark("not understood", shown(kind), "this kind of resource is not read"))
        return None
    if raw.get("modifierExtension") or raw.get("implicitRules"):
        remarks.append(Remark("not understood", kind, "a modifier that is not known here may change what it means"))
        return None
    codings = (
        (raw.get("verificationStatus") or {}).get("coding") if isinstance(raw.get("verificationStatus"), dict) else None
    )
    verified = (
        [coding.get("code") for coding in codings if isinstance(coding, dict)] if isinstance(codings, list) else []
    )
    if raw.get("status") in _ERRORS or "entered-in-error" in verified:
        remarks.append(Remark("left out", kind, "its status is entered in error, or cancelled"))
        return None
    try:
        return Held(place, kind, KINDS[kind].model_validate(raw), names)
    except ValidationError as error:
        field = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"] if isinstance(part, str))
        remarks.append(
            Remark("not understood", kind, f"`{shown(field) or 'it'}` does not have the form that R4 gives it")
        )
        return None


def _model(raw: Mapping[str, Any], where: str) -> Patient:
    try:
        return Patient.model_validate(raw)
    except ValidationError as error:
        field = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"] if isinstance(part, str))
        raise InputError(f"{where}: `{shown(field)}` does not have the form that R4 gives it", HINT) from None


def _is_of(item: Held, whole: Bundle, where: str, remarks: list[Remark]) -> bool:
    """Whether a resource is about the patient; refuse it where nobody can tell about whom it is."""
    for field, reference in (("subject", item.resource.subject), ("patient", item.resource.patient)):
        name = reference.reference if reference else None
        if reference and not name:
            _check_unlinked(reference, field, item, whole, where, remarks)
        if not name or {name, _last_two(name)} & whole.patient_names:
            continue
        if whole.find(reference, item.resource) is None and not {name, _last_two(name)} & whole.known.keys():
            raise InputError(
                f"{item.where(where)}: its {field} is not in the bundle",
                "It may be about another patient: export it again with the Patient that it refers to.",
            )
        remarks.append(Remark("left out", item.kind, "it is not about the patient"))
        return False
    return True


def _check_unlinked(
    reference: Reference, field: str, item: Held, whole: Bundle, where: str, remarks: list[Remark]
) -> None:
    """A subject without a reference: one of the patient's own numbers, or only a name, which nobody can compare."""
    number = (reference.model_extra or {}).get("identifier")
    own = (whole.patient.model_extra or {}).get("identifier")
    if not isinstance(number, dict) or not number.get("value"):
        why = f"its {field} is no reference; it is taken to be about the patient"
        remarks.append(Remark("guessed", item.kind, why))
    elif not any(_same_number(number, other) for other in (own if isinstance(own, list) else [])):
        raise InputError(
            f"{item.where(where)}: its {field} is an identifier that the Patient does not have",
            "It may be about another patient: export it again with a reference to the Patient.",
        )


def _same_number(one: Mapping[str, Any], other: Any) -> bool:
    if not isinstance(other, dict) or one.get("value") != other.get("value"):
        return False
    return not (one.get("system") and other.get("system")) or one["system"] == other["system"]


def _contained(owner: Resource, name: str) -> Held | None:
    raw = next((item for item in owner.contained if item.get("id") == name), None)
    kind = str(raw.get("resourceType", "")) if raw else ""
    if raw is None or kind not in KINDS:
        return None
    try:
        return Held(0, kind, KINDS[kind].model_validate(raw), ())
    except ValidationError:
        return None


def _last_two(name: str) -> str:
    """`Patient/1` of `https://server/fhir/Patient/1/_history/2`; a URN as it is."""
    if name.startswith("urn:"):
        return name
    parts = name.partition("/_history/")[0].rstrip("/").split("/")
    return "/".join(parts[-2:])
