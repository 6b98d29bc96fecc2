"""The graph, colored by what you leak to each peer or learn about it: choose yourself."""

from __future__ import annotations

import numpy as np

from bruit.dashboard.layout import SPRING, places
from bruit.dashboard.markup import Markup, figure, join, number, section, tag
from bruit.dashboard.pairs import MOST, SHADES, chosen_peers, shade_classes
from bruit.dashboard.story import Story

SIDE, EDGE = 640, 16
MOST_LINKS = 20_000
LABEL = "The graph of who talked to whom. Arrow keys go from peer to peer, Enter chooses one."


def drawing(story: Story, you: int) -> Markup:
    """Links and peers, colored for one choice; the page's script colors them again for others."""
    where = EDGE + places(story.graph) * (SIDE - 2 * EDGE)
    links = story.graph.edges() if story.graph.edge_count <= MOST_LINKS else np.zeros((0, 2), np.int64)
    ends = np.round(where).astype(int)
    path = "".join(f"M{ends[a, 0]} {ends[a, 1]}L{ends[b, 0]} {ends[b, 1]}" for a, b in links.tolist())
    radius = max(2.5, min(10.0, 110 / np.sqrt(max(story.run.n, 1))))
    colors = ["none"] * story.run.n if story.losses is None else shade_classes(story, story.losses[you])
    dots = join(tag("circle", cx=x, cy=y, r=f"{radius:.1f}", class_=color, data_peer=peer)
                for peer, ((x, y), color) in enumerate(zip(ends.tolist(), colors, strict=True)))  # fmt: skip
    return tag("svg", tag("path", d=path, class_="links"), tag("g", dots), viewBox=f"0 0 {SIDE} {SIDE}", id="map",
               tabindex="0", role="application", class_="map", aria_label=LABEL)  # fmt: skip


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
    return tag("p", "loss ", number(low), " ", tag("span", steps, class_="steps", aria_hidden="true"), " ",
               number(high), ", even in the logarithm; hollow: nothing", class_="key")  # fmt: skip


def graph_map(story: Story) -> Markup:
    """The section."""
    title = "You, and what others could have learned"
    you = story.worst[0] if story.worst is not None else 0
    chosen = chosen_peers(story)
    choices = [tag("option", story.label(peer), value=peer, selected=peer == you) for peer in chosen]
    directions = join(
        tag("label", tag("input", type="radio", name="direction", value=value, checked=value == "leaks"), " ", text)
        for value, text in (("leaks", "what I leak to each peer"), ("learns", "what I could learn about each peer"))
    )
    controls = tag("div", tag("label", "I am ", tag("select", *choices, id="you")), tag("fieldset",
                   tag("legend", "Color by"), directions), class_="controls needs-script")  # fmt: skip
    if story.losses is None:
        controls = tag("p", f"Pairs are not told apart: {story.reason}.")
    words = [f"Every dot is a peer, every line a link; the ring marks {story.label(you)} until you choose otherwise."]
    if story.run.n > SPRING:
        words.append("Peers stand where the slowest eigenvectors of the graph put them.")
    if story.graph.edge_count > MOST_LINKS:
        words.append(f"Its {story.graph.edge_count} links are too many to draw.")
    if story.run.n > MOST:
        words.append(f"In a network of more than {MOST} peers one can be any of {len(chosen)} of them.")
    readout = tag("p", id="told", aria_live="polite", class_="told")
    return section("map-section", title, controls, readout,
                   figure(" ".join(words), drawing(story, you), color_key(story)))  # fmt: skip
