"""Names and values as TOML writes them."""

import json


def quoted(name: str) -> str:
    """A text between quotes."""
    return json.dumps(name, ensure_ascii=False)


def key(name: str) -> str:
    """A name of a section, with quotes where it needs them."""
    plain = name and all(
        letter.isascii() and (letter.isalnum() or letter in "_-") for letter in name
    )
    return name if plain else quoted(name)
