"""Makes the package of `tests/data/third_party_method` look installed, without an installer."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "data/third_party_method"
GROUP = "offline_judge.methods"


def install(site: Path) -> Path:
    """Copy the package to `site` and describe it as an installer would; returns its folder."""
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    package = site / "louder_judge"
    shutil.copytree(SOURCE / "louder_judge", package, ignore=shutil.ignore_patterns("__pycache__"))
    described = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = project["entry-points"][GROUP]
    lines = [f"[{GROUP}]", *(f"{name} = {value}" for name, value in points.items())]
    (described / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return package
