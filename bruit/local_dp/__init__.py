"""Local DP: every user randomizes at home, an aggregator nobody must trust estimates from the reports.

Frequencies, means, pairwise statistics and the AUC; one protocol per file. Against everybody, at user level.
"""

from bruit.local_dp.all_pairs import AllPairs
from bruit.local_dp.auc_reports import Pooled, ScoreReports, pool
from bruit.local_dp.catalog import protocol_from
from bruit.local_dp.compare import Prediction, best, compare
from bruit.local_dp.estimates import Estimate, Shares
from bruit.local_dp.gaussian_mean import GaussianMean
from bruit.local_dp.hadamard_response import HadamardResponse
from bruit.local_dp.hierarchical import HadamardTree, histograms
from bruit.local_dp.k_ary import KAry
from bruit.local_dp.laplace_mean import LaplaceMean
from bruit.local_dp.local_hashing import LocalHashing
from bruit.local_dp.private_auc import AucEstimate, PrivateAuc
from bruit.local_dp.quantized import QuantizedStatistic, quantized
from bruit.local_dp.randomized_response import RandomizedResponse
from bruit.local_dp.reports import Reports, load_reports, merge, save_reports
from bruit.local_dp.two_party import PairBudget, TwoParty
from bruit.local_dp.unary_encoding import UnaryEncoding

__all__ = [
    "AllPairs", "AucEstimate", "Estimate", "GaussianMean", "HadamardResponse", "HadamardTree", "KAry",
    "LaplaceMean", "LocalHashing", "PairBudget", "Pooled", "Prediction", "PrivateAuc", "QuantizedStatistic",
    "RandomizedResponse", "Reports", "ScoreReports", "Shares", "TwoParty", "UnaryEncoding", "best", "compare",
    "histograms", "load_reports", "merge", "pool", "protocol_from", "quantized", "save_reports",
]
