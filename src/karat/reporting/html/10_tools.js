/* Helpers: elements, number formats, random numbers, waiting. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const SVG = "http://www.w3.org/2000/svg";
  /** from here on, numbers have an exponent */
  const LARGE = 1e15;

  /** Set attributes; null and false are left out, functions become event listeners. */
  function dress(node, attributes) {
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (value === null || value === undefined || value === false) continue;
      if (typeof value === "function") node.addEventListener(name, value);
      else if (name === "text") node.textContent = value;
      else node.setAttribute(name, value === true ? "" : String(value));
    }
    return node;
  }

  /** Return an element with attributes and children; a string becomes text, never markup. */
  Karat.el = (tag, attributes, ...children) => {
    const node = dress(document.createElement(tag), attributes);
    node.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return node;
  };

  Karat.svg = (tag, attributes, ...children) => {
    const node = dress(document.createElementNS(SVG, tag), attributes);
    node.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return node;
  };

  /** Return a name on one line, without control and bidirectional characters. */
  Karat.plain = (name) =>
    String(name ?? "")
      .replace(/\s+/gu, " ")
      .trim()
      .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\ufffd");

  /** Return words as a command for a shell. */
  Karat.quoted = (words) =>
    words
      .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`))
      .join(" ");

  Karat.short = (name, width = 32) => {
    const text = Karat.plain(name);
    return text.length <= width ? text : text.slice(0, width - 1) + "…";
  };

  /** Return a value with some decimals, a half rounded up; zero has no sign. */
  Karat.fixed = (value, digits) => {
    const text = Math.abs(value).toFixed(digits);
    const [whole, rest] = text.split(".");
    const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
    const sign = value < 0 && Number(text) !== 0 ? "-" : "";
    return sign + grouped + (rest ? `.${rest}` : "");
  };

  /**
   * Return a number with three decimals, from 10 on with fewer, as in the terminal. With more than
   * four digits, as next to the pointer, small numbers have as many decimals as they need.
   */
  Karat.number = (value, digits = 4) => {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    if (size >= LARGE) return value.toExponential(3).replace("e+", "e");
    if (digits > 4 && size < 1e-3)
      return value.toLocaleString("en-US", { maximumSignificantDigits: 3 });
    const before = size < 10 ? 1 : size < 100 ? 2 : size < 1000 ? 3 : digits;
    return Karat.fixed(value, Math.max(0, digits - before));
  };

  /** Return a difference with its sign, as in the terminal. */
  Karat.signed = (value) => {
    if (value === null) return "–";
    const text = Karat.number(Math.abs(value));
    return Number(text.replaceAll(",", "")) === 0 ? text : `${value < 0 ? "-" : "+"}${text}`;
  };

  /** Return a count with its noun: 1 task, 2 tasks. */
  Karat.count = (number, noun) =>
    `${number.toLocaleString("en-US")} ${noun}${number === 1 ? "" : "s"}`;

  /** Return a duration as in the terminal, very short ones in milliseconds. */
  Karat.seconds = (value) => {
    if (value === null || value === undefined) return "–";
    return value < 0.1 ? `${(value * 1000).toFixed(0)} ms` : Karat.duration(value);
  };

  Karat.duration = (value) => {
    if (value < 120) return `${Karat.fixed(value, 1)} s`;
    return value < 7200 ? `${Karat.fixed(value / 60, 1)} min` : `${Karat.fixed(value / 3600, 1)} h`;
  };

  /** Return a price with two decimals, or with two significant digits if it is small. */
  Karat.money = (value) =>
    `$${Karat.fixed(value, value === 0 || value >= 0.1 ? 2 : 1 - Math.floor(Math.log10(value)))}`;

  Karat.megabytes = (value) => {
    if (value === null || value === undefined) return "–";
    return value < 1024 ? `${Math.round(value)} MB` : `${(value / 1024).toFixed(1)} GB`;
  };

  /** Return a p value; a pair without one was not tested, which is not the same as no difference. */
  Karat.p = (value) => {
    if (value === null || value === undefined) return "not tested";
    return value < 0.001 ? "< 0.001" : value.toFixed(3);
  };

  /** Return a p value with its sign: p = 0.012, p < 0.001. */
  Karat.equals = (value) => `p ${value < 0.001 ? "" : "= "}${Karat.p(value)}`;

  /** Return a generator of numbers in [0, 1): same seed, same numbers (mulberry's mixing of bits). */
  Karat.lots = (seed) => {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
    };
  };

  Karat.later = (action, wait = 120) => {
    let timer = 0;
    return (...given) => {
      clearTimeout(timer);
      timer = setTimeout(() => action(...given), wait);
    };
  };

  /** Run a generator in short slices, so that the page stays responsive. */
  Karat.slices = (steps, done, slice = 10) => {
    let stopped = false;
    const turn = () => {
      if (stopped) return;
      const end = performance.now() + slice;
      let step = steps.next();
      while (!step.done && performance.now() < end) step = steps.next();
      if (step.done) done(step.value);
      else setTimeout(turn, 0);
    };
    setTimeout(turn, 0);
    return () => (stopped = true);
  };

  const listeners = new Map();

  /** Listen to what changes: "ranking", "intervals", "state", "marks". */
  Karat.on = (name, action) => listeners.set(name, [...(listeners.get(name) ?? []), action]);

  Karat.emit = (name, ...given) =>
    (listeners.get(name) ?? []).forEach((action) => action(...given));

  /** Remove all listeners before the page is rebuilt. */
  Karat.forget = () => listeners.clear();

  Karat.width = (() => {
    const pen = document.createElement("canvas").getContext("2d");
    return (text, size = 11.5) => {
      pen.font = `${size}px system-ui, sans-serif`;
      return pen.measureText(text).width;
    };
  })();

  /** Return a table as CSV; cells that look like formulas are escaped. */
  Karat.csv = (rows) => rows.map((row) => row.map(cellOf).join(",")).join("\r\n") + "\r\n";

  function cellOf(value) {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }
})();
