"""What leaves the house: the checklist of a release, the licences of what bruit needs, and its bill of materials.

`python -m release` goes through the checklist, `python -m release.licences` lists licences, `python -m release.sbom`
writes the bill.
"""
