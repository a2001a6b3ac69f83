"""The wheel, as somebody gets it: its commands, and the documents that they cite, are in it."""

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.repo.reading import ROOT

PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


def test_an_installed_wheel_has_its_commands_and_documents(tmp_path: Path) -> None:
    # The extra `dev` has what builds it; without that, pip fetches it.
    has_builder = importlib.util.find_spec("hatchling") is not None
    options = ["--no-build-isolation"] if has_builder else []
    subprocess.run([*PIP, "wheel", "--no-deps", *options, "-w", tmp_path, ROOT], check=True)
    [wheel] = tmp_path.glob("tenure-*.whl")
    page = (ROOT / "docs/operating/etcd.md").read_text("utf-8")
    pages = {each for each in zipfile.ZipFile(wheel).namelist() if each.endswith(".md")}
    assert "tenure/_docs/operating/etcd.md" in pages

    site = tmp_path / "site"
    subprocess.run([*PIP, "install", "--no-deps", "--no-index", "-t", site, wheel], check=True)
    environment = os.environ | {"PYTHONPATH": str(site)}

    def said(*program: str) -> str:
        return subprocess.run(
            [sys.executable, *program],
            check=True,
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
        ).stdout

    assert said("-c", "import tenure; print(tenure.__file__)").startswith(str(site))
    assert said("-m", "tenure", "docs", "etcd") == page
    assert "operating/etcd\t" in said("-m", "tenure", "docs")
