"""A hook of mkdocs: the pages are written for readers of the repository; this makes them the site's.

Links to files outside of ``docs`` become their paths, as the site has only ``docs``. The file that a
block of code is written to becomes the block's title.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

_FENCE = re.compile(r"^```(\w+) ([\w.]+)$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)#\s]*)(?:#[^)]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return the page as the site shows it."""
    folder = posixpath.dirname(page.file.src_uri)

    def shown(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", folder, link[2]))
        if path.startswith("docs/"):
            return link[0]
        return f"`{path}`" if link[1].strip("`") in path else f"{link[1]} (`{path}`)"

    markdown = markdown.replace("INTEGER[][]", r"INTEGER\[\]\[\]")  # a type, no link
    return _LINK.sub(shown, _FENCE.sub(r'```\1 title="\2"', markdown))
