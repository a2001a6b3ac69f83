// What nodes of a cluster do automatically: watching each other, comparing and sealing, keeping hints.

import { ago, byId, bytes, compareNames, element, fill, number, row } from "./api.js";
import { heading } from "./ring.js";

const AT_FIRST = 100;
const CONVICTED = 5; // the threshold of φ

export function showUpkeep(upkeep) {
  showWatching(upkeep.seen);
  const ranges = upkeep.ranges.slice(0, AT_FIRST);
  fill(byId("tended").tBodies[0], ranges.map(tended));
  byId("tended-cut").hidden = upkeep.ranges.length <= AT_FIRST;
  byId("tended-cut").textContent = `These are the first ${AT_FIRST} of ${upkeep.ranges.length} ranges.`;
  const held = upkeep.hints.filter((hints) => hints.count);
  const dropped = upkeep.hints_dropped
    ? ` ${upkeep.hints_dropped} were dropped, because there were too many; comparing brings what they said.` : "";
  byId("hints-words").textContent = (held.length ? "" : "No node keeps a write for another one.") + dropped;
  byId("hints").hidden = !held.length;
  fill(byId("hints").tBodies[0], held.map((hints) =>
    row([heading(hints.target), hints.at, hints.count, number(bytes(hints.bytes))])));
}

// φ of each node by each: a row for the watching node, a column for the watched one.
function showWatching(seen) {
  const names = [...new Set(seen.flatMap((each) => [each.by, each.node]))].sort(compareNames);
  const of = new Map(seen.map((each) => [JSON.stringify([each.by, each.node]), each]));
  byId("watching").hidden = !names.length;
  byId("watching").tHead.replaceChildren(row([
    element("th", "says"), ...names.map((name) => element("th", name, { class: "number", scope: "col" })),
  ]));
  fill(byId("watching").tBodies[0], names.map((by) => row([
    heading(by), ...names.map((node) => suspicion(of.get(JSON.stringify([by, node])))),
  ])));
  const down = [...new Set(seen.filter((each) => each.is_convicted).map((each) => each.node))].sort(compareNames);
  byId("watching-words").textContent = down.length
    ? `Considered down: ${down.map((node) => `${node} by ${count(seen, node)}`).join(", ")}.`
    : "Every node considers every other up.";
  byId("watching-words").className = down.length ? "error" : "";
}

const count = (seen, node) => seen.filter((each) => each.node === node && each.is_convicted).length;

function suspicion(seen) {
  if (!seen) return number("");
  const words = seen.phi >= 100 ? "over 100" : seen.phi.toFixed(1);
  const state = seen.is_convicted ? "number error" : seen.phi > CONVICTED / 2 ? "number warning" : "number";
  return element("td", seen.is_convicted ? `${words}, down` : words, { class: state });
}

function tended(range) {
  const since = (seconds) => (seconds === null ? "not yet" : `${ago(seconds)} ago`);
  return row([
    element("td", range.start || "the first key", { class: "long" }),
    element("td", range.end ?? "the last key", { class: "long" }), range.by ?? "nobody yet",
    number(since(range.compared_seconds)), range.differing, number(since(range.sealed_seconds)),
    element("td", range.held_back_by.join(", "), { class: range.held_back_by.length ? "warning" : "" }),
  ]);
}
