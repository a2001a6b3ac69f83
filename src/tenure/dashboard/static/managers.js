// All managers that this one knows of: which leads, which stand by, and which do not answer.

import { ask, byId, element, fill, row } from "./api.js";

let isAsking = false;

// Read separately from everything else, because a manager that does not answer takes long.
export async function showManagers() {
  if (isAsking) return;
  isAsking = true;
  try {
    const { managers } = await ask("/v1/managers");
    draw(managers);
  } catch {
    // The other readings report what is wrong.
  } finally {
    isAsking = false;
  }
}

function draw(managers) {
  const leader = managers.find((each) => each.role === "leading" && each.proven);
  fill(document.querySelector("#managers tbody"), managers.map((each, index) => managerRow(each, index, leader)));
}

function managerRow(manager, index, leader) {
  const state = element("td", stateOf(manager), { class: manager.role ? "long" : "long warning" });
  const name = element("th", "", { scope: "row" });
  name.append(index === 0 ? `${manager.url} (this one)` : pageOf(manager.url));
  if (!manager.role) return row([name, state, "", "", ""], { "data-manager": manager.url });
  const behind = leader && leader !== manager ? Math.max(0, leader.lsn - manager.lsn) : "";
  return row([name, state, manager.leadership, manager.lsn, behind], { "data-manager": manager.url });
}

function stateOf({ role, proven, error }) {
  if (!role) return error;
  return role === "leading" && !proven ? "leading, but cannot reach its journal at the moment" : role;
}

// A standby has nothing to show of pools: it sends its visitors to the leader.
export function sayStandby({ role, leader }) {
  const place = byId("standby");
  place.hidden = role === "leading";
  if (place.hidden) return;
  place.replaceChildren(`This manager is ${role}, so it cannot show pools and clusters. `);
  if (leader) place.append("The leader shows them: ", pageOf(leader));
  else place.append("No leader is known yet.");
}

function pageOf(url) {
  return /^https?:/.test(url) ? element("a", url, { href: `${url}/dashboard/`, "data-which": url }) : url;
}
