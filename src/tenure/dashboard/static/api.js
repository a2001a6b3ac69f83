// Asking the manager. A problem is thrown with what is wrong and the way out.

export class Problem extends Error {
  constructor(status, body) {
    super(body.way_out ? `${body.error} (${body.way_out})` : body.error);
    this.status = status;
    this.leader = body.leader;
  }
}

export async function ask(path, body, method) {
  const headers = { "Content-Type": "application/json" };
  const asked = body === undefined
    ? { method: method ?? "GET" }
    : { method: method ?? "POST", body: JSON.stringify(body), headers };
  const response = await fetch(path, { ...asked, cache: "no-store" });
  const answer = await response.json().catch(() => ({ error: `HTTP ${response.status}` }));
  if (!response.ok) throw new Problem(response.status, answer);
  return answer;
}

export const poolPath = (pool, what) => `/v1/pools/${encodeURIComponent(pool)}/${what}`;

// An element with text in it, and never markup: names come from whoever joined.
export function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// A choice among names; what was chosen stays chosen while it is there.
export function offer(choice, names) {
  const there = [...choice.options].map((option) => option.value);
  if (there.length === names.length && there.every((name, index) => name === names[index])) return;
  const chosen = choice.value;
  choice.replaceChildren(...names.map((name) => element("option", name, { value: name })));
  if (names.includes(chosen)) choice.value = chosen;
}

export const byId = (id) => document.getElementById(id);
