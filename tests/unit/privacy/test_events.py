"""The event records: names, JSON, translation to dp_accounting, refusals."""

import math

import dp_accounting
import pytest

from bruit.errors import PrivacyError
from bruit.privacy.events import (
    Composed,
    DiscreteGaussianEvent,
    Event,
    Exact,
    GaussianEvent,
    LaplaceEvent,
    Mask,
    SampledGaussianEvent,
    SelfComposed,
    event_from,
    from_json,
    record_event,
    to_json,
)

ALL = [
    Exact(),
    Mask(2.0),
    GaussianEvent(4.0),
    LaplaceEvent(0.5),
    DiscreteGaussianEvent(3.0),
    SampledGaussianEvent(noise_multiplier=4.0, rate=0.25),
    SampledGaussianEvent(noise_multiplier=4.0, rate=0.25, adjacency="add-remove"),
    SampledGaussianEvent(noise_multiplier=4.0, rate=0.25, rounding=1e-20),
    Composed((GaussianEvent(1.0), Exact())),
    SelfComposed(Composed((LaplaceEvent(2.0), Mask(1.0))), 7),
    Composed(()),
]


@pytest.mark.parametrize("event", ALL)
def test_json_brings_back_the_same_event(event):
    assert from_json(to_json(event)) == event
    assert event_from(event.describe()) == event


def test_keys_tell_events_apart():
    assert len({event.key() for event in ALL}) == len(ALL)
    assert GaussianEvent(2.0).key() == GaussianEvent(2).key()
    assert len(set(ALL)) == len(ALL)


def test_translation_to_dp_accounting():
    assert Exact().to_dp_accounting() == dp_accounting.NonPrivateDpEvent()
    assert Mask(1.0).to_dp_accounting() == dp_accounting.NoOpDpEvent()
    assert GaussianEvent(4.0).to_dp_accounting() == dp_accounting.GaussianDpEvent(4.0)
    assert LaplaceEvent(0.5).to_dp_accounting() == dp_accounting.LaplaceDpEvent(0.5)
    assert DiscreteGaussianEvent(2.0).to_dp_accounting() == dp_accounting.ZCDpEvent(0.125)
    nested = SelfComposed(Composed((GaussianEvent(4.0), Exact())), 3).to_dp_accounting()
    inner = dp_accounting.ComposedDpEvent(
        [dp_accounting.GaussianDpEvent(4.0), dp_accounting.NonPrivateDpEvent()]
    )
    assert nested == dp_accounting.SelfComposedDpEvent(inner, 3)


def test_a_sample_in_the_words_of_dp_accounting():
    event = SampledGaussianEvent(noise_multiplier=2.0, rate=0.05)
    inner = dp_accounting.GaussianDpEvent(2.0)
    assert event.to_dp_accounting() == dp_accounting.PoissonSampledDpEvent(0.05, inner)


def test_a_sample_of_everybody_is_a_plain_release():
    """silo:SILO-2: z = sigma / C, and a replaced record moves a sum by 2 C."""
    assert record_event(4.0, 1.0) == GaussianEvent(noise_multiplier=2.0)
    whole = record_event(4.0, 1, "add-remove", 1e-20)
    assert whole == GaussianEvent(noise_multiplier=4.0, rounding=1e-20)
    some = record_event(4.0, 0.5, "add-remove", 1e-20)
    assert isinstance(some, SampledGaussianEvent)
    assert (some.noise_multiplier, some.rate) == (4.0, 0.5)
    assert (some.adjacency, some.rounding) == ("add-remove", 1e-20)


def test_parts_multiply_counts():
    event = SelfComposed(Composed((GaussianEvent(4.0), SelfComposed(LaplaceEvent(1.0), 5))), 3)
    assert list(event.parts()) == [(GaussianEvent(4.0), 3), (LaplaceEvent(1.0), 15)]


def test_no_noise_is_infinite_concentrated_privacy():
    assert DiscreteGaussianEvent(0.0).rho == math.inf


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: GaussianEvent(-1.0),
            "noise of a gaussian event must be a number >= 0, found -1.0",
        ),
        (lambda: LaplaceEvent(math.nan), "laplace event must be a number >= 0, found nan"),
        (lambda: Mask("1"), "mask event must be a number >= 0, found '1'"),
        (
            lambda: Composed((GaussianEvent(1.0), "coin")),
            "unknown event 'coin' in a composed event",
        ),
        (lambda: SelfComposed("coin", 2), "unknown event 'coin' in a self_composed event"),
        (lambda: SelfComposed(Exact(), -1), "whole number of times >= 0, found -1"),
        (lambda: SelfComposed(Exact(), 1.5), "whole number of times >= 0, found 1.5"),
        (lambda: record_event(2.0, 0.0), "a chance between 0 and 1, found 0.0"),
        (lambda: record_event(2.0, 1.5), "a chance between 0 and 1, found 1.5"),
        (lambda: record_event(2.0, "0.5"), "a chance between 0 and 1, found '0.5'"),
        (lambda: record_event(2.0, math.nan), "a chance between 0 and 1, found nan"),
        (lambda: record_event(-2.0, 0.5), "sampled_gaussian event must be a number >= 0"),
        (lambda: record_event(2.0, 0.5, "user"), "'replace' or 'add-remove', found 'user'"),
        (lambda: record_event(2.0, 1.0, "user"), "'replace' or 'add-remove', found 'user'"),
        (
            lambda: from_json('{"kind": "sampled_gaussian", "noise_multiplier": 2}'),
            "cannot be read .*rate",
        ),
        (lambda: from_json('{"kind": "coin"}'), "unknown event {'kind': 'coin'}"),
        (
            lambda: from_json('{"kind": "composed", "events": [{"kind": "coin"}]}'),
            "unknown event {'kind': 'coin'}",
        ),
        (lambda: from_json('{"kind": "gaussian"}'), "cannot be read .*noise_multiplier"),
        (lambda: from_json("coin"), "is not JSON"),
        (lambda: from_json("[1]"), r"unknown event \[1\]"),
    ],
)
def test_what_is_not_known_is_refused_by_name(make, message):
    with pytest.raises(PrivacyError, match=message):
        make()


def test_events_are_abstract():
    with pytest.raises(TypeError):
        Event()
