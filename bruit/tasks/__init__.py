"""Tasks: each peer's private records and the questions one may ask them."""

from bruit.tasks.boosted import Boosted
from bruit.tasks.histogram import histogram
from bruit.tasks.logistic import Logistic
from bruit.tasks.mean import Mean
from bruit.tasks.networks.network_task import Torch
from bruit.tasks.pairs.pairwise import Pairwise
from bruit.tasks.pairs.statistic import Statistic
from bruit.tasks.personal import Personal
from bruit.tasks.records import Records
from bruit.tasks.ridge import Ridge
from bruit.tasks.softmax import Softmax
from bruit.tasks.stumps import Stumps
from bruit.tasks.task import Constants, Sensitivities, Task

__all__ = [
    "Boosted",
    "Constants",
    "Logistic",
    "Mean",
    "Pairwise",
    "Personal",
    "Records",
    "Ridge",
    "Sensitivities",
    "Softmax",
    "Statistic",
    "Stumps",
    "Task",
    "Torch",
    "histogram",
]
