// The last hour of a pool: a line for what its owners had to do, bars for what happened, and what it
// says in words, for those who cannot see it. A slider looks back: everything then says what was at
// that time, and the events are those until then.

import { ago, ask, byId, element, poolPath } from "./api.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 360, HEIGHT = 60; // a sample is one unit wide
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const CHARTS = [
  { name: "load", title: "Requests a second", series: ["load", "busiest"], words: wordsOfLoad },
  { name: "moved", title: "Ranges handed over", series: ["moved"], bars: true, words: wordsOfCounts("moved") },
  { name: "died", title: "Owners that died", series: ["died"], bars: true, words: wordsOfCounts("died") },
  { name: "journal", title: "Journal, slowest answer", series: ["journal_ms"], words: wordsOfJournal },
];

export class Hour {
  // `looked` is told until when to look, in seconds since 1970; null for now.
  constructor(looked) {
    this.looked = looked;
    this.hour = null;
    this.at = null; // the time of the sample that is looked at; null for the last, whichever that is
    this.slider = byId("hour-at");
    this.slider.addEventListener("input", () => this.look(Number(this.slider.value)));
    this.pool = null;
    this.next = 0; // when there is something new
    this.figures = new Map();
    for (const chart of CHARTS) {
      const figure = element("figure"), words = element("figcaption");
      const picture = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
      figure.append(element("h3", chart.title), picture, words);
      byId("hour").append(figure);
      this.figures.set(chart.name, { picture, words });
    }
  }

  async read(pool) {
    const now = performance.now();
    if (pool === this.pool && now < this.next) return;
    const hour = await ask(poolPath(pool, "hour"));
    if (pool !== this.pool) this.at = null;
    this.pool = pool;
    this.next = now + 1000 * hour.every_seconds;
    this.hour = hour;
    this.show();
  }

  look(place) {
    this.at = place === this.last ? null : this.hour.at[place];
    this.show();
  }

  get last() {
    return this.hour.load.length - 1;
  }

  // Samples come and go while somebody looks at one.
  get place() {
    const at = this.at === null ? -1 : this.hour.at.findIndex((time) => time >= this.at);
    return at < 0 ? this.last : at;
  }

  show() {
    const hour = this.hour, count = hour.load.length, place = this.place;
    this.showPlace(place);
    byId("hour-words").textContent = count
      ? `What this leader has seen in the last ${ago(count * hour.every_seconds)}, now at the right.`
      : "Nothing yet: this leader takes its first sample after ten seconds.";
    byId("hour").hidden = count === 0;
    for (const chart of CHARTS) {
      const { picture, words } = this.figures.get(chart.name);
      const most = Math.max(1, ...chart.series.flatMap((name) => hour[name]));
      const draw = chart.bars ? bars : line;
      picture.replaceChildren(...chart.series.map((name) => draw(hour[name], most, name)));
      if (this.at !== null) picture.append(drawn("path", { d: `M${x(hour.load, place)},0V${HEIGHT}`, class: "mark" }));
      words.textContent = count ? chart.words(hour, place) : "";
    }
  }

  showPlace(place) {
    const hour = this.hour, time = hour.at[place];
    const said = this.at === null ? "now" : `${CLOCK.format(new Date(1000 * time))}, ${ago(hour.until - time)} ago`;
    byId("hour-back").hidden = hour.load.length < 2;
    this.slider.max = Math.max(0, this.last);
    this.slider.value = place;
    this.slider.setAttribute("aria-valuetext", said);
    byId("hour-time").textContent = said;
    this.looked(this.at === null ? null : time);
  }
}

function drawn(name, attributes) {
  const it = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) it.setAttribute(key, value);
  return it;
}

const x = (values, at) => WIDTH - values.length + at + 0.5;
const y = (value, most) => HEIGHT - 1 - (value / most) * (HEIGHT - 4);

function line(values, most, name) {
  const points = values.map((value, at) => `${x(values, at)},${y(value, most).toFixed(1)}`);
  if (points.length === 1) points.unshift(`${x(values, -1)},${y(values[0], most).toFixed(1)}`);
  return drawn("polyline", { points: points.join(" "), class: name });
}

function bars(values, most, name) {
  const parts = values.map((value, at) => (value ? `M${x(values, at)},${HEIGHT}V${y(value, most).toFixed(1)}` : ""));
  return drawn("path", { d: parts.join("") || "M0,0", class: name });
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

const when = (values, place) => (place === values.length - 1 ? "Now" : "Then");

function wordsOfLoad({ load, busiest, owners }, place) {
  const most = Math.max(...load), count = owners[place];
  const who = count > 1 ? `; the busiest of ${count} owners ${busiest[place].toFixed(0)}` : "";
  return `${when(load, place)} ${load[place].toFixed(0)}${who}. The most was ${most.toFixed(0)}.`;
}

function wordsOfCounts(what) {
  return (hour, place) => {
    const values = hour[what], total = sum(values);
    if (!total) return "None.";
    if (place < values.length - 1) return `Then ${values[place]}, of ${total} in all.`;
    const at = values.length - 1 - values.findLastIndex((value) => value > 0);
    return `${total}, the last ${at ? `${ago(at * hour.every_seconds)} ago` : "just now"}.`;
  };
}

function wordsOfJournal({ journal_ms: times }, place) {
  return `${when(times, place)} ${times[place].toFixed(1)} ms. The most was ${Math.max(...times).toFixed(1)} ms.`;
}
