// The lease table of one pool: read whole once, then by its changes.

import { ask, poolPath } from "./api.js";

export class Table {
  constructor(pool) {
    this.pool = pool;
    this.lsn = null;
    this.journal = null;
    this.kind = "hashed";
    this.entries = []; // in order, without gaps
    this.owners = new Map(); // by incarnation
  }

  async refresh() {
    const since = this.lsn === null ? "" : `?since=${this.lsn}&journal=${this.journal}`;
    const answer = await ask(poolPath(this.pool, "table") + since);
    const entries = answer.entries.map(plain);
    if (answer.snapshot) this.owners.clear();
    for (const owner of answer.owners) this.owners.set(owner.incarnation, owner);
    this.entries = answer.snapshot ? entries : laid(this.entries, entries);
    this.kind = answer.kind;
    this.lsn = answer.lsn;
    this.journal = answer.journal;
  }

  nameOf(incarnation) {
    if (incarnation === null) return null;
    return this.owners.get(incarnation)?.name ?? `#${incarnation}`;
  }

  get holes() {
    return this.entries.filter((entry) => entry.owner === null).length;
  }
}

function plain(entry) {
  return {
    start: entry.start.hex, startText: entry.start.text,
    end: entry.end && entry.end.hex, endText: entry.end && entry.end.text, // null is the end of the space
    owner: entry.owner, number: entry.number, since: entry.since,
  };
}

// Changes laid over entries, one after the other: what a change covers is cut away.
export function laid(entries, changes) {
  let found = entries;
  for (const change of changes) {
    const below = [], above = [];
    for (const entry of found) { // hexadecimal sorts as the bytes do
      if (entry.start < change.start) {
        const isCut = entry.end === null || entry.end > change.start;
        below.push(isCut ? { ...entry, end: change.start, endText: change.startText } : entry);
      }
      if (change.end !== null && (entry.end === null || entry.end > change.end)) {
        const isCut = entry.start < change.end;
        above.push(isCut ? { ...entry, start: change.end, startText: change.endText } : entry);
      }
    }
    found = [...below, change, ...above];
  }
  return found;
}

// Where a key is in a hashed pool's space, from 0 to 1: its first six bytes are enough for a screen.
export function position(hex) {
  return parseInt((hex + "000000000000").slice(0, 12), 16) / 2 ** 48;
}
