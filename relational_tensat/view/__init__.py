"""A run as a page: the model before and after, every step between, the search, and the e-graph behind it.

``write_page`` makes the self-contained page of a run's database. What a page shows is plain data
(``page_data.py``), collected from the tables; its drawing is TypeScript in ``page/``, built into
``bundle/`` by ``npm run build``, which is committed, so that only who changes the drawing needs node.
"""

from relational_tensat.view.collecting import collect
from relational_tensat.view.document import page_html, write_page

__all__ = ["collect", "page_html", "write_page"]
