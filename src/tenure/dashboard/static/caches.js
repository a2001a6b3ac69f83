// The volumes of a pool's owners: who reads them, and which writes wait for whom.

import { ago, byId, element, fill, number, row, some } from "./api.js";
import { heading } from "./ring.js";

const AT_FIRST = 100;

export function showCaches(owners) {
  const served = owners.filter((owner) => owner.volume);
  const sum = (what) => served.reduce((so_far, owner) => so_far + owner.volume[what], 0);
  byId("caches-words").textContent = `${some(served.length, "volume")}, ${some(sum("readers"), "reader")} with ` +
    `${some(sum("leases"), "object lease")}; not acknowledged: ${some(sum("unacknowledged"), "invalidation")}`;
  fill(byId("volumes").tBodies[0], most(served, "volume", ["writes", "unacknowledged", "readers"]).map((owner) => {
    const { readers, leases, unacknowledged, writes, loads } = owner.volume;
    const cells = [heading(owner.name), readers, leases, unacknowledged, writes, loads];
    return row(cells, { "data-owner": owner.name });
  }));
  byId("volumes-cut").hidden = served.length <= AT_FIRST;
  byId("volumes-cut").textContent = `These are the ${AT_FIRST} of ${served.length} with the most writes.`;
  const waiting = served.flatMap((owner) => owner.volume.waiting.map((write) => ({ owner, write })));
  waiting.sort((a, b) => b.write.seconds - a.write.seconds);
  byId("writes-none").hidden = waiting.length > 0;
  byId("writes").hidden = !waiting.length;
  fill(byId("writes").tBodies[0], waiting.slice(0, AT_FIRST).map(({ owner, write }) => row([
    element("td", write.keys, { class: "long" }), owner.name, number(`${write.seconds.toFixed(1)} s`),
    element("td", forWhom(write), { class: "long" }),
  ])));
}

function forWhom(write) {
  if (!write.missing) return "for its time: an earlier reader may still hit";
  const more = write.missing - write.readers.length;
  return write.readers.join(", ") + (more > 0 ? ` and ${more} more` : "");
}

export function showEntities(owners) {
  const running = owners.filter((owner) => owner.entities);
  const sum = (what) => running.reduce((so_far, owner) => so_far + owner.entities[what], 0);
  const kinds = [...new Set(running.map((owner) => owner.entities.kind))].join(", ");
  const stores = [...new Set(running.map((owner) => owner.entities.kept_in).filter(Boolean))].join(", ");
  byId("entities-words").textContent = `${kinds}: ${some(sum("instances"), "instance")} on ${some(running.length, "owner")}, ` +
    `${some(sum("turns"), "turn")} running, ${some(sum("waiting"), "call")} waiting, ` +
    `${some(sum("alarms"), "alarm")} set, ${some(sum("sockets"), "socket")} open` + (stores ? `, kept in ${stores}` : "");
  fill(byId("entities").tBodies[0], most(running, "entities", ["waiting", "turns", "instances"]).map((owner) => {
    const { kind, instances, turns, waiting, alarms, sockets, longest, longest_seconds } = owner.entities;
    const turn = longest ? `${longest}, for ${ago(longest_seconds)}` : "";
    const cells = [heading(owner.name), kind, instances, turns, waiting, alarms, sockets];
    return row([...cells, element("td", turn, { class: "long" })], { "data-owner": owner.name });
  }));
  byId("entities-cut").hidden = running.length <= AT_FIRST;
  byId("entities-cut").textContent = `These are the ${AT_FIRST} of ${running.length} with the most calls.`;
}

// The items with the highest first value; among equals, with the highest next value.
function most(owners, of, things) {
  const order = (a, b) => things.reduce((so_far, what) => so_far || b[of][what] - a[of][what], 0);
  return [...owners].sort(order).slice(0, AT_FIRST);
}
