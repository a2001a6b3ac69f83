"""A release: what it refuses, what it writes, and what is looked for in what it builds."""

import os
import shutil
import subprocess
import sys
from email.message import Message
from pathlib import Path

import pytest

from tests.repo.reading import ROOT
from tools.release import distribution, version

CHANGES = "# Changelog\n\n## [Unreleased]\n\n- A thing.\n\n## [0.1.0] - 2026-01-01\n\n- Old.\n"


def repository(folder: Path) -> Path:
    """A small one, with what a release changes."""
    for name in ("pyproject.toml", "src/tenure/__init__.py", "tools/make-release"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
    (folder / "tools/make-release").chmod(0o755)
    (folder / "CHANGELOG.md").write_text(CHANGES)
    return folder


def git(folder: Path, *command: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@tenure.example")
    subprocess.run(["git", *who, *command], cwd=folder, check=True, capture_output=True)


def test_a_release_gives_the_project_its_version_and_the_changelog_its_part(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    version.set_version(folder, "0.2.0", "2026-12-01")
    assert 'version = "0.2.0"' in (folder / "pyproject.toml").read_text("utf-8")
    assert '__version__ = "0.2.0"' in (folder / "src/tenure/__init__.py").read_text("utf-8")
    changes = (folder / "CHANGELOG.md").read_text("utf-8")
    assert "## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n\n- A thing." in changes
    assert version.notes(folder, "0.2.0") == "- A thing."


def test_a_version_that_the_changelog_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none of 0\.1\.0 yet"):
        version.set_version(repository(tmp_path), "0.1.0", "2026-12-01")


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("", "say which"),
        ("1.0-beta", "say which"),
        ("0.3.0", "not committed"),
        ("0.2.0", "a tag v0.2.0 already"),
        ("0.4.0", "no signing key"),
    ],
)
def test_a_release_that_cannot_be_made_is_refused_before_anything_is_done(
    asked: str, why: str, tmp_path: Path
) -> None:
    folder = repository(tmp_path)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "All of it")
    git(folder, "tag", "v0.2.0")
    if asked == "0.3.0":
        (folder / "new").touch()
    environment = {
        "PATH": "/usr/bin:/bin:/usr/local/bin",
        "VERSION": asked,
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
    done = subprocess.run(
        ["tools/make-release"],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 1
    assert why in done.stderr
    assert (folder / "CHANGELOG.md").read_text("utf-8") == CHANGES


def test_what_a_distribution_lacks_or_has_too_much_is_found() -> None:
    wanted = ("LICENSE", "src/tenure/py.typed")
    names = ["LICENSE", "src/tenure/__pycache__/a.pyc"]
    found = list(distribution.missing("an sdist", names, wanted))
    assert found == [
        "an sdist lacks src/tenure/py.typed",
        "an sdist has src/tenure/__pycache__/a.pyc",
    ]


def test_metadata_that_say_something_wrong_are_found() -> None:
    metadata = Message()
    for field, value in (("Name", "tenure"), ("Version", "9"), ("Provides-Extra", "server")):
        metadata[field] = value
    found = "\n".join(distribution.wrong_metadata(metadata))
    for part in ("Version: 9", "License-Expression: None", "the extras", "has types"):
        assert part in found


def test_the_extras_of_users_are_those_that_are_installed_together() -> None:
    assert {"server", "columns", "testing"} <= set(distribution.extras())
    assert not distribution.OF_DEVELOPERS & set(distribution.extras())


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="there is no ssh-keygen here")
def test_a_dry_run_signs_with_a_key_of_this_repository(tmp_path: Path) -> None:
    folder, key = repository(tmp_path), tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    checks = folder / "tools/dist-check"
    checks.write_text("mkdir -p dist && touch dist/tenure.whl dist/tenure.tar.gz\n")
    checks.chmod(0o755)
    shutil.copytree(ROOT / "tools/release", folder / "tools/release")
    (folder / ".venv").symlink_to(sys.prefix)
    (folder / ".gitignore").write_text(".venv\n")
    git(folder, "init", "-q")
    for name, value in (("gpg.format", "ssh"), ("user.signingkey", str(key))):
        git(folder, "config", name, value)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "All of it")
    said = {"VERSION": "0.2.0", "DRY_RUN": "1", "SITE": "0", "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run(
        ["tools/make-release"],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **said},
    )
    assert done.returncode == 0, done.stderr
    assert "dry run of 0.2.0 went through" in done.stdout
    assert "tenure.whl.sig" in done.stdout
    assert "not signed" not in done.stdout
