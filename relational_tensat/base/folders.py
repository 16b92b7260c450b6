"""Folders of one process: private, under names that nobody can guess, and removed when it has ended.

Each is made for its owner only, and locked as long as its process lives. The system gives the lock back
when the process ends, even by a crash. The next process that makes its first folder at the same place
removes those that nobody holds any more. Of folders that were planted nothing is
followed: their owner, and that they are no links, is looked at first. Like all that is ``Closing``, a
folder is given back where a ``with`` block ends.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir
from typing import Self

from relational_tensat.base.errors import InputError


class Closing(ABC):
    """A resource that is its own context manager: leaving the block closes it."""

    @abstractmethod
    def close(self) -> None:
        """Give back what it holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


try:
    import fcntl
except ImportError:  # Windows: nothing is locked, and so nothing is removed for others
    fcntl = None  # type: ignore[assignment]  # a module where there is one

#: Where caches are kept, instead of the platform's folder for them.
CACHE_VARIABLE = "RELATIONAL_TENSAT_CACHE"
_OWN = re.compile(r"(\..*\.)?relational-tensat-[0-9a-f]{16}\.part", re.DOTALL)
#: A name has 255 bytes on most file systems: so many are left to what it is made of.
_NAME_BYTES = 200
#: Root can write everywhere anyway.
_ROOT = 0


class PrivateFolder(Closing):
    """A fresh folder that only this user can look into; closing it removes it."""

    def __init__(self, parent: Path, name: str = "") -> None:
        """Make it, and remove what processes that are gone have left beside it.

        Args:
            name: its purpose; the folder is hidden then.

        Raises:
            OSError: nothing can be made there.
        """
        _remove_left(parent)
        self._lock: int | None = None
        start = f".{os.fsdecode(os.fsencode(name)[:_NAME_BYTES])}." if name else ""
        while True:
            self.path = parent / f"{start}relational-tensat-{os.urandom(8).hex()}.part"
            self.path.mkdir(0o700)
            with suppress(BlockingIOError, FileNotFoundError):  # taken for one that was left
                self._lock = _locked(self.path)
                break
        _OPEN[self] = os.getpid()

    def close(self) -> None:
        """Remove it, with all that is in it, once, and in the process that has made it."""
        if _OPEN.pop(self, None) != os.getpid():
            return
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a private folder among the system's temporary files, which is removed at the end."""
    with PrivateFolder(Path(gettempdir())) as folder:
        yield folder.path


def is_temporary(path: Path) -> bool:
    """Whether a file is in such a folder, and so is gone when the process is."""
    folder = path.absolute().parent
    return folder.parent == Path(gettempdir()) and _OWN.fullmatch(folder.name) is not None


def remove_folders() -> None:
    """Remove what nobody has closed; the process ends. Those of a parent that it was forked from stay."""
    for folder in [folder for folder, process in _OPEN.items() if process == os.getpid()]:
        folder.close()


_OPEN: dict[PrivateFolder, int] = {}
atexit.register(remove_folders)


def utf8_name(path: Path) -> str:
    """Return a name of a file for libraries that take no other than UTF-8: its own, or one of links to it.

    Raises:
        InputError: a file that is not there yet has no such name.
    """
    name = str(path.absolute())
    if is_utf8(name):
        return name
    if not is_utf8(path.name) and not path.exists():
        raise InputError(
            f"{path}: the name is not UTF-8, and the library that writes it takes no other"
        )
    target = path.absolute() if not is_utf8(path.name) else path.absolute().parent
    place = (os.getpid(), target)
    if place not in _LINKS:
        _LINKS[place] = PrivateFolder(Path(gettempdir())).path / f"link{path.suffix}"
        _LINKS[place].symlink_to(target)
    link = _LINKS[place]
    return str(link / path.name if is_utf8(path.name) else link)


_LINKS: dict[tuple[int, Path], Path] = {}


def is_utf8(text: str) -> bool:
    """Whether a text can be written in UTF-8: the name of a file may have any bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def user_cache() -> Path:
    """Return the folder of what is kept for this user; it need not be there.

    Raises:
        InputError: others may have written what is in it.
    """
    folder = os.environ.get(CACHE_VARIABLE)
    if not folder:
        import platformdirs  # many commands need no cache

        folder = platformdirs.user_cache_dir("relational-tensat")
    check_own(Path(folder))
    return Path(folder)


def check_own(path: Path, *, by_one: bool = False) -> None:
    """Check that nobody but this user, or root, can have written a file or folder.

    Args:
        by_one: as for code: no link, and no group of users may write it.

    Raises:
        InputError: it belongs to another user, or others may write it.
    """
    if not hasattr(os, "geteuid"):
        return
    try:
        state = path.lstat() if by_one else path.stat()
    except OSError:
        return  # what is not there is not used
    if by_one and stat.S_ISLNK(state.st_mode):
        raise InputError(f"{path}: is a link, is not used")
    if by_one and state.st_mode & stat.S_IWGRP:
        raise InputError(f"{path}: others may write it, is not used")
    if state.st_uid not in (os.geteuid(), _ROOT):
        raise InputError(f"{path}: belongs to another user (number {state.st_uid}), is not used")
    if state.st_mode & stat.S_IWOTH:
        raise InputError(f"{path}: everybody may write it, is not used")


def _remove_left(parent: Path) -> None:
    """Remove the folders of processes that are gone, once a process: a large folder takes long to read."""
    if parent.absolute() in _CLEARED:
        return
    _CLEARED.add(parent.absolute())
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if _OWN.fullmatch(entry.name) and _is_of_user(entry):
                with suppress(OSError):
                    lock = _locked(Path(entry.path))
                    if lock is not None:
                        shutil.rmtree(entry.path, ignore_errors=True)
                        os.close(lock)


_CLEARED: set[Path] = set()


def _is_of_user(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder of this user, and no link to one."""
    with suppress(OSError):
        state = entry.stat(follow_symlinks=False)
        return stat.S_ISDIR(state.st_mode) and state.st_uid == getattr(os, "geteuid", int)()
    return False


def _locked(folder: Path) -> int | None:
    """Return a descriptor that holds a folder's lock; None where the system has no locks.

    Raises:
        BlockingIOError: another process has it.
        FileNotFoundError: the folder is gone.
    """
    if fcntl is None:
        return None
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder.stat()
    except (BlockingIOError, FileNotFoundError):
        os.close(descriptor)
        raise
    except OSError:  # the file system has no locks
        os.close(descriptor)
        return None
    return descriptor
