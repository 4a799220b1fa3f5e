"""Small installs for the tests of targets: real layouts on disk, with whatever code is given."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

PACKAGE: Mapping[str, str] = {
    "vllm/__init__.py": "",
    "vllm/_version.py": "__version__ = version = '1.2.3'\n",
    "vllm/v1/__init__.py": "",
    "vllm/v1/sampler.py": "def sample(logits):\n    return logits.argmax(-1)\n",
    "vllm/py.typed": "",
}


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below `root`, by posix path."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def record_line(path: str, content: str | bytes) -> str:
    """One line of RECORD as an installer writes it."""
    data = content if isinstance(content, bytes) else content.encode()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    quoted = f'"{path}"' if "," in path else path
    return f"{quoted},sha256={digest},{len(data)}"


def metadata(
    name: str,
    version: str,
    files: Mapping[str, str | bytes],
    more: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The files of a dist-info whose RECORD lists `files`; `more` adds to the folder."""
    folder = f"{name.replace('-', '_')}-{version}.dist-info"
    lines = [record_line(path, content) for path, content in files.items()]
    found = {
        f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nText\n",
        f"{folder}/RECORD": "\n".join([*lines, f"{folder}/RECORD,,"]) + "\n",
    }
    return found | {f"{folder}/{path}": content for path, content in (more or {}).items()}


def installed(
    site: Path,
    name: str = "vllm",
    version: str = "1.2.3",
    files: Mapping[str, str | bytes] = PACKAGE,
    more: Mapping[str, str] | None = None,
) -> Path:
    """Install `files` into a site folder as a distribution."""
    write(site, files)
    return write(site, metadata(name, version, files, more))


def environment(prefix: Path, python: str = "3.12.4") -> Path:
    """The site folder of a new virtual environment, in the layout of Linux."""
    write(prefix, {"pyvenv.cfg": f"home = /usr/bin\nversion = {python}\n"})
    site = prefix / f"lib/python{python.rpartition('.')[0]}/site-packages"
    site.mkdir(parents=True)
    return site


def zipped(path: Path, files: Mapping[str, str | bytes]) -> Path:
    """A zip file with these members."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def wheel_file(folder: Path, name: str = "vllm", tags: str = "cp312-cp312-linux_x86_64") -> Path:
    """A small wheel of `PACKAGE`."""
    about = f"Wheel-Version: 1.0\nGenerator: none\nRoot-Is-Purelib: false\nTag: {tags}\n"
    files = dict(PACKAGE) | metadata(name, "1.2.3", PACKAGE, {"WHEEL": about})
    return zipped(folder / f"{name.replace('-', '_')}-1.2.3-{tags}.whl", files)


def tarred(path: Path, files: Mapping[str, str | bytes], mode: str = "w:gz") -> Path:
    """A tar file with these members."""
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]  # mode is a variable
        for name, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def snapshot(root: Path) -> dict[str, tuple[int, int, str]]:
    """Every path below `root` with its mode, its modification time and its content's hash."""
    return {
        str(path.relative_to(root)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(root.rglob("*"))
    }
