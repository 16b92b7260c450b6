"""Small inputs that once did harm."""

from pathlib import Path

FILES = Path(__file__).parent
