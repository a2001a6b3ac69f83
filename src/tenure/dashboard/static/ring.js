// A cluster's ring: an arc for each range in the colour of its first replica, stronger where there is
// more load; inside it a band in the colour of that node's rack; outside, each node at its token.

import { byId, compareNames, element } from "./api.js";
import { colour, dark, spread, swatch } from "./space.js";

const NAMES = 40; // more would lie on each other

export const rackOf = (node) => `${node.datacentre}/${node.rack}`;

export class Ring {
  constructor(canvas) {
    this.canvas = canvas;
    this.at = 0;
    this.ring = null;
    new ResizeObserver(() => this.draw()).observe(canvas);
    dark.addEventListener("change", () => this.draw());
    canvas.addEventListener("mousemove", (event) => this.onMouse(event));
    canvas.addEventListener("keydown", (event) => this.onKey(event));
  }

  onKey(event) {
    const last = (this.ring?.ranges.length ?? 0) - 1;
    const steps = { ArrowLeft: this.at - 1, ArrowRight: this.at + 1, Home: 0, End: last };
    if (!(event.key in steps) || last < 0) return;
    event.preventDefault();
    this.point((steps[event.key] + last + 1) % (last + 1)); // it is a ring
  }

  onMouse(event) {
    const box = this.canvas.getBoundingClientRect();
    const across = event.clientX - box.left - box.width / 2, down = event.clientY - box.top - box.height / 2;
    const turned = (Math.atan2(across, -down) / (2 * Math.PI) + 1) % 1;
    this.point(Math.floor(turned * (this.ring?.ranges.length ?? 0)));
  }

  show(ring) {
    this.ring = ring;
    spread(ring.nodes.map((node) => node.name));
    this.nodes = new Map(ring.nodes.map((node) => [node.name, node]));
    this.racks = [...new Set(ring.nodes.map(rackOf))].sort(compareNames);
    this.at = Math.max(0, Math.min(this.at, ring.ranges.length - 1));
    this.draw();
    byId("ring-racks").replaceChildren(...this.racks.map((rack) => swatch(rack, this.rackColour(rack))));
    byId("ring-none").hidden = ring.ranges.length > 0;
    this.canvas.hidden = !ring.ranges.length;
  }

  rackColour(rack) {
    return `hsl(${(this.racks.indexOf(rack) * 360) / this.racks.length + 20} 35% ${dark.matches ? 60 : 45}%)`;
  }

  draw() {
    const { canvas, ring } = this;
    const scale = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = Math.max(1, Math.round(width * scale));
    canvas.height = Math.max(1, Math.round(height * scale));
    if (!ring?.ranges.length || !width) return;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.translate(width / 2, height / 2);
    this.pen = pen;
    this.ink = getComputedStyle(canvas).color;
    this.radius = Math.max(30, Math.min(width / 2 - 75, height / 2 - 26));
    const most = Math.max(...ring.ranges.map((range) => range.load));
    ring.ranges.forEach((range, index) => this.range(range, index, most));
    const [from, to] = this.ends(this.at);
    this.arc(this.radius, from, to, this.ink, 3);
    if (ring.nodes.length <= NAMES) ring.ranges.forEach((range, index) => this.name(range, index));
  }

  ends(index) {
    const one = (2 * Math.PI) / this.ring.ranges.length;
    return [index * one - Math.PI / 2, (index + 1) * one - Math.PI / 2];
  }

  range(range, index, most) {
    const [from, to] = this.ends(index);
    const first = range.replicas[0] ?? "";
    const gap = Math.min(0.01, (to - from) / 5);
    this.arc(this.radius - 14, from, to - gap, colour(first, most ? range.load / most : 0.4), 22);
    const node = this.nodes.get(first);
    if (node) this.arc(this.radius - 34, from, to - gap, this.rackColour(rackOf(node)), 7);
  }

  arc(radius, from, to, stroke, wide) {
    this.pen.beginPath();
    this.pen.arc(0, 0, radius, from, to);
    this.pen.strokeStyle = stroke;
    this.pen.lineWidth = wide;
    this.pen.stroke();
  }

  // A node stands where its own range ends.
  name(range, index) {
    const node = this.ring.nodes.find((each) => each.token === range.end && each.standing !== "waiting");
    if (!node) return;
    const { pen, radius } = this, at = this.ends(index)[1];
    const across = Math.cos(at), down = Math.sin(at);
    pen.beginPath();
    pen.arc(across * radius, down * radius, 5, 0, 2 * Math.PI);
    pen.fillStyle = !node.connected ? "#b42318" : this.ink;
    pen.fill();
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = across > 0.2 ? "left" : across < -0.2 ? "right" : "center";
    pen.textBaseline = "middle";
    pen.fillText(short(node.name), across * (radius + 12), down * (radius + 14));
  }

  point(index) {
    const range = this.ring?.ranges[index];
    if (!range) return;
    this.at = index;
    this.draw();
    byId("ring-at").textContent = `${range.start || "the first key"} to ${range.end ?? "the last"}: ` +
      `kept by ${range.replicas.join(", ")}` + (range.new.length ? `; will be by ${range.new.join(", ")}` : "");
  }
}

export const heading = (text) => element("th", text, { scope: "row" });

function short(name) {
  return name.length > 14 ? `${name.slice(0, 13)}…` : name;
}
