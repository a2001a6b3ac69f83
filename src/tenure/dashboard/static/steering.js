// Commands: first the preview of a command; then, if confirmed, the command.

import { ask, byId, bytes, element, number, poolPath, row } from "./api.js";

// Of a pool: which ranges would move.
export const steer = (pool, command, body, what) =>
  propose(poolPath(pool, command), body, `${command} ${what}`, {
    heads: ["From", "To", "Ranges", "Share", "State"],
    words(preview) {
      if (!preview.changed) return "It is already so: nothing would change.";
      if (!preview.flows.length) return "No range would move at once.";
      return "These ranges would move because of it:";
    },
    rows: (preview) => preview.flows.map((flow) => row([
      flow.giver ?? "nobody", flow.taker ?? "nobody", flow.ranges,
      number(`${(flow.share * 100).toFixed(1)} %`), flow.with_state ? "moves with them" : "does not move",
    ])),
  });

// Of a cluster: what its nodes would copy.
export const steerRing = (cluster, command, body, what) =>
  propose(`/v1/clusters/${encodeURIComponent(cluster)}/${command}`, body, `${command} ${what}`, {
    heads: ["Node", "Gains ranges", "Copies"],
    words(preview) {
      if (!preview.changed) return `Nothing would change: ${preview.done}.`;
      const said = [`If you confirm it: ${preview.done}.`];
      for (const [rack, excess] of Object.entries(preview.short_racks))
        said.push(`The rack ${rack} is short of nodes: they replicate ${excess} ranges too many.`);
      if (preview.gains.length)
        said.push(`After it the heaviest node carries ${preview.unevenness.toFixed(2)} times the mean.`);
      return said.join(" ");
    },
    rows: (preview) => preview.gains.map((gain) => row([gain.node, gain.ranges, number(bytes(gain.bytes))])),
  });

async function propose(path, body, title, shows) {
  const dialog = byId("preview"), button = byId("preview-do");
  byId("preview-title").textContent = title;
  byId("preview-words").textContent = byId("preview-problem").textContent = "";
  byId("preview-heads").replaceChildren(...shows.heads.map((head) => element("th", head)));
  byId("preview-flows").replaceChildren();
  button.hidden = true;
  try {
    const preview = await ask(path, { ...body, dry_run: true });
    byId("preview-words").textContent = shows.words(preview);
    byId("preview-flows").replaceChildren(...shows.rows(preview));
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
