"""What to install where something of NVIDIA's is missing."""

from __future__ import annotations

#: Ends the one line that says what is missing.
INSTALL = "pip install 'relational-tensat[gpu]'"
