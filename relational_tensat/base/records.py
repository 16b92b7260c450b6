"""Records: frozen dataclasses with slots that are declared in a tenth of the time.

``dataclass(frozen=True, slots=True)`` compiles seven functions for each class, 0.4 ms; a run imports a
hundred such classes, and most of these functions are never called. Here, one is compiled, ``__init__``,
and only when the first object of the class is made; the others are shared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform

_Class = TypeVar("_Class")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[_Class]) -> type[_Class]:
    """Decorator: ``dataclass(frozen=True, slots=True)``, for classes without bases or subclasses.

    ``inspect.signature`` does not know the parameters: public classes remain dataclasses.
    """
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    shown = [f.name for f in fields(made) if f.repr]
    compared = [f.name for f in fields(made) if f.compare]
    values = attrgetter(*compared) if compared else _nothing

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        made.__init__ = _initializer(made)  # from now on
        made.__init__(self, *args, **kwargs)

    def equal(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is made else NotImplemented

    def text(self: Any) -> str:
        content = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{made.__qualname__}({content})"

    methods: dict[str, Callable[..., Any]] = {
        "__init__": init,
        "__repr__": text,
        "__eq__": equal,
        "__hash__": lambda self: hash(values(self)),
        "__setattr__": _refuse_to_set,
        "__delattr__": _refuse_to_delete,
        "__getstate__": _state,
        "__setstate__": _set_state,
    }
    for name, method in methods.items():
        if name not in cls.__dict__ or cls.__dict__[name] is None:
            setattr(made, name, method)
    result: type[_Class] = made
    return result


def _nothing(_: object) -> tuple[()]:
    return ()


def _initializer(cls: type) -> Callable[..., None]:
    """Compile what fills a new object of a class, as ``dataclass`` has it."""
    names: dict[str, Any] = {"MISSING": MISSING}
    positional, by_keyword, body = ["self"], ["*"], ["pass"]
    for f in fields(cls):
        names[f"set_{f.name}"] = cls.__dict__[f.name].__set__  # past __setattr__, which refuses
        parameter = value = f.name
        if f.default_factory is not MISSING:
            names[f"make_{f.name}"] = f.default_factory
            made = f"make_{f.name}()"
            parameter += " = MISSING"
            value = f"{made} if {f.name} is MISSING else {f.name}" if f.init else made
        elif f.default is not MISSING:
            names[f"default_{f.name}"] = f.default
            parameter += f" = default_{f.name}"
            value = value if f.init else f"default_{f.name}"
        elif not f.init:
            continue
        if f.init:
            (by_keyword if f.kw_only else positional).append(parameter)
        body.append(f"set_{f.name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = positional + (by_keyword if len(by_keyword) > 1 else [])
    exec(f"def __init__({', '.join(parameters)}):\n    " + "\n    ".join(body), names)
    compiled: Callable[..., None] = names["__init__"]
    compiled.__qualname__ = f"{cls.__qualname__}.__init__"
    return compiled


def _refuse_to_set(self: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)
