"""The set-up scripts: no work twice, a half-made environment made anew, failures that say where."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = [
    *(ROOT / "scripts" / name for name in ("demo", "test", "check", "fix", "screenshots")),
    ROOT / ".ci/run",
]
# Stands in for every Python: notes what would take long, and leaves the rest to the real one.
FAKE_PYTHON = f"""#!/bin/sh
case "$1 $2" in
  "-m venv") echo venv >>"$LOG"; rm -rf "$4"; mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; exit ;;
  "-m pip") echo "pip $*" >>"$LOG"; exit "${{PIP_STATUS:-0}}" ;;
esac
exec '{sys.executable}' "$@"
"""


class Checkout:
    """A copy of the scripts in a folder with a space in its name, with a fake Python."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a clone"
        shutil.copytree(ROOT / "scripts", self.root / "scripts")
        shutil.copy(ROOT / "pyproject.toml", self.root)
        self.python = folder / "fake python"
        self.python.write_text(FAKE_PYTHON)
        self.python.chmod(0o755)
        self.log = folder / "log"

    def bash(self, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run code with the functions of lib.sh at hand."""
        return subprocess.run(
            ["bash", "-c", f'source "{self.root}/scripts/lib.sh"\n{code}'],
            env={**os.environ, "PYTHON": str(self.python), "LOG": str(self.log), **environment},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            # A job in the background is started with interrupts ignored, which bash cannot undo.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def work(self) -> list[str]:
        """What was done since the last look."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return [line.split()[0] for line in lines]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_executable_and_parses(script: Path) -> None:
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_the_environment_is_made_once(checkout: Checkout) -> None:
    assert checkout.bash("ensure_env ''").returncode == 0
    assert checkout.work() == ["venv", "pip"]
    assert checkout.bash("ensure_env ''").returncode == 0
    assert checkout.work() == []


def test_the_development_tools_are_added_and_include_the_plain_install(checkout: Checkout) -> None:
    checkout.bash("ensure_env ''; ensure_env dev; ensure_env ''")
    assert checkout.work() == ["venv", "pip", "pip"]


def test_changed_dependencies_are_installed_into_the_same_environment(checkout: Checkout) -> None:
    checkout.bash("ensure_env dev")
    checkout.work()
    with (checkout.root / "pyproject.toml").open("a") as file:
        file.write("\n# changed\n")
    checkout.bash("ensure_env dev")
    assert checkout.work() == ["pip"]


def test_a_moved_checkout_is_installed_again(checkout: Checkout) -> None:
    checkout.bash("ensure_env ''")
    checkout.work()
    checkout.root = checkout.root.rename(checkout.root.with_name("moved"))
    checkout.bash("ensure_env ''")
    assert checkout.work() == ["pip"]


def test_an_environment_left_half_made_is_made_anew(checkout: Checkout) -> None:
    checkout.bash("ensure_env ''")
    checkout.work()
    (checkout.root / ".venv/.installing").touch()
    checkout.bash("ensure_env ''")
    assert checkout.work() == ["venv", "pip"]


def test_a_failed_install_says_so_and_is_not_taken_for_done(checkout: Checkout) -> None:
    failed = checkout.bash("step 'the environment' ensure_env ''", PIP_STATUS="7")
    assert failed.returncode == 1
    assert 'Failed at the step "the environment"' in failed.stderr
    checkout.work()
    checkout.bash("ensure_env ''")
    assert checkout.work() == ["venv", "pip"]


def _only_python(folder: Path, body: str) -> dict[str, str]:
    """An environment in which `python3` is the only Python there is."""
    tools = folder / "bin"
    tools.mkdir()
    for name in ("bash", "dirname"):
        (tools / name).symlink_to(str(shutil.which(name)))
    (tools / "python3").write_text(f"#!/bin/sh\n{body}\n")
    (tools / "python3").chmod(0o755)
    return {"PATH": str(tools), "PYTHON": ""}


def test_without_a_fitting_python_the_message_says_what_is_needed(
    checkout: Checkout, tmp_path: Path
) -> None:
    done = checkout.bash("ensure_env ''", **_only_python(tmp_path, "exit 1"))
    assert done.returncode == 3
    assert "Python 3.11 or newer is needed" in done.stderr


def test_a_python_without_venv_is_named(checkout: Checkout, tmp_path: Path) -> None:
    body = 'case "$2" in *ensurepip*) exit 1 ;; esac'
    done = checkout.bash("ensure_env ''", **_only_python(tmp_path, body))
    assert done.returncode == 3
    assert "python3 cannot make virtual environments" in done.stderr


def test_a_failing_step_is_named_and_its_status_kept(checkout: Checkout) -> None:
    done = checkout.bash("step 'one' true; step 'two' bash -c 'exit 5'; step 'three' true")
    assert done.returncode == 5
    assert 'Failed at the step "two" (exit 5).' in done.stderr
    assert "== three" not in done.stderr


def test_an_interrupt_says_how_to_go_on(checkout: Checkout) -> None:
    done = checkout.bash(f"step 'judging' kill -{signal.SIGINT} $$")
    assert done.returncode == 130
    assert 'Stopped at the step "judging"' in done.stderr


def test_the_demo_refuses_what_it_does_not_know(checkout: Checkout) -> None:
    command = [str(checkout.root / "scripts/demo"), "--smal"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--small" in done.stderr
    assert not (checkout.root / ".venv").exists()
