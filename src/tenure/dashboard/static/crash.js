// The last crash of a pool: on top of the page until every key has an owner again, and an hour more.

import { ago, byId, element, fill, some } from "./api.js";
import { takersOf } from "./takers.js";

const DIED = { "owner expired": "its lease ran out without a word from it", "owner attested dead": "others on its host saw its process end" };
const PART_OF_IT = ["granted", "recalled", "handed over", "owner joined", "owner left", ...Object.keys(DIED)];
const INCARNATION = / \(\d+\)$/; // which of all that had the name: people know it by the time
const STAYS_SECONDS = 3600;
const MOST_TOLD = 20, MOST_COUNTED = 300;
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

export class Crash {
  constructor() {
    this.of = new Map(); // by pool
    this.died = []; // all deaths that were seen
  }

  // How many owners of the pool have died since then.
  countSince(pool, at) {
    return this.died.filter((event) => event.pool === pool && event.at > at).length;
  }

  note(event) {
    if (event.kind in DIED) {
      this.died = [...this.died, event].slice(-MOST_COUNTED);
      const known = this.of.get(event.pool);
      const goesOn = known && known.overAt === null;
      this.of.set(event.pool, {
        first: goesOn ? known.first : event, who: [...(goesOn ? known.who : []), event.detail.replace(INCARNATION, "")],
        lastGrant: null, overAt: null, back: goesOn ? known.back : new Map(), grants: goesOn ? known.grants : [], story: goesOn ? [...known.story, event] : [event],
      });
      return;
    }
    const crash = this.of.get(event.pool);
    if (!crash || !PART_OF_IT.includes(event.kind)) return;
    const [joined] = event.kind === "owner joined" ? event.detail.split(" as ") : [];
    if (crash.who.includes(joined)) crash.back.set(joined, event.at);
    if (crash.overAt !== null) return;
    if (event.kind === "granted") {
      crash.lastGrant = event.at;
      crash.grants.push(event);
    }
    if (crash.story.length < MOST_TOLD) crash.story.push(event);
  }

  // `pool` is what the manager pushed of the pool that is shown. A lookup that comes back later is behind, too, but
  // is told of the crash by what it gets then: so what counts is what the slowest knew at one time since.
  show(pool, { lsn, lookup_lag }) {
    const crash = pool && this.of.get(pool.name);
    if (crash && crash.overAt === null && pool.free_ranges === 0) {
      crash.overAt = crash.lastGrant ?? crash.first.at;
      crash.untold = lsn;
    }
    if (crash?.untold <= lsn - lookup_lag) crash.untold = 0;
    const age = crash ? Date.now() / 1000 - (crash.overAt ?? crash.first.at) : 0;
    const isShown = Boolean(crash) && (crash.overAt === null || age < STAYS_SECONDS);
    byId("crash").hidden = !isShown;
    if (!isShown) return;
    const { first, who, overAt, grants, back } = crash;
    const names = who.length > 3 ? `${who.length} owners` : who.join(" and ");
    byId("crash").dataset.over = overAt !== null;
    const at = (seconds) => CLOCK.format(new Date(seconds * 1000));
    const takers = takersOf(grants), took = takers && ` The keys went to ${takers}.`;
    const again = [...back].map(([name, since]) => ` ${name} came back at ${at(since)}.`).join("");
    byId("crash-words").textContent = `${names} died at ${at(first.at)}, ${ago(Date.now() / 1000 - first.at)} ago: ${DIED[first.kind]}. `
      + (overAt === null
        ? `${some(pool.free_ranges, "range")} have had no owner for ${ago(age)}.${took}`
        : `Every key had an owner again ${Math.max(0.1, overAt - first.at).toFixed(1)} s later`
          + (crash.untold ? `; the slowest lookup has not been told yet: it is ${some(lookup_lag, "record")} behind.` : ", and every lookup has been told.") + took + again);
    fill(byId("crash-story"), crash.story.map((event) => this.line(event, first)));
  }

  line(event, first) {
    event.line ??= element("li", `+${(event.at - first.at).toFixed(2)} s: ${event.kind}${event.detail ? `: ${event.detail}` : ""}`);
    return event.line;
  }
}
