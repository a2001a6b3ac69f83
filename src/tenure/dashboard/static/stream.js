// Server-sent events, by fetch: an EventSource cannot show the key of a sign-in.

import { signed } from "./signed.js";

const AGAIN_MS = 2000;

// Calls `on[event](data)` for each event, and `on.lost(isRefused)` whenever there is no stream. It comes
// back by itself, after the last event that it had, unless it was refused.
export class Stream {
  constructor(path, on) {
    this.path = path;
    this.on = on;
    this.last = "";
    this.ending = new AbortController();
    this.run();
  }

  close() {
    this.ending.abort();
  }

  async run() {
    const { signal } = this.ending;
    while (!signal.aborted) {
      const isRefused = await this.read(signal).catch(() => false);
      if (signal.aborted) return;
      this.on.lost(isRefused);
      if (isRefused) return;
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }

  // Whether the manager refused it.
  async read(signal) {
    const headers = signed(this.last ? { "Last-Event-ID": this.last } : {});
    const response = await fetch(this.path, { headers, signal, cache: "no-store" });
    if (!response.ok) return true;
    let text = "";
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return false;
      const frames = (text + value).split("\n\n");
      text = frames.pop();
      frames.forEach((frame) => this.take(frame));
    }
  }

  take(frame) {
    const said = Object.fromEntries(frame.split("\n").map((line) => {
      const colon = line.indexOf(": ");
      return [line.slice(0, colon), line.slice(colon + 2)];
    }));
    if (said.id) this.last = said.id;
    if (said.event) this.on[said.event]?.(JSON.parse(said.data));
  }
}
