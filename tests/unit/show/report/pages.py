"""Reading a page as a browser would: its elements, with attributes and text."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "input", "br", "link"}


@dataclass
class Element:
    tag: str
    attributes: dict
    text: str = ""
    path: tuple = field(default_factory=tuple)


class Page(HTMLParser):
    """All elements in order; unbalanced tags fail."""

    def __init__(self, text):
        super().__init__()
        self.elements, self._open = [], []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {[one.tag for one in self._open]}"

    def handle_starttag(self, tag, attrs):
        self.elements.append(Element(tag, dict(attrs), path=tuple(one.tag for one in self._open)))
        if tag not in VOID:
            self._open.append(self.elements[-1])

    def handle_startendtag(self, tag, attrs):
        self.elements.append(Element(tag, dict(attrs), path=tuple(one.tag for one in self._open)))

    def handle_endtag(self, tag):
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1].tag == tag, f"</{tag}> closes {self._open[-1].tag}"
        self._open.pop()

    def handle_data(self, data):
        for one in self._open:
            one.text += data

    def all(self, tag, **attributes):
        wanted = {key.rstrip("_"): value for key, value in attributes.items()}
        return [
            one
            for one in self.elements
            if one.tag == tag and wanted.items() <= one.attributes.items()
        ]

    def by_id(self, name):
        (found,) = [one for one in self.elements if one.attributes.get("id") == name]
        return found
