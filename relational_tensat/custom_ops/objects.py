"""C compiled on this machine into objects, each once: kept in the user's own cache, by content.

The library in which a kernel is timed alone, and those of whole files, are linked of the same objects. An
object is known by the hash of its C, the compiler and its flags. It may be compiled in the background, of
a kernel that is not verified yet: it is loaded by nobody before.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from pathlib import Path

from relational_tensat.base.errors import InputError
from relational_tensat.base.folders import PrivateFolder, check_own, user_cache
from relational_tensat.base.process import processors
from relational_tensat.mugraph.kernels.emit_c import FLAGS, compiler_version

#: A kernel's tiles are on the stack of a thread of onnxruntime's, which may be small: 512 KiB on macOS.
MOST_STACK_BYTES = 256 << 10
_OWN_FLAGS = (
    *(flag for flag in FLAGS if flag != "-shared"),
    "-fvisibility=hidden",
    f"-Werror=frame-larger-than={MOST_STACK_BYTES}",
)
#: What registers ops has no loops: half the time of a file that each library has its own of.
_REGISTERING, _REGISTERING_FLAGS = ("library.c", "custom_op.c"), ("-O1",)
#: Longer no file is compiled.
_MOST_S = 300.0
#: Levels of x86-64 with what a compiler defines where the processor has all of it, the best first.
_LEVELS = {
    "x86-64-v4": ("AVX512F", "AVX512BW", "AVX512CD", "AVX512DQ", "AVX512VL"),
    "x86-64-v3": ("AVX2", "BMI", "BMI2", "F16C", "FMA", "LZCNT", "MOVBE"),
}
_V3 = _LEVELS["x86-64-v3"]
#: Objects that are compiled, or will be, in this process.
_COMPILED: dict[Path, Future[Path]] = {}


@cache
def machine_flags(command: str) -> tuple[str, ...]:
    """Return the flags for one function in place of three: what is compiled here is loaded here alone.

    The level is the one of which a clone would be chosen (``functions.h``), so kernels are the same code.
    That saves half the time to compile. A compiler or processor that knows no such level gets no flags.
    """
    asked = [command, "-march=native", "-dM", "-E", "-x", "c", "-"]
    told = subprocess.run(asked, input="", capture_output=True, text=True)
    defined = {line.split()[1].strip("_") for line in told.stdout.splitlines() if "__" in line}
    for level, needed in _LEVELS.items():
        if not defined.issuperset({*needed, *_V3}):
            continue
        known = [command, f"-march={level}", "-E", "-x", "c", "-"]
        if subprocess.run(known, input="", capture_output=True, text=True).returncode == 0:
            return (f"-march={level}",)
    return ()


def flags_of(name: str, command: str) -> tuple[str, ...]:
    """Return the flags that a file of a library is compiled with."""
    return (
        *_OWN_FLAGS,
        *machine_flags(command),
        *(_REGISTERING_FLAGS if name in _REGISTERING else ()),
    )


def begin(files: Mapping[str, str], command: str) -> list[Future[Path]]:
    """Return objects of C, by the files' names: those of the cache, others as soon as they are compiled.

    Raises:
        InputError: the cache is not the user's own.
    """
    place = user_cache() / "custom-ops" / "objects"
    try:
        place.mkdir(0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{place}: cannot be written: {error.strerror or error}") from error
    for own in (place.parent, place):
        check_own(own, by_one=True)
    return [_begun(name, text, place, command) for name, text in files.items()]


def finish() -> None:
    """Wait until nothing is compiled in the background: times are of a machine that does nothing else."""
    wait(_COMPILED.values())


def _begun(name: str, text: str, place: Path, command: str) -> Future[Path]:
    flags = flags_of(name, command)
    content = "\0".join([compiler_version(command), *flags, name, text])
    path = place / f"{hashlib.sha256(content.encode()).hexdigest()[:32]}.o"
    known = _COMPILED.get(path)
    if known is None or (known.done() and not path.exists()):
        known = _COMPILED[path] = _pool().submit(_kept, name, text, path, command)
    return known


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(processors(), "compiler")


def _kept(name: str, text: str, path: Path, command: str) -> Path:
    """Return an object of the cache, which is compiled if it is not there."""
    if not path.is_file():
        try:
            with PrivateFolder(path.parent) as folder:
                _compiled(name, text, folder.path, command).replace(path)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
    check_own(path, by_one=True)
    return path


def _compiled(name: str, text: str, folder: Path, command: str) -> Path:
    """Compile a file of C into an object of a folder.

    Raises:
        InputError: it does not compile.
    """
    source = folder / name
    source.write_text(text, encoding="utf-8")
    made = source.with_suffix(".o")
    run_compiler([command, *flags_of(name, command), "-c", str(source), "-o", str(made)], name)
    made.chmod(0o600)
    return made


def run_compiler(line: Sequence[str], name: str) -> None:
    """Run a compiler or linker.

    Raises:
        InputError: it says no, or goes on for minutes.
    """
    try:
        made = subprocess.run(line, capture_output=True, text=True, timeout=_MOST_S)
    except subprocess.TimeoutExpired:
        raise InputError(f"{name}: does not compile within {_MOST_S:.0f} s") from None
    if made.returncode:
        lines = made.stderr.splitlines() or ["the compiler says nothing"]
        reason = next((each for each in lines if "error" in each), lines[0])
        raise InputError(f"{name}: does not compile: {reason}")
