// What happens, the latest first.

import { byId, element, fill } from "./api.js";

const KEPT = 300;
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" }); // made in 30 ms
const DRAWN_MS = 200; // in a storm of them nobody reads more of it a second

export class Events {
  constructor() {
    this.all = [];
    this.last = 0;
    this.waiting = 0;
    this.items = new WeakMap();
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

  draw() {
    const wanted = byId("events-filter").value.trim().toLowerCase();
    const shown = this.all.filter((event) => `${words(event)} ${event.cause}`.toLowerCase().includes(wanted));
    fill(byId("events"), shown.map((event) => this.item(event)));
    const [latest] = this.all;
    byId("latest").hidden = !latest;
    if (latest) byId("latest").textContent = `Latest, at ${CLOCK.format(time(latest))}: ${words(latest)}`;
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

const time = (event) => new Date(event.at * 1000);

function words(event) {
  const pool = event.pool ? `[${event.pool}] ` : "";
  return pool + event.kind + (event.detail ? `: ${event.detail}` : "");
}
