// Plays a recording of the simulator (lab/recording): who has which keys, whom a client asks, and what
// has been told. Everything it needs is in the page.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const LINES = 5; // of the story, the latest last
  const TICK_MS = 50;

  function made(name, attributes = {}, ...inside) {
    const it = name === "svg" || name === "rect" ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) it.setAttribute(key, value);
    it.append(...inside);
    return it;
  }

  // A bar of the key space: a rectangle for each stretch that is alike.
  function bar(into, signs) {
    into.replaceChildren();
    for (let from = 0; from < signs.length; ) {
      let to = from;
      while (to < signs.length && signs[to] === signs[from]) to += 1;
      const kind = signs[from] === "." ? "none" : `o${signs[from]}`;
      into.append(made("rect", { x: from + 0.1, y: 0.1, width: to - from - 0.2, height: 9.8, class: kind }));
      from = to;
    }
  }

  function share(signs, owner) {
    const has = [...signs].filter((sign) => sign === String(owner)).length;
    return `${Math.round((100 * has) / signs.length)} %`;
  }

  class Player {
    constructor(place, story) {
      this.story = story;
      this.at = 0;
      this.timer = null;
      const size = story.frames[0].held.length;
      const space = (label) =>
        made("svg", { viewBox: `0 0 ${size} 10`, preserveAspectRatio: "none", role: "img", "aria-label": label });
      this.held = space("Who has the keys");
      this.asked = space("Whom the client asks");
      this.button = made("button", { type: "button" }, "Play");
      this.slider = made("input", { type: "range", min: 0, max: story.seconds, step: 0.1, value: 0, "aria-label": "Time" });
      this.speed = made("select", { "aria-label": "Speed" });
      for (const times of [1, 4, 10]) this.speed.append(made("option", { value: times }, `${times} ×`));
      this.speed.value = "4";
      this.clock = made("span", {}, "");
      this.owners = made("ul", { class: "owners" });
      this.told = made("ol", { "aria-live": "polite", "aria-label": "What has happened" });
      place.append(
        made("div", { class: "bar" }, this.button, this.slider, this.clock, this.speed),
        this.owners,
        made("div", {}, "Who has the keys"), this.held,
        made("div", {}, "Whom the client asks"), this.asked,
        this.told,
      );
      this.button.addEventListener("click", () => (this.timer === null ? this.play() : this.pause()));
      this.slider.addEventListener("input", () => this.show(Number(this.slider.value)));
      this.show(0);
    }

    play() {
      if (this.at >= this.story.seconds) this.show(0);
      this.button.textContent = "Pause";
      let before = performance.now();
      this.timer = setInterval(() => {
        const now = performance.now();
        this.show(this.at + ((now - before) / 1000) * Number(this.speed.value));
        before = now;
        if (this.at >= this.story.seconds) this.pause();
      }, TICK_MS);
    }

    pause() {
      clearInterval(this.timer);
      this.timer = null;
      this.button.textContent = "Play";
    }

    show(at) {
      this.at = Math.min(at, this.story.seconds);
      this.slider.value = this.at;
      this.slider.setAttribute("aria-valuetext", `${this.at.toFixed(1)} seconds`);
      this.clock.textContent = `${this.at.toFixed(1)} s`;
      const frame = this.story.frames.findLast((each) => each.at <= this.at) ?? this.story.frames[0];
      if (frame !== this.frame) this.draw(frame);
      this.tell(this.story.told.filter((each) => each.at <= this.at));
    }

    draw(frame) {
      this.frame = frame;
      bar(this.held, frame.held);
      bar(this.asked, frame.asked);
      this.owners.replaceChildren(
        ...this.story.owners.map((name, owner) => {
          const square = made("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" });
          square.append(made("rect", { width: 10, height: 10, class: `o${owner}` }));
          const does = frame.states[owner] || "not there yet";
          return made("li", {}, square, `${name}: ${does}, ${share(frame.held, owner)}`);
        }),
      );
    }

    tell(lines) {
      if (lines.length === this.lines) return; // a screen reader would read them again
      this.lines = lines.length;
      this.told.replaceChildren(
        ...lines.slice(-LINES).map((each) => made("li", {}, `${each.at.toFixed(1)} s: ${each.text}`)),
      );
    }
  }

  for (const place of document.querySelectorAll(".tenure-live")) {
    new Player(place, JSON.parse(place.querySelector("script").textContent));
  }
})();
