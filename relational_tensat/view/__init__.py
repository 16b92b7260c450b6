"""A run as a page: the model before and after, every step between, the search, and the e-graph behind it.

``collect`` reads what the page of a run's database shows, ``write_page`` makes the page of that. The
content of a page is plain data (``data``), collected from the tables. TypeScript in ``page/`` draws it;
``npm run build`` makes ``bundle/``, which is committed, so that only changes of the drawing need node.

The names below are imported when they are first used: most runs have no page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from relational_tensat.base.lazy import names_on_first_use

if TYPE_CHECKING:
    from relational_tensat.view.collection import collect
    from relational_tensat.view.document import RunPage, RunTables, page_html, write_page

__all__ = ["RunPage", "RunTables", "collect", "page_html", "write_page"]

__getattr__ = names_on_first_use(
    __name__,
    {
        "collection": ("collect",),
        "document": ("RunPage", "RunTables", "page_html", "write_page"),
    },
)
