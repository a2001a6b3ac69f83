// The key space, with a lane for each owner: its colour is stronger where it has more to do. Holes go
// through all lanes.

import { byId, element, fill, some } from "./api.js";

const LEGEND = 24; // nobody can tell more colours apart; the others share a lane
const LANE = 20, THIN_LANE = 8, FEW_LANES = 8; // pixels; names stand in the lanes where these are few
const LEAST_HEIGHT = 72;
export const dark = matchMedia("(prefers-color-scheme: dark)");

// A name has the same hue whenever and wherever the page is opened: a hash of its letters, and by the
// golden ratio its number, so that the owners of a fleet are far apart. Where two that are shown
// together would be alike, the later by name takes another hue and keeps it while the page is open.
const GOLDEN = 0.618034;
const APART = 0.04; // of all hues: 12 degrees
const hues = new Map(); // by name, from 0 to 1

function hueOf(name) {
  const letters = name.replace(/\d{1,6}$/, "");
  let hash = 0x811c9dc5; // FNV-1a
  for (const letter of letters) hash = Math.imul(hash ^ letter.codePointAt(0), 0x01000193) >>> 0;
  return ((hash + Number(name.slice(letters.length))) * GOLDEN) % 1;
}

export function spread(names) {
  const taken = names.filter((name) => hues.has(name)).map((name) => hues.get(name));
  const isAlike = (hue) => (other) => (hue - other + APART + 1) % 1 < 2 * APART;
  const isFree = (hue) => names.length > LEGEND || !taken.some(isAlike(hue));
  for (const name of names.filter((each) => !hues.has(each)).sort()) {
    const own = hueOf(name), tries = Array.from({ length: 2 * LEGEND }, (_, at) => (own + at * GOLDEN) % 1);
    hues.set(name, tries.find(isFree) ?? own);
    taken.push(hues.get(name));
  }
}

export function colour(name, work) { // `work` is from 0 to 1: what it does, beside the busiest
  const light = dark.matches ? 30 + 35 * work : 80 - 38 * work;
  const hue = 25 + 310 * (hues.get(name) ?? hueOf(name)); // red is for holes
  return `hsl(${hue.toFixed(0)} ${(45 + 35 * work).toFixed(0)}% ${light.toFixed(0)}%)`;
}

export class Space {
  constructor(canvas) {
    this.canvas = canvas;
    this.width = this.height = 0; // told by the browser: to ask would have it lay out the page at once
    this.picture = document.createElement("canvas"); // all but the cursor, which moves with the mouse
    this.ranges = null;
    this.work = new Map();
    this.lanes = []; // the owners that have one of their own, the first on top
    this.hasOthers = false;
    this.at = 0; // the range that is pointed at
    this.place = 0; // where it begins, from 0 to 1
    this.isPointed = false;
    this.swatches = new Map(); // by name
    new ResizeObserver(([{ contentRect }]) => {
      this.width = contentRect.width;
      this.height = contentRect.height;
      this.draw();
    }).observe(canvas);
    dark.addEventListener("change", () => this.draw());
    canvas.addEventListener("mousemove", (event) => {
      const box = canvas.getBoundingClientRect();
      this.point(this.indexAt((event.clientX - box.left) / box.width));
    });
    canvas.addEventListener("keydown", (event) => this.onKey(event));
  }

  onKey(event) {
    const last = (this.ranges?.count ?? 0) - 1;
    const steps = {
      ArrowLeft: this.at - 1, ArrowRight: this.at + 1, Home: 0, End: last,
      PageUp: this.at - 20, PageDown: this.at + 20,
    };
    if (!(event.key in steps) || last < 0) return;
    event.preventDefault();
    this.point(Math.max(0, Math.min(last, steps[event.key])));
  }

  show(ranges, owners) {
    const most = Math.max(0, ...owners.map((owner) => owner.load));
    this.ranges = ranges;
    spread(owners.map((owner) => owner.name));
    this.work = new Map(owners.map((owner) => [owner.incarnation, most ? owner.load / most : 0]));
    if (this.edge(this.at) !== this.place) this.at = this.indexAt(this.place);
    const busiest = [...owners].sort((a, b) => b.load - a.load).slice(0, LEGEND); // of equals the first
    this.lanes = owners.filter((owner) => busiest.includes(owner));
    this.hasOthers = owners.length > LEGEND;
    const count = this.laneCount, high = count > FEW_LANES ? THIN_LANE : LANE;
    this.canvas.style.height = `${Math.max(LEAST_HEIGHT, count * high)}px`;
    this.draw();
    this.tell(owners);
    if (this.isPointed) this.describe();
  }

  get laneCount() {
    return Math.max(1, this.lanes.length + this.hasOthers);
  }

  edge(index) {
    return index < this.ranges.count ? this.ranges.edges[index] : 1;
  }

  indexAt(place) {
    let low = 0, high = Math.max(0, (this.ranges?.count ?? 1) - 1);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.edge(middle) <= place) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  draw() {
    const { picture } = this, scale = devicePixelRatio || 1;
    picture.width = Math.max(1, Math.round(this.width * scale));
    picture.height = Math.max(1, Math.round(this.height * scale));
    if (this.ranges?.count) this.paint(picture.getContext("2d"), scale);
    this.drawCursor();
  }

  // Of 64,000 ranges dozens lie in one pixel, and the first of each half of a pixel is drawn in its
  // lane. A hole is always drawn, and last, because it must be seen.
  paint(pen, scale) {
    const { ranges, width, height } = this, { owners } = ranges, high = height / this.laneCount;
    pen.scale(scale, scale);
    const tops = new Map(this.lanes.map((owner, lane) => [owner.incarnation, lane * high]));
    const others = this.lanes.length * high - (this.hasOthers ? 0 : high); // one that has just come
    const holes = [], fills = new Map(), drawn = new Map(); // most have an owner that had others before
    let from = this.edge(0) * width;
    for (let index = 0; index < owners.length; index += 1) {
      const owner = owners[index], to = this.edge(index + 1) * width, wide = to - from, at = from;
      from = to;
      if (owner === 0) {
        const last = holes.at(-1), end = at + Math.max(2, wide);
        if (last && at <= last.end) last.end = Math.max(last.end, end);
        else holes.push({ at, end });
        continue;
      }
      const top = tops.get(owner) ?? others, half = Math.floor(at * 2);
      if (wide < 0.5 && half === drawn.get(top)) continue;
      drawn.set(top, half);
      if (!fills.has(owner)) fills.set(owner, colour(ranges.nameOf(owner), this.work.get(owner) ?? 0));
      pen.fillStyle = fills.get(owner);
      pen.fillRect(at, top + 1, Math.max(0.5, wide), high - 2);
    }
    if (this.laneCount <= FEW_LANES) this.writeNames(pen, high);
    pen.fillStyle = hatching(pen);
    for (const { at, end } of holes) pen.fillRect(at, 0, end - at, height);
  }

  writeNames(pen, high) {
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    for (const [lane, { name }] of this.lanes.entries()) {
      const middle = (lane + 0.5) * high, wide = pen.measureText(name).width;
      pen.fillStyle = dark.matches ? "#14171b" : "#fff"; // the ground of the page
      pen.fillRect(4, middle - 8, wide + 8, 16);
      pen.fillStyle = ink();
      pen.fillText(name, 8, middle);
    }
  }

  drawCursor() {
    const { canvas, picture, width, height, at } = this, scale = devicePixelRatio || 1;
    canvas.width = picture.width;
    canvas.height = picture.height;
    if (!this.ranges?.count) return;
    const pen = canvas.getContext("2d");
    pen.drawImage(picture, 0, 0);
    pen.scale(scale, scale);
    const from = this.edge(at) * width, wide = Math.max(3, this.edge(at + 1) * width - from);
    pen.strokeStyle = ink();
    pen.lineWidth = 2;
    pen.strokeRect(from + 1, 1, Math.max(1, wide - 2), height - 2);
  }

  tell(owners) {
    const { count, holes } = this.ranges, words = byId("space-words");
    words.textContent = `${some(count, "range")}, ${some(owners.length, "owner")}` +
      (holes ? `; ${some(holes, "range")} ${holes === 1 ? "has" : "have"} no owner` : "");
    words.className = holes ? "error" : "";
    byId("busiest").textContent = whoIsBusiest(owners);
    const items = this.lanes.map((owner) => this.swatch(owner));
    if (this.hasOthers) items.push(element("li", `and ${owners.length - LEGEND} more`));
    fill(byId("legend"), items);
  }

  // Kept: of 24 little more than the strength of a colour changes.
  swatch({ name, incarnation }) {
    const meant = colour(name, this.work.get(incarnation) ?? 0);
    if (!this.swatches.has(name)) this.swatches.set(name, swatch(name, meant));
    const rect = this.swatches.get(name).querySelector("rect");
    if (rect.getAttribute("fill") !== meant) rect.setAttribute("fill", meant);
    return this.swatches.get(name);
  }

  point(index) {
    if (!this.ranges?.count) return;
    this.at = index;
    this.place = this.edge(index);
    this.isPointed = true;
    this.drawCursor();
    this.describe();
  }

  async describe() {
    const { ranges, at } = this, entry = await ranges.entry(at).catch(() => null);
    if (!entry || ranges !== this.ranges || at !== this.at) return; // another is pointed at by now
    const named = (hex, text) => (text ? JSON.stringify(text) : hex);
    const from = entry.start === "" ? "the first key" : named(entry.start, entry.startText);
    const to = entry.end === null ? "the last" : named(entry.end, entry.endText);
    const owner = entry.owner === null ? "nobody" : ranges.nameOf(entry.owner);
    byId("space-at").textContent =
      `${from} to ${to}: ${owner}, lease number ${entry.number}, unbroken since ${entry.since}`;
  }
}

const ink = () => (dark.matches ? "#e7eaee" : "#1b1f24"); // of the page

// The busiest owner, and its share of the load; nothing if there is no load.
function whoIsBusiest(owners) {
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

// White on red, from side to side of a square that is laid side by side.
function hatching(pen) {
  const tile = new OffscreenCanvas(8, 8), drawn = tile.getContext("2d");
  drawn.fillStyle = "#b42318";
  drawn.fillRect(0, 0, 8, 8);
  drawn.strokeStyle = "#fff";
  for (const x of [-8, 0, 8]) {
    drawn.moveTo(x - 1, 9);
    drawn.lineTo(x + 9, -1);
  }
  drawn.stroke();
  return pen.createPattern(tile, "repeat");
}
