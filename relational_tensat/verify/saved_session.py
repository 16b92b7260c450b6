"""A model's file as onnxruntime saves it after its optimizations, its weights beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from relational_tensat.base.errors import InputError, first_line
from relational_tensat.verify.runtime import Session, open_session, runtime_errors


def save_session(
    model: Path, target: Path, threads: int, *, is_packed: bool, properties: Mapping[str, str]
) -> int:
    """Save what onnxruntime makes of a model by its defaults, and check that it reads that.

    Weights go to ``NAME.data``, those of less than 1 KiB aside. Filters are there in the blocks that its
    convolutions take them in.

    Args:
        is_packed: whether constant matrices are there as its products take them, too.
        properties: what the file is to say of itself.

    Returns:
        Bytes of weights beside the model.

    Raises:
        InputError: it does not save it, or does not read what it saved.
    """
    import onnx

    errors: tuple[type[Exception], ...] = (*runtime_errors(), OSError, InputError)
    try:
        open_session(model, threads, Session.AS_BY_DEFAULT, optimized=target, is_packed=is_packed)
        if not target.exists():
            raise InputError("it wrote nothing")
        saved = onnx.load(target, load_external_data=False)
        onnx.helper.set_model_props(saved, {**_properties(saved), **properties})
        target.write_bytes(saved.SerializeToString())
        open_session(target, threads, Session.AS_BY_DEFAULT)
    except errors as error:
        raise InputError(f"onnxruntime does not save it: {first_line(error)}") from error
    data = data_of(target)
    return data.stat().st_size if data.exists() else 0


def data_of(saved: Path) -> Path:
    """Return where a saved model's weights are."""
    return saved.with_name(f"{saved.name}.data")


def _properties(model: object) -> dict[str, str]:
    return {entry.key: entry.value for entry in getattr(model, "metadata_props", ())}
