"""The graph, colored by what you leak to each peer or learn about it: choose yourself."""

from __future__ import annotations

import numpy as np

from bruit.arrays import Array, Ints
from bruit.graphs.coordinates import Stages
from bruit.how_many import how_many
from bruit.show.drawing.markup import Markup, data_block, found_figure, join, number, section, tag
from bruit.show.report.pairs import MOST, SHADES, chosen_peers, packed, shade_classes
from bruit.show.report.story import Story

SIDE, EDGE = 640, 16
OWN_LINKS = 20_000  # up to which the links of the chosen peer stand out
MANY = 300  # links, above which they fade
STAGE_LEFT, STAGE_TOP, STAGE_BOTTOM = 44, 38, 44
LABELLED = 40  # peers up to which every row of the stages has its number
LABEL = "The graph of who talked to whom. Arrow keys go from peer to peer, Enter chooses one."


def drawing(story: Story, you: int) -> Markup:
    """Links and peers, colored for one choice; the page's script colors them again for others."""
    picture = story.picture
    room = np.array([SIDE - 2 * EDGE, (SIDE - 2 * EDGE) / picture.aspect])
    ends = np.round(EDGE + picture.places * room, 1)
    radius = max(2.0, min(11.0 if story.run.n > 25 else 15.0, 0.3 * picture.spacing() * room[0]))
    colors = (
        ["none"] * story.run.n if story.losses is None else shade_classes(story, story.losses[you])
    )
    dots = join(
        tag("circle", cx=f"{x:g}", cy=f"{y:g}", r=f"{radius:.1f}", class_=color, data_peer=peer)
        for peer, ((x, y), color) in enumerate(zip(ends.tolist(), colors, strict=True))
    )
    fade = "links many" if len(picture.links) > MANY else "links"
    stubs = np.round(EDGE + picture.stubs * room, 1)
    return tag(
        "svg",
        tag("path", d=_lines(ends[picture.links]), class_=fade),
        tag("path", d=_lines(stubs), class_="links stubs"),
        tag("path", d="", id="own", class_="own"),
        tag("g", dots),
        viewBox=f"0 0 {SIDE} {room[1] + 2 * EDGE:.0f}",
        id="map",
        tabindex="0",
        role="application",
        class_="map",
        aria_label=LABEL,
    )


def _lines(ends: Array) -> str:
    """Straight lines as one path  # ends: (lines, 2, 2)."""
    return "".join(f"M{x:g} {y:g}L{u:g} {v:g}" for (x, y), (u, v) in ends.tolist())


def own_links(story: Story) -> dict[str, str]:
    """The links of the chosen peer for the script: those that are lines, and those to mark at their
    ends instead, since they go around or would run through others. Nothing of very many."""
    picture, n = story.picture, story.run.n
    if picture.total > OWN_LINKS:
        return {}
    links = story.graph.edges()
    drawn = np.isin(links[:, 0] * n + links[:, 1], picture.links[:, 0] * n + picture.links[:, 1])
    return {"links": packed(links[drawn], 2), "around": packed(links[~drawn], 2)}


def color_key(story: Story) -> Markup:
    """From the least to the largest loss, in the colors of map and matrix."""
    if story.losses is None:
        return Markup("")
    found = story.losses[~np.isnan(story.losses)]
    positive = found[found > 0]
    if not positive.size:
        return tag("p", "Nobody could have learned anything about anybody.", class_="key")
    steps = join(tag("span", class_=f"step c{k}") for k in range(SHADES))
    low, high = float(positive.min()), float(positive.max())
    return tag(
        "p",
        "loss ",
        number(low),
        " ",
        tag("span", steps, class_="steps", aria_hidden="true"),
        " ",
        number(high),
        ", even in the logarithm; hollow: nothing",
        class_="key",
    )


def _title(story: Story) -> str:
    """Whether anybody could have learned anything, and how unequal it is."""
    if story.losses is None:
        return "Who talked to whom"
    found = story.losses[~np.isnan(story.losses)]
    blind = int((found == 0).sum())
    if blind:
        return f"{100 * blind / len(found):.0f}% of all pairs learned nothing about each other"
    if story.worst is None or not len(found):
        return "Who talked to whom"
    if found.min() == found.max():
        return "Everybody could have learned as much about anybody"
    of, seen_by = story.worst
    return f"{story.label(seen_by).capitalize()} could have learned most, about {story.label(of)}"


def graph_map(story: Story) -> Markup:
    """The section."""
    title = "You, and what others could have learned"
    you = story.worst[0] if story.worst is not None else 0
    chosen = chosen_peers(story)
    choices = [
        tag("option", story.label(peer), value=peer, selected=peer == you) for peer in chosen
    ]
    directions = join(
        tag(
            "label",
            tag("input", type="radio", name="direction", value=value, checked=value == "leaks"),
            " ",
            text,
        )
        for value, text in (
            ("leaks", "what I leak to each peer"),
            ("learns", "what I could learn about each peer"),
        )
    )
    controls = tag(
        "div",
        tag("label", "I am ", tag("select", *choices, id="you")),
        tag("fieldset", tag("legend", "Color by"), directions),
        class_="controls needs-script",
    )
    if story.losses is None:
        controls = tag("p", f"Pairs are not told apart: {story.reason}.")
    words = [
        f"Every dot is a peer; the ring marks {story.label(you)} until you choose otherwise.",
        story.picture.sentence(),
    ]
    if story.losses is not None and own_links(story):
        lines, rims = len(story.picture.links) > 0, len(story.picture.links) < story.picture.total
        how = " and ".join(["lines"] * lines + ["rims"] * rims)
        words.append(f"Colored {how} show whom it talks to.")
    if story.run.n > MOST:
        words.append(
            f"In a network of more than {MOST} peers one can be any of {len(chosen)} of them."
        )
    readout = tag("p", id="told", aria_live="polite", class_="told")
    shown = tag("div", drawing(story, you), color_key(story))
    return section(
        "map-section",
        title,
        controls,
        readout,
        found_figure(_title(story), shown, " ".join(words), story.source),
        half=story.losses is not None,
    )


def stages(story: Story) -> Markup:
    """The rounds of a changing graph as columns, and how what one peer says spreads; nothing for a
    fixed graph."""
    found = story.picture.stages
    if found is None:
        return Markup("")
    you = story.worst[0] if story.worst is not None else 0
    n, rounds = story.run.n, len(found.links)
    row = max(2.5, min(22.0, 620 / n))
    column = (SIDE - STAGE_LEFT - EDGE) / rounds
    x = (STAGE_LEFT + column * np.arange(rounds + 1)).astype(np.float64)
    y = (STAGE_TOP + row * found.rows).astype(np.float64)
    reached = found.spread(you)
    told = _spread(story, reached, you)
    picture = tag(
        "svg",
        tag("g", *_axes(n, row, x, y), aria_hidden="true"),
        *_lines_and_spots(found, row, x, y, reached),
        role="img",
        viewBox=f"0 0 {SIDE} {STAGE_TOP + (n - 1) * row + STAGE_BOTTOM:.0f}",
        class_="stages",
        aria_label=f"{how_many(rounds, 'round')} as columns, {how_many(n, 'peer')} as rows. {told}",
    )
    data = {
        "rows": found.rows.tolist(),
        "links": [links.ravel().tolist() for links in found.links],
        "x": x.round(1).tolist(),
        "top": STAGE_TOP,
        "row": row,
        "n": n,
    }
    words = (
        "Every column is a moment, every row a peer; a line joins two peers who talk in that round."
        " In color: who may know something of what the chosen peer said."
    )
    more = story.run.steps - rounds
    words += f" The first {rounds} of {story.run.steps} rounds are drawn." if more > 0 else ""
    title = tag("p", told, class_="finding", id="spread-told", aria_live="polite")
    shown = tag(
        "figure", title, picture, tag("figcaption", words), tag("p", story.source, class_="source")
    )
    return section("stages", "Who talks when", shown, data_block("stage-data", data), tall=True)


def _axes(n: int, row: float, x: Array, y: Array) -> list[Markup]:
    """The names of peers, where there is room, and of rounds."""
    parts = []
    if n <= LABELLED:
        parts += [
            tag("text", peer, x=STAGE_LEFT - 12, y=f"{y[peer] + 4:.1f}", text_anchor="end")
            for peer in range(n)
        ]
    foot = STAGE_TOP + (n - 1) * row + 20
    names = ["start", *(str(t + 1) for t in range(len(x) - 1))]
    parts += [
        tag("text", name, x=f"{at:.1f}", y=f"{foot:.1f}", text_anchor="middle")
        for name, at in zip(names, x, strict=True)
    ]
    parts.append(
        tag(
            "text",
            "round",
            x=f"{(x[0] + x[-1]) / 2:.1f}",
            y=f"{foot + 18:.1f}",
            text_anchor="middle",
            class_="title",
        )
    )
    parts.append(tag("text", "peers", x=2, y=18, class_="title"))
    return parts


def _lines_and_spots(
    found: Stages, row: float, x: Array, y: Array, reached: list[Ints]
) -> tuple[Markup, ...]:
    """Who talks in each round; then, above it, where the words of the chosen peer have come."""
    every = [_between(x[t], x[t + 1], y, links) for t, links in enumerate(found.links)]
    lines = tag("path", d="".join(every), class_="links many" if len(y) > 16 else "links")
    spots = tag(
        "path",
        d="".join(f"M{at:.1f} {up:.1f}h0" for at in x for up in y),
        class_=f"spots {_size(row)}",
    )
    cone = [_between(x[t], x[t + 1], y, links, reached[t]) for t, links in enumerate(found.links)]
    own = tag("path", d="".join(cone), id="spread", class_="own")
    spread = "".join(
        f"M{x[t]:.1f} {y[peer]:.1f}h0" for t, peers in enumerate(reached) for peer in peers
    )
    own_spots = tag("path", d=spread, id="spread-spots", class_=f"spots own-spots {_size(row)}")
    return lines, spots, own, own_spots


def _size(row: float) -> str:
    return "large" if row >= 12 else "middle" if row >= 6 else "small"


def _between(left: float, right: float, y: Array, links: Ints, known: Ints | None = None) -> str:
    """The lines of one round: everybody goes on, and both ends of a link hear each other."""
    peers = np.arange(len(y)) if known is None else known
    both = np.concatenate([links, links[:, ::-1], np.stack([peers, peers], axis=1)])
    if known is not None:
        both = both[np.isin(both[:, 0], known)]
    return "".join(f"M{left:.1f} {y[a]:.1f}L{right:.1f} {y[b]:.1f}" for a, b in both.tolist())


def _spread(story: Story, reached: list[Ints], you: int) -> str:
    """How many may know something of one peer after the rounds that are drawn."""
    rounds, many = len(reached) - 1, len(reached[-1])
    who = "everybody" if many == story.run.n else f"{many} of {story.run.n} peers"
    return f"After {how_many(rounds, 'round')} {who} may know something of what {story.label(you)} said"
