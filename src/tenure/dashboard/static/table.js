// The lease table of one pool: read whole once, then by its changes.

import { ask, poolPath } from "./api.js";

export class Table {
  constructor(pool) {
    this.pool = pool;
    this.lsn = null;
    this.journal = null;
    this.kind = "hashed";
    this.entries = []; // in order, without gaps
    this.names = new Map(); // of owners, by incarnation
  }

  // Whether anything has changed.
  async refresh() {
    const since = this.lsn === null ? "" : `?since=${this.lsn}&journal=${this.journal}`;
    const answer = await ask(poolPath(this.pool, "table") + since);
    const entries = answer.entries.map(plain);
    this.names = new Map(answer.owners.map((owner) => [owner.incarnation, owner.name]));
    this.entries = answer.snapshot ? entries : laid(this.entries, entries);
    this.kind = answer.kind;
    this.lsn = answer.lsn;
    this.journal = answer.journal;
    return answer.snapshot || entries.length > 0;
  }

  // What is drawn of it. A hashed pool is drawn by its space. In an ordered one nobody knows how far
  // keys are apart, so each range is as wide as any other.
  shape() {
    const { entries, names } = this, isOrdered = this.kind === "ordered";
    const edges = Float64Array.from(entries, (entry, index) =>
      isOrdered ? index / entries.length : position(entry.start));
    const owners = Float64Array.from(entries, (entry) => entry.owner ?? 0);
    return { edges, owners, names, holes: entries.filter((entry) => entry.owner === null).length };
  }
}

function plain(entry) {
  return {
    start: entry.start.hex, startText: entry.start.text,
    end: entry.end && entry.end.hex, endText: entry.end && entry.end.text, // null is the end of the space
    owner: entry.owner, number: entry.number, since: entry.since,
  };
}

// Changes laid over entries, one after the other: what a change covers is cut away. Where it begins
// is looked up, since of 64,000 entries a thousand may change at once.
export function laid(entries, changes) {
  const found = [...entries];
  for (const change of changes) {
    const first = lastAtOrBelow(found, change.start);
    let end = first; // the first entry that begins at or above the change's end
    while (end < found.length && (change.end === null || found[end].start < change.end)) end += 1;
    const pieces = [change], below = found[first], above = found[end - 1];
    if (below && below.start < change.start) {
      const isCut = below.end === null || below.end > change.start;
      pieces.unshift(isCut ? { ...below, end: change.start, endText: change.startText } : below);
    }
    if (above && change.end !== null && (above.end === null || above.end > change.end))
      pieces.push({ ...above, start: change.end, startText: change.endText });
    found.splice(first, end - first, ...pieces);
  }
  return found;
}

// The index of the last entry that begins at `start` or below; hexadecimal sorts as the bytes do.
function lastAtOrBelow(entries, start) {
  let low = 0, high = entries.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (entries[middle].start <= start) low = middle;
    else high = middle - 1;
  }
  return low;
}

// Where a key is in a hashed pool's space, from 0 to 1: its first six bytes are enough for a screen.
function position(hex) {
  return parseInt((hex + "000000000000").slice(0, 12), 16) / 2 ** 48;
}
