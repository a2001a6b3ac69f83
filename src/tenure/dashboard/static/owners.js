// The owners of a pool: sorted, filtered, and as many as one wants to see.

import { byId, command, element, fill } from "./api.js";

const AT_FIRST = 100;

export class OwnersTable {
  constructor(steer) {
    this.steer = steer;
    this.by = "name";
    this.isDown = false;
    this.most = AT_FIRST;
    this.owners = [];
    this.heads = [...document.querySelectorAll("#owners thead button")];
    byId("owners-filter").addEventListener("input", () => this.draw());
    byId("more-owners").addEventListener("click", () => {
      this.most = Infinity;
      this.draw();
    });
    for (const head of this.heads) head.addEventListener("click", () => this.sortBy(head.dataset.by));
  }

  sortBy(column) {
    this.isDown = this.by === column ? !this.isDown : column !== "name";
    this.by = column;
    this.draw();
  }

  show(owners) {
    this.owners = owners;
    this.draw();
  }

  draw() {
    const wanted = byId("owners-filter").value.trim().toLowerCase();
    const found = this.owners.filter((o) => `${o.name} ${o.address}`.toLowerCase().includes(wanted));
    const order = (a, b) => (a[this.by] < b[this.by] ? -1 : a[this.by] > b[this.by] ? 1 : 0);
    found.sort((a, b) => (this.isDown ? order(b, a) : order(a, b)));
    byId("owners-count").textContent = `(${this.owners.length})`;
    for (const head of this.heads) {
      const way = this.isDown ? "descending" : "ascending";
      head.parentElement.setAttribute("aria-sort", head.dataset.by === this.by ? way : "none");
    }
    fill(document.querySelector("#owners tbody"), found.slice(0, this.most).map((owner) => this.row(owner)));
    const more = byId("more-owners");
    more.hidden = found.length <= this.most;
    more.textContent = `Show all ${found.length}`;
  }

  row(owner) {
    const row = element("tr", "", { "data-owner": owner.name });
    const state = stateOf(owner);
    const labels = Object.entries(owner.labels).map(([name, value]) => `${name}=${value}`);
    row.append(
      element("th", owner.name, { scope: "row" }),
      element("td", state, { class: state === "serving" ? "" : "warning" }),
      element("td", owner.ranges, { class: "number" }),
      element("td", `${(owner.share * 100).toFixed(1)} %`, { class: "number" }),
      element("td", owner.load.toFixed(1), { class: "number" }),
      element("td", owner.hold_seconds.toFixed(1), { class: "number" }),
      element("td", owner.address, { class: "long" }),
      element("td", labels.join(" "), { class: "long" }),
      element("td", owner.protocol ?? "", { class: "number" }),
      this.commands(owner),
    );
    return row;
  }

  commands(owner) {
    const cell = element("td", "", { class: "steers" });
    const isHeldOff = /cordoned|drained/.test(owner.steering);
    for (const what of ["drain", isHeldOff ? "uncordon" : "cordon"]) {
      const act = () => this.steer(what, { owner: owner.name }, owner.name);
      cell.append(command(what, `${what} ${owner.name}`, act), " ");
    }
    return cell;
  }
}

function stateOf(owner) {
  const said = [];
  if (!owner.connected) said.push("not connected");
  if (owner.steering) said.push(owner.steering);
  if (owner.recalled_ranges) said.push(`${owner.recalled_ranges} recalled`);
  if (owner.same_address) said.push(`same address as ${owner.same_address}`);
  return said.join(", ") || "serving";
}
