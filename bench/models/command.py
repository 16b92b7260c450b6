"""``python -m bench models DIR``: write the model graphs as JSON."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.models import MODELS
from relational_tensat.base.errors import UsageError
from relational_tensat.formats import save_model


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("models", help="write the model graphs as JSON")
    parser.add_argument("directory", metavar="DIR", type=Path, help="made if it does not exist")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write ``NAME.json`` for every model and print the paths."""
    for path in write_models(options.directory):
        print(path)
    return 0


def write_models(directory: Path) -> list[Path]:
    """Write every model into ``directory``; return the files in the order of ``MODELS``.

    Raises:
        UsageError: the folder cannot be made.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{directory}: cannot be made a folder: {error.strerror}") from error
    paths = []
    for name, build in MODELS.items():
        path = directory / f"{name}.json"
        save_model(build(), path)
        paths.append(path)
    return paths
