// The last crash of a pool: on top of the page until every key has an owner again, and a minute more.

import { ago, byId, element, fill, some } from "./api.js";

const DIED = { "owner expired": "was not heard of for a whole hold", "owner attested dead": "others on its host saw it end" };
const PART_OF_IT = ["granted", "recalled", "handed over", "owner joined", "owner left", ...Object.keys(DIED)];
const INCARNATION = / \(\d+\)$/; // which of all that had the name: people know it by the time
const STAYS_SECONDS = 60;
const MOST_TOLD = 20;
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

export class Crash {
  constructor() {
    this.of = new Map(); // by pool
  }

  note(event) {
    if (event.kind in DIED) {
      const known = this.of.get(event.pool);
      const goesOn = known && known.overAt === null;
      this.of.set(event.pool, {
        first: goesOn ? known.first : event, who: [...(goesOn ? known.who : []), event.detail.replace(INCARNATION, "")],
        lastGrant: null, overAt: null, story: goesOn ? [...known.story, event] : [event],
      });
      return;
    }
    const crash = this.of.get(event.pool);
    if (!crash || crash.overAt !== null || !PART_OF_IT.includes(event.kind)) return;
    if (event.kind === "granted") crash.lastGrant = event.at;
    if (crash.story.length < MOST_TOLD) crash.story.push(event);
  }

  // `pool` is what the manager pushed of the pool that is shown; `lag` how far lookups are behind.
  show(pool, lag) {
    const crash = pool && this.of.get(pool.name);
    if (crash && crash.overAt === null && pool.free_ranges === 0) crash.overAt = crash.lastGrant ?? crash.first.at;
    const age = crash ? Date.now() / 1000 - (crash.overAt ?? crash.first.at) : 0;
    const isShown = Boolean(crash) && (crash.overAt === null || age < STAYS_SECONDS);
    byId("crash").hidden = !isShown;
    if (!isShown) return;
    const { first, who, overAt } = crash;
    const names = who.length > 3 ? `${who.length} owners` : who.join(" and ");
    byId("crash").dataset.over = overAt !== null;
    byId("crash-words").textContent = `${names} died at ${CLOCK.format(new Date(first.at * 1000))}: ${DIED[first.kind]}. `
      + (overAt === null
        ? `${some(pool.free_ranges, "range")} wait for an owner, for ${ago(age)} now.`
        : `Every key had an owner again ${(overAt - first.at).toFixed(1)} s later`
          + (lag ? `; the slowest lookup is ${some(lag, "record")} behind.` : ", and every lookup has been told."));
    fill(byId("crash-story"), crash.story.map((event) => this.line(event, first)));
  }

  line(event, first) {
    event.line ??= element("li", `+${(event.at - first.at).toFixed(2)} s: ${event.kind}${event.detail ? `: ${event.detail}` : ""}`);
    return event.line;
  }
}
