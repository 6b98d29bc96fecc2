"""Graphs: who may talk to whom, with which weights, and how fast values mix."""

from bruit.graphs.edge_files import to_edge_list
from bruit.graphs.everybody import Complete
from bruit.graphs.families import (
    barabasi_albert,
    complete,
    erdos_renyi,
    exponential,
    florentine,
    geometric,
    grid,
    hypercube,
    k_out,
    karate,
    path,
    regular,
    ring,
    southern_women,
    star,
    stochastic_blocks,
    torus,
    tree,
    watts_strogatz,
)
from bruit.graphs.graph import Graph
from bruit.graphs.learn import Collaboration
from bruit.graphs.mixing import from_edge_list, from_edges, from_ego, from_matrix, from_networkx
from bruit.graphs.names import fixed_graph, graph
from bruit.graphs.sequence import Butterfly, GraphSequence, butterfly, fresh, given, static
from bruit.graphs.similarity import angular_weights, similarity
from bruit.graphs.spectrum import (
    chebyshev_gamma,
    chebyshev_gamma_star,
    diameter,
    mixing_time,
    second_eigenvalue,
    spectral_gap,
)
from bruit.graphs.validity import Validity

__all__ = [
    "Butterfly",
    "Collaboration",
    "Complete",
    "Graph",
    "GraphSequence",
    "Validity",
    "angular_weights",
    "barabasi_albert",
    "butterfly",
    "chebyshev_gamma",
    "chebyshev_gamma_star",
    "complete",
    "diameter",
    "erdos_renyi",
    "exponential",
    "fixed_graph",
    "florentine",
    "fresh",
    "from_edge_list",
    "from_edges",
    "from_ego",
    "from_matrix",
    "from_networkx",
    "geometric",
    "given",
    "graph",
    "grid",
    "hypercube",
    "k_out",
    "karate",
    "mixing_time",
    "path",
    "regular",
    "ring",
    "second_eigenvalue",
    "similarity",
    "southern_women",
    "spectral_gap",
    "star",
    "static",
    "stochastic_blocks",
    "to_edge_list",
    "torus",
    "tree",
    "watts_strogatz",
]
