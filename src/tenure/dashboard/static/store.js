// A cluster of the store: its ring, its nodes, who keeps which range, and what changes there.

import { ago, ask, byId, bytes, command, element, fill, number, offer, row, some } from "./api.js";
import { heading, rackOf, Ring } from "./ring.js";
import { steerRing } from "./steering.js";
import { showUpkeep } from "./upkeep.js";

const AT_FIRST = 100;

export class Store {
  constructor(readAgain) {
    this.readAgain = readAgain;
    this.cluster = null;
    this.most = AT_FIRST;
    this.ring = new Ring(byId("ring"));
    byId("cluster").addEventListener("change", () => {
      this.cluster = byId("cluster").value;
      this.readAgain();
    });
    byId("more-ranges").addEventListener("click", () => {
      this.most = Infinity;
      this.readAgain();
    });
    byId("compare").addEventListener("click", () => this.steer("compare", {}, "all replicas"));
    byId("take-back").addEventListener("click", () => this.steer("take-back", {}, ""));
    byId("replace-node").addEventListener("submit", (event) => {
      event.preventDefault();
      const node = byId("replace-old").value, by = byId("replace-new").value;
      this.steer("replace", { node, by }, `${node} by ${by}`);
    });
    byId("move-node").addEventListener("submit", (event) => {
      event.preventDefault();
      const node = byId("move-which").value, token = byId("move-token").value.trim();
      this.steer("move", token ? { node, token: hexadecimal(token) } : { node }, node);
    });
  }

  async steer(what, body, words) {
    await steerRing(this.cluster, what, body, words);
    await this.readAgain();
  }

  offer(clusters) {
    const names = clusters.map((cluster) => cluster.name);
    if (!names.includes(this.cluster)) this.cluster = names[0] ?? null;
    offer(byId("cluster"), names, this.cluster);
  }

  async read() {
    if (this.cluster === null) return;
    const path = `/v1/clusters/${encodeURIComponent(this.cluster)}`, cluster = this.cluster;
    const [ring, moves, upkeep] =
      await Promise.all(["ring", "moves", "upkeep"].map((what) => ask(`${path}/${what}`)));
    if (cluster !== this.cluster) return; // another was chosen meanwhile
    this.ring.show(ring);
    this.say(ring);
    fill(byId("nodes").tBodies[0], ring.nodes.map((node) => this.node(ring, node)));
    const ranges = ring.ranges.slice(0, this.most);
    fill(byId("kept").tBodies[0], ranges.map((range) => this.range(range)));
    const more = byId("more-ranges");
    more.hidden = ring.ranges.length <= this.most;
    more.textContent = `Show all ${ring.ranges.length}`;
    this.propose(ring, moves);
    showUpkeep(upkeep);
  }

  say(ring) {
    const members = ring.nodes.filter((node) => node.standing !== "waiting");
    const waiting = ring.nodes.length - members.length;
    byId("ring-words").textContent = [
      some(members.length, "node"), waiting ? `${waiting} waiting` : "", `placement ${ring.placement}`,
      `version ${ring.version}`, `tables: ${ring.tables.join(", ") || "none"}`,
      heaviest(ring), ring.removed.length ? `removed: ${ring.removed.join(", ")}` : "",
    ].filter(Boolean).join("; ");
    const short = Object.entries(ring.short_racks)
      .map(([rack, excess]) => `rack ${rack} is short of nodes: they replicate ${excess} ranges too many`);
    const silent = members.filter((node) => !node.connected)
      .map((node) => `${node.name} is not connected`);
    byId("ring-trouble").textContent = [ring.trouble, ...short, ...silent, ...ring.doubted ?? []].filter(Boolean).join("; ");
    byId("change").hidden = !ring.change;
    byId("change-words").textContent = ring.change;
    byId("change-waits").replaceChildren(...ring.waits_for.map((each) => element("li", `waits for ${each}`)));
  }

  node(ring, node) {
    const state = node.connected ? node.standing : `${node.standing}, not connected`;
    return row([
      heading(node.name), element("td", state, { class: state === "member" ? "" : "warning" }),
      rackOf(node), element("td", node.token, { class: "long" }), node.ranges, number(bytes(node.bytes)),
      number(node.load.toFixed(2)), this.copies(node),
      number(node.heard_seconds === null ? "never" : ago(node.heard_seconds)),
      number(node.version === ring.version ? String(node.version) : `${node.version} of ${ring.version}`),
      element("td", node.address, { class: "long" }), this.commands(node),
    ], { "data-node": node.name });
  }

  copies(node) {
    const cell = element("td");
    if (node.is_through) cell.textContent = "through";
    else if (node.to_copy) {
      const label = `${bytes(node.copied)} of ${bytes(node.to_copy)}`;
      cell.append(element("progress", "", { value: node.copied, max: node.to_copy, "aria-label": label }),
        ` ${label}`);
    }
    return cell;
  }

  commands(node) {
    const cell = element("td", "", { class: "steers" });
    const what = node.standing === "waiting" ? "add" : node.standing === "member" ? "remove" : null;
    const act = () => this.steer(what, { node: node.name }, node.name);
    if (what) cell.append(command(what, `${what} ${node.name}`, act));
    return cell;
  }

  range(range) {
    const cells = [range.start || "the first key", range.end ?? "the last key", range.replicas.join(", "),
      range.new.join(", ")].map((text) => element("td", text, { class: "long" }));
    return row([...cells, number(bytes(range.bytes)), number(`${(range.load * 100).toFixed(1)} %`)]);
  }

  propose(ring, moves) {
    const names = (standing) =>
      ring.nodes.filter((node) => (node.standing === "waiting") === standing).map((node) => node.name);
    offer(byId("replace-old"), names(false));
    offer(byId("replace-new"), names(true));
    offer(byId("move-which"), names(false));
    byId("replace-node").hidden = !names(true).length;
    byId("moves-words").textContent = !moves.known
      ? "Nodes have not said what they carry: nothing can be proposed."
      : moves.moves.length ? "These moves would even out the load:" : "No move would even out the load.";
    fill(byId("moves"), moves.moves.map((move) => this.move(move)));
  }

  move(move) {
    const words = `${move.node} to ${move.token}: ${move.why}; it copies ${bytes(move.bytes)}, and the ` +
      `heaviest node carries ${move.after.toFixed(2)} times the mean instead of ${move.before.toFixed(2)} `;
    const item = element("li", words), body = { node: move.node, token: move.token_hex };
    const button = command("move", `move ${move.node} to ${move.token}`, () => this.steer("move", body, move.node));
    button.className = "steers";
    item.append(button);
    return item;
  }
}

const heaviest = (ring) => ring.nodes.some((node) => node.load > 0)
  ? `the heaviest node carries ${ring.unevenness.toFixed(2)} times the mean` : "";

// A token as people write it: hexadecimal after 0x, otherwise a literal key.
function hexadecimal(token) {
  if (token.startsWith("0x")) return token.slice(2);
  return [...new TextEncoder().encode(token)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
