"""The backends that there are; imports none of them, for the command line knows their names, too."""

from __future__ import annotations

from typing import Any

from relational_tensat.base.lazy import Registry

#: Each is a ``backend.Backend``; one that ships is a package of this folder, and a file
#: ``rules/backends/NAME.rules``.
BACKENDS: Registry[Any] = Registry(
    "backend",
    {
        "onnxruntime": "relational_tensat.rules.backends.onnxruntime:BACKEND",
        "cuda": "relational_tensat.rules.backends.cuda:BACKEND",
    },
)
