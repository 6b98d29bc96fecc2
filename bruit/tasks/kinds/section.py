"""The section [task] of an experiment file: the keys of all kinds of tasks, checked."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)
from pydantic.functional_validators import ModelWrapValidatorHandler

from bruit.sections import Section, check_own_keys, one_of
from bruit.tasks.data.choice import Choice
from bruit.tasks.data.public import Agreed
from bruit.tasks.kinds.kind import kinds


class TaskSection(Section):
    """What the peers hold and want; the kinds are listed below. A kind with keys that no other has
    (`TaskKind.own_keys`) reads them here too."""

    model_config = ConfigDict(extra="allow")
    kind: str
    data: str | None = None
    split: str = "iid"
    standardize: Literal["public", "agreed", "none"] = "public"
    rows: Literal["unit", "none"] = "unit"
    test: float = Field(0.2, ge=0, lt=1)
    components: int | None = Field(None, ge=1)
    label: str | None = None
    owner: str | None = None
    public: list[str] = []
    classes: list[str] = []
    vocabulary: dict[str, list[str]] = {}
    scales: dict[str, list[float]] = {}
    l2: float = Field(0.0, ge=0)
    derivative_clip: float | None = Field(None, gt=0)
    columns: list[str] = []
    drop: list[str] = []
    fill: float | str | dict[str, float | str] | None = None
    holes: Literal["refuse", "drop"] = "refuse"
    columns_file: str | None = None
    dim: int = Field(1, ge=1)
    kernel: str = "gini"
    loss: str = "auc"
    bins: int | None = Field(None, ge=2)
    low: float = 0.0
    high: float = 1.0
    model: Literal["logistic", "ridge", "softmax"] = "logistic"
    ridge: float = Field(1.0, ge=0)
    own_test: float | None = Field(None, ge=0, lt=1)
    local: list[str] = []
    predictors: int | None = Field(None, ge=1)

    def agreed(self) -> Agreed:
        """What the file says about the data before anybody looks at it."""
        return Agreed(self.classes, self.vocabulary, self.scales, self.public)

    def choice(self) -> Choice:
        """Which columns the file wants to be used, and what becomes of holes."""
        return Choice(self.columns, self.drop, self.fill, self.holes)

    @field_validator("fill", mode="before")
    @classmethod
    def _one_fill(cls, found: object) -> object:
        """One sentence instead of one for each type it could have been."""
        parts = list(found.values()) if isinstance(found, dict) else [found]
        if any(
            isinstance(part, bool) or not isinstance(part, int | float | str | None)
            for part in parts
        ):
            raise ValueError(
                'fill is a number, "public", or a table of constants: { age = 50, color = '
                '"unknown" }'
            )
        return found

    @field_validator("kind")
    @classmethod
    def _known(cls, found: str) -> str:
        return one_of(found, kinds())

    @model_validator(mode="wrap")
    @classmethod
    def _keys_of_its_kind(cls, content: Any, check: ModelWrapValidatorHandler[Self]) -> Self:
        section = check(content)
        check_own_keys(section, kinds()[section.kind].own_keys)
        return section
