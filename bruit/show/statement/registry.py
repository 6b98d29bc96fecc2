"""An entry for the deployment registry of OpenDP and NIST, checked against its schema.

The fields are those of the registry's schema of July 2026. It is written as YAML whose texts are
quoted, which every reader of YAML accepts.
"""

from __future__ import annotations

import json
import math
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bruit.errors import ConfigError
from bruit.show.statement.paper_facts import PaperFacts

OPEN = "TO BE FILLED IN by the curator"


class _RegistryPart(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RegistryBasic(_RegistryPart):
    name: str
    data_curators: list[str] = Field(min_length=1)
    intended_use: str
    data_product_type: Literal[
        "Summary statistics",
        "Machine learning model",
        "Dataset",
        "Synthetic data",
        "Interactive API",
        "SQL queries",
    ]
    data_product_region: str
    description: str
    publication_date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    data_product_sector: (
        Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"] | None
    ) = None


class RegistryVariant(_RegistryPart):
    variant_name: Literal["Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"]
    data_domain: str
    unprotected_quantities: str


class RegistryParameters(_RegistryPart):
    epsilon: float | None = None
    delta: float | str | None = None
    rho: float | None = None


class RegistryLoss(_RegistryPart):
    privacy_unit: str
    privacy_unit_details: str
    privacy_parameters: RegistryParameters
    privacy_parameters_details: str


class RegistryDeployment(_RegistryPart):
    model_name: Literal["Local", "Central", "Shuffle", "Federated", "Varies"]
    model_name_details: str
    actors: str
    release_type: Literal["One release", "Many releases"]
    release_type_details: str
    data_source_type: Literal["Static", "Dynamic"]
    access_type: Literal["Interactive", "Non-interactive"]


class RegistryAccounting(_RegistryPart):
    post_processing: str
    composition: str


class RegistryImplementation(_RegistryPart):
    preprocessing_and_hyperparameter_tuning: str
    mechanisms: str
    justification: str


class RegistryAdministrative(_RegistryPart):
    sources: str | None = None
    notes: str
    registry_authors: list[str] = Field(min_length=1)


class RegistryBody(_RegistryPart):
    basic: RegistryBasic
    dp_variant: RegistryVariant
    privacy_loss: RegistryLoss
    deployment_model: RegistryDeployment
    accounting: RegistryAccounting
    implementation: RegistryImplementation
    administrative: RegistryAdministrative


class RegistryEntry(_RegistryPart):
    url_slug: str
    status: Literal["Draft", "Pending", "Changes Required", "Approved"]
    tier: Literal[1, 2, 3]
    deployment: RegistryBody


def registry_entry(facts: PaperFacts, given: dict[str, str], notes: str) -> dict[str, Any]:
    """The entry as plain data; what only people know is asked for in it unless it was given."""
    model = facts.task not in ("mean", "histogram", "statistic")
    finite = math.isfinite(facts.epsilon)
    word = "A SIMULATION, not a deployment: " if facts.simulated else ""
    body = {
        "basic": {
            "name": given.get("name") or f"run {facts.run[:16]}",
            "data_curators": [given.get("curator") or OPEN],
            "intended_use": given.get("use") or OPEN,
            "data_product_type": "Machine learning model" if model else "Summary statistics",
            "data_product_region": given.get("region") or OPEN,
            "description": f"{word}{facts.task} learned by {facts.peers or 'several'} peers with"
            f" {facts.algorithm}; records stay with the peers",
            "publication_date": facts.date,
        },
        "dp_variant": {
            "variant_name": "Approximate DP" if facts.delta else "Pure DP",
            "data_domain": f"tables of the peers that differ as said by the unit: {facts.unit}",
            "unprotected_quantities": "that a peer takes part, the number of its records, the public"
            " test part, graph, schedule and number of steps",
        },
        "privacy_loss": {
            "privacy_unit": "User-level: all records of one peer"
            if facts.level == "user"
            else "Record-level",
            "privacy_unit_details": facts.unit,
            "privacy_parameters": {
                **({"epsilon": facts.epsilon} if finite else {}),
                "delta": facts.delta,
            },
            "privacy_parameters_details": _parameters(facts),
        },
        **_practice(facts, given, notes),
    }
    entry = {
        "url_slug": f"bruit-{facts.run[:16]}",
        "status": "Draft",
        "tier": 3,
        "deployment": body,
    }
    check_entry(entry)
    return entry


def _practice(facts: PaperFacts, given: dict[str, str], notes: str) -> dict[str, Any]:
    """How it was made, and by whom."""
    return {
        "deployment_model": {
            "model_name": "Federated",
            "model_name_details": "decentralized: records stay with the peers, who make the noise as"
            " `mechanisms` says; nobody else holds data",
            "actors": f"the peers, and whoever is given the result; the epsilon is against"
            f" {facts.against}",
            "release_type": "One release",
            "release_type_details": "further runs on the same records add up on their account",
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "accounting": {
            "post_processing": "everything after a noisy release, the model included",
            "composition": f"{facts.releases} releases, composed by their profiles ({facts.status})",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": given.get("tuning")
            or f"{OPEN}: how constants were chosen, and on which data",
            "mechanisms": f"{facts.mechanism}; bruit; run {facts.run}, configuration {facts.config},"
            f" ledger {facts.ledger}",
            "justification": given.get("justification") or OPEN,
        },
        "administrative": {
            "notes": notes,
            "registry_authors": [given.get("author") or given.get("curator") or OPEN],
        },
    }


def _parameters(facts: PaperFacts) -> str:
    mu, exact = facts.mu()
    gdp = (
        f"noise of exactly {mu:.6g}-GDP (rounding is in epsilon)"
        if exact
        else f"as much as {mu:.6g}-GDP at this delta"
    )
    shown = f"{facts.epsilon:.6g}"
    text = f"epsilon = {shown} at delta = {facts.delta:g}, {gdp}, {facts.status}"
    return f"a simulation: what real peers would have paid; {text}" if facts.simulated else text


def check_entry(entry: dict[str, Any]) -> None:
    """Refuse an entry that does not fit the schema, with the field."""
    try:
        RegistryEntry.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(
            f"the registry entry does not fit its schema: {'.'.join(map(str, first['loc']))}:"
            f" {first['msg']}"
        ) from None


def open_fields(content: Any, place: str = "") -> list[str]:
    """Where an entry still asks for what only people know, by dotted names.

    >>> open_fields({"basic": {"use": OPEN, "name": "AUC"}, "authors": [OPEN]})
    ['basic.use', 'authors']
    """
    if isinstance(content, str):
        return [place] if content.startswith(OPEN) else []
    if isinstance(content, dict):
        inside = [(f"{place}.{key}".lstrip("."), value) for key, value in content.items()]
    else:
        inside = [(place, value) for value in content] if isinstance(content, list) else []
    return [field for name, value in inside for field in open_fields(value, name)]


def to_yaml(content: Any, indent: int = 0) -> str:
    """Plain data as YAML in blocks; texts are quoted as in JSON."""
    pad = "  " * indent
    if isinstance(content, dict):
        return "".join(
            f"{pad}{key}:\n{to_yaml(value, indent + 1)}"
            if isinstance(value, dict | list)
            else f"{pad}{key}: {_scalar(value)}\n"
            for key, value in content.items()
        )
    return "".join(f"{pad}- {_scalar(value)}\n" for value in content)


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
