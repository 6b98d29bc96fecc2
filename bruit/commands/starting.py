"""Starting: a command that is stopped while Python still loads it ends with one line and code 130,
like later on.

A KeyboardInterrupt would not do: raised in the middle of an import it is a traceback, or ends
Python by a signal. Only the command does this; a program that imports the package keeps its own
signals.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STOPPED = b"interrupted: nothing was begun\n"


def is_command() -> bool:
    """Whether this process is the command `bruit`, or `python -m bruit`."""
    return os.path.basename(sys.argv[0] if sys.argv else "") == "bruit" or (
        sys.argv[:1] == ["-m"] and sys.orig_argv[1:3] == ["-m", "bruit"]
    )


def end_in_one_line() -> None:
    """Until `begin`, a signal ends the command at once: nothing is open yet that could be left half
    done."""
    if is_command() and threading.current_thread() is threading.main_thread():
        for name in SIGNALS:
            signal.signal(name, _end)


def begin() -> None:
    """From now on both signals are a KeyboardInterrupt, and the command says what that means."""
    if signal.getsignal(signal.SIGTERM) is _end:
        for name in SIGNALS:
            signal.signal(name, signal.default_int_handler)


def _end(_number: int, _frame: FrameType | None) -> None:
    os.write(2, STOPPED)
    os._exit(130)
