"""The next release, as far as others can tell: it has another version, and speaks one more of the
wire."""

import bruit
from bruit.peers.wire import line, listening
from bruit.peers.wire.versions import Versions


def change():
    """From now on this process is of that release."""
    bruit.__version__ = "99.0.0"
    line.SPOKEN = listening.SPOKEN = Versions(1, 2)
