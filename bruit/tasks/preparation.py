"""Preparation: from a table to peers' records, with every use of data declared.

Order: (1) hold out the public part, (2) fill holes with its means if asked to, (3) center and scale columns by the
statistics of that part only, or by agreed constants, (4) keep its principal components if asked to, (5) append an
intercept, (6) divide each row by its norm, (7) deal the other records to peers. Where peers are owners, the public part
is whole owners, who have no epsilon: a part of everybody's rows would be outside of an epsilon that speaks of all of
them. What everybody knows is in the manifest, fact by fact, with what is read off private rows said so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.counted import Counted
from bruit.errors import ConfigError
from bruit.tasks.choice import Reading
from bruit.tasks.columns import nearest
from bruit.tasks.public import Agreed, Fact, counts, listed, said
from bruit.tasks.recipe import Column, Recipe
from bruit.tasks.records import Records, Sample, finish_rows, pack
from bruit.tasks.split import Split, divide, is_by_owner, parse
from bruit.tasks.table import Table
from bruit.tasks.task import Manifest
from bruit.tasks.use import Use

# Standardized numbers are clipped here, so that a column almost constant in the public part cannot blow up elsewhere.
STANDARD_LIMIT = 10.0
STANDARDS = ("public", "agreed", "none")


@dataclass(frozen=True)
class Preparation:
    """What was asked for; the words are those of `LinearTask.load`."""

    peers: int | None
    split: str
    seed: int
    standardize: str
    rows: str
    test: float
    components: int | None = None
    agreed: Agreed = field(default_factory=Agreed)
    own_test: float | None = None  # share of each peer's own records that it is judged on; None: on public ones


@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared(Counted):
    """Rows that are ready, and who holds which; `judged` are records of peers that they do not learn from."""

    rows: Array  # (r, p)
    targets: Array  # (r,)
    split: Split
    judged: Split | None
    held_out: Sample | None
    classes: tuple[str, ...]
    row_bound: float
    label_unit: float
    manifest: Manifest
    used: Manifest
    recipe: Recipe

    def records(self) -> Records:
        """What every peer learns from."""
        return self._pack(self.split)

    def own_test(self) -> Records | None:
        """What every peer is judged on, if that is apart from what it learns from."""
        return None if self.judged is None else self._pack(self.judged)

    def _pack(self, split: Split) -> Records:
        return pack(self.rows, self.targets, split, held_out=self.held_out, classes=self.classes,
                    row_bound=self.row_bound, label_unit=self.label_unit, manifest=self.manifest,
                    used=self.used, recipe=self.recipe)


def prepare(table: Table, targets: Array, classes: tuple[str, ...], note: str, choices: Preparation) -> Prepared:
    """The rows of every peer, and the public part."""
    _check(choices)
    twice = next((name for name in table.feature_names if table.feature_names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"the column {twice!r} would be used twice; name it once in columns")
    public, facts = _public(table, targets if classes else np.zeros(len(targets)), choices)
    table = _fill(table, public)
    features, unit = table.features, 1.0
    constant = _constant(table, public) if choices.standardize == "public" else ()
    if choices.standardize == "public":
        features = _standardize(features, public)
        if not classes:
            targets, unit = _standardize(targets[:, None], public)[:, 0], _scale(targets[public])
    if choices.standardize == "agreed":
        features = _by_agreement(table, choices.agreed)
        if not classes and table.label in choices.agreed.scales:
            center, unit = choices.agreed.scales[table.label]
            targets = np.clip((targets - center) / unit, -STANDARD_LIMIT, STANDARD_LIMIT)
    directions = None if choices.components is None else _directions(features, public, choices.components)
    if directions is not None:
        features = np.asarray(features @ directions.T)
    ready, bound = finish_rows(features, choices.rows, intercept=True)
    mine = np.flatnonzero(~public)
    owners = None if table.owners is None else table.owners[mine]
    dealt = parse(choices.split, targets[mine], owners, choices.peers, choices.seed)
    held_out = Sample(ready[public], targets[public]) if public.any() else None
    facts += _known(table, choices, classes, note, dealt)
    split = Split(mine[dealt.rows], dealt.starts)
    unseen = _unseen(targets[public], classes) if choices.own_test is None else ()
    use = _use(table, public, split, choices, (*constant, *unseen))
    judged = None
    if choices.own_test:
        split, judged = divide(split, choices.own_test, choices.seed)
        use = replace(use, notes=(*use.notes, f"{len(judged.rows)} of the records that peers hold are for judging "
                                              f"their own models, the other {len(split.rows)} for learning them"))
    return Prepared(rows=ready, targets=targets, split=split, judged=judged, held_out=held_out, classes=classes,
                    row_bound=bound, label_unit=unit, used=use.describe(),
                    manifest=_manifest(table, choices, public, use.left_over, facts),
                    recipe=_recipe(table, public, choices, classes, directions))


def _fill(table: Table, public: Bools) -> Table:
    """Holes that wait for the public rows get their mean, column by column."""
    holes = np.isnan(table.features)
    if not holes.any():
        return table
    if not public.any():
        raise ConfigError("fill = \"public\" puts the mean of the public rows into holes, but no row is public; hold "
                          "some out (test), or fill with constants")
    filled, fills, features = dict(table.reading.filled), dict(table.reading.fills), table.features.copy()
    for place in np.flatnonzero(holes.any(axis=0)).tolist():
        name, shown = table.feature_names[place], table.features[public & ~holes[:, place], place]
        if not len(shown):
            raise ConfigError(f"no public row of {table.name} has a value in {name!r}, so there is no public mean to "
                              f"fill its holes with; give a constant: fill = {{ {name} = ... }}")
        mean = float(shown.mean())
        features[holes[:, place], place] = mean
        filled[name] = (int(holes[:, place].sum()), f"{mean:g}, the mean of the public rows")
        fills[name] = repr(mean)
    reading: Reading = replace(table.reading, filled=filled, fills=fills)
    others = tuple(fact for fact in table.facts if fact not in table.reading.facts())
    return replace(table, features=features, reading=reading, facts=(*reading.facts(), *others))


def _constant(table: Table, public: Bools) -> tuple[str, ...]:
    """A word on columns that are the same in all public rows: they are centered and not scaled."""
    shown = table.features[public]
    flat = np.flatnonzero((shown == shown[:1]).all(axis=0))
    same = [table.feature_names[place] for place in flat.tolist()]
    return (f"the same in all public rows, so centered and not scaled: {listed(same)}",) if same else ()


def _unseen(shown: Array, classes: tuple[str, ...]) -> tuple[str, ...]:
    """A word on classes that the public rows lack: scores say nothing of them."""
    if not classes or not len(shown):
        return ()
    lacking = len(classes) - len(np.unique(shown))
    said = f"{lacking} of {len(classes)} classes are in no public row, so scores say nothing of them"
    return (said,) if lacking else ()


def _use(table: Table, public: Bools, split: Split, choices: Preparation, notes: tuple[str, ...]) -> Use:
    held = np.unique(split.rows)
    left = ~public
    left[held] = False
    absent: tuple[str, ...] = ()
    if is_by_owner(choices.split) and table.owners is not None:
        absent = tuple(table.owner_names[owner] for owner in np.unique(table.owners[left]).tolist())
    return Use(reading=table.reading, peers=split.peers, held=len(held), public=int(public.sum()),
               left_over=int(left.sum()), sizes=(int(split.sizes.min()), int(split.sizes.max())),
               owners_left_out=absent, notes=notes)


def _check(choices: Preparation) -> None:
    if choices.standardize not in STANDARDS:
        raise ConfigError(f"standardize={choices.standardize!r} is not known; use 'public' (statistics of the held-out "
                          "part, which belongs to no peer), 'agreed' (constants you give in scales) or 'none'")
    if (choices.standardize == "agreed") != bool(choices.agreed.scales):
        raise ConfigError("agreed scales and standardize='agreed' belong together; give both, or none")
    if choices.components is not None and choices.standardize != "public":
        raise ConfigError("components are those of the standardized public part; use standardize='public' with them")
    if choices.own_test is not None and not 0 <= choices.own_test < 1:
        raise ConfigError(f"own_test is {choices.own_test}; it is the share of a peer's own records that it is judged "
                          "on, 0 <= own_test < 1")
    if not 0 <= choices.test < 1:
        raise ConfigError(f"test is {choices.test}; it is the share of records held out, 0 <= test < 1")
    if choices.standardize == "public" and choices.test == 0 and not choices.agreed.public:
        raise ConfigError("standardize='public' takes its statistics from the held-out part, but test is 0; "
                          "hold out some records, or use standardize='agreed' or 'none'")


def _public(table: Table, strata: Array, choices: Preparation) -> tuple[Bools, tuple[Fact, ...]]:
    """The rows that are public, and a word on whose they are."""
    if choices.agreed.public:
        return _of_owners(table, _named(table, choices.agreed.public), choices, "named")
    if is_by_owner(choices.split) and table.owners is not None:
        return _of_owners(table, _drawn_owners(table, choices), choices, "drawn")
    public = _held_out(strata, choices.test, choices.seed)
    used = "are used for evaluation" if choices.own_test is None else "judge nobody"
    told = f"the {int(public.sum())} held-out records: they belong to no peer and {used}"
    if table.owners is not None and public.any():
        told += "; their owners may own rows of peers as well, so no epsilon speaks of an owner"
    return public, (Fact(told, "public rows"),) if public.any() else ()


def _named(table: Table, names: Sequence[str]) -> Ints:
    if table.owners is None:
        raise ConfigError(f"public names the owner {names[0]!r}, but this data has no owner column; name it in owner")
    strange = next((name for name in names if name not in table.owner_names), None)
    if strange is not None:
        raise ConfigError(f"public names the owner {strange!r}, who owns nothing here"
                          f"{nearest(strange, table.owner_names)}")
    return np.array([table.owner_names.index(name) for name in dict.fromkeys(names)], dtype=np.int64)


def _drawn_owners(table: Table, choices: Preparation) -> Ints:
    """A share of the owners, at least one, by an explicit seed: whose rows they are does not depend on any row."""
    count = len(table.owner_names)
    wanted = 0 if choices.test == 0 else min(max(1, round(choices.test * count)), count - 1)
    return np.sort(np.random.default_rng([choices.seed, 2]).permutation(count)[:wanted])


def _of_owners(table: Table, chosen: Ints, choices: Preparation, how: str) -> tuple[Bools, tuple[Fact, ...]]:
    """All rows of these owners, who take no part."""
    public = np.isin(np.asarray(table.owners), chosen)
    left = len(table.owner_names) - len(chosen)
    if choices.split == "owner" and choices.peers is not None and choices.peers != left and len(chosen):
        raise ConfigError(f"{choices.peers} peers were asked for, but of the {left + len(chosen)} owners {len(chosen)} "
                          f"are public (their rows are all held out), which leaves {left}; ask for {left} peers, or "
                          + (f"split='owner:{choices.peers}' to leave out the last {left - choices.peers}"
                             if choices.peers < left
                             else "hold nobody out: test = 0 with standardize = \"agreed\" or \"none\""))
    if not len(chosen):
        return public, ()
    if public.sum() < 2:
        raise ConfigError("the public owners hold 1 record, and at least 2 are needed: name more owners, or raise test")
    names = listed([table.owner_names[owner] for owner in chosen.tolist()])
    return public, (Fact(f"all {int(public.sum())} records of the {how} owners {names}: they take no part, and no "
                         "epsilon is about them", "public rows"),)


def _held_out(strata: Array, share: float, seed: int) -> Bools:
    """A share of every stratum (class), by an explicit seed; at least two records in all unless share = 0."""
    generator = np.random.default_rng([seed, 2])
    public = np.zeros(len(strata), dtype=np.bool_)
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        public[generator.permutation(members)[: round(share * len(members))]] = True
    if share > 0 and public.sum() < 2:
        raise ConfigError(f"test={share:g} holds out {int(public.sum())} of {len(strata)} records; at least 2 are "
                          "needed: raise test, or use test=0 with standardize='none'")
    return public


def _recipe(table: Table, public: Bools, choices: Preparation, classes: tuple[str, ...], directions: Array | None
            ) -> Recipe:
    """What was done to the rows, for new ones: the constants that `_standardize` and `_by_agreement` apply."""
    width = table.features.shape[1]
    centers, scales, limits, label = np.zeros(width), np.ones(width), np.full(width, np.inf), (0.0, 1.0)
    if choices.standardize == "public":
        centers, scales = _statistics(table.features[public])
        limits[:] = STANDARD_LIMIT
        middles, units = _statistics(table.labels[public][:, None])
        label = float(middles[0]), float(units[0])
    for place, name in enumerate(table.feature_names):
        if name in choices.agreed.scales:
            centers[place], scales[place] = choices.agreed.scales[name]
            limits[place] = STANDARD_LIMIT
    if table.label in choices.agreed.scales:
        label = float(choices.agreed.scales[table.label][0]), float(choices.agreed.scales[table.label][1])
    center, unit = (0.0, 1.0) if classes else label
    return Recipe(columns=_columns(table), centers=centers, scales=scales, limits=limits, directions=directions,
                  rows=choices.rows, label=table.label, center=center, unit=unit, classes=classes)


def _columns(table: Table) -> tuple[Column, ...]:
    """The columns behind the features: those of a text follow each other, one a value."""
    found: dict[str, Column] = {}
    for name in table.feature_names:
        text = max((one for one in table.texts if name.startswith(f"{one}=")), key=len, default=None)
        if text is None:
            found[name] = Column(name, fill=table.reading.fills.get(name, ""))
        else:
            earlier = found[text].values if text in found else ()
            found[text] = Column(text, (*earlier, name.removeprefix(f"{text}=")), table.reading.fills.get(text, ""))
    return tuple(found.values())


def _statistics(shown: Array) -> tuple[Array, Array]:
    """Center and scale of every column."""
    return shown.mean(axis=0), np.array([_scale(column) for column in shown.T])


def _standardize(columns: Array, public: Bools) -> Array:
    center, scale = _statistics(columns[public])
    standard: Array = np.clip((columns - center) / scale, -STANDARD_LIMIT, STANDARD_LIMIT)
    return standard


def _directions(columns: Array, public: Bools, components: int) -> Array:
    """The public part's first principal directions, one a row: fewer numbers for the noise to cover."""
    most = min(columns.shape[1], int(public.sum()))
    if not 1 <= components <= most:
        raise ConfigError(f"components={components}: this data has between 1 and {most} public principal components")
    directions = np.linalg.svd(columns[public], full_matrices=False)[2][:components]
    signs = np.sign(directions[np.arange(components), np.abs(directions).argmax(axis=1)])
    return np.asarray(directions * signs[:, None])


def _scale(column: Array) -> float:
    spread = float(column.std())
    return spread if spread > 1e-12 * max(1.0, float(np.abs(column).max())) else 1.0


def _by_agreement(table: Table, agreed: Agreed) -> Array:
    """Columns of numbers by their agreed constants; columns of 0 and 1 that stand for a text stay as they are."""
    coded = tuple(f"{column}=" for column in table.texts)
    features = table.features.copy()
    strange = next((name for name in agreed.scales if name not in (*table.feature_names, table.label)), None)
    if strange is not None:
        raise ConfigError(f"the agreed scale is of a column {strange!r}, which {table.name} does not have"
                          f"{nearest(strange, table.feature_names)}")
    for place, name in enumerate(table.feature_names):
        if name not in agreed.scales and not name.startswith(coded):
            raise ConfigError(f"the column {name!r} has no agreed scale; add {name} = [center, scale] to scales")
        if name in agreed.scales:
            center, scale = agreed.scales[name]
            features[:, place] = np.clip((features[:, place] - center) / scale, -STANDARD_LIMIT, STANDARD_LIMIT)
    return features


def _known(table: Table, choices: Preparation, classes: tuple[str, ...], note: str, dealt: Split) -> tuple[Fact, ...]:
    """What everybody knows besides the public part."""
    facts = list(table.facts)
    limit = f"standardized numbers are clipped to [-{STANDARD_LIMIT:g}, {STANDARD_LIMIT:g}]"
    if choices.standardize == "public":
        facts.append(Fact(f"column means and scales: those of the public records; {limit}", "public rows"))
    if choices.standardize == "agreed":
        facts.append(Fact(f"column centers and scales, as given; {limit}", "agreed"))
    if choices.components is not None:
        facts.append(Fact(f"the first {choices.components} principal directions of the public records, labels unseen",
                          "public rows"))
    facts.append(Fact("the names of columns", "agreed"))
    facts.append(Fact(f"{table.classes_fact(classes).text} ({note})", table.classes_fact(classes).source) if classes
                 else Fact(note, "agreed"))
    owned = is_by_owner(choices.split)
    facts.append(Fact(f"the number of peers, {dealt.peers}" + (", and which owner each of them is" if owned else ""),
                      "private rows" if owned else "agreed"))
    facts.append(counts(dealt.sizes))
    if table.owners is not None and not owned:
        facts.append(Fact("rows of one owner are dealt to several peers: an epsilon is about the rows of a peer, not "
                          "about an owner", "agreed"))
    if len(np.unique(dealt.rows)) < len(dealt.rows):
        facts.append(Fact("a record may be held by several peers: an epsilon is about one peer's copy of it", "agreed"))
    return tuple(facts)


def _manifest(table: Table, choices: Preparation, public: Bools, unused: int, facts: tuple[Fact, ...]) -> Manifest:
    rows = {"unit": "each record divided by its norm, intercept included: norm at most 1", "none": "as they are"}
    data = {"name": table.name, "notes": list(table.notes)}
    return {"data": data | ({"file_sha256": table.file_sha256} if table.file_sha256 else {}),
            "split": choices.split, "seed": choices.seed, "test": float(public.mean()),
            "standardize": choices.standardize, "components": choices.components,
            "rows": rows[choices.rows], "intercept": True, "unused_records": unused, "public": said(facts)}
