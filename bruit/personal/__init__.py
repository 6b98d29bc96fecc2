"""Personal models, everyone's own: the joint objective, private and learned collaboration, and what
noise costs."""

from bruit.personal.alternate import Alternation, Noise, alternate
from bruit.personal.learn import LearnedGraph, learn_graph
from bruit.personal.noisy_records import publish
from bruit.personal.objective import Joint, confidences
from bruit.personal.private import (
    NoisePlan,
    gradient_noise,
    loss_noise,
    model_noise,
    private_descent,
)
from bruit.personal.sensitivity import (
    boosting_loss_sensitivities,
    bounded_records,
    gradient_sensitivities,
    loss_sensitivities,
    model_sensitivities,
)
from bruit.personal.utility import allocate, noisy_gap_bound

__all__ = [
    "Alternation",
    "Joint",
    "LearnedGraph",
    "Noise",
    "NoisePlan",
    "allocate",
    "alternate",
    "boosting_loss_sensitivities",
    "bounded_records",
    "confidences",
    "gradient_noise",
    "gradient_sensitivities",
    "learn_graph",
    "loss_noise",
    "loss_sensitivities",
    "model_noise",
    "model_sensitivities",
    "noisy_gap_bound",
    "private_descent",
    "publish",
]
