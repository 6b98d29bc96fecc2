"""What a file says of itself is what its class is: one idea, one file."""

from __future__ import annotations

from typing import Any

import griffe


class OfTheFile(griffe.Extension):
    """A public class without a docstring has that of its file."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        if cls.docstring is None and not cls.name.startswith("_"):
            cls.docstring = cls.module.docstring
