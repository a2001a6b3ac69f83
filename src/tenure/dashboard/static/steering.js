// Commands: first what would come of one; then, if it is wanted, the command.

import { ask, byId, element, poolPath } from "./api.js";

export async function steer(pool, command, body, what) {
  const path = poolPath(pool, command);
  const dialog = byId("preview"), button = byId("preview-do");
  byId("preview-title").textContent = `${command} ${what}`;
  byId("preview-words").textContent = byId("preview-problem").textContent = "";
  byId("preview-flows").replaceChildren();
  button.hidden = true;
  try {
    const preview = await ask(path, { ...body, dry_run: true });
    byId("preview-words").textContent = words(preview);
    byId("preview-flows").replaceChildren(...preview.flows.map(row));
    button.hidden = !preview.changed;
  } catch (problem) {
    byId("preview-problem").textContent = problem.message;
  }
  dialog.querySelector(".wide").hidden = !byId("preview-flows").children.length;
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => resolve();
    button.onclick = async () => {
      button.disabled = true;
      try {
        await ask(path, body);
        dialog.close();
      } catch (problem) {
        byId("preview-problem").textContent = problem.message;
      } finally {
        button.disabled = false;
      }
    };
  });
}

function words(preview) {
  if (!preview.changed) return "It is so already: nothing would change.";
  if (!preview.flows.length) return "No range would move at once.";
  return "These ranges would move because of it:";
}

function row(flow) {
  const made = element("tr");
  made.append(
    element("td", flow.giver ?? "nobody"),
    element("td", flow.taker ?? "nobody"),
    element("td", flow.ranges, { class: "number" }),
    element("td", `${(flow.share * 100).toFixed(1)} %`, { class: "number" }),
    element("td", flow.with_state ? "moves with them" : "does not move"),
  );
  return made;
}
