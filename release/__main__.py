"""`python -m release`: go through the checklist; ends with 1 at the first step that is not ready."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from release.checklist import BY_HAND, ROOT, STEPS, NotReady


def main() -> int:
    with tempfile.TemporaryDirectory() as place:
        for step in STEPS:
            print(f"[ ] {step.what} ...", flush=True)
            try:
                said = step.check(Path(place))
            except NotReady as reason:
                print(f"    not ready: {reason}")
                return 1
            print(f"[x] {said}")
        shutil.copytree(Path(place) / "dist", ROOT / "dist", dirs_exist_ok=True)
    print("\nleft for people:")
    for line in BY_HAND:
        print(f"[ ] {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
