"""What was solved, a line of JSON each as soon as it is there: what is in the file is not done again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.common.machine import describe_commit, describe_versions
from bench.public_egraphs.solvers import Solved
from relational_tensat.base.errors import InputError


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be done: a method on a file.

    Attributes:
        file: its path within the folder.
        digest: of its content.
        limit_s: CPU seconds.
    """

    file: str
    digest: str
    method: str
    limit_s: float


class Kept:
    """The answers in one file.

    Args:
        path: a file of JSON lines; it need not exist.

    Raises:
        InputError: there is something else in it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._answers = dict(_read(path)) if path.exists() else {}

    def get(self, task: Task) -> Solved | None:
        """Return the answer of a task, or None where it was not done."""
        return self._answers.get(task)

    def add(self, task: Task, solved: Solved) -> None:
        """Keep an answer; where the process is killed, those before it stay."""
        self._answers[task] = solved
        made_with = {"commit": describe_commit(), "versions": describe_versions()}
        line = json.dumps({**asdict(task), **asdict(solved), **made_with})
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def digest(path: Path) -> str:
    """Return what tells the content of a file from that of others."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _read(path: Path) -> Iterator[tuple[Task, Solved]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            fields = json.loads(line)
            task = Task(**{name: fields[name] for name in Task.__slots__})
            yield task, Solved(**{name: fields[name] for name in Solved.__slots__})
        except (ValueError, KeyError, TypeError):
            if line.endswith("}"):
                raise InputError(f"{path}:{number}: expected an answer of this bench") from None
            # the last line of a process that was killed
