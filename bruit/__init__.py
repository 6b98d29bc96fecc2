"""Bruit: machine learning among people who do not trust each other with their data.

No server collects anything: peers hold their own records, talk only to their neighbors in a graph,
add noise before they speak, and can be told, pair by pair, exactly how much anyone could have
learned about them.
"""

# ruff: noqa: E402  (signals first)
from bruit.commands.starting import end_in_one_line

end_in_one_line()  # before anything that takes long to load

from bruit import graphs, on, personal, tasks
from bruit.algorithms.gossip.averaging import Averaging
from bruit.algorithms.gossip.chebyshev import Chebyshev
from bruit.algorithms.gossip.decor import Decor
from bruit.algorithms.gossip.gopa import Gopa
from bruit.algorithms.gossip.gossip_admm import GossipADMM
from bruit.algorithms.gossip.gossip_sgd import GossipSGD
from bruit.algorithms.gossip.mafalda import Mafalda
from bruit.algorithms.gossip.masked_consensus import MaskedConsensus
from bruit.algorithms.gossip.muffliato import butterfly_muffliato, muffliato, randomized_muffliato
from bruit.algorithms.gossip.pair_averaging import PairAveraging
from bruit.algorithms.gossip.renoised import Renoised
from bruit.algorithms.gossip.robust_averaging import RobustAveraging
from bruit.algorithms.gossip.robust_sgd import RobustSGD
from bruit.algorithms.pairs.dual_averaging import DualAveraging
from bruit.algorithms.pairs.dual_averaging_rounds import DualAveragingRounds
from bruit.algorithms.pairs.gosta import Gosta
from bruit.algorithms.pairs.gosta_rounds import GostaRounds
from bruit.algorithms.pairs.u1_gossip import U1Gossip
from bruit.algorithms.pairs.u2_gossip import U2Gossip
from bruit.algorithms.personal.boosting import Boosting
from bruit.algorithms.personal.graph_learning import GraphLearning
from bruit.algorithms.personal.model_propagation import ModelPropagation
from bruit.algorithms.personal.personalized import Personalized
from bruit.algorithms.personal.private_descent import PrivateDescent
from bruit.algorithms.schedules.ballots.schedule import Ballots
from bruit.algorithms.schedules.pairs.schedule import Pairs
from bruit.algorithms.schedules.rounds.schedule import Rounds
from bruit.algorithms.schedules.wakes.schedule import Wakes
from bruit.algorithms.schedules.walk.schedule import Walk
from bruit.algorithms.server.fed_avg import FedAvg
from bruit.algorithms.server.federated_admm import FederatedADMM
from bruit.algorithms.silos.masked_sgd import MaskedSGD
from bruit.algorithms.tokens.ring_sum import RingSum
from bruit.algorithms.tokens.token_histogram import TokenHistogram
from bruit.algorithms.tokens.walk_admm import WalkADMM
from bruit.algorithms.tokens.walk_sgd import WalkSGD
from bruit.algorithms.tokens.walk_sum import WalkSum
from bruit.errors import AlgorithmError, BruitError, ConfigError, ConformanceError, PrivacyError
from bruit.mechanisms import (
    DiscreteGaussian,
    Gaussian,
    GaussianPerPeer,
    Laplace,
    NoiseBySize,
    RandomizedResponse,
    RecordSums,
)
from bruit.privacy.odometer import Odometer
from bruit.runs.crashes.crash import load_crash
from bruit.runs.engines.blocks import Blocks
from bruit.runs.engines.bulk import Bulk
from bruit.runs.engines.engine import Stop
from bruit.runs.engines.events import Events
from bruit.runs.many.repeat import repeat
from bruit.runs.replay import replay
from bruit.runs.result import Run, load, load_model
from bruit.runs.run import chain, rehearse, run, several_tokens
from bruit.tasks.data.public_model import PublicModel

__version__ = "0.1.0"

__all__ = [
    "AlgorithmError",
    "Averaging",
    "Ballots",
    "Blocks",
    "Boosting",
    "BruitError",
    "Bulk",
    "Chebyshev",
    "ConfigError",
    "ConformanceError",
    "Decor",
    "DiscreteGaussian",
    "DualAveraging",
    "DualAveragingRounds",
    "Events",
    "FedAvg",
    "FederatedADMM",
    "Gaussian",
    "GaussianPerPeer",
    "Gopa",
    "GossipADMM",
    "GossipSGD",
    "Gosta",
    "GostaRounds",
    "GraphLearning",
    "Laplace",
    "Mafalda",
    "MaskedConsensus",
    "MaskedSGD",
    "ModelPropagation",
    "NoiseBySize",
    "Odometer",
    "PairAveraging",
    "Pairs",
    "Personalized",
    "PrivacyError",
    "PrivateDescent",
    "PublicModel",
    "RandomizedResponse",
    "RecordSums",
    "Renoised",
    "RingSum",
    "RobustAveraging",
    "RobustSGD",
    "Rounds",
    "Run",
    "Stop",
    "TokenHistogram",
    "U1Gossip",
    "U2Gossip",
    "Wakes",
    "Walk",
    "WalkADMM",
    "WalkSGD",
    "WalkSum",
    "butterfly_muffliato",
    "chain",
    "graphs",
    "load",
    "load_crash",
    "load_model",
    "muffliato",
    "on",
    "personal",
    "randomized_muffliato",
    "rehearse",
    "repeat",
    "replay",
    "run",
    "several_tokens",
    "tasks",
]
