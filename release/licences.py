"""The licences of bruit and of all it needs: `python -m release.licences`.

Ends with 1 if there is one that nobody has looked at. Those below allow use and distribution beside an Apache-2.0
program; the weaker copyleft ones among them (LGPL, MPL) bind only who changes those libraries themselves.
"""

from __future__ import annotations

import re
import sys

from release.inventory import Component, inventory

LOOKED_AT = re.compile(
    r"0BSD|Apache(-| )(Software License|2\.0|License.*)|BSD( License|-[23]-Clause)?|3-Clause BSD License|BSL-1\.0"
    r"|Bzip2-1\.0\.6|CC0-1\.0|CNRI-Python|HPND|ISC(L| License.*)?|LGPL-[23]\.[01]-or-later|LLVM-exception"
    r"|MIT( License|-CMU|-0)?|Mozilla Public License 2\.0 \(MPL 2\.0\)|MPL-2\.0|NCSA|PSF-2\.0|Python-2\.0(\.1)?"
    r"|Python Software Foundation License|Unlicense|The Unlicense.*|Zlib|zlib-acknowledgement|libtiff"
    r"|GCC-exception-3\.1"
)


def strange(component: Component) -> list[str]:
    """The parts of its licence that nobody has looked at."""
    parts = re.split(r"\s+(?:AND|OR|WITH)\s+|[()]", component.licence)
    plain = [] if LOOKED_AT.fullmatch(component.licence) else parts
    return [part for part in plain if part.strip() and not LOOKED_AT.fullmatch(part.strip())]


def main() -> int:
    found = inventory()
    width = max(len(one.name) for one in found)
    unknown = 0
    for one in found:
        new = strange(one)
        unknown += bool(new)
        note = f"   <- look at: {', '.join(new)}" if new else ""
        print(f"{one.name:<{width}}  {one.version:<14}  {one.licence}{note}")
    return int(unknown > 0)


if __name__ == "__main__":
    sys.exit(main())
