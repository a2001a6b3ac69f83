"""A moment of a demo, to be shown."""

from tenure.cli.demo.display import DemoState, OwnerRow, OwnerState
from tenure.cli.demo.reports import FrontendReport


def row(number: int, state: OwnerState = "serving", share: float = 0.5) -> OwnerRow:
    return OwnerRow(
        number=number,
        state=state,
        state_seconds=0.74,
        share=share,
        ranges=64,
        users=120,
        served_per_second=99.7,
        refused=3,
    )


def picture(elapsed: float, *rows: OwnerRow, double_owner: int = 0) -> DemoState:
    owners = rows or (row(1), row(2, "killed"))
    return DemoState(
        elapsed=elapsed,
        seconds=60.0,
        phase="running",
        manager="http://127.0.0.1:40000",
        term=1.2,
        hold=1.3,
        owners=owners,
        strip=(1, 2, None) * 6,
        clients=240,
        requests_per_second=301.4,
        totals=FrontendReport(
            requests=1500, rerouted=60, losses_signalled=6, keys_republished=1070
        ),
        served=1500,
        double_owner=double_owner,
    )
