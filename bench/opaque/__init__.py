"""Models with operators that are carried through: the gain as predicted, and as measured."""
