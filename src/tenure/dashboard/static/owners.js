// The owners of a pool: sorted, filtered, and as many as the user wants to see.

import { byId, command, compareNames, element, fill } from "./api.js";

const AT_FIRST = 100;

export class OwnersTable {
  constructor(steer) {
    this.steer = steer;
    this.by = "name";
    this.isDown = false;
    this.most = AT_FIRST;
    this.owners = [];
    this.rows = new Map(); // by name: of a hundred rows little more than the holds changes
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
    const names = new Set(owners.map((owner) => owner.name));
    for (const name of this.rows.keys()) if (!names.has(name)) this.rows.delete(name);
    this.draw();
  }

  draw() {
    const wanted = byId("owners-filter").value.trim().toLowerCase();
    const found = this.owners.filter((o) => `${o.name} ${o.address}`.toLowerCase().includes(wanted));
    const order = this.by === "name"
      ? (a, b) => compareNames(a.name, b.name)
      : (a, b) => a[this.by] - b[this.by];
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
    const isHeldOff = /cordoned|drained/.test(owner.steering), state = stateOf(owner);
    let known = this.rows.get(owner.name);
    if (known?.isHeldOff !== isHeldOff) {
      known = { isHeldOff, row: this.newRow(owner, isHeldOff) };
      this.rows.set(owner.name, known);
    }
    // Labels that begin with "tenure." are for processes, and not for people.
    const told = Object.entries(owner.labels).filter(([name]) => name !== "version" && !name.startsWith("tenure."));
    const labels = told.map(([name, value]) => `${name}=${value}`);
    const texts = [
      owner.name, state, `${owner.ranges}`, `${(owner.share * 100).toFixed(1)} %`, owner.load.toFixed(1),
      owner.hold_seconds.toFixed(1), owner.address, owner.labels.version ?? "", labels.join(" "), `${owner.protocol ?? ""}`,
    ];
    const cells = known.row.cells;
    texts.forEach((text, index) => {
      if (cells[index].textContent !== text) cells[index].textContent = text;
    });
    cells[1].className = state === "serving" ? "" : "warning";
    return known.row;
  }

  newRow(owner, isHeldOff) {
    const row = element("tr", "", { "data-owner": owner.name }), steers = element("td", "", { class: "steers" });
    row.append(element("th", "", { scope: "row" }), element("td"));
    for (const kind of ["number", "number", "number", "number", "long", "long", "long", "number"])
      row.append(element("td", "", { class: kind }));
    for (const what of ["drain", isHeldOff ? "uncordon" : "cordon"]) {
      const act = () => this.steer(what, { owner: owner.name }, owner.name);
      steers.append(command(what, `${what} ${owner.name}`, act), " ");
    }
    row.append(steers);
    return row;
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
