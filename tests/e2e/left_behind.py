"""What lies in a folder after a command."""

import os
from pathlib import Path


def listed(folder: Path) -> set[str]:
    """Every file and folder below, hidden ones too."""
    return {
        os.path.relpath(os.path.join(top, name), folder)
        for top, dirs, files in os.walk(folder)
        for name in (*dirs, *files)
    }
