"""Model: what one peer learned, ready to be used: numbers, how rows are prepared for them, and what
was promised.

    scores = W x + b of a prepared row x       logistic: the second class where the score is positive
    softmax: the class of the largest score    ridge: center + unit * score       pairwise: the score, or a distance
    torch: what the network says, read as of softmax or ridge

On disk it is one JSON file without pickles. It holds what was released or is public
(`tasks.recipe`), so it may be given away, unless it says otherwise: a model learned without noise,
or one that holds raw data of its peer. No seed is in it: who has the seed and a guess of the
records could draw the noise again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.files import to_json, write_whole
from bruit.how_many import how_many
from bruit.mechanisms import Mechanism
from bruit.privacy.guarantee import level_facts, level_words
from bruit.runs.outside.raw_units import raw_units
from bruit.tasks.data.columns import NO_KEYS, Columns, nearest, spelled
from bruit.tasks.data.columns import numbers as numbers_of
from bruit.tasks.data.recipe import PreparedRows, Recipe, recipe_from
from bruit.tasks.networks.learned_network import LearnedNetwork, network_from
from bruit.tasks.task import Score

FORMAT, VERSION, READABLE = "bruit-model", 2, (1, 2)
FILE = "model.json"
LINEAR = ("logistic", "softmax", "ridge", "boosted")
SCORED = ("pairwise auc", "pairwise ranking")
METRIC = "pairwise metric"
NETWORK = "torch"
WITHOUT_ROWS = ("mean", "histogram", "statistic")
LOCAL = "everybody (local DP)"
NO_NOISE = "no noise: everything a peer sends can be read; nothing is protected"
RAW = "it holds raw data of this peer that was to stay at home: give it to nobody"
AT_HOME = (
    "fitted on this peer's own records after the run, without noise, and in no message: keep this "
    "file at home; what was learned together is the shared model, without that part"
)


class ModelFacts(NamedTuple):
    """What a run knows of its models besides their numbers: the task's kind, metric and recipe, and
    which peer's model is shown first, with its score; of a network, what its numbers are."""

    kind: str
    metric: str
    recipe: Recipe | None
    peer: int
    score: Score | None
    network: LearnedNetwork | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """What one peer holds at the end. `metric` and `score`: how good it is, where that was measured
    on public records.

    `privacy` says what is promised about the records behind it, `made` how it came about,
    `warnings` what a user of it must know; all are plain data. `local`: its parts that stay at home,
    by name (silo:SILO-6). `network`: what the numbers are, if they are weights of torch."""

    kind: str
    numbers: Array  # (d,)
    recipe: Recipe | None
    metric: str
    score: float | None = None
    peer: int = 0
    peers: int = 1
    privacy: Mapping[str, Any] = field(default_factory=dict)
    made: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    local: tuple[str, ...] = ()
    network: LearnedNetwork | None = None

    def __repr__(self) -> str:
        return f"Model({self.headline()})"

    def headline(self) -> str:
        """What it is, in one line."""
        scored = (
            ""
            if self.score is None
            else f", {self.metric} {self.score:.4f} on records that no peer holds"
        )
        inputs = (
            f" of {how_many(len(self.recipe.columns), 'column')}"
            if self.recipe is not None and self.recipe.columns
            else ""
        )
        return f"{self.kind}{inputs}, {how_many(len(self.numbers), 'number')}, peer {self.peer} of {self.peers}{scored}"

    @property
    def classes(self) -> tuple[str, ...]:
        return () if self.recipe is None else self.recipe.classes

    @property
    def coefficients(self) -> Array:
        """One row an output, one number an input of the prepared rows, the intercept left out
        # (outputs, p)."""
        return self._matrix()[:, : self._applied().width - int(self._applied().intercept)]

    @property
    def intercept(self) -> Array:
        """One number an output: what a prepared row's last number, the intercept, is multiplied
        with  # (outputs,)."""
        return np.asarray(self._matrix()[:, len(self._applied().inputs) :].sum(axis=1))

    def answer(self) -> dict[str, float]:
        """What a mean, a histogram or a statistic says, by name, in the units of the columns."""
        if self.kind not in WITHOUT_ROWS or self.recipe is None:
            raise ConfigError(f"a model of kind {self.kind} answers rows; use predict")
        numbers, names = self.numbers, self.classes or self.recipe.names
        if self.recipe.names:
            numbers = self.recipe.centers + self.recipe.scales * numbers
        if self.kind == "statistic":
            names = (self.recipe.label,)
        names = names or tuple(f"number {k}" for k in range(len(numbers)))
        return dict(zip(names, numbers.tolist(), strict=True))

    def prepared(self, rows: Any) -> PreparedRows:
        """New rows as the records were prepared; refuses what the model cannot be applied to."""
        return self._applied().prepare(rows)

    def scores(self, rows: Any) -> Array:
        """The scores of new rows  # (r, outputs)."""
        ready = self.prepared(rows).rows
        if self.network is not None:
            return self.network.scores(self.numbers, ready)
        return np.asarray(ready @ self._matrix().T)

    def module(self, factory: Any = None) -> Any:
        """Of a network: a new `torch.nn.Module` that holds what was learned. It takes prepared rows
        (`prepared`). `factory`: the module or what makes it, where the file names no built-in
        one."""
        return self._network().module(self.numbers, factory)

    def state_dict(self) -> dict[str, Any]:
        """Of a network: its parameters by name, as tensors."""
        return self._network().state_dict(self.numbers)

    def arrays(self) -> dict[str, Array]:
        """Of a network: its parameters by name, as arrays; needs no torch."""
        return self._network().arrays(self.numbers)

    def export(self, path: str | Path, factory: Any = None) -> Path:
        """Of a network: its weights for torch (.pt, .safetensors), or the whole of it (.onnx)."""
        from bruit.runs.outside.network_files import save_network

        return save_network(self, path, factory)

    def with_module(self, factory: Any) -> Model:
        """The same, with the module that the file could only name."""
        network = self._network()
        found = LearnedNetwork(network.about, network.module(self.numbers, factory))
        return replace(self, network=found)

    def _network(self) -> LearnedNetwork:
        if self.network is None:
            raise ConfigError(f"a model of kind {self.kind} is no network of torch")
        if not bool(np.isfinite(self.numbers).all()):
            raise ConfigError(
                "this model holds numbers that are not finite: the run went astray; use a smaller "
                "rate"
            )
        return self.network

    def predict(self, rows: Any) -> Any:
        """The class or the number of each new row (a pairwise model: its score; of the loss metric:
        `distances`).

        rows: a data frame, a mapping of columns, a list of mappings, or an array in the order of
        `recipe.names`.
        """
        scores = self.scores(rows)
        if self.classes and (self.kind in LINEAR or self.network is not None):
            return self.labels()[self._places(scores)]
        if self.recipe is None or self.kind not in ("ridge", NETWORK):
            return scores[:, 0]
        return self.recipe.center + self.recipe.unit * scores[:, 0]

    def predict_proba(self, rows: Any) -> Array:
        """The chance of each class, in the order of `classes`  # (r, classes)."""
        if self.kind not in ("logistic", "softmax") and not self._classifying():
            raise ConfigError(
                f"a model of kind {self.kind} says nothing about the chances of classes; use "
                f"predict"
            )
        return chances(self.scores(rows))

    def distances(self, rows: Any) -> Array:
        """Of a pairwise metric: the squared distance of every pair of rows; below 1 they are called
        alike  # (r, r)."""
        if self.kind != METRIC:
            raise ConfigError(f"a model of kind {self.kind} measures no distances; use predict")
        ready = self._applied().prepare(rows).rows
        apart = ready[:, None, :] - ready[None, :, :]
        matrix = self.numbers.reshape(ready.shape[1], -1)
        return np.asarray(np.einsum("ijp,pq,ijq->ij", apart, matrix, apart))

    def labels(self) -> Any:
        """The classes as their users write them: whole numbers, numbers, or texts."""
        try:
            found = np.array([float(name) for name in self.classes])
        except ValueError:
            return np.array(self.classes)
        return found.astype(np.int64) if bool((found == found.round()).all()) else found

    def measured(self, table: Columns) -> tuple[str, float] | None:
        """How good the model is on rows that come with their label; None if they do not, or it has
        no such measure."""
        known = (*LINEAR, NETWORK)
        if self.recipe is None or self.recipe.label not in table.names or self.kind not in known:
            return None
        scores, label = self.scores(table), self.recipe.label
        if self.kind == "ridge" or (self.kind == NETWORK and not self._classifying()):
            found = self.recipe.center + self.recipe.unit * scores[:, 0]
            return "rmse", float(np.sqrt(((found - _label_numbers(table, label)) ** 2).mean()))
        return "accuracy", float(
            (
                _label_places(table, label, self.classes, self.recipe.spellings)
                == self._places(scores)
            ).mean()
        )

    def to_sklearn(self) -> Any:
        """A fitted pipeline of scikit-learn, made of its own parts, that predicts the same from raw
        rows: logistic, softmax and ridge (`bruit.runs.outside.pipeline`). A boosted model is an
        estimator of bruit."""
        if self.kind not in LINEAR:
            raise ConfigError(
                f"scikit-learn has classifiers and regressors, and this model is of kind "
                f"{self.kind}"
            )
        recipe, matrix = self._applied(), self._matrix()
        if recipe.stumps is not None:
            from bruit.runs.outside.fitted import FittedClassifier

            return FittedClassifier(self)
        from bruit.runs.outside.pipeline import pipeline

        return pipeline(self, recipe, matrix)

    def _classifying(self) -> bool:
        return self.network is not None and self.network.classifies

    def _places(self, scores: Array) -> Ints:
        if self.kind in ("softmax", NETWORK):
            return np.asarray(scores.argmax(axis=1), np.int64)
        return np.asarray(
            scores[:, 0] >= 0 if self.kind == "boosted" else scores[:, 0] > 0, np.int64
        )

    def _applied(self) -> Recipe:
        if self.kind in WITHOUT_ROWS:
            raise ConfigError(
                f"a {self.kind} is no function of rows: its {len(self.numbers)} numbers are the"
                " answer; read them in `numbers` (`bruit predict MODEL` without a file prints them)"
            )
        if self.recipe is None:
            raise ConfigError(
                f"nobody wrote down how rows are prepared for this model of kind {self.kind}, so it"
                " is applied to no new ones; make its records with `load`, or with Records.of"
            )
        if not bool(np.isfinite(self.numbers).all()):
            raise ConfigError(
                "this model holds numbers that are not finite: the run went astray; use a smaller "
                "rate"
            )
        return self.recipe

    def _matrix(self) -> Array:
        width = self._applied().width
        if self.kind == METRIC:
            raise ConfigError("a pairwise metric compares two rows; use distances")
        if len(self.numbers) % width:
            raise ConfigError(
                f"the model has {len(self.numbers)} numbers and a prepared row {width}: they do "
                f"not fit"
            )
        return self.numbers.reshape(-1, width)

    def describe(self) -> dict[str, Any]:
        """The whole model as plain data; `model_from` reads it."""
        numbers: dict[str, Any] = {"numbers": self.numbers.tolist()}
        if self.recipe is not None and self.kind in (*LINEAR, *SCORED):
            matrix, inputs = self.numbers.reshape(-1, self.recipe.width), self.recipe.inputs
            numbers = {
                "inputs": list(inputs),
                "coefficients": matrix[:, : len(inputs)].tolist(),
                "intercept": matrix[:, len(inputs) :].ravel().tolist(),
            }
            if self.recipe.stumps is None:
                numbers["in_raw_units"] = raw_units(self.kind, self.recipe, matrix)
        return {
            "format": FORMAT,
            "version": VERSION,
            "kind": self.kind,
            "metric": self.metric,
            "score": self.score,
            "score_on": None if self.score is None else "public records that no peer holds",
            "peer": self.peer,
            "peers": self.peers,
            "warnings": list(self.warnings),
            "local": list(self.local),
            "privacy": dict(self.privacy),
            "made": dict(self.made),
            "preparation": None if self.recipe is None else self.recipe.describe(),
            **({} if self.network is None else {"network": dict(self.network.about)}),
            **numbers,
        }

    def save(self, path: str | Path, private: bool = False) -> Path:
        """Write the file, whole or not at all; a private one for its owner only."""
        target = Path(path)
        write_whole(target, lambda stream: stream.write(to_json(self.describe()).encode()), private)
        return target


def chances(scores: Array) -> Array:
    """The softmax of the scores; one score is that of the second of two classes  # (r, classes)."""
    both = (
        np.column_stack((np.zeros(len(scores)), scores[:, 0])) if scores.shape[1] == 1 else scores
    )
    grown = np.exp(both - both.max(axis=1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=1, keepdims=True))


def read_model(path: str | Path) -> Model:
    """The model in a file; what is broken, foreign or newer is refused with a reason."""
    file = Path(path)
    if not file.is_file():
        raise ConfigError(
            f"there is no model {file}; `bruit run` and `bruit peer run` write one, called {FILE}"
        )
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise ConfigError(f"the model {file} is broken: {error}") from None
    return model_from(content, str(file))


def model_from(content: Any, where: str) -> Model:
    """The model that `Model.describe` wrote."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ConfigError(f"{where} is not a model of bruit: it does not say format {FORMAT!r}")
    if content.get("version") not in READABLE:
        raise ConfigError(
            f"{where} has format version {content.get('version')}; this bruit reads versions "
            f"{' and '.join(map(str, READABLE))}"
        )
    try:
        recipe = None if content["preparation"] is None else recipe_from(content["preparation"])
        score = None if content["score"] is None else float(content["score"])
        numbers, kind = _numbers(content, recipe), str(content["kind"])
        found = Model(
            kind=kind,
            network=network_from(content["network"], len(numbers)) if kind == NETWORK else None,
            numbers=numbers,
            recipe=recipe,
            metric=str(content["metric"]),
            score=score,
            peer=int(content["peer"]),
            peers=int(content["peers"]),
            privacy=dict(content["privacy"]),
            made=dict(content["made"]),
            warnings=tuple(str(text) for text in content["warnings"]),
            local=tuple(str(name) for name in content.get("local", ())),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ConfigError(f"the model {where} is broken: {error!r}") from None
    outputs = len(found.classes) if found.kind == "softmax" else 1
    if (
        found.kind in (*LINEAR, *SCORED)
        and recipe is not None
        and len(found.numbers) != outputs * recipe.width
    ):
        raise ConfigError(
            f"the model {where} is broken: {len(found.numbers)} numbers for {outputs} outputs of "
            f"{recipe.width} inputs"
        )
    return found


def _numbers(content: dict[str, Any], recipe: Recipe | None) -> Array:
    """All numbers of a model in a row, output by output, the intercept last."""
    if recipe is None or "coefficients" not in content:
        return np.array([float(x) for x in content["numbers"]], np.float64)
    rows = [[float(x) for x in row] for row in content["coefficients"]]
    if recipe.intercept:
        rows = [[*row, float(b)] for row, b in zip(rows, content["intercept"], strict=True)]
    return np.array([x for row in rows for x in row], np.float64)


def statement(
    noise: Mechanism | None,
    epsilon: float | None,
    delta: float,
    raw: bool,
    against: str = LOCAL,
    local: tuple[str, ...] = (),
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What is promised about the records behind a model, against whom, and what its users must
    know; `raw`: it holds raw data of its peer, `local` names parts that stay at home."""
    warnings: tuple[str, ...] = (RAW,) if raw else ()
    if local:
        warnings = (f"its part {', '.join(local)} was {AT_HOME}", *warnings)
    if noise is None:
        return {"protected": False, "in_words": NO_NOISE}, (NO_NOISE, *warnings)
    promise = {
        "protected": not (raw or local) and epsilon is not None,
        **level_facts(noise.level, noise.adjacency),
        "mechanism": noise.describe(),
        "epsilon": epsilon,
        "delta": delta,
        "against": "everybody, all messages published (local DP)" if against == LOCAL else against,
    }
    known = (
        "epsilon was not computed"
        if epsilon is None
        else f"epsilon = {epsilon:.4g} at delta = {delta:g}"
    )
    protected = level_words(noise.level, noise.adjacency)
    of_what = "of the shared part: " if local else ""
    promise["in_words"] = f"{of_what}{known}, {protected}, against {against}"
    if epsilon is not None and math.isinf(epsilon):
        promise["protected"] = False
        warnings = ("epsilon is infinite: so little noise protects nobody", *warnings)
    return promise, warnings


def _label_numbers(table: Columns, label: str) -> Array:
    found = numbers_of(table, label, mends=NO_KEYS)
    if found is None:
        raise ConfigError(
            f"{table.file}, column {label!r} holds text, but the model predicts a number"
        )
    return found


def _label_places(
    table: Columns,
    label: str,
    classes: tuple[str, ...],
    spellings: Mapping[str, tuple[str, ...]],
) -> Ints:
    """The place of each row's label among the classes, by their names or agreed spellings."""
    cut, place = _threshold(classes), {spelled(name): k for k, name in enumerate(classes)}
    if cut is not None:
        return np.asarray(_label_numbers(table, label) > cut, np.int64)
    cells = table.of(label)
    place |= {text: place[spelled(name)] for name, texts in spellings.items() for text in texts}
    strange = next((row for row, cell in enumerate(cells) if spelled(cell) not in place), None)
    if strange is not None:
        raise ConfigError(
            f"{table.file} row {strange} (line {table.lines[strange]}): the label is"
            f" {cells[strange]!r}, which is none of the model's"
            f" classes{nearest(cells[strange], tuple(place))}; leave the column out to predict only"
        )
    return np.array([place[spelled(cell)] for cell in cells], np.int64)


def _threshold(classes: tuple[str, ...]) -> float | None:
    """Where a number is cut into the two classes <=x and >x; None for classes of another kind."""
    if len(classes) == 2 and classes[0].startswith("<=") and classes[1] == f">{classes[0][2:]}":
        return float(classes[0][2:])
    return None
