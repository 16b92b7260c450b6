"""The names of the targets that there are; imports nothing, for the command line knows them, too."""

from __future__ import annotations

#: Each is a package of this folder, and a file ``rules/targets/NAME.rules``.
TARGETS = ("onnxruntime", "cuda")
