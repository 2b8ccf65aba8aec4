# Shared by the scripts beside it: where things are, steps with their time, and the environment.
# To be sourced by bash. Defines ROOT, VENV and the functions below; ends the script on any error.
# shellcheck shell=bash
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
VENV=$ROOT/.venv
STEP=start

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

# say TEXT: one line of narration, on stderr like all of it.
say() { printf '%s\n' "$*" >&2; }

# fail TEXT [STATUS]: say what is wrong and end.
fail() {
  say "$1"
  exit "${2:-1}"
}

_on_exit() {
  local status=$?
  if [ "$status" -eq 130 ] || [ "$status" -eq 143 ]; then
    say "Stopped at the step \"$STEP\". Start the same command again to go on."
  elif [ "$status" -ne 0 ]; then
    say "Failed at the step \"$STEP\" (exit $status)."
  fi
}
trap _on_exit EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# step NAME COMMAND...: announce, run and time one step; its name is in the message if it fails.
step() {
  STEP=$1
  shift
  local began=$SECONDS
  say "== $STEP"
  "$@"
  say "   $((SECONDS - began)) s"
}

# fits PYTHON: is it there, 3.11 or newer?
fits() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

# find_python: print the first Python that fits and can make environments.
find_python() {
  local name without_venv=
  for name in ${PYTHON:+"$PYTHON"} python3.13 python3.12 python3.11 python3; do
    fits "$name" || continue
    if "$name" -c 'import ensurepip, venv' >/dev/null 2>&1; then
      printf '%s\n' "$name"
      return
    fi
    without_venv=$name
  done
  if [ -n "$without_venv" ]; then
    fail "$without_venv cannot make virtual environments: install its venv module (on Debian and Ubuntu the package python3-venv)." 3
  fi
  fail "Python 3.11 or newer is needed and none was found (tried \$PYTHON, python3.13, python3.12, python3.11, python3)." 3
}

# _narrate LOG: copy pip's output into LOG and show only what it is working on.
_narrate() {
  local line
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$1"
    case $line in
      *"dependencies: started" | Collecting\ * | *Downloading\ * | Installing\ * | *error* | *ERROR*)
        line=${line%% (from*}
        say "   ${line:0:100}"
        ;;
    esac
  done
}

_make_venv() {
  local python
  python=$(find_python)
  say "   $("$python" --version) makes .venv"
  "$python" -m venv --clear "$VENV"
}

# ensure_env EXTRA: make .venv hold this package, with the extra "dev" or with none (""). What is
# there already is kept, as long as pyproject.toml, the Python and the place are the same. A mark
# stands while pip works: found at the start, it means a half-made environment, made anew then.
ensure_env() {
  local extra=$1 mark=$VENV/.installing log=$VENV/install.log stamp want target
  if [ -e "$mark" ] || ! fits "$VENV/bin/python" ||
    ! "$VENV/bin/python" -c 'import pip' >/dev/null 2>&1; then
    _make_venv
  fi
  want=$("$VENV/bin/python" - "$ROOT" <<'PY'
import hashlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
print(hashlib.sha256((root / "pyproject.toml").read_bytes()).hexdigest(), sys.version, root)
PY
  )
  stamp=$VENV/.installed-${extra:-base}
  if [ -e "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then
    say "   .venv is up to date"
    return
  fi
  target=$ROOT${extra:+[$extra]}
  : >"$mark"
  : >"$log"
  if ! "$VENV/bin/python" -m pip install --progress-bar off -e "$target" 2>&1 | _narrate "$log"; then
    tail -n 15 "$log" >&2
    fail "pip could not install the package; its whole output is in $log."
  fi
  # The extra brings all that the plain install has.
  printf '%s\n' "$want" >"$VENV/.installed-base"
  printf '%s\n' "$want" >"$stamp"
  rm -f "$mark"
}

# tools_python: print the Python whose environment holds the development tools.
tools_python() {
  local name
  for name in ${PYTHON:+"$PYTHON"} "$VENV/bin/python" python3; do
    if "$name" -c 'import importlinter, mypy, ruff' >/dev/null 2>&1; then
      "$name" -c 'import sys; print(sys.executable)'
      return
    fi
  done
  fail "The development tools are not installed: run ./scripts/test once." 3
}

# oj ARGUMENTS...: the program, as installed in .venv.
oj() { "$VENV/bin/offline-judge" "$@"; }
