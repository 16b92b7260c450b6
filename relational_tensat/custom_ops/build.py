"""Libraries of kernels, compiled on this machine into the user's own cache, and loaded for good.

A library is known by the hash of all its parts: its C, the functions that it was compared with, the
compiler, its flags, and the processor. Libraries in the cache were compiled, and compared, by this user.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from relational_tensat.base.errors import InputError, first_line
from relational_tensat.base.folders import PrivateFolder, check_own, user_cache
from relational_tensat.base.process import instruction_sets, processor_name, processors
from relational_tensat.mugraph.kernels.emit_c import FLAGS, compiler, compiler_version

#: A kernel's tiles are on the stack of a thread of onnxruntime's, which may be small: 512 KiB on macOS.
MOST_STACK_BYTES = 256 << 10
_OWN_FLAGS = (
    *(flag for flag in FLAGS if flag != "-shared"),
    "-fvisibility=hidden",
    f"-Werror=frame-larger-than={MOST_STACK_BYTES}",
)
#: The file that registers ops has no loops: less than half the time, for 100 libraries of a run.
_REGISTERING, _REGISTERING_FLAGS = "library.c", ("-O1",)
_log = logging.getLogger("relational_tensat")
LIBRARY = "library.so"
#: Longer no file is compiled.
_MOST_S = 300.0
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
    parts = [
        machine,
        " ".join((*_OWN_FLAGS, *_REGISTERING_FLAGS)),
        *(text for name in sorted(files) for text in (name, files[name])),
    ]
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


def compile_library(
    files: Mapping[str, str], folder: Path, command: str, flags: Sequence[str] = ()
) -> Path:
    """Compile C into ``library.so`` of a folder.

    Args:
        files: the C, by name; nothing else of it is in the folder afterwards.
        command: the compiler.
        flags: further ones.

    Raises:
        InputError: it does not compile.
    """

    def compiled(name: str) -> Path:
        source = folder / name
        source.write_text(files[name], encoding="utf-8")
        made = source.with_suffix(".o")
        own = _REGISTERING_FLAGS if name == _REGISTERING else ()
        _run([command, *_OWN_FLAGS, *own, *flags, "-c", str(source), "-o", str(made)], name)
        source.unlink()
        return made

    with ThreadPoolExecutor(processors()) as pool:
        objects = list(pool.map(compiled, files))
    library = folder / LIBRARY
    _run([command, *flags, "-shared", *map(str, objects), "-o", str(library), "-lm"], LIBRARY)
    for made in objects:
        made.unlink()
    library.chmod(0o600)
    return library


def _run(line: Sequence[str], name: str) -> None:
    try:
        made = subprocess.run(line, capture_output=True, text=True, timeout=_MOST_S)
    except subprocess.TimeoutExpired:
        raise InputError(f"{name}: does not compile within {_MOST_S:.0f} s") from None
    if made.returncode:
        lines = made.stderr.splitlines() or ["the compiler says nothing"]
        reason = next((each for each in lines if "error" in each), lines[0])
        raise InputError(f"{name}: does not compile: {reason}")


def _keep(folder: Path, place: Path) -> None:
    """Let a folder be in the cache, unless another process was faster."""
    try:
        folder.rename(place)
    except OSError:
        if not (place / LIBRARY).is_file():
            raise
