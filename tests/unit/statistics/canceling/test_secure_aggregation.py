"""Secure aggregation: shares, exact sums with and without dropouts, and what clients refuse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bruit.errors import ConfigError, LocalProtocolError, PrivacyError, RemoteProtocolError
from bruit.graphs import complete, k_out
from papers.baselines.canceling.secure_aggregation import (
    Client,
    restore,
    share_out,
    unmasked_sum,
)

WIDTH = 5


@given(st.binary(min_size=16, max_size=16), st.integers(1, 6), st.randoms(use_true_random=False))
def test_any_threshold_of_shares_restores_the_secret(secret, threshold, random):
    shares = share_out(secret, range(6), threshold)
    chosen = dict(random.sample(sorted(shares.items()), threshold))
    assert restore(chosen, threshold, 16) == secret
    if threshold > 1:
        chosen.popitem()
        with pytest.raises(PrivacyError, match="too few"):
            restore(chosen, threshold, 16)


def whole_round(graph, values, threshold, silent=(), mute=()):
    """All steps; `silent` drop out after sharing, `mute` after their masked value."""
    clients = {
        u: Client(
            me=u, neighbors=tuple(graph.neighbors(u).tolist()), threshold=threshold, words=values[u]
        )
        for u in range(graph.n)
    }
    announced = {u: client.announce() for u, client in clients.items()}
    boxes = {u: {} for u in clients}
    for u, client in clients.items():
        for v, sealed in client.share(announced).items():
            boxes[v][u] = sealed
    masked = {u: client.mask(boxes[u]) for u, client in clients.items() if u not in silent}
    answers = {u: clients[u].unmask(masked, silent) for u in masked if u not in mute}
    neighbors = {u: client.neighbors for u, client in clients.items()}
    return unmasked_sum(masked, neighbors, announced, answers, threshold), masked, clients


@settings(max_examples=10, deadline=None)
@given(st.sets(st.integers(0, 6), max_size=2), st.sets(st.integers(0, 6), max_size=1))
def test_sums_are_exact_whoever_drops_out(silent, mute):
    """perso:FL-3."""
    values = np.random.default_rng(1).integers(0, 2**63, (7, WIDTH)).astype(np.uint64)
    total, masked, _ = whole_round(complete(7), values, 3, silent, mute)
    stay = [u for u in range(7) if u not in silent]
    assert np.array_equal(total, values[stay].sum(axis=0, dtype=np.uint64))
    assert all((masked[u] != values[u]).all() for u in stay)


def test_on_a_k_out_graph():
    graph = k_out(15, 4, seed=1)
    values = np.arange(15 * WIDTH, dtype=np.uint64).reshape(15, WIDTH)
    total, _, _ = whole_round(graph, values, 3, silent=(4,))
    assert np.array_equal(total, np.delete(values, 4, axis=0).sum(axis=0, dtype=np.uint64))


def test_clients_never_give_both_secrets():
    values = np.zeros((5, WIDTH), np.uint64)
    _, _, clients = whole_round(complete(5), values, 3)
    with pytest.raises(LocalProtocolError, match="asked twice"):
        clients[0].unmask(range(5), ())
    fresh = Client(me=0, neighbors=(1, 2), threshold=2, words=values[0])
    with pytest.raises(RemoteProtocolError, match="online and as dropped"):
        fresh.unmask((0, 1), (1,))
    with pytest.raises(PrivacyError, match="below the threshold"):
        fresh.unmask((0,), (1,))


def test_tampered_shares_are_named():
    clients = {
        u: Client(me=u, neighbors=(1 - u,), threshold=1, words=np.zeros(WIDTH, np.uint64))
        for u in (0, 1)
    }
    announced = {u: client.announce() for u, client in clients.items()}
    sealed = clients[0].share(announced)[1]
    clients[1].share(announced)
    with pytest.raises(RemoteProtocolError, match="shares of client 0 were changed"):
        clients[1].mask({0: sealed[:-1] + bytes([sealed[-1] ^ 1])})
    with pytest.raises(RemoteProtocolError, match="without having announced"):
        clients[1].mask({7: sealed})


def test_too_few_neighbors_or_answers():
    lonely = Client(me=0, neighbors=(1,), threshold=2, words=np.zeros(WIDTH, np.uint64))
    with pytest.raises(PrivacyError, match="below the threshold 2"):
        lonely.share({1: lonely.announce()})
    with pytest.raises(PrivacyError, match="too few"):
        whole_round(complete(5), np.zeros((5, WIDTH), np.uint64), 4, mute=(0, 1))
    with pytest.raises(PrivacyError, match="nothing to sum"):
        unmasked_sum({}, {}, {}, {}, 2)
    with pytest.raises(ConfigError, match="threshold lies between"):
        share_out(b"secret", range(3), 4)
    with pytest.raises(ConfigError, match="at most 64 bytes"):
        share_out(bytes(65), range(3), 2)
