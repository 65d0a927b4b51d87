/* Drawing: scales, axes, ramps of color, and the tooltip. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el, svg } = Karat;

  /** Return a step of 1, 2 or 5 that makes about this many ticks. */
  function step(span, count) {
    const raw = span / Math.max(1, count);
    const power = 10 ** Math.floor(Math.log10(raw));
    const share = raw / power;
    return power * (share >= 7.5 ? 10 : share >= 3.5 ? 5 : share >= 1.5 ? 2 : 1);
  }

  /** Return a linear scale: a function of a value, with its ticks. */
  Karat.linear = ([from, to], [start, end]) => {
    if (from === to) [from, to] = [from - 0.5, to + 0.5];
    const scale = (value) => start + ((value - from) / (to - from)) * (end - start);
    scale.ticks = (count = 5) => {
      const size = step(Math.abs(to - from), count);
      const low = Math.ceil(Math.min(from, to) / size - 1e-9);
      const high = Math.floor(Math.max(from, to) / size + 1e-9);
      return Array.from({ length: high - low + 1 }, (_, i) =>
        Number(((low + i) * size).toPrecision(12)),
      );
    };
    scale.domain = [from, to];
    return scale;
  };

  /** Return a logarithmic scale; its ticks are 1, 2 and 5 times powers of ten. */
  Karat.log = ([from, to], [start, end]) => {
    if (from === to) [from, to] = [from / 2, to * 2];
    const inner = Karat.linear([Math.log10(from), Math.log10(to)], [start, end]);
    const scale = (value) => inner(Math.log10(value));
    scale.ticks = (count = 5) => {
      const powers = Array.from({ length: 40 }, (_, i) => i - 20);
      const within = (value) => value >= from * 0.999 && value <= to * 1.001;
      const fine = powers.flatMap((n) => [1, 2, 5].map((d) => d * 10 ** n)).filter(within);
      const tens = powers.map((n) => 10 ** n).filter(within);
      return fine.length <= count + 2 ? fine : tens;
    };
    scale.domain = [from, to];
    return scale;
  };

  /** Return the least and the greatest known number with some air around. */
  Karat.extent = (values, air = 0.05) => {
    let low = Infinity;
    let high = -Infinity;
    for (const value of values) {
      if (value === null || !Number.isFinite(value)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    if (low > high) return [0, 1];
    const more = (high - low || Math.abs(high) || 1) * air;
    return [low - more, high + more];
  };

  /** Return an empty SVG of a size, with a label for screen readers. */
  Karat.sheet = (width, height, label) =>
    svg("svg", {
      xmlns: "http://www.w3.org/2000/svg",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": label,
    });

  Karat.label = (x, y, text, more) => svg("text", { x, y, text, ...more });

  /** Return the power of ten that ticks are written in: thousands, millions, or none. */
  function powerOf(ticks) {
    const size = Math.max(0, ...ticks.map(Math.abs));
    if (!size || (size >= 1e-3 && size < 1e4)) return 0;
    return 3 * Math.floor(Math.log10(size) / 3 + 1e-9);
  }

  /** Return how to write ticks: in one unit, all with as many decimals as one of them needs. */
  function writer(ticks) {
    const power = powerOf(ticks);
    const unit = { 0: "", 3: "k", 6: "M" }[power] ?? `e${power}`;
    const inUnits = (tick) => Number((tick / 10 ** power).toPrecision(12));
    const decimals = ticks.map((tick) => String(inUnits(tick)).split(".")[1]?.length ?? 0);
    const most = Math.min(12, Math.max(0, ...decimals));
    const digits = { minimumFractionDigits: most, maximumFractionDigits: most };
    return (tick) =>
      tick === 0 ? "0" : `${inUnits(tick).toLocaleString("en-US", digits)}${unit}`;
  }

  /** Return how much room the longest tick needs at the left of an axis, at least so much. */
  Karat.margin = (scale, least = 46, count = 5) => {
    const ticks = scale.ticks(count);
    const texts = ticks.map(writer(ticks));
    return Math.max(least, ...texts.map((text) => Math.ceil(Karat.width(text)) + 12));
  };

  /** Return the axis below: grid lines, ticks, and what is measured. */
  Karat.xAxis = (scale, box, { title, format, count = 5, ticks = scale.ticks(count) } = {}) => {
    const group = svg("g");
    const write = format ?? writer(ticks);
    for (const tick of ticks) {
      const x = scale(tick);
      group.append(svg("line", { class: "grid", x1: x, x2: x, y1: box.top, y2: box.bottom }));
      group.append(Karat.label(x, box.bottom + 16, write(tick), { "text-anchor": "middle" }));
    }
    const middle = (box.left + box.right) / 2;
    if (title)
      group.append(Karat.label(middle, box.bottom + 34, title, { "text-anchor": "middle" }));
    return group;
  };

  Karat.yAxis = (scale, box, { title, format, count = 5 } = {}) => {
    const group = svg("g");
    const write = format ?? writer(scale.ticks(count));
    for (const tick of scale.ticks(count)) {
      const y = scale(tick);
      group.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y, y2: y }));
      group.append(Karat.label(box.left - 7, y + 4, write(tick), { "text-anchor": "end" }));
    }
    if (title) group.append(Karat.label(box.left - 34, box.top - 10, title));
    return group;
  };

  /** Return a path through points; a missing point leaves a gap. */
  Karat.path = (points) => {
    let open = false;
    return points
      .map(([x, y]) => {
        if (!Number.isFinite(x) || !Number.isFinite(y)) {
          open = false;
          return "";
        }
        const word = `${open ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
        open = true;
        return word;
      })
      .join("");
  };

  // -- color by rank: dark blue to gold, increasing in brightness, for color blindness -------

  const STOPS = [
    [29, 53, 87],
    [79, 98, 124],
    [150, 148, 134],
    [214, 183, 100],
    [248, 216, 116],
  ];

  /** Return the color of a share: 0 is worst, 1 best. */
  Karat.ramp = (share) => {
    const at = Math.min(1, Math.max(0, share)) * (STOPS.length - 1);
    const low = Math.min(Math.floor(at), STOPS.length - 2);
    const mix = STOPS[low].map((from, i) =>
      Math.round(from + (STOPS[low + 1][i] - from) * (at - low)),
    );
    return `rgb(${mix.join(",")})`;
  };

  /** Return black or white, whichever has more contrast to a share's color. */
  Karat.over = (share) => (share > 0.36 ? "#000000" : "#ffffff");

  Karat.rampKey = (worst = "worst", best = "best") => {
    const stops = STOPS.map((_, i) => Karat.ramp(i / (STOPS.length - 1))).join(",");
    const strip = el("i", { style: `background:linear-gradient(90deg,${stops})` });
    return el("span", { class: "scale" }, worst, strip, best);
  };

  Karat.keys = (models) =>
    el(
      "ul",
      { class: "keys" },
      models.map((m) =>
        el(
          "li",
          null,
          el("i", { class: Karat.color(m) }),
          el("span", { class: "cut", text: Karat.model(m) }),
        ),
      ),
    );

  // -- tooltip ------------------------------------------------------------------

  let note = null;

  /** Show a tooltip at a position of the window, or hide it. */
  Karat.tip = (text, x = 0, y = 0) => {
    note ??= document.body.appendChild(
      el("div", { class: "tip", hidden: true, "aria-hidden": "true" }),
    );
    note.hidden = !text;
    if (!text) return;
    note.textContent = text;
    // a modal dialog is above everything, so the tooltip must be inside it
    const home = document.querySelector("dialog[open]") ?? document.body;
    if (note.parentNode !== home) home.append(note);
    const { offsetWidth: wide, offsetHeight: tall } = note;
    note.style.left = `${Math.max(6, Math.min(x + 14, innerWidth - wide - 8))}px`;
    note.style.top = `${y + tall + 24 > innerHeight ? Math.max(6, y - tall - 12) : y + 16}px`;
  };

  addEventListener("pointermove", (event) => {
    const target = event.target.closest?.("[data-tip]");
    if (target) Karat.tip(target.dataset.tip, event.clientX, event.clientY);
    else if (!event.target.closest?.("[data-tips]")) Karat.tip("");
  });
  addEventListener("scroll", () => Karat.tip(""), { passive: true, capture: true });
})();
