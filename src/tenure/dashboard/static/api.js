// Asking the manager. A problem is thrown with what is wrong and the way out.

import { signed } from "./signed.js";

export class Problem extends Error {
  constructor(status, body) {
    super(body.way_out ? `${body.error} (${body.way_out})` : body.error);
    this.status = status;
    this.leader = body.leader;
  }
}

export async function ask(path, body, method) {
  const asked = body === undefined
    ? { method: method ?? "GET", headers: signed() }
    : {
        method: method ?? "POST", body: JSON.stringify(body),
        headers: signed({ "Content-Type": "application/json" }),
      };
  const response = await fetch(path, { ...asked, cache: "no-store" });
  const answer = await said(response);
  if (!response.ok) throw new Problem(response.status, answer);
  return answer;
}

// A file. The sign-in goes in a header, which a link does not send.
export async function take(path) {
  const response = await fetch(path, { headers: signed(), cache: "no-store" });
  if (!response.ok) throw new Problem(response.status, await said(response));
  return response.blob();
}

const said = (response) => response.json().catch(() => ({ error: `HTTP ${response.status}` }));

// Names in the order that people expect: node-2 comes before node-10.
export const compareNames = new Intl.Collator("en", { numeric: true }).compare;

export const poolPath = (pool, what) => `/v1/pools/${encodeURIComponent(pool)}/${what}`;

// An element with text in it, and never markup: any client that joins can choose its name.
export function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// A choice among names; the chosen name stays chosen while it exists. Setting a choice, even to what
// it is already, has Chromium lay out the whole page.
export function offer(choice, names, chosen = choice.value) {
  const there = [...choice.options].map((option) => option.value);
  if (there.length !== names.length || there.some((name, index) => name !== names[index]))
    choice.replaceChildren(...names.map((name) => element("option", name, { value: name })));
  if (choice.value !== chosen && names.includes(chosen)) choice.value = chosen;
}

export const byId = (id) => document.getElementById(id);

// The rows of a table, or the items of a list; existing ones stay in place, and so does the focus of
// the keyboard.
export function fill(body, rows) {
  const focused = document.activeElement?.dataset?.which, wanted = new Set(rows);
  for (const there of [...body.children]) if (!wanted.has(there)) there.remove();
  let next = body.firstElementChild;
  for (const row of rows) {
    if (row === next) next = next.nextElementSibling;
    else body.insertBefore(row, next);
  }
  if (!focused || document.activeElement?.dataset?.which === focused) return;
  body.querySelector(`[data-which="${CSS.escape(focused)}"]`)?.focus();
}

// Drawing everything in one go would keep the page from answering: other work gets its turn here.
export const breathe = () => new Promise((resolve) => setTimeout(resolve));

// A row of a table: cells are elements, or text; columns of numbers are right-aligned.
export function row(cells, attributes = {}) {
  const made = element("tr", "", attributes);
  for (const cell of cells) {
    if (cell instanceof Element) made.append(cell);
    else if (typeof cell === "number") made.append(element("td", cell, { class: "number" }));
    else made.append(element("td", cell));
  }
  return made;
}

export const number = (text) => element("td", text, { class: "number" });

// A button in a table that asks for something; it is found again when the table is drawn again.
export function command(label, which, act) {
  const button = element("button", label, { "data-which": which, "aria-label": which, type: "button" });
  button.addEventListener("click", act);
  return button;
}

export const some = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

export function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (count >= 1000 && unit < units.length - 1) {
    count /= 1000;
    unit += 1;
  }
  return `${unit ? count.toFixed(1) : count} ${units[unit]}`;
}

export function ago(seconds) {
  if (seconds < 90) return `${seconds.toFixed(0)} s`;
  if (seconds < 5400) return `${(seconds / 60).toFixed(0)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}
