"""Randomized releases: clip, add addressed noise, know what it costs. One mechanism per file."""

from bruit.mechanisms.clip import clip_rows
from bruit.mechanisms.discrete_gaussian import DiscreteGaussian
from bruit.mechanisms.gaussian import Gaussian
from bruit.mechanisms.gaussian_per_peer import GaussianPerPeer
from bruit.mechanisms.laplace import Laplace
from bruit.mechanisms.mechanism import Mechanism, mechanism_from
from bruit.mechanisms.noise_by_size import NoiseBySize
from bruit.mechanisms.randomized_response import RandomizedResponse
from bruit.mechanisms.record_noise import RecordNoise
from bruit.mechanisms.record_sums import RecordSums

__all__ = [
    "DiscreteGaussian",
    "Gaussian",
    "GaussianPerPeer",
    "Laplace",
    "Mechanism",
    "NoiseBySize",
    "RandomizedResponse",
    "RecordNoise",
    "RecordSums",
    "clip_rows",
    "mechanism_from",
]
