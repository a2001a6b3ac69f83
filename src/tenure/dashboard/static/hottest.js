// The keys that are asked for most: by name where the manager knows and may say it.

import { byId, fill, row } from "./api.js";

const LEAST = 0.05; // requests a second: less is shown as nothing

export function showHottest(keys) {
  const shown = keys.filter((each) => each.rate >= LEAST);
  byId("hottest-part").hidden = shown.length === 0;
  fill(document.querySelector("#hottest tbody"), shown.map((each) => row([
    each.name ?? each.key?.hex ?? "hidden", each.owner ?? "nobody", Number(each.rate.toFixed(1)),
  ])));
}
