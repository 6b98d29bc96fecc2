"""Local DP: every user randomizes at home, an aggregator nobody must trust estimates from the
reports.

Frequencies, means, pairwise statistics and the AUC; one protocol per file. Against everybody, at
user level.
"""

from bruit.statistics.local.auc_reports import Pooled, ScoreReports, pool
from bruit.statistics.local.catalog import protocol_from
from bruit.statistics.local.compare import Prediction, best, compare
from bruit.statistics.local.estimates import Estimate, Shares
from bruit.statistics.local.gaussian_mean import GaussianMean
from bruit.statistics.local.hadamard_response import HadamardResponse
from bruit.statistics.local.hierarchical import HadamardTree, histograms
from bruit.statistics.local.k_ary import KAry
from bruit.statistics.local.laplace_mean import LaplaceMean
from bruit.statistics.local.local_hashing import LocalHashing
from bruit.statistics.local.private_auc import AucEstimate, PrivateAuc
from bruit.statistics.local.quantized import QuantizedStatistic, quantized
from bruit.statistics.local.randomized_response import BinaryResponse
from bruit.statistics.local.reports import Reports, load_reports, merge, save_reports
from bruit.statistics.local.two_party import PairBudget, TwoParty
from bruit.statistics.local.unary_encoding import UnaryEncoding

__all__ = [
    "AucEstimate",
    "BinaryResponse",
    "Estimate",
    "GaussianMean",
    "HadamardResponse",
    "HadamardTree",
    "KAry",
    "LaplaceMean",
    "LocalHashing",
    "PairBudget",
    "Pooled",
    "Prediction",
    "PrivateAuc",
    "QuantizedStatistic",
    "Reports",
    "ScoreReports",
    "Shares",
    "TwoParty",
    "UnaryEncoding",
    "best",
    "compare",
    "histograms",
    "load_reports",
    "merge",
    "pool",
    "protocol_from",
    "quantized",
    "save_reports",
]
