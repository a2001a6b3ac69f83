// One key's story: its owner, since when, and why the key came there.

import { ago, ask, byId, element, poolPath } from "./api.js";

export async function tell(pool, key) {
  const story = byId("story");
  try {
    const found = await ask(`${poolPath(pool, "why")}?key=${encodeURIComponent(key)}`);
    story.replaceChildren(...lines(key, found));
  } catch (problem) {
    story.replaceChildren(element("p", problem.message, { role: "alert" }));
  }
}

function* lines(key, found) {
  const owner = found.owner ? `${found.owner.name} at ${found.owner.address}` : "nobody";
  yield element("p", `${key} belongs to ${owner}, under lease number ${found.number}.`, { id: "story-owner" });
  if (found.since !== found.number)
    yield element("p", `The state of the key is unbroken since number ${found.since}.`);
  if (found.pinned_to) yield element("p", `It is pinned to ${found.pinned_to}.`);
  if (found.planned && found.planned !== found.owner?.name)
    yield element("p", `It is to move to ${found.planned}.`);
  if (found.trouble) yield element("p", found.trouble, { class: "error" });
  if (!found.moves.length) {
    yield element("p", `It has not moved in the ${ago(found.remembered_seconds)} that this leader remembers.`);
    return;
  }
  const moves = element("ol");
  for (const move of found.moves) {
    const path = `from ${move.giver ?? "nobody"} to ${move.taker ?? "nobody"}`;
    const text = `${ago(move.seconds_ago)} ago: ${move.how}, ${path}`;
    moves.append(element("li", move.reason ? `${text} (${move.reason})` : text));
  }
  yield moves;
}
