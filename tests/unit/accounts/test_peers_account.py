"""Runs of real peers on the account of their records: reserved, settled, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from bruit.accounts.account import beside
from bruit.accounts.prices import Price, Unit
from bruit.errors import BrokenStateError, PrivacyError
from bruit.peers.founding.founding import plan_network, settle
from bruit.peers.site.running import run_participants, write_report
from bruit.peers.site.site import Participant, participant, read_site
from bruit.privacy.events import BoundedEvent, GaussianEvent, Mask
from bruit.privacy.ledger import Budget

TEXT = """graph = "ring:3"
seed = 1
steps = 4
[task]
kind = "mean"
[algorithm]
name = "gossip-sgd"
[privacy]
mechanism = "gaussian"
clip = 1.0
{amount}
"""
USER = Unit.of("user")


@pytest.fixture
def sites(tmp_path: Path) -> list[Path]:
    return founded(tmp_path, "epsilon = 2.0")


def founded(folder: Path, amount: str) -> list[Path]:
    file = folder / "x.toml"
    file.write_text(TEXT.format(amount=amount))
    return settle(plan_network(str(file), 3, None), folder / "net", timeout=5.0)


def built(sites: list[Path]) -> list[Participant]:
    return [participant(read_site(site)) for site in sites]


def records(site: Path) -> Path:
    return site.parent / "records.npz"


def test_a_run_is_reserved_and_then_settled_at_what_it_released(sites: list[Path]) -> None:
    people = built(sites)
    assert not beside(records(sites[0])).exists()  # whoever only looks pays nothing
    assert run_participants(people) == 0
    for one, site in zip(people, sites, strict=True):
        (charged,) = beside(records(site)).balance().charged
        assert charged.settled
        assert charged.price.unit == USER
        assert sum(count for _, count in charged.price.events) == 4
        ledger = one.host.ledger.counts_of(one.host.me)
        assert beside(records(site)).balance().epsilon(USER, 1e-6) == pytest.approx(2.0, abs=1e-4)
        made = {event: count for event, count in ledger if not isinstance(event, Mask)}
        assert dict(charged.price.events) == made
    text = beside(records(sites[0])).path.read_text()
    assert text.count('"what": "charge"') == 1  # what was reserved covered all of it
    assert text.index('"what": "charge"') < text.index('"what": "settled"')


def test_a_run_that_would_exceed_the_limit_is_refused_before_anything(sites: list[Path]) -> None:
    account = beside(records(sites[1]))
    account.set_limit(USER, Budget(1.9, 1e-6))
    lines = account.head().lines
    with pytest.raises(PrivacyError, match=r"above the limit 1\.9") as found:
        participant(read_site(sites[1]))
    assert found.value.exit_code == 2
    assert account.head().lines == lines
    account.set_limit(USER, None)
    account.set_limit(Unit.of("record"), Budget(1.5, 1e-6))
    with pytest.raises(PrivacyError, match=r"above the limit 1\.5 .* for one row"):
        participant(read_site(sites[1]))


def test_a_run_that_goes_on_is_not_charged_again_and_one_that_begins_anew_is(
    sites: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    one = participant(read_site(sites[0]))
    assert one.paying is not None
    one.paying.begin()
    one.host.journal.close()
    again = participant(read_site(sites[0]))
    assert again.paying is not None
    again.paying.begin()
    again.host.journal.close()
    account = beside(records(sites[0]))
    assert [one.settled for one in account.balance().charged] == [False]
    for left in (sites[0].parent / "state").iterdir():
        left.unlink()
    anew = participant(read_site(sites[0]))
    assert anew.paying is not None
    anew.paying.begin()
    anew.host.journal.close()
    assert len(account.balance().charged) == 2
    assert "draws new noise, and is charged again" in caplog.text


def test_an_account_that_does_not_know_a_journal_that_has_released_is_old(
    sites: list[Path],
) -> None:
    assert run_participants(built(sites)) == 0
    beside(records(sites[0])).path.unlink()
    with pytest.raises(BrokenStateError, match="knows of none: it is an old copy"):
        participant(read_site(sites[0]))


def test_a_journal_that_holds_less_than_was_settled_is_an_old_copy(sites: list[Path]) -> None:
    """All peers may have been put back to the same evening, and then no neighbor knows better."""
    assert run_participants(built(sites)) == 0
    again = participant(read_site(sites[0]))
    paying, held = again.paying, len(again.host.journal.spent())
    again.host.journal.close()
    assert paying is not None
    paying.check(held)
    with pytest.raises(BrokenStateError, match="the journal of this run is an old copy"):
        paying.check(3)


def test_a_release_beyond_the_reservation_is_charged_before_it_is_committed(
    sites: list[Path],
) -> None:
    one = participant(read_site(sites[0]))
    paying = one.paying
    assert paying is not None
    paying.budget = None
    paying.begin()
    paying.cover([(GaussianEvent(0.5, 1e-20), 1), (GaussianEvent(0.5, 1e-9), 2)])
    (charged,) = beside(records(sites[0])).balance().charged
    assert (GaussianEvent(0.5, 1e-9), 6) in charged.price.events  # rounding is charged, too
    held = beside(records(sites[0])).head()
    paying.cover([(GaussianEvent(0.5), 5)])
    assert beside(records(sites[0])).head() == held
    one.host.journal.close()


def test_more_releases_than_planned_are_charged_though_the_budget_holds_them(
    sites: list[Path],
) -> None:
    """The plan reserves less than the budget; what goes beyond may go to its end."""
    one = participant(read_site(sites[0]))
    paying = one.paying
    assert paying is not None
    paying.begin()
    ((event, count),) = paying.price.events
    paying.cover([(event, count)])
    account = beside(records(sites[0]))
    assert account.balance().charged[0].price.events == ((event, count),)
    paying.cover([(event, count + 1)])
    (charged,) = account.balance().charged
    assert charged.price.events == ((BoundedEvent(2.0, 1e-6), 1),)
    held = account.head()
    paying.cover([(event, count + 2)])
    assert account.head() == held
    one.host.journal.close()


def test_noise_that_was_agreed_on_by_its_size_is_charged_as_it_is(tmp_path: Path) -> None:
    people = built(founded(tmp_path, "sigma = 3.0"))
    price: Price = people[0].paying.price  # type: ignore[union-attr]
    assert [count for _, count in price.events] == [people[0].planned.most]
    for one in people:
        one.host.journal.close()


def test_a_rehearsal_costs_nothing(sites: list[Path]) -> None:
    one = participant(read_site(sites[0]), rehearse=3)
    assert one.paying is None
    one.host.journal.close()


def test_records_prepared_from_a_table_pay_from_its_account(tmp_path: Path) -> None:
    table, out = tmp_path / "mine.csv", tmp_path / "records.npz"
    table.write_text("x\n1\n")
    out.write_bytes(b"prepared")
    beside(table).share_with(out)
    beside(out).charge(Price.stated("a run", 1.0, 0.0, "user", "everybody"))
    assert len(beside(table).balance().charged) == 1
    beside(table).share_with(out)
    other = tmp_path / "other.csv"
    other.write_text("x\n2\n")
    with pytest.raises(PrivacyError, match="pay from another account"):
        beside(other).share_with(out)


def test_who_gives_up_before_it_releases_anything_has_paid_nothing(
    sites: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    """The last line said that nothing was spent, and the account kept all that had been reserved, for
    good if the run never came about. When it does, it is reserved again, under the limit of then."""
    text = sites[0].read_text()
    sites[0].write_text(text + "start_timeout = 0.3\n")
    account = beside(records(sites[0]))
    assert run_participants([participant(read_site(sites[0]))]) == 1
    assert "nothing was spent" in caplog.text
    (charged,) = account.balance().charged
    assert (charged.settled, charged.price.events, charged.price.epsilon) == (True, (), 0.0)
    account.set_limit(USER, Budget(1.9, 1e-6))
    with pytest.raises(PrivacyError, match=r"above the limit 1\.9"):
        participant(read_site(sites[0]))
    account.set_limit(USER, None)
    sites[0].write_text(text)
    caplog.clear()
    assert run_participants(built(sites)) == 0
    assert "begun before" not in caplog.text
    (charged,) = account.balance().charged
    assert charged.settled
    assert account.balance().epsilon(USER, 1e-6) == pytest.approx(2.0, abs=1e-4)


def test_who_stops_after_a_release_keeps_what_is_reserved(sites: list[Path]) -> None:
    (one,) = built(sites[:1])
    price = one.paying.price  # type: ignore[union-attr]
    one.paying.begin()  # type: ignore[union-attr]
    one.host.journal.close()
    one.host.journal._lines = 1
    one.host.gave_up = "gave up, for a test"
    write_report(one)
    (charged,) = beside(records(sites[0])).balance().charged
    assert (charged.settled, charged.price.events) == (False, price.events)


def test_what_an_earlier_start_reserved_is_not_given_back(sites: list[Path]) -> None:
    """It was killed after releases, say, and its journal of before the first one was put back: a
    start that stops at once was refunded what had been released."""
    (killed,) = built(sites[:1])
    killed.paying.begin()  # type: ignore[union-attr]
    killed.host.journal.close()
    (one,) = built(sites[:1])
    one.paying.begin()  # type: ignore[union-attr]
    assert not one.host.journal.lines
    one.host.journal.close()
    one.host.gave_up = "gave up, for a test"
    write_report(one)
    (charged,) = beside(records(sites[0])).balance().charged
    assert (charged.settled, charged.price.events) == (False, one.paying.price.events)  # type: ignore[union-attr]
