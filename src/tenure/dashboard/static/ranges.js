// The ranges of one pool as they are drawn. A worker reads them; the page has a few numbers of each.

import { key } from "./signed.js";

const NOTHING = { edges: new Float64Array(1), owners: new Float64Array(0), holes: 0, names: new Map() };

export class Ranges {
  constructor(pool) {
    this.pool = pool;
    this.worker = null;
    this.number = 0;
    this.waiting = new Map(); // by number: who asked
    this.take(NOTHING);
  }

  take({ edges, owners, holes, names }) {
    this.edges = edges; // from 0 to 1: where each begins, and where the last ends
    this.owners = owners; // incarnations; 0 is nobody
    this.holes = holes;
    this.names = names; // of incarnations
  }

  get count() {
    return this.owners.length;
  }

  nameOf(incarnation) {
    return this.names.get(incarnation) ?? `#${incarnation}`;
  }

  // Whether anything has changed.
  async refresh() {
    const { shape } = await this.ask("read");
    if (shape) this.take(shape);
    return Boolean(shape);
  }

  async entry(index) {
    return (await this.ask(index)).entry;
  }

  ask(asked) {
    this.worker ??= this.start();
    const number = this.number += 1;
    return new Promise((resolve, reject) => {
      this.waiting.set(number, { resolve, reject });
      this.worker.postMessage({ number, asked, key: key() });
    });
  }

  start() {
    const worker = new Worker("table_worker.js", { type: "module", name: this.pool });
    worker.addEventListener("message", ({ data: { number, answered, problem } }) => {
      const { resolve, reject } = this.waiting.get(number);
      this.waiting.delete(number);
      if (problem) reject(Object.assign(new Error(problem.message), { status: problem.status }));
      else resolve(answered);
    });
    worker.addEventListener("error", () => {
      for (const { reject } of this.waiting.values()) reject(new Error("a part of this page could not be loaded"));
      this.end();
    });
    return worker;
  }

  // Who waits is told nothing. The next question begins anew.
  end() {
    this.worker?.terminate();
    this.worker = null;
    for (const { resolve } of this.waiting.values()) resolve({});
    this.waiting.clear();
  }
}
