"""QuinkGL: learning nodes in one process, which trains on all records of a node and pushes its model
to three of its four neighbors; who has got any averages. Their sockets are left out: a message is
handed to its receiver as it is. Nobody waits for a slow one, a node stops after its last round.
"""

import asyncio
import json
import sys

import numpy as np
import torch
from quinkgl import FedAvg, LearningNode, PyTorchModel, RandomTopology, TrainingConfig
from quinkgl.training.convergence import ConvergenceConfig

PATIENCE = 0.2  # seconds that a node waits for a message before it goes on without


def network(hidden):
    if not hidden:
        return torch.nn.Linear(64, 10)
    return torch.nn.Sequential(
        torch.nn.Linear(64, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 10)
    )


class Loopback:
    def __init__(self, nodes):
        self.nodes = nodes

    async def send_message(self, peer, message):
        await self.nodes[int(peer)]._handle_network_message(message)


def node(peer, given, records):
    torch.manual_seed(0)
    made = LearningNode(
        peer_id=str(peer),
        domain="digits",
        model=PyTorchModel(network(int(given["hidden"]))),
        topology=RandomTopology(seed=peer),
        aggregation=FedAvg(weight_by="uniform"),
        gossip_interval=PATIENCE,
        training_config=TrainingConfig(
            batch_size=records, learning_rate=float(given["rate"]), optimizer=torch.optim.SGD
        ),
    )
    made.aggregator.convergence_monitor.config = ConvergenceConfig(patience=10**9)  # all rounds

    def stop_after_the_last(result):
        if made.current_round >= int(given["rounds"]):
            made.aggregator.stop()

    made.register_hook("on_training_complete", stop_after_the_last)
    return made


async def learn(given):
    nodes = [node(peer, given, len(given["rows"])) for peer in range(len(given["weights"]))]
    for peer, made in enumerate(nodes):
        made._set_network_layer(Loopback(nodes))
        for neighbor in np.flatnonzero(given["adjacency"][peer]):
            made.add_peer(str(neighbor))
    running = []
    for peer, made in enumerate(nodes):
        mine = given["owner"] == peer
        records = torch.tensor(given["rows"][mine]), torch.tensor(given["labels"][mine])
        running.append(made.run_continuous(data=records))
    await asyncio.gather(*running)
    return nodes


def main(file):
    torch.set_num_threads(1)
    given = dict(np.load(file))
    nodes = asyncio.run(learn(given))
    made = {made.current_round for made in nodes}
    if made != {int(given["rounds"])}:
        sys.exit(f"nodes made {sorted(made)} of {given['rounds']} rounds")
    rows = torch.tensor(given["test_rows"])
    with torch.no_grad():
        right = [
            (made.get_model().model(rows).argmax(1).numpy() == given["test_labels"]).mean()
            for made in nodes
        ]
    print("\n" + json.dumps({"accuracy": float(np.mean(right))}))


if __name__ == "__main__":
    main(sys.argv[1])
