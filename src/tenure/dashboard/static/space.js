// The key space as a bar: a colour for each owner, stronger where an owner has more to do; and holes.

import { byId, element } from "./api.js";
import { position } from "./table.js";

const LEGEND = 24; // nobody can tell more colours apart
const dark = matchMedia("(prefers-color-scheme: dark)");

function colour(name, work) { // `work` is from 0 to 1: what an owner does, beside the busiest
  let sum = 7;
  for (const letter of name) sum = (sum * 31 + letter.codePointAt(0)) >>> 0;
  const light = dark.matches ? 30 + 35 * work : 80 - 38 * work;
  return `hsl(${((sum * 137.508) % 360).toFixed(0)} ${(45 + 35 * work).toFixed(0)}% ${light.toFixed(0)}%)`;
}

export class Space {
  constructor(canvas) {
    this.canvas = canvas;
    this.at = 0;
    this.table = null;
    this.work = new Map();
    new ResizeObserver(() => this.draw()).observe(canvas);
    dark.addEventListener("change", () => this.draw());
    canvas.addEventListener("mousemove", (event) => {
      const box = canvas.getBoundingClientRect();
      this.point(this.indexAt((event.clientX - box.left) / box.width));
    });
    canvas.addEventListener("keydown", (event) => this.onKey(event));
  }

  onKey(event) {
    const last = (this.table?.entries.length ?? 0) - 1;
    const steps = {
      ArrowLeft: this.at - 1, ArrowRight: this.at + 1, Home: 0, End: last,
      PageUp: this.at - 20, PageDown: this.at + 20,
    };
    if (!(event.key in steps) || last < 0) return;
    event.preventDefault();
    this.point(Math.max(0, Math.min(last, steps[event.key])));
  }

  show(table, owners) {
    this.table = table;
    const most = Math.max(0, ...owners.map((owner) => owner.load));
    this.work = new Map(owners.map((owner) => [owner.incarnation, most ? owner.load / most : 0]));
    this.at = Math.max(0, Math.min(this.at, table.entries.length - 1));
    this.draw();
    this.tell(owners);
  }

  // A hashed pool is drawn by its space. In an ordered one nobody knows how far keys are apart, so
  // each range is as wide as any other.
  edge(index) {
    const entries = this.table.entries;
    if (this.table.kind === "ordered") return index / entries.length;
    return index === entries.length ? 1 : position(entries[index].start);
  }

  indexAt(place) {
    let low = 0, high = Math.max(0, (this.table?.entries.length ?? 1) - 1);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.edge(middle) <= place) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  draw() {
    const { canvas, table } = this;
    const scale = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = Math.max(1, Math.round(width * scale));
    canvas.height = Math.max(1, Math.round(height * scale));
    if (!table?.entries.length) return;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    // Each range is drawn once and at least a hair wide, so of 64,000 none is left out. Holes come
    // last: they are what must be seen.
    const holes = [];
    table.entries.forEach((entry, index) => {
      const from = this.edge(index) * width;
      const wide = Math.max(0.5, this.edge(index + 1) * width - from);
      if (entry.owner === null) {
        holes.push([from, Math.max(2, wide)]);
        return;
      }
      pen.fillStyle = colour(table.nameOf(entry.owner), this.work.get(entry.owner) ?? 0);
      pen.fillRect(from, 0, wide, height);
    });
    for (const [from, wide] of holes) hatch(pen, from, wide, height);
    const from = this.edge(this.at) * width;
    const wide = Math.max(3, this.edge(this.at + 1) * width - from);
    pen.strokeStyle = getComputedStyle(canvas).color;
    pen.lineWidth = 2;
    pen.strokeRect(from + 1, 1, Math.max(1, wide - 2), height - 2);
  }

  tell(owners) {
    const holes = this.table.holes, words = byId("space-words");
    words.textContent = `${this.table.entries.length} ranges, ${owners.length} owners` +
      (holes ? `; ${holes} ${holes === 1 ? "range has" : "ranges have"} no owner` : "");
    words.className = holes ? "error" : "";
    const legend = byId("legend");
    legend.replaceChildren(...owners.slice(0, LEGEND).map((owner) => this.swatch(owner)));
    if (owners.length > LEGEND) legend.append(element("li", `and ${owners.length - LEGEND} more`));
  }

  swatch(owner) {
    const made = (tag, attributes) => {
      const found = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, value);
      return found;
    };
    const fill = colour(owner.name, this.work.get(owner.incarnation) ?? 0);
    const square = made("svg", { "aria-hidden": "true" });
    square.append(made("rect", { width: "100%", height: "100%", fill }));
    const item = element("li");
    item.append(square, owner.name);
    return item;
  }

  point(index) {
    if (!this.table?.entries.length) return;
    this.at = index;
    this.draw();
    const entry = this.table.entries[index];
    const named = (hex, text) => (text ? JSON.stringify(text) : hex);
    const from = entry.start === "" ? "the first key" : named(entry.start, entry.startText);
    const to = entry.end === null ? "the last" : named(entry.end, entry.endText);
    const owner = this.table.nameOf(entry.owner) ?? "nobody";
    byId("space-at").textContent =
      `${from} to ${to}: ${owner}, lease number ${entry.number}, unbroken since ${entry.since}`;
  }
}

function hatch(pen, from, wide, height) {
  pen.save();
  pen.beginPath();
  pen.rect(from, 0, wide, height);
  pen.clip();
  pen.fillStyle = "#b42318";
  pen.fillRect(from, 0, wide, height);
  pen.strokeStyle = "#fff";
  pen.lineWidth = 1;
  pen.beginPath();
  for (let x = from - height; x < from + wide; x += 8) {
    pen.moveTo(x, height);
    pen.lineTo(x + height, 0);
  }
  pen.stroke();
  pen.restore();
}
