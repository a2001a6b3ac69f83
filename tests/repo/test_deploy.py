"""The files in `deploy/` can be read, and name commands, options and variables that exist."""

import configparser
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import yaml

from tenure.cli.app import build
from tests.repo.reading import ROOT

DEPLOY = ROOT / "deploy"
FILES = sorted(path.name for path in DEPLOY.iterdir())
VARIABLE = re.compile(r"\bTENURE_[A-Z_]+\b")


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text("utf-8")))


def compose_commands(file: str = "compose.yml", of: str = "manager") -> Iterator[list[str]]:
    services = documents(file)[0]["services"]
    yield from (shlex.split(each["command"]) for name, each in services.items() if of in name)


def kubernetes_commands() -> Iterator[list[str]]:
    for document in documents("kubernetes.yml"):
        template = document["spec"].get("template", {})
        for container in template.get("spec", {}).get("containers", ()):
            if "args" in container:
                yield container["args"]


def unit(name: str) -> configparser.ConfigParser:
    found = configparser.ConfigParser(strict=False, interpolation=None)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read_string((DEPLOY / name).read_text("utf-8"))
    return found


def commands() -> Iterator[tuple[str, list[str]]]:
    yield from (("compose.yml", command) for command in compose_commands())
    yield from (("kubernetes.yml", command) for command in kubernetes_commands())
    yield from (("columns.yml", command) for command in compose_commands("columns.yml", ""))
    for name in ("tenure-manager.service", "tenure-node.service"):
        yield name, shlex.split(unit(name)["Service"]["ExecStart"])[1:]


@pytest.mark.parametrize(("where", "command"), list(commands()))
def test_every_command_could_be_run(where: str, command: list[str]) -> None:
    assert command[0] in ("manager", "columns"), where
    build().parse_args(command, exit_on_error=False, print_error=False)


def test_three_managers_run_each_with_a_name_of_its_own() -> None:
    told = [dict(pairwise(each)) for each in compose_commands()]
    assert len(told) == 3
    assert len({each["--advertise"] for each in told}) == 3
    assert len({each["--journal"] for each in told}) == 1


def test_three_nodes_run_each_with_a_name_and_a_directory_of_its_own() -> None:
    told = [dict(pairwise(each)) for each in compose_commands("columns.yml", "node")]
    assert len(told) == 3
    assert len({each["--advertise"] for each in told}) == 3
    assert len({each["--cluster"] for each in told}) == 1
    services = documents("columns.yml")[0]["services"]
    assert len({str(each["volumes"]) for each in services.values()}) == 4


def test_every_variable_is_one_that_is_read() -> None:
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    read = set(VARIABLE.findall(source))
    for name in FILES:
        unknown = set(VARIABLE.findall((DEPLOY / name).read_text("utf-8"))) - read
        assert unknown == set(), name


def test_probes_ask_what_there_is_and_a_budget_keeps_most_managers_up() -> None:
    kinds = {each["kind"]: each for each in documents("kubernetes.yml")}
    manager = kinds["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]
    probes = {manager[kind]["httpGet"]["path"] for kind in ("readinessProbe", "livenessProbe")}
    assert probes == {"/readyz", "/healthz"}
    assert kinds["PodDisruptionBudget"]["spec"]["maxUnavailable"] < (
        kinds["StatefulSet"]["spec"]["replicas"] / 2
    )
    labels = kinds["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
    for kind in ("Service", "PodDisruptionBudget"):
        selector = kinds[kind]["spec"]["selector"]
        assert selector.get("matchLabels", selector).items() <= labels.items()


def test_a_service_has_time_to_hand_over() -> None:
    kinds = {each["kind"]: each for each in documents("kubernetes.yml")}
    spec = kinds["Deployment"]["spec"]["template"]["spec"]
    assert spec["terminationGracePeriodSeconds"] >= 60
    assert "preStop" in spec["containers"][0]["lifecycle"]


def test_alerts_are_rules_that_prometheus_reads() -> None:
    for group in documents("alerts.yml")[0]["groups"]:
        for rule in group["rules"]:
            assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
            assert rule["annotations"]["summary"].endswith(".")
            assert rule["expr"].count("(") == rule["expr"].count(")")


def test_every_file_is_explained() -> None:
    page = (ROOT / "docs/operating/deploying.md").read_text("utf-8")
    assert [name for name in FILES if f"`deploy/{name}`" not in page] == []
