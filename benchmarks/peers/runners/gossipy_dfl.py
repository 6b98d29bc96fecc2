"""gossipy: one object a peer, which pushes its model to a random neighbor once a round; who gets one
averages and takes a gradient step on all its records."""

import json
import sys

import numpy as np
import torch
from gossipy import set_seed
from gossipy.core import AntiEntropyProtocol, CreateModelMode, StaticP2PNetwork
from gossipy.data import DataDispatcher
from gossipy.data.handler import ClassificationDataHandler
from gossipy.model import TorchModel
from gossipy.model.handler import TorchModelHandler
from gossipy.node import GossipNode
from gossipy.simul import GossipSimulator


class Model(TorchModel):
    def __init__(self, hidden):
        super().__init__()
        self.layers = (
            torch.nn.Sequential(
                torch.nn.Linear(64, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 10)
            )
            if hidden
            else torch.nn.Linear(64, 10)
        )

    def forward(self, x):
        return self.layers(x)

    def init_weights(self):
        pass


def main(file):
    set_seed(0)
    torch.set_num_threads(1)
    given = dict(np.load(file))
    held = (torch.tensor(given["rows"]), torch.tensor(given["labels"]))
    kept = (torch.tensor(given["test_rows"]), torch.tensor(given["test_labels"]))
    records = ClassificationDataHandler(*held, *kept)
    peers = len(given["weights"])
    dispatcher = DataDispatcher(records, n=peers, eval_on_user=False, auto_assign=False)
    owned = [np.flatnonzero(given["owner"] == peer).tolist() for peer in range(peers)]
    dispatcher.set_assignments(owned, [[] for _ in range(peers)])
    handler = TorchModelHandler(
        Model(int(given["hidden"])),
        torch.optim.SGD,
        {"lr": float(given["rate"])},
        torch.nn.CrossEntropyLoss(),
        batch_size=0,
        create_model_mode=CreateModelMode.MERGE_UPDATE,
    )
    nodes = GossipNode.generate(
        dispatcher, StaticP2PNetwork(peers, given["adjacency"]), handler, 10, True
    )
    simulator = GossipSimulator(
        nodes, dispatcher, delta=10, protocol=AntiEntropyProtocol.PUSH, sampling_eval=0.01
    )
    simulator.init_nodes()
    simulator.start(n_rounds=int(given["rounds"]))
    with torch.no_grad():
        right = [
            (node.model_handler.model(kept[0]).argmax(1) == kept[1]).float().mean().item()
            for node in nodes.values()
        ]
    print("\n" + json.dumps({"accuracy": float(np.mean(right))}))


if __name__ == "__main__":
    main(sys.argv[1])
