"""``python -m bench view DIR``: the pages of some models, what opening them takes, and screenshots."""

from __future__ import annotations

import argparse
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.view.browser import (
    SIZES,
    browser,
    class_shown_ms,
    first_drawing_ms,
    fluid_ms,
    photograph,
)
from bench.view.pages import MODELS_SHOWN, make_large, make_page
from relational_tensat.cli.database import RunDatabase
from relational_tensat.view.server import Server

#: Screenshots: name, page, the view's address, and what is clicked.
SHOTS = (
    ("change", "transformer_block", "#change", (".after .node.new",)),
    ("steps", "bert", "#step=49", ()),
    ("search", "nasrnn", "#search", ()),
    ("egraph", "transformer_block", "#class=25", ()),
    ("ask", "nasrnn", "#ask", ("label.check input",)),
    ("kernels", "gated_mlp", "#kernels", ()),
)
#: Classes of the large e-graph that are looked at.
_LOOKS = 9


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("view", help="pages of runs, opened in headless Chromium")
    add = parser.add_argument
    add("directory", metavar="DIR", type=Path, help="for the pages; made if it does not exist")
    add("--cost", metavar="PROFILE", default="tensat_t4", help="(tensat_t4)")
    add("--screenshots", metavar="DIR", type=Path, help="write PNGs of the views here, too")
    add("--e-nodes", metavar="N", type=int, default=0,
        help="also serve an e-graph of so many e-nodes, and look at classes (none)")  # fmt: skip
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Make the pages, open them, and print what that took."""
    options.directory.mkdir(parents=True, exist_ok=True)
    with browser() as started:
        print("| page | e-nodes | steps | made, s | kB | first drawing, ms | CPU, ms |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for name in MODELS_SHOWN:
            made = make_page(name, options.cost, options.directory)
            drawn_ms, cpu_ms = first_drawing_ms(started, made.path.as_uri())
            print(
                f"| {name} | {made.e_nodes:,} | {made.steps} | {made.seconds:.1f} |"
                f" {made.kilobytes:,.0f} | {drawn_ms:.0f} | {cpu_ms:.0f} |"
            )
        _look_at_many(started, options.directory)
        if options.screenshots:
            options.screenshots.mkdir(parents=True, exist_ok=True)
            for shot, page, address, clicks in SHOTS:
                uri = (options.directory / f"{page}.html").as_uri()
                for size in SIZES:
                    path = options.screenshots / f"{shot}-{size}.png"
                    photograph(started, uri + address, path, size, clicks)
            uri = (options.directory / "bert.html").as_uri()
            dark = options.screenshots / "steps-dark-1280.png"
            photograph(started, f"{uri}#step=49", dark, "1280", theme="dark")
        if options.e_nodes:
            _look_at_large(started, options.e_nodes)
    return 0


def _look_at_many(started: object, folder: Path) -> None:
    """Print how fluid a page with 1,000 operators is."""
    made = make_page("thousand_operators", "t4", folder)
    drawn, scrolled, pointed = fluid_ms(started, made.path.as_uri())
    print(f"\n1,000 operators, none folded, are laid out and drawn twice in {drawn:.0f} ms;")
    print(f"then a frame takes {scrolled:.0f} ms (95 of 100) while both graphs scroll,")
    print(f"and {pointed:.0f} ms to show what is pointed at (median)")


def _look_at_large(started: object, e_nodes: int) -> None:
    """Serve a large e-graph, and print how long a class takes to be seen."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "large.duckdb"
        made = make_large(e_nodes, path)
        database = RunDatabase(path)
        rows = database.query(
            f"SELECT id FROM eclass WHERE parent = id USING SAMPLE {_LOOKS + 1} ROWS (reservoir, 1)"
        ).rows
        with Server(database.connection) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.02,))
            thread.start()
            shown_ms = class_shown_ms(started, server.address, [row[0] for row in rows])
            server.shutdown()
            thread.join()
        database.close()
    print(f"\na class of a served e-graph of {made:,} e-nodes is seen after {shown_ms:.0f} ms")
    print(f"(median of {_LOOKS} classes)")
