"""What a damaged archive raises, turned into the one error that readers expect."""

from __future__ import annotations

import contextlib
import errno
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

# Damaged, encrypted or unknown content, as the standard library reports it.
DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    RuntimeError,
    ValueError,
    ArithmeticError,
    LookupError,
)


@contextlib.contextmanager
def damage_is_oserror() -> Iterator[None]:
    """Raise `OSError` (EIO) for everything that damaged content can raise."""
    try:
        yield
    except DAMAGE as error:
        raise OSError(errno.EIO, f"damaged in the archive: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """The first line of an error's text, or its kind where it has none."""
    text = (getattr(error, "strerror", None) or str(error)).strip()
    return text.splitlines()[0] if text else type(error).__name__


class MemberStream(io.RawIOBase):
    """A member's content; reading damaged parts raises `OSError`."""

    def __init__(self, inner: IO[bytes]) -> None:
        super().__init__()
        self._inner = inner

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always: members of archives on disk can be read again from their start."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a writable buffer as far as one read of the member goes."""
        with damage_is_oserror():
            data = self._inner.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move within the member."""
        with damage_is_oserror():
            return self._inner.seek(offset, whence)

    def tell(self) -> int:
        """Where in the member the next read starts."""
        return self._inner.tell()

    def close(self) -> None:
        """Close the member; the archive stays open."""
        self._inner.close()
        super().close()
