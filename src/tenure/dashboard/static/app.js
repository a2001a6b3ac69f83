// The page: it reads again what the manager's pushes name.

import { ask, breathe, byId, compareNames, element, offer, poolPath } from "./api.js";
import { showCaches, showEntities } from "./caches.js";
import { Crash } from "./crash.js";
import { Events } from "./events.js";
import { Glance } from "./glance.js";
import { showHottest } from "./hottest.js";
import { Hour } from "./hour.js";
import { Keys } from "./keys.js";
import { sayStandby, showManagers } from "./managers.js";
import { OwnersTable } from "./owners.js";
import { Ranges } from "./ranges.js";
import { keep } from "./signed.js";
import { Space } from "./space.js";
import { steer } from "./steering.js";
import { Store } from "./store.js";
import { tell } from "./story.js";
import { Stream } from "./stream.js";

const LOADS_MS = 3000; // loads change all the time, and nobody pushes them
const AGAIN_MS = 2000;

const page = {
  view: "leases", pool: null, ranges: null, pulse: null, status: null, stream: null,
  isReading: false, again: false, timer: 0,
};
const events = new Events();
const hour = new Hour((until) => events.lookUntil(until));
const crash = new Crash();
const glance = new Glance();
const space = new Space(byId("space"));
const owners = new OwnersTable(async (command, body, what) => {
  await steer(page.pool, command, body, what);
  await read();
});

const store = new Store(read);
const keys = new Keys();

// --- coming in ---

async function begin() {
  try {
    const signedIn = await ask("/v1/sign-in");
    document.body.classList.toggle("may-change", signedIn.may_change);
    byId("leave").hidden = signedIn.who === "nobody";
    byId("sign-in").hidden = true;
    byId("main").hidden = false;
    follow();
  } catch (problem) {
    if (problem.status !== 401) {
      sayManager("the manager does not answer; retrying ...", "bad");
      setTimeout(begin, AGAIN_MS);
      return;
    }
    sayManager("not signed in");
    byId("main").hidden = true;
    byId("sign-in").hidden = false;
    byId("token").focus();
  }
}

byId("sign-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    keep((await ask("/v1/sign-in", { token: byId("token").value })).key ?? "");
    byId("token").value = byId("sign-in-problem").textContent = "";
    await begin();
  } catch (problem) {
    byId("sign-in-problem").textContent = problem.message;
  }
});
byId("leave").addEventListener("click", async () => {
  await ask("/v1/sign-in", undefined, "DELETE");
  keep("");
  location.reload();
});

// --- what is pushed ---

function leave() {
  page.stream?.close();
  clearInterval(page.timer);
  begin();
}

function follow() {
  page.stream = new Stream("/v1/live", {
    noted: (event) => {
      events.add(event);
      crash.note(event);
    },
    pulse: onPulse,
    lost: (isRefused) => {
      sayManager("the manager does not answer; retrying ...", "bad");
      if (isRefused) setTimeout(leave, AGAIN_MS);
    },
  });
  clearInterval(page.timer);
  page.timer = setInterval(() => {
    if (document.hidden) return;
    read();
    showManagers();
  }, LOADS_MS);
}

function sayManager(text, state = "") {
  byId("manager").textContent = text;
  byId("manager").dataset.state = state;
}

function onPulse(pulse) {
  page.pulse = pulse;
  if (pulse.role === "leading") {
    const waits = pulse.waits ? "; not granting leases yet" : "";
    const proven = pulse.proven ? "" : "; cannot reach its journal at the moment";
    const text = `leading, leadership ${pulse.leadership}, LSN ${pulse.lsn}${waits}${proven}`;
    sayManager(text, pulse.proven ? "" : "bad");
  } else {
    const leader = pulse.leader ? `${pulse.leader} leads` : "no leader is known";
    sayManager(`${pulse.role}; ${leader}`, pulse.leader ? "" : "bad");
  }
  sayStandby(pulse);
  showManagers();
  choose(page.view);
  choosePools(pulse.pools.map((pool) => pool.name));
  store.offer(pulse.clusters);
  offerView("store", pulse.clusters.length > 0);
  if (!pulse.pools.length && pulse.clusters.length) choose("store"); // there is nothing else to see
  read();
}

// --- views: one for each tier that exists ---

const views = [...document.querySelectorAll("#views button")];
for (const button of views) {
  button.addEventListener("click", () => {
    choose(button.dataset.view);
    read();
  });
}

function choose(view) {
  page.view = view;
  for (const button of views) {
    if (button.dataset.view === view) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
  }
  const leads = page.pulse?.role === "leading";
  for (const part of document.querySelectorAll("[data-of]")) part.hidden = !leads || part.dataset.of !== view;
}

function offerView(view, isThere) {
  views.find((button) => button.dataset.view === view).hidden = !isThere;
  byId("views").hidden = views.filter((button) => !button.hidden).length < 2;
  if (!isThere && page.view === view) choose("leases");
}

function choosePools(names) {
  byId("pool-choice").hidden = names.length === 0;
  const wanted = page.pool ?? decodeURIComponent(location.hash.slice(1));
  const pool = names.includes(wanted) ? wanted : (names[0] ?? null);
  offer(byId("pool"), names, pool);
  if (pool !== page.pool) choosePool(pool);
}

function choosePool(pool) {
  page.pool = pool;
  keys.choose(pool);
  page.ranges?.end();
  page.ranges = pool === null ? null : new Ranges(pool);
  byId("story").replaceChildren();
  if (pool !== null) history.replaceState(null, "", `#${encodeURIComponent(pool)}`);
}

byId("pool").addEventListener("change", () => {
  choosePool(byId("pool").value);
  read();
});

// --- what is read ---

// One reading at a time: changes during it are read right after it.
async function read() {
  page.again = true;
  if (page.isReading) return;
  page.isReading = true;
  try {
    while (page.again) {
      page.again = false;
      await readOnce();
    }
    byId("problem").hidden = true;
  } catch (problem) {
    byId("problem").hidden = false;
    byId("problem").textContent = problem.message;
    if (problem.status === 401) leave(); // the token is no longer valid
  } finally {
    page.isReading = false;
  }
}

async function readOnce() {
  const status = page.status = await ask("/v1/status");
  showStatus(status);
  const leads = page.pulse?.role === "leading";
  crash.show(leads ? page.pulse.pools.find((pool) => pool.name === page.pool) : null, status);
  if (!leads) return;
  if (page.view === "store") await store.read();
  else if (page.pool !== null) await readPool(page);
}

async function readPool({ pool, ranges }) {
  const found = await ask(poolPath(pool, "owners"));
  if (ranges !== page.ranges) return; // another pool was chosen meanwhile
  const sorted = found.owners.sort((a, b) => compareNames(a.name, b.name));
  offerView("caches", sorted.some((owner) => owner.volume));
  offerView("entities", sorted.some((owner) => owner.entities));
  if (page.view === "caches") showCaches(sorted);
  else if (page.view === "entities") showEntities(sorted);
  else await readTable(page, sorted);
}

async function readTable({ pool, ranges }, sorted) {
  const [plan] = await Promise.all([ask(poolPath(pool, "plan")), ranges.refresh()]);
  for (const show of [() => space.show(ranges, sorted), () => owners.show(sorted), () => showPool(plan)]) {
    await breathe();
    if (ranges !== page.ranges) return;
    show();
  }
  const { keys: hottest } = await ask(poolPath(pool, "hottest"));
  await hour.read(pool);
  if (ranges !== page.ranges) return;
  showHottest(hottest);
  const unsampled = crash.countSince(pool, hour.hour.until); // samples come every ten seconds
  glance.show({ pool, pulse: page.pulse, status: page.status, owners: sorted, hottest, hour: hour.hour, unsampled });
}

function showPool(plan) {
  const said = [`policy ${plan.policy}`, plan.steering.frozen ? "frozen" : "not frozen"];
  if (plan.steering.pins.length) said.push(`${plan.steering.pins.length} pinned keys`);
  if (plan.flows.length) said.push(`${plan.flows.length} moves planned`);
  for (const held of plan.held_back.slice(0, 3)) said.push(`${held.what} held back: ${held.why}`);
  byId("pool-words").textContent = said.join("; ");
}

function showStatus(status) {
  const { error, alarms } = status.journal_health;
  const shown = {
    "URL": status.url, "Version": status.version, "Role": status.role,
    "Leader": status.leader ?? "not known", "LSN": status.lsn, "Journal": status.journal,
    "Journal's trouble": [error, ...alarms].filter(Boolean).join("; "),
    "Preset": status.preset, "Connections": status.connections, "Lookups": status.lookups,
    "Lookup lag": `${status.lookup_lag} records`,
    "Grants in": status.grants_in_seconds ? `${status.grants_in_seconds} s` : "",
    "Realm": status.realm,
    "Two journals": status.is_over ? "this one is over: the manager answers nobody"
      : status.rivals.map((rival) => `${rival.manager} leads another, ${rival.journal}: nothing is `
        + (rival.pool ? `granted in the pool ${rival.pool}, as an owner of it says, ` : "granted here ")
        + "until you decide with tenure resolve --keep URL").join("; "),
    "Trouble": Object.entries(status.troubles).map(([pool, why]) => `${pool}: ${why}`).join("; "),
  };
  const lines = Object.entries(shown).filter(([, value]) => value !== "");
  byId("status").replaceChildren(...lines.flatMap(([name, value]) => [
    element("dt", name), element("dd", value, { "data-status": name }),
  ]));
}

// --- what is asked ---

byId("why").addEventListener("submit", (event) => {
  event.preventDefault();
  tell(page.pool, byId("why-key").value);
});
byId("pin-owner").addEventListener("focus", () => {
  byId("owner-names").replaceChildren(...owners.owners.map(({ name }) => element("option", "", { value: name })));
});
for (const button of document.querySelectorAll("[data-pin]")) {
  button.addEventListener("click", async () => {
    const key = byId("why-key").value, owner = byId("pin-owner").value;
    const isPin = button.dataset.pin === "pin", missing = !key ? "why-key" : isPin && !owner ? "pin-owner" : "";
    if (missing) {
      byId(missing).focus();
      return;
    }
    const body = isPin ? { key, owner } : { key };
    await steer(page.pool, button.dataset.pin, body, key);
    await Promise.all([tell(page.pool, key), read()]);
  });
}
for (const button of document.querySelectorAll("[data-pool]")) {
  button.addEventListener("click", async () => {
    await steer(page.pool, button.dataset.pool, {}, page.pool);
    await read();
  });
}

begin();
