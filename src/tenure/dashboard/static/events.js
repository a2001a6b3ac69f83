// What happens, the latest first.

import { byId, element, fill, some } from "./api.js";
import { counted, takersOf } from "./takers.js";

const KEPT = 300;
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" }); // made in 30 ms
const DRAWN_MS = 200; // in a storm of them nobody reads more of it a second
const FOLDED = 4; // so many of one kind in a row are one line
const APART_SECONDS = 10; // unless they are so far from each other

export class Events {
  constructor() {
    this.all = [];
    this.last = 0;
    this.waiting = 0;
    this.until = null; // only what happened until then is shown, if somebody looks back
    this.items = new WeakMap();
    this.folds = new WeakMap(); // by the first of them
    this.opened = new WeakSet();
    byId("events-filter").addEventListener("input", () => this.draw());
  }

  add(event) {
    if (event.number <= this.last) { // told again, or by a manager that has started anew
      if (this.all.some((known) => known.number === event.number && known.at === event.at)) return;
      this.all = [];
    }
    this.last = event.number;
    this.all.unshift(event);
    this.all.length = Math.min(this.all.length, KEPT);
    this.waiting ||= setTimeout(() => {
      this.waiting = 0;
      this.draw();
    }, DRAWN_MS);
  }

  lookUntil(until) {
    if (until === this.until) return;
    this.until = until;
    this.draw();
  }

  draw() {
    const wanted = byId("events-filter").value.trim().toLowerCase();
    const known = this.until === null ? this.all : this.all.filter((event) => event.at <= this.until);
    const shown = known.filter((event) => `${words(event)} ${event.cause}`.toLowerCase().includes(wanted));
    fill(byId("events"), wanted ? shown.map((event) => this.item(event)) : this.folded(shown));
    const [latest] = known;
    byId("latest").hidden = !latest;
    if (latest) byId("latest").textContent = `${this.until === null ? "Latest" : "Latest until then"}, at ${CLOCK.format(time(latest))}: ${words(latest)}`;
  }

  // A line for each event, or one for several that are alike: a crash moves many ranges.
  folded(shown) {
    const lines = [];
    for (let from = 0; from < shown.length; ) {
      let to = from + 1;
      while (to < shown.length && areAlike(shown[to - 1], shown[to])) to += 1;
      const alike = shown.slice(from, to), first = shown[to - 1];
      if (alike.length < FOLDED || this.opened.has(first)) lines.push(...alike.map((event) => this.item(event)));
      else lines.push(this.fold(alike, first));
      from = to;
    }
    return lines;
  }

  fold(alike, first) {
    const known = this.folds.get(first);
    if (known?.count === alike.length) return known.line;
    const [latest] = alike, line = element("li", "", { value: latest.number, class: latest.level });
    const each = element("button", `(${alike.length} of them)`, { title: "show each", "data-which": `fold-${first.number}` });
    each.addEventListener("click", () => {
      this.opened.add(first);
      this.draw();
    });
    const at = time(latest), pool = latest.pool ? `[${latest.pool}] ` : "";
    line.append(element("time", CLOCK.format(at), { datetime: at.toISOString() }), `${pool}${inSum(alike)} `, each);
    this.folds.set(first, { count: alike.length, line });
    return line;
  }

  // Made once: there are hundreds, and more come several times a second.
  item(event) {
    if (this.items.has(event)) return this.items.get(event);
    const item = element("li", "", { value: event.number, class: event.level });
    const at = time(event);
    item.append(element("time", CLOCK.format(at), { datetime: at.toISOString() }), words(event));
    if (event.cause) {
      const cause = element("button", `(cause ${event.cause})`, { title: "show all with this cause" });
      cause.addEventListener("click", () => {
        byId("events-filter").value = event.cause;
        this.draw();
      });
      item.append(" ", cause);
    }
    this.items.set(event, item);
    return item;
  }
}

const areAlike = (later, earlier) => later.kind === earlier.kind && later.pool === earlier.pool
  && later.level === earlier.level && later.at - earlier.at < APART_SECONDS;

// "granted: 14 ranges to ann (9 ranges), bob (5 ranges)"; without its details if these cannot be added.
function inSum(events) {
  const [{ kind }] = events, taken = counted(events);
  if (!taken) return kind;
  const total = [...taken.values()].reduce((so_far, ranges) => so_far + ranges, 0);
  const [only] = taken.size === 1 ? taken.keys() : [];
  return `${kind}: ${some(total, "range")} to ${only ?? takersOf(events)}`;
}

const time = (event) => new Date(event.at * 1000);

function words(event) {
  const pool = event.pool ? `[${event.pool}] ` : "";
  return pool + event.kind + (event.detail ? `: ${event.detail}` : "");
}
