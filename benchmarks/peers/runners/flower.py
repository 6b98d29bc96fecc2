"""Flower, simulated: a server averages the models of all clients after one full gradient step of
each. It has no gossip; every round everybody gets the same model."""

import json
import sys

import numpy as np
import torch
from flwr.client import ClientApp, NumPyClient
from flwr.common import Context, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server import ServerApp, ServerAppComponents, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.simulation import run_simulation


def network(hidden):
    if not hidden:
        return torch.nn.Linear(64, 10)
    return torch.nn.Sequential(
        torch.nn.Linear(64, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 10)
    )


class Client(NumPyClient):
    def __init__(self, file, peer):
        self.given = np.load(file)
        mine = self.given["owner"] == peer
        self.rows = torch.tensor(self.given["rows"][mine])
        self.labels = torch.tensor(self.given["labels"][mine])

    def fit(self, parameters, config):
        torch.set_num_threads(1)
        model = network(int(self.given["hidden"]))
        for mine, theirs in zip(model.parameters(), parameters, strict=True):
            mine.data = torch.tensor(theirs)
        optimizer = torch.optim.SGD(model.parameters(), lr=float(self.given["rate"]))
        torch.nn.functional.cross_entropy(model(self.rows), self.labels).backward()
        optimizer.step()
        return [one.detach().numpy() for one in model.parameters()], len(self.labels), {}


class Strategy(FedAvg):
    """As it is; it keeps the last model."""

    def aggregate_fit(self, server_round, results, failures):
        found = super().aggregate_fit(server_round, results, failures)
        self.last = found[0]
        return found


def main(file):
    torch.manual_seed(0)
    given = np.load(file)
    peers, hidden = len(given["weights"]), int(given["hidden"])
    first = [one.detach().numpy() for one in network(hidden).parameters()]
    strategy = Strategy(
        fraction_evaluate=0.0,
        min_available_clients=peers,
        min_fit_clients=peers,
        initial_parameters=ndarrays_to_parameters(first),
    )
    rounds = int(given["rounds"])

    def client(context: Context):
        return Client(file, int(context.node_config["partition-id"])).to_client()

    def server(context: Context):
        return ServerAppComponents(strategy=strategy, config=ServerConfig(num_rounds=rounds))

    run_simulation(
        ServerApp(server_fn=server),
        ClientApp(client_fn=client),
        num_supernodes=peers,
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
    )
    model = network(hidden)
    for mine, theirs in zip(model.parameters(), parameters_to_ndarrays(strategy.last), strict=True):
        mine.data = torch.tensor(theirs)
    right = model(torch.tensor(given["test_rows"])).argmax(1).numpy() == given["test_labels"]
    print("\n" + json.dumps({"accuracy": float(right.mean())}))


if __name__ == "__main__":
    main(sys.argv[1])
