"""Libraries of kernels, compiled on this machine into the user's own cache, and loaded for good.

A library is known by the hash of all its parts: its C, the functions that it was compared with, the
compiler, its flags, and the processor. Libraries in the cache were compiled, and compared, by this user.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from relational_tensat.base.errors import InputError, first_line
from relational_tensat.base.folders import PrivateFolder, check_own, user_cache
from relational_tensat.base.process import instruction_sets, processor_name
from relational_tensat.custom_ops.objects import begin, flags_of, run_compiler
from relational_tensat.mugraph.kernels.emit_c import compiler, compiler_version

_log = logging.getLogger("relational_tensat")
LIBRARY = "library.so"
#: Libraries by path: onnxruntime's sessions call them until the process ends.
_LOADED: dict[Path, ctypes.CDLL] = {}


def library_of(files: Mapping[str, str], functions: bytes, compare: Callable[[Path], None]) -> Path:
    """Return the library of some C, compiled and compared unless the cache has it.

    Args:
        files: the C, by name.
        functions: those that the library is compared with.
        compare: raises where a library computes something else.

    Raises:
        MissingDependencyError: there is no C compiler.
        InputError: it does not compile, the cache is not the user's own, or what ``compare`` raises.
    """
    command = compiler()
    machine = f"{compiler_version(command)}\n{processor_name()}\n{instruction_sets()}"
    parts = [machine]
    for name in sorted(files):
        parts += [name, *flags_of(name, command), files[name]]
    content = b"\0".join([*(part.encode() for part in parts), functions])
    place = user_cache() / "custom-ops" / hashlib.sha256(content).hexdigest()[:32]
    library = place / LIBRARY
    if not library.is_file():
        try:
            place.parent.mkdir(0o700, parents=True, exist_ok=True)
            check_own(place.parent, by_one=True)
            with PrivateFolder(place.parent) as folder:
                compile_library(files, folder.path, command)
                compare(folder.path / LIBRARY)
                _keep(folder.path, place)
        except OSError as error:
            raise InputError(f"{place}: cannot be written: {error.strerror or error}") from error
    for own in (place.parent, place, library):
        check_own(own, by_one=True)
    return library


def loaded(library: Path) -> Path:
    """Return a library that stays loaded: its ops and their domain outlive all sessions.

    Raises:
        InputError: the system does not load it.
    """
    if library not in _LOADED:
        try:
            _LOADED[library] = ctypes.CDLL(str(library))
            _log.info("loads the compiled kernels of %s", library)
        except OSError as error:
            raise InputError(f"{library}: is not loaded: {first_line(error)}") from error
    return library


def compile_library(files: Mapping[str, str], folder: Path, command: str) -> Path:
    """Compile C into ``library.so`` of a folder, of objects that the cache has or will have.

    Args:
        files: the C, by name.
        command: the compiler.

    Raises:
        InputError: it does not compile, or the cache is not the user's own.
    """
    objects = [str(each.result()) for each in begin(files, command)]
    library = folder / LIBRARY
    run_compiler([command, "-shared", *objects, "-o", str(library), "-lm"], LIBRARY)
    library.chmod(0o600)
    return library


def _keep(folder: Path, place: Path) -> None:
    """Let a folder be in the cache, unless another process was faster."""
    try:
        folder.rename(place)
    except OSError:
        if not (place / LIBRARY).is_file():
            raise
