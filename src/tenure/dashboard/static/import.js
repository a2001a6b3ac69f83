// An export goes in through the owners of its keys, as `tenure entities import` has it go. All of the
// file is checked before anything is sent.

import { ask, poolPath } from "./api.js";

const LAYOUT = 1, MOST_FILE = 64 << 20; // it is read into memory
const AT_ONCE = 3, PAUSE_MS = 1000, PATIENCE_MS = 120_000, SHOWN = 20;
const PART_LINES = 999, FULL_PART = 1 << 20, PART_BYTES = 7 << 18; // as `tenure entities import`

// Returns how many entities were put in, in words. `say` is told while it goes on.
export async function importInto(pool, file, replaces, say) {
  const { kind, entities } = await read(file, pool);
  const counts = { put: 0, same: 0 }, left = [], line = entities.values();
  const told = () => `${counts.put} of ${entities.length} entities imported, ${counts.same} were there`;
  let failed = false;
  const work = async () => {
    for (const entity of line) {
      if (failed) return;
      const outcome = await put(pool, kind, entity, replaces);
      if (outcome.outcome in counts) counts[outcome.outcome] += 1;
      else left.push(`${entity.key} (${why(outcome, replaces)})`);
      say(told());
    }
  };
  try {
    await Promise.all([...Array(AT_ONCE)].map(work));
  } catch (problem) {
    failed = true;
    throw new Error(`${told()}, then: ${problem.message}. Import it again: what is there is passed over`);
  }
  const more = left.length > SHOWN ? ` and ${left.length - SHOWN} more` : "";
  if (left.length) throw new Error(`${told()}; left out: ${left.slice(0, SHOWN).join(", ")}${more}`);
  say(told());
}

function why({ outcome, why, way_out }, replaces) {
  if (outcome !== "differs") return `${why}: ${way_out}`;
  return replaces ? "it changes" : "another is there";
}

async function put(pool, kind, { key, lines }, replaces) {
  const gives_up = Date.now() + PATIENCE_MS, isAnswer = (line) => line.startsWith('{"line":"answer"');
  const digest = await sha256(lines.filter((line) => !isAnswer(line)).join(""));
  let there = "";
  for (;;) {
    let outcome;
    for (const part of parts(lines)) { // from the first one on
      const given = { key, digest, replaces: there, ...part };
      [outcome] = (await ask(poolPath(pool, "entities/import"), { kind, entities: [given] })).outcomes;
      if (outcome.outcome !== "part" || outcome.parts !== part.part + 1) break;
    }
    if (outcome.outcome === "differs" && replaces && !there) there = outcome.there;
    else if (!["later", "part"].includes(outcome.outcome)) return outcome;
    else if (Date.now() > gives_up) throw new Error(`${key} could not be imported: ${outcome.why}`);
    else await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

// The lines of an entity, the line of the entity itself in the last part.
function* parts([head, ...lines]) {
  let part = [], size = 0, number = 0, collection = "";
  for (const line of lines) {
    if (line.startsWith('{"line":"collection"')) collection = line;
    if (part.length >= PART_LINES || size >= FULL_PART) {
      yield { lines: part.join(""), part: number++, is_last: false };
      part = line.startsWith('{"line":"item"') ? [collection] : [];
      size = 0;
    }
    part.push(line);
    size += bytes(line).length;
  }
  if (size + bytes(head).length > PART_BYTES) {
    yield { lines: part.join(""), part: number++, is_last: false };
    part = [];
  }
  yield { lines: [head, ...part].join(""), part: number, is_last: true };
}

async function read(file, pool) {
  const command = "use tenure entities import";
  if (!crypto.subtle) throw new Error(`browsers make checksums over HTTPS only: ${command}`);
  if (file.size > MOST_FILE) throw new Error(`the file has over ${MOST_FILE >> 20} MiB: ${command}`);
  const lines = (await file.text()).split(/(?<=\n)/), said = lines.map(parsed);
  const head = said[0], end = said.at(-1);
  if (head?.line !== "export" || end?.line !== "end") throw new Error("the file is no whole export: export again");
  if (head.layout > LAYOUT) throw new Error(`the file has the layout ${head.layout} of a later version: import with that one`);
  if (end.sha256 !== await sha256(lines.slice(0, -1).join(""))) throw new Error("the file has changed since it was made: export again");
  if (head.pool !== pool) throw new Error(`the file is of the pool ${head.pool}, and not of ${pool}: ${command} with --from-pool`);
  const entities = [];
  for (const [number, { line, key }] of said.entries()) {
    if (line === "entity") entities.push({ key, lines: [] });
    if (line === "again") entities.pop();
    else if (number && number < lines.length - 1) entities.at(-1).lines.push(lines[number]);
  }
  const large = entities.find(({ key }) => typeof key === "number" && !Number.isSafeInteger(key));
  if (large) throw new Error(`a key of the file is a larger number than browsers know: ${command}`);
  return { kind: head.kind, entities };
}

function parsed(line, number) {
  try {
    return JSON.parse(line);
  } catch {
    throw new Error(`line ${number + 1} of the file is damaged: export again`);
  }
}

const bytes = (text) => new TextEncoder().encode(text);

async function sha256(text) {
  const found = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes(text)));
  return [...found].map((each) => each.toString(16).padStart(2, "0")).join("");
}
