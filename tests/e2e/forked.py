"""Processes that run the program and need not read it: each is forked from one that has.

To read the program costs a peer more than all that it then does in a small test. A `Forked` has the
words of `subprocess.Popen`; `changed` names modules of the tests whose `change` alters the program
before it runs.
"""

import os
import subprocess
import sys
from importlib import import_module
from multiprocessing import get_context

CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(
    ["bruit.commands.cli", "bruit.peers.site.running", "bruit.privacy.toolbox.pld", __name__]
)


def _live(words, log, changed):
    """In the new process: the command of these words, with a log for all that it says."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    from bruit.commands.cli import main

    for name in changed:
        import_module(name).change()
    sys.argv = ["bruit", *words]
    main()


class Forked:
    """A process of the command line, `Forked("peer", "run", site, log=...)`."""

    def __init__(self, *words, log, changed=()):
        self._process = CONTEXT.Process(
            target=_live, args=([str(word) for word in words], str(log), changed), daemon=True
        )
        self._process.start()
        self.pid = self._process.pid

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self._process.exitcode

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self._process.terminate()

    def kill(self):
        self._process.kill()
