"""Small networks for tests: folders of participants, and their hosts living together in this
process."""

import asyncio

from bruit.peers.founding.founding import found
from bruit.peers.site.running import run_together, write_report
from bruit.peers.site.site import participant, read_site

MEAN = """\
graph = "ring:3"
steps = 6
seed = 3

[task]
kind = "mean"
dim = 2

[algorithm]
name = "gossip-sgd"

[privacy]
sigma = 1.5
"""


def found_small(folder, text=MEAN, peers=3, timeout=20.0, pace=0.05, lines=""):
    """The site files of a small network; `lines` are added to each of them."""
    folder.mkdir(exist_ok=True)
    (folder / "agreed.toml").write_text(text)
    sites = found(
        str(folder / "agreed.toml"), peers, None, folder / "network", timeout=timeout, pace=pace
    )
    for site in sites:
        site.write_text(site.read_text() + lines)
    return sites


def live_together(sites, rehearse=None, change=lambda one: None):
    """Run all participants to their end in one process; the participants and their reports."""
    chosen = [participant(read_site(site), rehearse) for site in sites]
    for one in chosen:
        change(one)
    try:
        asyncio.run(run_together(chosen, [None] * len(chosen)))
    finally:
        for one in chosen:
            one.host.journal.close()
    return chosen, [write_report(one) for one in chosen]
