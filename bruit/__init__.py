"""Bruit: machine learning among people who do not trust each other with their data.

No server collects anything: peers hold their own records, talk only to their neighbors in a graph, add noise before
they speak, and can be told, pair by pair, exactly how much anyone could have learned about them.
"""

from bruit import graphs, tasks
from bruit.algorithms.averaging import Averaging
from bruit.algorithms.chebyshev import Chebyshev
from bruit.algorithms.gossip_sgd import GossipSGD
from bruit.algorithms.muffliato import butterfly_muffliato, muffliato, randomized_muffliato
from bruit.algorithms.pair_averaging import PairAveraging
from bruit.algorithms.renoised import Renoised
from bruit.algorithms.schedules import Pairs, Rounds, Wakes, Walk
from bruit.algorithms.walk_sgd import WalkSGD
from bruit.engines.bulk import Bulk
from bruit.engines.events import Events
from bruit.errors import BruitError, ConfigError, ConformanceError, PrivacyError
from bruit.experiment import chain, rehearse, run
from bruit.mechanisms import DiscreteGaussian, Gaussian, Laplace
from bruit.replaying import replay
from bruit.result import Run, load

__version__ = "0.1.0"

__all__ = [
    "Averaging", "BruitError", "Bulk", "Chebyshev", "ConfigError", "ConformanceError", "DiscreteGaussian", "Events",
    "Gaussian", "GossipSGD", "Laplace", "PairAveraging", "Pairs", "PrivacyError", "Renoised", "Rounds", "Run", "Wakes",
    "Walk", "WalkSGD", "butterfly_muffliato", "chain", "graphs", "load", "muffliato", "randomized_muffliato",
    "rehearse", "replay", "run", "tasks",
]  # fmt: skip
