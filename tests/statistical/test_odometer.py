"""Rules that choose by what they see, against the promise of an odometer (gossip:ODO-1).

Each test estimates delta(epsilon) = E(1 - exp(epsilon - L))_+ of the true privacy loss L over COPIES
seeded copies. The terms lie in [0, 1], so by Hoeffding the estimate is above the truth by more than
MARGIN with probability 1e-9 at most (2e-9 on both sides): that is the false alarm. Power: what is broken is broken by
more than three margins.
"""

import math

import numpy as np

from bruit.privacy.exact import MeetingLosses
from bruit.privacy.toolbox.gaussian import delta_of

COPIES = 200_000
MARGIN = math.sqrt(math.log(1e9) / (2 * COPIES))


def measured(loss, epsilon):
    return float(np.mean(np.maximum(0.0, 1 - np.exp(epsilon - loss))))


def spender(seed, caps, steps=12):
    """Releases of one number that differs by 1, energies chosen after what was seen: a lucky observer
    goes on with all that is left, an unlucky one with little, but the last time with all.
    (losses, spent)  # (copies,) each."""
    rng = np.random.default_rng(seed)
    loss, spent = np.zeros(COPIES), np.zeros(COPIES)
    for step in range(steps):
        left = caps - spent
        lucky = (loss > 0.3 * step) | (step == steps - 1)
        energy = np.where(lucky, left, 0.1 * left)
        loss += rng.normal(size=COPIES) * np.sqrt(energy) + energy / 2
        spent += energy
    return loss, spent


def test_no_rule_that_reads_what_was_told_passes_the_cap():
    loss, spent = spender(1, 1.0)
    assert np.allclose(spent, 1.0)
    for epsilon in (0.0, 0.5, 1.0, 2.0):  # all of the cap was used, so that it is an equality
        assert abs(measured(loss, epsilon) - delta_of(epsilon, 1.0)) <= MARGIN


def test_what_was_spent_is_no_promise():
    """Who stops when the loss is large, and then prints the epsilon of what was spent, prints too
    little: the cap is what holds."""
    rng = np.random.default_rng(2)
    first = 0.25
    loss = rng.normal(size=COPIES) * math.sqrt(first) + first / 2
    stopped = loss > 0.8
    more = rng.normal(size=COPIES) + 0.5
    whole = np.where(stopped, loss, loss + more)
    epsilon = 0.5
    claimed = delta_of(epsilon, math.sqrt(first))
    among = measured(loss[stopped], epsilon)
    assert among > claimed + 3 * MARGIN
    assert measured(whole, epsilon) <= delta_of(epsilon, math.sqrt(1 + first)) + MARGIN


def views(hidden):
    """Four peers, values 0, that of peer 3 is 1 in the other world; noise 1, tau 0.5. Peer 0 watches: it
    meets 1, and then 1 meets 3 and 0 meets 1 again, or 2 meets 3 and 0 meets 2. Which of them follows
    from what 0 heard, or, `hidden`, from the noisy value of 3.  (losses, largest claimed)"""
    rng, tau = np.random.default_rng(3), 0.5
    y, xi = rng.normal(size=(COPIES, 4)), tau * rng.normal(size=(COPIES, 4))
    y[:, 3] += 1.0
    first = y[:, 1] + xi[:, 0]
    by_one = y[:, 3] > 0.5 if hidden else first > 0
    state = np.where(by_one, y[:, 1] / 2 + (y[:, 0] + xi[:, 1]) / 2, y[:, 2])
    told = state - np.where(by_one, (y[:, 0] + xi[:, 1]) / 2, 0.0)  # what 0 said is known to it
    second = (told + y[:, 3] + xi[:, 2]) / 2 + xi[:, 3]
    # given the first word: means and variances of the second, in both worlds
    gain = np.where(by_one, 0.25 / (1 + tau**2), 0.0)
    mean = gain * first
    variance = (
        np.where(by_one, 1 / 16 - 0.25**2 / (1 + tau**2), 1 / 4) + 1 / 4 + tau**2 / 4 + tau**2
    )
    loss = (-((second - mean - 0.5) ** 2) + (second - mean) ** 2) / (2 * variance)
    if hidden:  # the choice itself is seen, and so is its law
        ahead = 0.5 * math.erfc(0.5 / math.sqrt(2))  # that the noise alone passes one half
        loss = loss + np.where(by_one, math.log((1 - ahead) / ahead), math.log(ahead / (1 - ahead)))
    claims = []
    for path in (((0, 1), (1, 3), (0, 1)), ((0, 1), (2, 3), (0, 2))):
        losses = MeetingLosses(4, tau)
        for pair in path:
            losses.meet([pair])
        claims.append(losses.loss[3, 0])
    return loss, max(claims)


def test_meetings_may_follow_from_what_the_observer_heard():
    loss, claimed = views(hidden=False)
    for epsilon in (0.0, 0.2, 0.5, 1.0):
        assert measured(loss, epsilon) <= delta_of(epsilon, math.sqrt(claimed)) + MARGIN


def test_meetings_that_follow_from_what_it_did_not_hear_break_the_promise():
    loss, claimed = views(hidden=True)
    assert measured(loss, 0.5) > delta_of(0.5, math.sqrt(claimed)) + 3 * MARGIN
