"""Sections of an experiment file: what all have in common, and how one has keys of a thing that it
names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError, PydanticKnownError


class Section(BaseModel):
    """Keys of an experiment file; an unknown one, a wrong type or a number that is none is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def one_of(found: str, known: Iterable[str]) -> str:
    """A word of a list that is found by looking, refused as pydantic refuses other words."""
    if found not in (names := list(known)):
        raise PydanticKnownError("literal_error", {"expected": ", ".join(map(repr, names))})
    return found


def check_own_keys(section: BaseModel, own: Mapping[str, Any]) -> None:
    """Refuse further keys of a section but those of a thing that it names, given with their
    types."""
    for key, value in (section.model_extra or {}).items():
        if key not in own:
            wrong = InitErrorDetails(type="extra_forbidden", loc=(key,), input=value)
            raise ValidationError.from_exception_data(type(section).__name__, [wrong])
        strict = ConfigDict(strict=True, allow_inf_nan=False)
        try:
            TypeAdapter(own[key], config=strict).validate_python(value)
        except ValidationError as error:
            wrongs = [
                InitErrorDetails(
                    type=PydanticCustomError(one["type"], "{said}", {"said": one["msg"]}),
                    loc=(key,),
                    input=value,
                )
                for one in error.errors()
            ]
            raise ValidationError.from_exception_data(type(section).__name__, wrongs) from None
