"""Bruit: machine learning among people who do not trust each other with their data.

No server collects anything: peers hold their own records, talk only to their neighbors in a graph, add noise before
they speak, and can be told, pair by pair, exactly how much anyone could have learned about them.
"""

from bruit import graphs, personal, tasks
from bruit.algorithms.averaging import Averaging
from bruit.algorithms.boosting import Boosting
from bruit.algorithms.chebyshev import Chebyshev
from bruit.algorithms.dual_averaging import DualAveraging
from bruit.algorithms.dual_averaging_rounds import DualAveragingRounds
from bruit.algorithms.fed_avg import FedAvg
from bruit.algorithms.federated_admm import FederatedADMM
from bruit.algorithms.gopa import Gopa
from bruit.algorithms.gossip_admm import GossipADMM
from bruit.algorithms.gossip_sgd import GossipSGD
from bruit.algorithms.gosta import Gosta
from bruit.algorithms.gosta_rounds import GostaRounds
from bruit.algorithms.model_propagation import ModelPropagation
from bruit.algorithms.muffliato import butterfly_muffliato, muffliato, randomized_muffliato
from bruit.algorithms.pair_averaging import PairAveraging
from bruit.algorithms.personalized import Personalized
from bruit.algorithms.renoised import Renoised
from bruit.algorithms.ring_sum import RingSum
from bruit.algorithms.schedules import Pairs, Rounds, Wakes, Walk
from bruit.algorithms.token_histogram import TokenHistogram
from bruit.algorithms.u1_gossip import U1Gossip
from bruit.algorithms.u2_gossip import U2Gossip
from bruit.algorithms.walk_admm import WalkADMM
from bruit.algorithms.walk_sgd import WalkSGD
from bruit.algorithms.walk_sum import WalkSum
from bruit.engines.bulk import Bulk
from bruit.engines.engine import Stop
from bruit.engines.events import Events
from bruit.errors import BruitError, ConfigError, ConformanceError, PrivacyError
from bruit.experiment import chain, rehearse, run, several_tokens
from bruit.mechanisms import DiscreteGaussian, Gaussian, Laplace, RandomizedResponse
from bruit.repeating import repeat
from bruit.replaying import replay
from bruit.result import Run, load, load_model
from bruit.tasks.public_model import PublicModel

__version__ = "0.1.0"


def _plots(run: Run) -> object:
    """`run.plot`: the dashboard stands above runs, and is loaded when somebody wants a figure."""
    from bruit.dashboard import Plots

    return Plots(run)


Run.plotter = _plots

__all__ = [
    "Averaging", "Boosting", "BruitError", "Bulk", "Chebyshev", "ConfigError", "ConformanceError", "DiscreteGaussian",
    "DualAveraging", "DualAveragingRounds", "Events", "FedAvg", "FederatedADMM", "Gaussian", "Gopa", "GossipADMM",
    "GossipSGD", "Gosta", "GostaRounds", "Laplace", "ModelPropagation", "PairAveraging", "Pairs", "Personalized",
    "PrivacyError", "PublicModel", "RandomizedResponse", "Renoised", "RingSum", "Rounds", "Run", "Stop",
    "TokenHistogram", "U1Gossip", "U2Gossip", "Wakes", "Walk", "WalkADMM", "WalkSGD", "WalkSum", "butterfly_muffliato",
    "chain", "graphs", "load", "load_model", "muffliato", "personal", "randomized_muffliato", "rehearse", "repeat",
    "replay", "run", "several_tokens", "tasks",
]  # fmt: skip
