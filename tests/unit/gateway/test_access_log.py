"""The lines that a gateway logs of requests: as many as strangers like, so only if asked for."""

import logging

import pytest

from tenure.cli import gateway as command
from tenure.cli.gateway_options import GatewayOptions
from tenure.cli.long_run import ReportOptions


@pytest.mark.parametrize("access_log", [False, True])
def test_requests_are_logged_only_if_asked(
    access_log: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    access = logging.getLogger("tenure.gateway.access")
    monkeypatch.setattr(access, "level", access.level)
    monkeypatch.setattr(command, "run_long", lambda _: None)
    command.gateway(
        options=GatewayOptions(access_log=access_log), report=ReportOptions(log_level="info")
    )
    assert access.isEnabledFor(logging.INFO) == access_log
