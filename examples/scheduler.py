"""Jobs, each with one runner: whichever worker has the job's key. Alarms say when, and survive.

`tenure run -- uvicorn scheduler:app --workers 2`
"""

from datetime import datetime, timedelta

import httpx
import msgspec
from fastapi import FastAPI

from tenure import Alarm, Entities, Entity, reading


class Plan(msgspec.Struct):
    every: float = 0
    url: str = ""
    results: list[tuple[datetime, int]] = []


class Job(Entity[Plan]):
    async def plan(self, every: float, url: str) -> None:
        self.state = Plan(every, url)
        self.set_alarm("run", self.now() + every)

    async def on_alarm(self, alarm: Alarm) -> None:
        # At least once. A runner that slept past its term may still send: the header is the fence.
        async with httpx.AsyncClient() as client:
            answer = await client.post(self.state.url, headers=self.lease.headers())
        self.state.results = [*self.state.results, (alarm.due, answer.status_code)][-10:]
        self.set_alarm("run", alarm.due + timedelta(seconds=self.state.every))  # in one commit

    @reading
    async def results(self) -> list[tuple[datetime, int]]:
        return self.state.results


jobs = Entities(Job, pool="jobs", store="sqlite:jobs.db", settle=30)
app = FastAPI(lifespan=jobs.lifespan)


@app.put("/jobs/{job}")
async def put(job: str, every: float, url: str) -> None:
    await jobs[job].plan(every, url)


@app.get("/jobs/{job}")
async def get(job: str) -> list[tuple[datetime, int]]:
    return await jobs[job].results()
