// Reads a lease table beside the page, which would stand still while 64,000 ranges are read. It is told
// "read", or the index of a range in what it told last.

import { keep } from "./signed.js";
import { Table } from "./table.js";

const table = new Table(self.name); // the pool

async function answer(asked) {
  if (asked !== "read") return { entry: table.entries[asked] };
  return (await table.refresh()) ? { shape: table.shape() } : {};
}

self.addEventListener("message", async ({ data: { number, asked, key } }) => {
  keep(key);
  try {
    const answered = await answer(asked), { edges, owners } = answered.shape ?? {};
    self.postMessage({ number, answered }, answered.shape ? [edges.buffer, owners.buffer] : []);
  } catch ({ message, status }) {
    self.postMessage({ number, problem: { message, status } });
  }
});
