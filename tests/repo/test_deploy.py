"""The files in `deploy/` can be read, and name commands, options and variables that exist."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from ipaddress import ip_address
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from cyclopts import CycloptsError

from tenure.cli.app import build
from tenure.cli.host_file import HostOptions, PlanMaker
from tests.repo.reading import ROOT, files

DEPLOY = ROOT / "deploy"
FILES = sorted(path.name for path in DEPLOY.iterdir())
INSTRUCTIONS = {
    *("FROM", "COPY", "RUN", "USER", "ENV", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK"),
    *("CMD", "ENTRYPOINT"),
}
IN_A_SENTENCE = re.compile(r"`tenure (token new [^`>]+)`")
ON_A_LINE = re.compile(r"^[$# ]*tenure (token new [^`>\n]+)", re.MULTILINE)
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
    yield from (("one-host.yml", command) for command in compose_commands("one-host.yml", ""))
    for part in ("manager", "node", "documents", "gateway"):
        found = compose_commands("three-hosts.yml", part)
        yield from (("three-hosts.yml", command) for command in found)
    for name in ("tenure-manager.service", "tenure-node.service"):
        yield name, shlex.split(unit(name)["Service"]["ExecStart"])[1:]


@pytest.mark.parametrize(("where", "command"), list(commands()))
def test_every_command_could_be_run(where: str, command: list[str]) -> None:
    assert command[0] in ("manager", "columns", "up", "serve", "gateway"), where
    build().parse_args(command, exit_on_error=False, print_error=False)


def tokens_to_make() -> Iterator[tuple[str, str]]:
    """Return the commands that make a token, wherever a file mentions them: in a sentence, or on a
    line.
    """
    for path in files():
        if path.parts[0] in ("docs", "deploy", "src") or str(path) in ("README.md", "SECURITY.md"):
            text = (ROOT / path).read_text("utf-8", errors="replace")
            for found in (*IN_A_SENTENCE.findall(text), *ON_A_LINE.findall(text)):
                yield str(path), " ".join(re.sub(r"\{[^}]*\}", "x", found).split())


def test_every_token_that_is_to_be_made_can_be_made() -> None:
    found = sorted(set(tokens_to_make()))
    assert len(found) > 5
    for where, command in found:
        try:
            build().parse_args(shlex.split(command), exit_on_error=False, print_error=False)
        except CycloptsError as error:
            pytest.fail(f"{where}: tenure {command}: {error}")


def test_the_image_is_built_of_what_is_here_and_runs_a_manager_without_rights() -> None:
    lines = (DEPLOY / "Containerfile").read_text("utf-8").replace("\\\n", " ").splitlines()
    said = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    assert {word for word, _ in said} <= INSTRUCTIONS
    last = {word: rest for word, rest in said if word != "RUN"}
    started = json.loads(last["ENTRYPOINT"]) + json.loads(last["CMD"])
    assert (started, last["USER"], last["EXPOSE"]) == (["tenure", "manager"], "tenure", "7400")
    assert f"{last['USER']}" in next(rest for word, rest in said if "useradd" in rest)
    assert last["VOLUME"] == dict([last["ENV"].split("=")])["TENURE_STATE"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for extras in re.findall(r"\[([a-z,]+)\]'", " ".join(lines)):
        assert set(extras.split(",")) <= project["optional-dependencies"].keys()


def test_the_compose_files_name_what_they_have() -> None:
    for name, kinds in (("compose.yml", ("etcd", "manager", "rooms")), ("columns.yml", ("node",))):
        said = documents(name)[0]
        services = said["services"]
        for kind in kinds:
            found = [each for each in services if each.startswith(kind)]
            assert len(found) == (2 if kind == "rooms" else 3), (name, kind)
        for service in services.values():
            assert set(service.get("depends_on", ())) <= services.keys()
            assert set(service.get("networks", ())) <= said.get("networks", {}).keys()
            if "build" in service:
                assert (DEPLOY / service["build"]["context"]).resolve() == ROOT
                assert (ROOT / service["build"]["dockerfile"]).is_file()


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


def pods() -> dict[str, Any]:
    """The pods of each workload, by its name."""
    return {
        each["metadata"]["name"]: each["spec"]["template"]
        for each in documents("kubernetes.yml")
        if "template" in each["spec"]
    }


def secrets_of(pod: Any) -> set[str]:  # noqa: ANN401  # as YAML has it
    volumes = pod["spec"]["volumes"]
    return {each["secret"]["secretName"] for each in volumes if "secret" in each}


def test_no_pod_of_a_service_has_a_secret_of_the_managers() -> None:
    found = pods()
    assert secrets_of(found["tenure"]) == {"tenure-tls", "tenure-tokens"}
    assert secrets_of(found["rooms"]) == {"rooms-tls", "rooms-token"}


@pytest.mark.parametrize("name", ["tenure", "rooms"])
def test_every_pod_runs_without_rights_and_within_limits(name: str) -> None:
    spec = pods()[name]["spec"]
    assert spec["automountServiceAccountToken"] is False
    said = spec["securityContext"]
    assert (said["runAsNonRoot"], said["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    assert f"--uid {said['runAsUser']}" in (DEPLOY / "Containerfile").read_text("utf-8")
    for container in spec["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
    writable = {each["mountPath"] for each in spec["containers"][0]["volumeMounts"]} - {
        each["mountPath"] for each in spec["containers"][0]["volumeMounts"] if each.get("readOnly")
    }
    assert writable <= {"/var/lib/tenure"}


def policies() -> dict[str, Any]:
    found = (each for each in documents("kubernetes.yml") if each["kind"] == "NetworkPolicy")
    return {each["metadata"]["name"]: each["spec"] for each in found}


def test_who_may_connect_to_each_pod_is_said_and_clients_say_that_they_are() -> None:
    for name, pod in pods().items():
        labels = pod["metadata"]["labels"]
        assert policies()[name]["podSelector"]["matchLabels"].items() <= labels.items()
    let_in = policies()["tenure"]["ingress"][0]["from"]
    clients = pods()["rooms"]["metadata"]["labels"].items()
    assert any(each["podSelector"]["matchLabels"].items() <= clients for each in let_in)


def test_a_policy_leaves_no_port_open_to_everybody_but_the_one_that_is_served() -> None:
    """A rule without ports is about all of them, and one without pods about everybody."""
    rules = [
        (name, [each["port"] for each in rule.get("ports", ())], "from" in rule)
        for name, policy in policies().items()
        for rule in policy["ingress"]
    ]
    assert rules == [("tenure", [7400], True), ("rooms", [8000], False), ("rooms", [], True)]
    assert policies()["tenure"]["policyTypes"] == ["Ingress", "Egress"]
    assert policies()["rooms"]["policyTypes"] == ["Ingress"]
    assert all(each["to"] and each["ports"] for each in policies()["tenure"]["egress"])


@pytest.mark.parametrize("name", ["compose.yml", "three-hosts.yml"])
def test_etcd_listens_at_addresses_because_it_refuses_names(name: str) -> None:
    for command in compose_commands(name, "etcd"):
        said = dict(pairwise(each.removeprefix("--") for each in command))
        for option in ("listen-client-urls", "listen-peer-urls"):
            for url in said[option].split(","):
                host = urlsplit(url.replace("${HOST}", "n1.example")).hostname
                assert host == str(ip_address(host or "")), url


UNITS = [name for name in FILES if name.endswith(".service")]
MOST_EXPOSED = 2.5
"""As systemd counts: 10 is a process of root without any bounds."""


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_reads_its_secrets_as_credentials(name: str) -> None:
    """Files that a user made for it can read, others can: there is only one such user at a time."""
    text = (DEPLOY / name).read_text("utf-8")
    given = {
        line.partition("=")[2].partition(":")[0]
        for line in text.splitlines()
        if line.startswith("LoadCredential=")
    }
    assert set(re.findall(r"%d/([\w-]+)", text)) == given
    paths = re.findall(r"/etc/tenure/\S+", unit(name)["Service"]["ExecStart"])
    assert paths in ([], ["/etc/tenure/manager.toml"]), "which has no secrets"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
@pytest.mark.parametrize("name", UNITS)
def test_a_unit_is_hardly_exposed(name: str) -> None:
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(DEPLOY / name)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    if "offline" in said.stderr:
        pytest.skip("this systemd analyzes no files")
    (exposure,) = re.findall(r"Overall exposure level for \S+: ([\d.]+)", said.stdout)
    assert float(exposure) < MOST_EXPOSED


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


@pytest.mark.parametrize("file", ["compose.yml", "columns.yml", "one-host.yml", "three-hosts.yml"])
def test_each_container_is_looked_at_where_it_listens(file: str) -> None:
    """The image looks at a manager on loopback, without TLS."""
    for name, service in documents(file)[0]["services"].items():
        if "build" in service:
            command = service.get("command", "manager").split()
            is_plain = command[0] in ("manager", "up") and "--tls-cert" not in command
            assert is_plain is not ("healthcheck" in service), name


def test_the_file_of_one_host_can_be_run() -> None:
    plan = PlanMaker(HostOptions(file=DEPLOY / "one-host.toml")).plan()
    assert [*plan.services] == ["documents"]
    assert plan.gateway is not None


def test_what_waits_for_an_operator_wakes_one() -> None:
    rules = [rule for group in documents("alerts.yml")[0]["groups"] for rule in group["rules"]]
    assert "max(tenure_rivals) > 0" in [rule["expr"] for rule in rules]


def test_every_file_is_explained() -> None:
    page = (ROOT / "docs/operating/deploying.md").read_text("utf-8")
    assert [name for name in FILES if f"`deploy/{name}`" not in page] == []
