// Who took ranges, in the words of events: "3 ranges to ann" and "1 range to bob" become "ann (3 ranges), bob (1 range)".

import { some } from "./api.js";

const DETAIL = /^(\d+) ranges? to (.*)$/s;
const MOST_NAMED = 6;

// How many ranges each owner took, by name; null if an event says something else.
export function counted(events) {
  const taken = new Map();
  for (const { detail } of events) {
    const said = DETAIL.exec(detail);
    if (!said) return null;
    taken.set(said[2], (taken.get(said[2]) ?? 0) + Number(said[1]));
  }
  return taken;
}

export function takersOf(events) {
  const taken = counted(events);
  if (!taken?.size) return "";
  if (taken.size > MOST_NAMED) return `${taken.size} owners`;
  return [...taken].sort((a, b) => b[1] - a[1]).map(([name, ranges]) => `${name} (${some(ranges, "range")})`).join(", ");
}
