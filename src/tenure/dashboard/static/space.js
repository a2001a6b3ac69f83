// The key space as a bar: a colour for each owner, stronger where an owner has more to do; and holes.

import { byId, element } from "./api.js";
import { position } from "./table.js";

const LEGEND = 24; // nobody can tell more colours apart
export const dark = matchMedia("(prefers-color-scheme: dark)");

// Names get colours in the order in which they are first seen, each as far from the last as can be:
// colours made of the names alone would soon be alike. They stay while the page is open.
const slots = new Map();

export function colour(name, work) { // `work` is from 0 to 1: what it does, beside the busiest
  if (!slots.has(name)) slots.set(name, slots.size);
  const light = dark.matches ? 30 + 35 * work : 80 - 38 * work;
  const hue = 25 + (185 + slots.get(name) * 118.41) % 310; // by the golden ratio; red is for holes
  return `hsl(${hue.toFixed(0)} ${(45 + 35 * work).toFixed(0)}% ${light.toFixed(0)}%)`;
}

export class Space {
  constructor(canvas) {
    this.canvas = canvas;
    this.at = 0;
    this.picture = document.createElement("canvas"); // all but the cursor, which moves with the mouse
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
    const { canvas, picture, table } = this, scale = devicePixelRatio || 1;
    picture.width = Math.max(1, Math.round(canvas.clientWidth * scale));
    picture.height = Math.max(1, Math.round(canvas.clientHeight * scale));
    if (table?.entries.length) this.paint(picture.getContext("2d"), scale);
    this.drawCursor();
  }

  // Of 64,000 ranges dozens lie in one pixel, and the first of each half of a pixel is drawn. A hole is
  // always drawn, and last, because it must be seen.
  paint(pen, scale) {
    const { table } = this, width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    pen.scale(scale, scale);
    const holes = [], fills = new Map(); // most have an owner that had others before
    let from = this.edge(0) * width, drawn = -1;
    table.entries.forEach((entry, index) => {
      const to = this.edge(index + 1) * width, wide = to - from, at = from;
      from = to;
      if (entry.owner === null) {
        holes.push([at, Math.max(2, wide)]);
        return;
      }
      if (wide < 0.5 && Math.floor(at * 2) === drawn) return;
      drawn = Math.floor(at * 2);
      if (!fills.has(entry.owner))
        fills.set(entry.owner, colour(table.nameOf(entry.owner), this.work.get(entry.owner) ?? 0));
      pen.fillStyle = fills.get(entry.owner);
      pen.fillRect(at, 0, Math.max(0.5, wide), height);
    });
    for (const [at, wide] of holes) hatch(pen, at, wide, height);
  }

  drawCursor() {
    const { canvas, picture } = this, scale = devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = picture.width;
    canvas.height = picture.height;
    if (!this.table?.entries.length) return;
    const pen = canvas.getContext("2d");
    pen.drawImage(picture, 0, 0);
    pen.scale(scale, scale);
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
    byId("busiest").textContent = busiest(owners);
    words.className = holes ? "error" : "";
    const legend = byId("legend");
    legend.replaceChildren(...owners.slice(0, LEGEND).map((owner) =>
      swatch(owner.name, colour(owner.name, this.work.get(owner.incarnation) ?? 0))));
    if (owners.length > LEGEND) legend.append(element("li", `and ${owners.length - LEGEND} more`));
  }

  point(index) {
    if (!this.table?.entries.length) return;
    this.at = index;
    this.drawCursor();
    const entry = this.table.entries[index];
    const named = (hex, text) => (text ? JSON.stringify(text) : hex);
    const from = entry.start === "" ? "the first key" : named(entry.start, entry.startText);
    const to = entry.end === null ? "the last" : named(entry.end, entry.endText);
    const owner = this.table.nameOf(entry.owner) ?? "nobody";
    byId("space-at").textContent =
      `${from} to ${to}: ${owner}, lease number ${entry.number}, unbroken since ${entry.since}`;
  }
}

// The busiest owner, and its share of the load; nothing if there is no load.
function busiest(owners) {
  const all = owners.reduce((so_far, owner) => so_far + owner.load, 0);
  if (!all) return "";
  const most = owners.reduce((so_far, owner) => (owner.load > so_far.load ? owner : so_far));
  const part = `${((most.load / all) * 100).toFixed(0)} % of ${all.toFixed(1)}/s`;
  return `Busiest: ${most.name} with ${most.load.toFixed(1)}/s, ${part}.`;
}

// What a colour stands for. Its square is an SVG, because the policy of this page forbids styles.
export function swatch(name, fill) {
  const made = (tag, attributes) => {
    const found = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [attribute, value] of Object.entries(attributes)) found.setAttribute(attribute, value);
    return found;
  };
  const square = made("svg", { "aria-hidden": "true" });
  square.append(made("rect", { width: "100%", height: "100%", fill }));
  const item = element("li");
  item.append(square, name);
  return item;
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
