"""declearn: a server averages the models of all clients after one full gradient step of each, over
websockets of this machine. It has no gossip; every round everybody gets the same model.

All in one process, as its own `quickrun` does it; with `--processes` every client has its own.
"""

import asyncio
import json
import logging
import socket
import subprocess
import sys

import numpy as np
import torch
from declearn.communication import NetworkClientConfig, NetworkServerConfig
from declearn.dataset import InMemoryDataset
from declearn.main import FederatedClient, FederatedServer
from declearn.main.config import FLRunConfig
from declearn.model.torch import TorchModel

LOOK = 0.1  # seconds between two looks of the server for a message


def network(hidden):
    if not hidden:
        return torch.nn.Linear(64, 10)
    return torch.nn.Sequential(
        torch.nn.Linear(64, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 10)
    )


def client(given, peer, port):
    mine = given["owner"] == peer
    records = InMemoryDataset(given["rows"][mine], target=given["labels"][mine])
    wire = NetworkClientConfig.from_params(
        protocol="websockets", server_uri=f"ws://127.0.0.1:{port}", name=f"peer-{peer}"
    )
    return FederatedClient(netwk=wire, train_data=records, share_metrics=False, verbose=False)


def server(given, port):
    wire = NetworkServerConfig.from_params(
        protocol="websockets", host="127.0.0.1", port=port, heartbeat=LOOK
    )
    torch.manual_seed(0)
    model = TorchModel(network(int(given["hidden"])), torch.nn.CrossEntropyLoss())
    how = {"client_opt": float(given["rate"]), "server_opt": 1.0}
    return FederatedServer(model=model, netwk=wire, optim=how)


def plan(given):
    rounds = int(given["rounds"])
    whole = {"batch_size": len(given["rows"]), "drop_remainder": False}
    return FLRunConfig.from_params(
        rounds=rounds,
        register={"min_clients": len(given["weights"])},
        training={**whole, "n_epoch": 1},
        evaluate={**whole, "frequency": rounds + 1},
    )


async def learn(given, port, here):
    made = server(given, port)
    others = [client(given, peer, port).async_run() for peer in here]
    await asyncio.gather(made.async_run(plan(given)), *others)
    return made.model.get_wrapped_model()


def free_port():
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return tried.getsockname()[1]


def main(file, *words):
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    given = dict(np.load(file))
    if words[:1] == ("--client",):
        client(given, int(words[1]), int(words[2])).run()
        return
    port, peers = free_port(), range(len(given["weights"]))
    command = [sys.executable, __file__, file, "--client"]
    apart = peers if "--processes" in words else ()
    started = [
        subprocess.Popen([*command, str(peer), str(port)], stdout=subprocess.DEVNULL)
        for peer in apart
    ]
    model = asyncio.run(learn(given, port, () if apart else peers))
    if failed := [one.args[-2] for one in started if one.wait()]:
        sys.exit(f"clients failed: {', '.join(failed)}")
    with torch.no_grad():
        said = model(torch.tensor(given["test_rows"])).argmax(1).numpy()
    print("\n" + json.dumps({"accuracy": float((said == given["test_labels"]).mean())}))


if __name__ == "__main__":
    main(*sys.argv[1:])
