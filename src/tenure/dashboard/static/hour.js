// The last hour of a pool: a line for what its owners had to do, bars for what happened, and what it
// says in words, for those who cannot see it.

import { ago, ask, byId, element, poolPath } from "./api.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 360, HEIGHT = 60; // a sample is one unit wide
const CHARTS = [
  { name: "load", title: "Requests a second", series: ["load", "busiest"], words: wordsOfLoad },
  { name: "moved", title: "Ranges handed over", series: ["moved"], bars: true, words: wordsOfCounts("moved") },
  { name: "died", title: "Owners that died", series: ["died"], bars: true, words: wordsOfCounts("died") },
  { name: "journal", title: "Journal, slowest answer", series: ["journal_ms"], words: wordsOfJournal },
];

export class Hour {
  constructor() {
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
    this.pool = pool;
    this.next = now + 1000 * hour.every_seconds;
    this.show(hour);
  }

  show(hour) {
    const count = hour.load.length;
    byId("hour-words").textContent = count
      ? `What this leader saw in the last ${ago(count * hour.every_seconds)}, now at the right.`
      : "This leader has not watched for ten seconds yet.";
    byId("hour").hidden = count === 0;
    for (const chart of CHARTS) {
      const { picture, words } = this.figures.get(chart.name);
      const most = Math.max(1, ...chart.series.flatMap((name) => hour[name]));
      const draw = chart.bars ? bars : line;
      picture.replaceChildren(...chart.series.map((name) => draw(hour[name], most, name)));
      words.textContent = count ? chart.words(hour) : "";
    }
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

const last = (values) => values[values.length - 1];
const sum = (values) => values.reduce((total, value) => total + value, 0);

function wordsOfLoad({ load, busiest, owners }) {
  const now = last(load), most = Math.max(...load);
  const who = last(owners) > 1 ? `; the busiest of ${last(owners)} owners ${last(busiest).toFixed(0)}` : "";
  return `Now ${now.toFixed(0)}${who}. The most was ${most.toFixed(0)}.`;
}

function wordsOfCounts(what) {
  return (hour) => {
    const values = hour[what], total = sum(values);
    if (!total) return "None.";
    const at = values.length - 1 - values.findLastIndex((value) => value > 0);
    return `${total}, the last ${at ? `${ago(at * hour.every_seconds)} ago` : "just now"}.`;
  };
}

function wordsOfJournal({ journal_ms: times }) {
  return `Now ${last(times).toFixed(1)} ms. The most was ${Math.max(...times).toFixed(1)} ms.`;
}
