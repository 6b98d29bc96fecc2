"""`bruit plan --design`: graphs of about the same size, by what one observer learns on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bruit.commands.printing import Detail, Line, Printer
from bruit.errors import ConfigError

if TYPE_CHECKING:
    from bruit.planning.topologies.design import Design


def answer_design(printer: Printer, peers: int | None, name: str | None, steps: int | None) -> None:
    """Compare, and print."""
    from bruit.graphs.names import fixed_graph
    from bruit.planning.topologies.design import ROUNDS, compared

    if peers is None and name is None:
        raise ConfigError("say how many peers there are, --peers 50, or name a graph to compare")
    rounds = ROUNDS if steps is None else steps
    if rounds < 1:
        raise ConfigError(f"--steps {rounds}: nobody would say anything; ask for at least one")
    count = peers if peers is not None else fixed_graph(str(name)).n
    with printer.ticker("comparing graphs"):
        found = compared(count, rounds, () if name is None else (name,))
    printer.answer(DesignAnswer(found, rounds))


@dataclass(frozen=True)
class DesignAnswer:
    """The compared graphs, fewest exposed first."""

    found: Sequence[Design]
    rounds: int

    def plain(self) -> dict[str, Any]:
        return {
            "steps": self.rounds,
            "theorem": "gossip:MUF-2, gossip:MUF-X5",
            "designs": [one.plain() for one in self.found],
        }

    def lines(self) -> Iterator[Line]:
        from rich.table import Table

        table = Table(
            title=f"what one peer learns in {self.rounds} rounds of plain gossip (gossip:MUF-2)",
            title_justify="left",
        )
        for column in (
            "graph",
            "peers",
            "degree",
            "gap",
            "eigenvalues",
            "exposed",
            "summed loss",
            "at most",
            "worst stranger",
            "liars",
        ):
            table.add_column(column, no_wrap=column in ("graph", "exposed"))
        for one in self.found:
            learned = (f"{one.exposed} of {one.peers - 1}", f"{one.bound:.4g}", f"{one.worst:.3g}")
            total = ("" if one.exact else "<= ") + f"{one.total:.4g}"
            shape = (str(one.peers), str(one.degree), f"{one.gap:.3g}", str(one.eigenvalues))
            table.add_row(one.name, *shape, learned[0], total, *learned[1:], str(one.liars))
        yield Detail(table)
        best = self.found[0]
        yield (
            f"fewest exposed: {best.name}, {best.exposed} of {best.peers - 1}; losses in units of"
            " one local-DP release, exposed: its noisy value is known"
        )
        yield (
            "few different eigenvalues protect: one observer's losses sum to at most degree x"
            " (eigenvalues - 1), however long (gossip:MUF-X5); neighbors are always exposed"
        )
        yield (
            "liars: how many robust averaging and descent tolerate, whoever they are (gossip:LIE-2);"
            " those rules give up all losses of this table but local DP"
        )
        yield (
            "unequal weights have more eigenvalues, so the same links expose more; noise in the"
            " messages (renoised) or circles of trust protect on any graph"
        )
