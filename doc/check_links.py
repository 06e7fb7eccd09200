"""Links inside the built pages: every file and every anchor that they name is there.

python doc/check_links.py doc/_build
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors of a page, and what it links to."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.targets = set(), set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.targets.add(value)


def broken(folder):
    """Yield pages and those of their links that lead nowhere."""
    paths = [p for p in sorted(folder.rglob("*.html")) if "_static" not in p.parts]
    pages = {path: Page(path) for path in paths}
    for path, page in pages.items():
        for target in sorted(page.targets):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            found = (
                (path.parent / unquote(parts.path)).resolve() if parts.path else path
            )
            anchor = unquote(parts.fragment)
            if not found.exists() or (
                anchor and found in pages and anchor not in pages[found].anchors
            ):
                yield path.relative_to(folder), target


def main(folder):
    wrong = list(broken(Path(folder).resolve()))
    for page, target in wrong:
        print(f"{page}: {target}")
    if wrong:
        sys.exit(f"{len(wrong)} links lead nowhere")


if __name__ == "__main__":
    main(*sys.argv[1:])
