// A pool in a few lines: whether anything is wrong, what is hot, what has changed, and how each tier is.
// It asks for nothing: it sums up what the other parts of the page have read.

import { ago, byId, compareNames, element, some } from "./api.js";

const MOVED_SECONDS = 600;
const MOST_NAMED = 5;

export class Glance {
  constructor() {
    this.rows = new Map(); // rows stay: a screen reader is told of the words that change
  }

  show(seen) {
    const lines = { "Now": wordsOfTrouble(seen), "Load": [wordsOfLoad(seen)], "Versions": [wordsOfVersions(seen)],
      "Last 10 minutes": [wordsOfMoves(seen)], "Lost": [wordsOfLosses(seen)], "Entities": [wordsOfEntities(seen)],
      "Sockets": [wordsOfSockets(seen)], "Caches": [wordsOfCaches(seen)], "Store": wordsOfStores(seen) };
    for (const [name, words] of Object.entries(lines)) this.say(name, words.filter(Boolean));
    this.rows.get("Now").told.className = troublesOf(seen).length ? "error" : "";
  }

  say(name, words) {
    if (!this.rows.has(name)) {
      const row = { name: element("dt", name), told: element("dd", "", { "data-glance": name }) };
      byId("glance").append(row.name, row.told);
      this.rows.set(name, row);
    }
    const row = this.rows.get(name), text = words.join("; ");
    row.name.hidden = row.told.hidden = !text;
    if (row.told.textContent !== text) row.told.textContent = text;
  }
}

// --- what is wrong ---

function troublesOf({ pool, pulse, status, owners }) {
  const { error, alarms } = status.journal_health;
  const silent = owners.filter((owner) => !owner.connected).map((owner) => owner.name);
  const stuck = owners.filter((owner) => /stuck/.test(owner.steering)).map((owner) => owner.name);
  const doubles = owners.filter((owner) => owner.same_address).map((owner) => owner.name);
  const summary = pulse.pools.find((each) => each.name === pool);
  return [
    summary?.free_ranges && `${some(summary.free_ranges, "range")} without an owner`,
    !owners.length && "the pool has no owners",
    silent.length && `not connected: ${named(silent)}`,
    stuck.length && `stuck: ${named(stuck)}`,
    doubles.length && `share an address: ${named(doubles)}`,
    !pulse.proven && "the manager cannot reach its journal",
    pulse.waits && "the manager does not grant leases yet",
    status.rivals.length && "another journal has a leader",
    error && `journal: ${error}`,
    ...alarms.map((alarm) => `journal: ${alarm}`),
    status.troubles[pool],
    ...pulse.clusters.map((cluster) => troubleOf(cluster) && `store ${cluster.name}: ${troubleOf(cluster)}`),
  ].filter(Boolean);
}

function wordsOfTrouble(seen) {
  const troubles = troublesOf(seen);
  const { owners } = seen;
  return troubles.length ? troubles
    : [`Nothing is wrong: every key has an owner, and ${owners.length > 1 ? `all ${owners.length} owners are` : "the only owner is"} connected.`];
}

// --- load, and what has changed ---

function wordsOfLoad({ owners, hottest }) {
  const total = owners.reduce((so_far, owner) => so_far + owner.load, 0);
  if (total < 0.05) return "no requests";
  const busiest = owners.reduce((best, owner) => (owner.load > best.load ? owner : best));
  const [key] = hottest, name = key && (key.name ?? key.key?.hex);
  return `${total.toFixed(0)} requests a second. The busiest owner is ${busiest.name}, with ${busiest.load.toFixed(0)}`
    + (name ? `; the hottest key is ${name}, with ${key.rate.toFixed(0)}, at ${key.owner ?? "nobody"}.` : ".");
}

function wordsOfVersions({ owners }) {
  const of = new Map();
  for (const { name, labels } of owners) of.set(labels.version ?? "", [...(of.get(labels.version ?? "") ?? []), name]);
  if (!of.size || (of.size === 1 && of.has(""))) return "";
  if (of.size === 1) return `All owners run version ${owners[0].labels.version}: no deploy is under way.`;
  const newest = [...of.keys()].sort(compareNames).reverse();
  const each = newest.map((version) => `${version ? `version ${version}` : "no version"} on ${named(of.get(version))}`);
  return `A deploy is under way: ${each.join(", ")}.`;
}

function wordsOfMoves({ hour }) {
  if (!hour?.moved.length) return "";
  const since = hour.until - MOVED_SECONDS, moved = hour.moved.filter((_, place) => hour.at[place] > since);
  const total = moved.reduce((so_far, count) => so_far + count, 0);
  const span = moved.length * hour.every_seconds, watched = span < MOVED_SECONDS ? ` (watched for ${ago(span)})` : "";
  return `${some(total, "range")} moved to another owner with their state${watched}`;
}

function wordsOfLosses({ hour, owners, unsampled }) {
  if (!hour?.died.length) return "";
  const died = hour.died.reduce((so_far, count) => so_far + count, unsampled);
  const span = ago(hour.died.length * hour.every_seconds);
  if (!died) return `Nothing: no owner died in the last ${span}.`;
  const kept = owners.filter((owner) => owner.entities?.kept_in); // one that has just joined says so with its next renewal
  const isKept = kept.length > 0 && owners.every((owner) => owner.entities ? owner.entities.kept_in : owner.labels["tenure.class"]);
  return `${some(died, "owner")} died in the last ${span}. `
    + (isKept ? `Nothing that was acknowledged is lost: the entities are kept in ${kept[0].entities.kept_in}.`
      : "What they had only in memory is lost, and every lookup is told.");
}

// --- tiers ---

function wordsOfEntities({ owners }) {
  const running = owners.map((owner) => owner.entities).filter(Boolean);
  if (!running.length) return "";
  const sum = (what) => running.reduce((so_far, report) => so_far + report[what], 0);
  return `${some(sum("instances"), "instance")}, ${some(sum("turns"), "turn")} running, ${some(sum("waiting"), "call")} waiting`;
}

function wordsOfSockets({ owners }) {
  const running = owners.map((owner) => owner.entities).filter((report) => report?.sockets);
  if (!running.length) return "";
  const own = new Set(owners.map((owner) => owner.address)), gateways = new Map();
  let here = 0;
  for (const { edge, sockets } of running.flatMap((report) => report.edges)) {
    if (own.has(edge)) here += sockets;
    else gateways.set(edge, (gateways.get(edge) ?? 0) + sockets);
  }
  const places = [...gateways].map(([edge, count]) => `${count} at the gateway that owners reach at ${edge}`);
  if (here) places.push(`${here} at the owners themselves`);
  return `${running.reduce((so_far, report) => so_far + report.sockets, 0)} open: ${places.join(", ")}`;
}

function wordsOfCaches({ owners }) {
  const served = owners.map((owner) => owner.volume).filter(Boolean);
  if (!served.length) return "";
  const sum = (what) => served.reduce((so_far, report) => so_far + report[what], 0);
  return `${some(sum("readers"), "reader")}, ${some(sum("leases"), "object lease")}, ${some(sum("writes"), "write")} waiting`;
}

function wordsOfStores({ pulse }) {
  return pulse.clusters.map((cluster) => {
    const { name, nodes, change } = cluster, trouble = troubleOf(cluster);
    return `${name}: ${some(nodes, "node")}, ${trouble || "all connected, no trouble"}${change ? `; under way: ${change}` : ""}`;
  });
}

function troubleOf({ nodes, connected, trouble }) {
  return trouble || (connected < nodes ? `only ${connected} of ${nodes} nodes are connected` : "");
}

const named = (names) => (names.length > MOST_NAMED ? `${names.length} owners` : names.join(", "));
