"""A copy of an account in a backup, which nobody mistakes for the account.

    account.jsonl     the account's lines, and one more at the end that says: a backup

What was paid after the copy was made is not in it. Whoever puts it in the place of an account can read
it, and is refused every question until somebody has stated what was paid since (`Account.state_since`).
The account itself never gets that line, so a newer account is never confused with a restored one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from bruit.accounts.account import Account, user
from bruit.accounts.chain import Chain, ChainHead, examine
from bruit.errors import BrokenStateError

NAME = "account.jsonl"


def copy_of(account: Account) -> bytes:
    """The lines of an account that exists, and the mark; refused where they are damaged or old."""
    account.balance()
    data = account.chain.place.read_bytes()
    found = examine(data)
    if found.torn > 0:  # a crash left it, for nothing that was said
        data = data[: -found.torn]
    elif found.torn:
        data += b"\n"
    with tempfile.TemporaryDirectory(prefix="bruit-account-") as folder:
        draft = Chain(Path(folder) / NAME, "the copy of the account")
        draft.path.write_bytes(data)
        with draft.writing() as writer:
            writer.add({"what": "backup", "by": user()}, synced=False)
        return draft.path.read_bytes()


def check_came_back(folder: Path, account: Account) -> None:
    """Refuse a folder out of a backup whose records do not pay from the account in that backup, or
    from what became of it: they would begin at nothing."""
    path = folder / NAME
    if not path.exists():
        return
    copy = Chain(path, "the copy of the account").read()
    known = ChainHead(len(copy.lines) - 1, copy.hashes[-2]) if len(copy.lines) > 1 else copy.head
    if not account.chain.read().reaches(known):
        raise BrokenStateError(
            f"{path} came out of a backup, and the account {account.path} lacks what it says was paid."
            f" Put back the newest account as {account.path}; if there is none, move {path} there"
        )
