// Keys of entities, a page at a time, and what is kept of one of them. It is asked for, and never
// read again by itself: each question takes a moment of an owner.

import { ask, byId, command, element, fill, poolPath, row, some, take } from "./api.js";
import { importInto } from "./import.js";

const MOST = 100, LAST_LINE = 4096;

export class Keys {
  constructor() {
    this.pool = null;
    this.pages = []; // the tokens of the pages before this one
    this.next = null;
    this.at = undefined;
    byId("keys-ask").addEventListener("submit", (event) => {
      event.preventDefault();
      this.pages = [];
      this.list(undefined);
    });
    byId("keys-next").addEventListener("click", () => {
      this.pages.push(this.at);
      this.list(this.next);
    });
    byId("keys-back").addEventListener("click", () => this.list(this.pages.pop()));
    byId("keys-export").addEventListener("click", () => this.save());
    byId("keys-import").addEventListener("submit", (event) => {
      event.preventDefault();
      this.put(event.submitter);
    });
    byId("entity-ask").addEventListener("submit", (event) => {
      event.preventDefault();
      this.show({ form: "key", key: byId("entity-key").value });
    });
  }

  // Another pool was chosen: what is shown is of the one before.
  choose(pool) {
    if (pool === this.pool) return;
    this.pool = pool;
    this.pages = [];
    this.next = null;
    byId("keys").querySelector("tbody").replaceChildren();
    byId("entity").replaceChildren();
    byId("keys-words").textContent = byId("keys-problem").textContent = "";
    byId("keys-next").hidden = byId("keys-back").hidden = true;
  }

  // What `act` asks of owners; a problem is told where it was asked.
  async told(act) {
    const pool = this.pool;
    byId("keys-problem").textContent = "";
    try {
      await act(() => pool === this.pool);
    } catch (problem) {
      if (pool === this.pool) byId("keys-problem").textContent = problem.message;
    }
  }

  list(after) {
    return this.told(async (isStill) => {
      const asked = new URLSearchParams({ prefix: byId("keys-prefix").value, most: MOST });
      if (after !== undefined) asked.set("after", after);
      const found = await ask(`${poolPath(this.pool, "entities")}?${asked}`);
      if (!isStill()) return;
      this.at = after;
      this.next = found.next;
      const cell = (name) => {
        const made = element("th", "", { scope: "row" });
        made.append(command(name.key || "(empty)", `show ${name.form} ${name.key}`, () => this.show(name)));
        return made;
      };
      fill(byId("keys").querySelector("tbody"), found.keys.map((name) => row([cell(name), name.form === "int" ? "number" : "text"])));
      const unowned = found.unowned ? `; ${some(found.unowned, "range")} without an owner passed over` : "";
      const more = found.next ? ", and there may be more" : "";
      byId("keys-words").textContent = `${some(found.keys.length, "key")}${more}${unowned}`;
      byId("keys-next").hidden = found.next === null;
      byId("keys-back").hidden = this.pages.length === 0;
    });
  }

  // What `tenure entities export` writes, as a download. Whether it is whole, its last line says.
  save() {
    return this.told(async (isStill) => {
      const pool = this.pool;
      byId("keys-words").textContent = "exporting all entities";
      try {
        const file = await take(poolPath(pool, "entities/export"));
        const end = lastLine(await file.slice(-LAST_LINE).text());
        if (end.line !== "end") throw new Error(`the export was cut: ${end.why}`);
        const url = URL.createObjectURL(file);
        element("a", "", { href: url, download: `${pool}.jsonl` }).click();
        setTimeout(() => URL.revokeObjectURL(url));
        if (isStill()) byId("keys-words").textContent = `${end.entities} entities exported`;
      } catch (problem) {
        if (isStill()) byId("keys-words").textContent = "";
        throw problem;
      }
    });
  }

  // What `tenure entities import` does with such a file.
  put(button) {
    return this.told(async (isStill) => {
      const [file] = byId("keys-file").files;
      if (!file) throw new Error("choose a file that an export has made");
      const say = (words) => { if (isStill()) byId("keys-words").textContent = words; };
      say("checking the file");
      button.disabled = true;
      try {
        await importInto(this.pool, file, byId("keys-replace").checked, say);
      } catch (problem) {
        say("");
        throw problem;
      } finally {
        button.disabled = false;
      }
    });
  }

  show(name, collection = "", after = undefined) {
    return this.told(async (isStill) => {
      const asked = new URLSearchParams({ [name.form]: name.key, collection });
      if (after !== undefined) asked.set("after", after);
      const found = await ask(`${poolPath(this.pool, "entity")}?${asked}`);
      if (!isStill()) return;
      if (collection) this.showItems(name, collection, found);
      else this.showEntity(name, found);
    });
  }

  showEntity(name, found) {
    const lines = {
      "Key": found.key.key,
      "Is": found.kept ? (found.awake ? "awake" : "asleep") : "nothing is kept of it",
      "Owner": `${found.owner} at ${found.address}`,
      "Lease": found.number,
      "Turn": found.turn ? `${found.turn}, ${some(found.waiting, "call")} waiting` : some(found.waiting, "waiting call"),
      "State": found.contents ? JSON.stringify(found.state, null, 2) : `${found.state_bytes} bytes, not shown to this token`,
      "Version": found.version || "",
      "Answers": found.answers,
      "Alarms": found.alarms_set,
      "Sockets": found.sockets_open,
    };
    const list = element("dl");
    for (const [label, value] of Object.entries(lines).filter(([, value]) => value !== ""))
      list.append(element("dt", label), element("dd", value, { class: label === "State" ? "state" : "" }));
    const alarms = found.alarms.map((each) => element("li", `${each.name} at ${when(each.next_at)}`));
    const sockets = found.sockets.map((each) => element("li", `${each.id} at ${each.edge}, ${some(each.unread, "frame")} unread`));
    const collections = found.collections.map((each) => {
      const item = element("li", `${each.name}: ${each.items}${each.has_more ? " or more" : ""} `);
      if (found.contents) item.append(command("show", `show ${each.name}`, () => this.show(name, each.name)));
      return item;
    });
    byId("entity").replaceChildren(list, ...part("Alarms", alarms), ...part("Sockets", sockets),
      ...part("Collections", collections), element("div", "", { id: "items" }));
  }

  showItems(name, collection, found) {
    const items = found.items.map((each) => row([
      element("th", each.at, { scope: "row" }), each.added === null ? "" : when(each.added), JSON.stringify(each.value),
    ]));
    const heads = element("tr"), head = element("thead"), body = element("tbody"), table = element("table");
    heads.append(...["Item", "Added", "Value"].map((text) => element("th", text)));
    head.append(heads);
    body.append(...items);
    table.append(head, body);
    const wide = element("div", "", { class: "wide" });
    wide.append(table);
    const parts = [element("h3", collection), items.length ? wide : element("p", "No items.")];
    if (found.next !== null)
      parts.push(command("Following items", `following items of ${collection}`, () => this.show(name, collection, found.next)));
    byId("items").replaceChildren(...parts);
  }
}

function lastLine(text) {
  try {
    return JSON.parse(text.trimEnd().split("\n").at(-1));
  } catch {
    return { why: "it has no last line" };
  }
}

function part(title, items) {
  if (!items.length) return [];
  const list = element("ul");
  list.append(...items);
  return [element("h3", title), list];
}

// A time far away is one that no Date has.
function when(seconds) {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? `${seconds} s` : date.toISOString();
}
