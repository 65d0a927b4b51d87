/* The state of the page, stored in the address after #, so that links reproduce it. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  /** state of the dialog, which shows it without the page being rebuilt */
  const IN_DIALOG = ["task", "model"];
  let words = read();

  /** Return the state in the address; a section's name alone is not state. */
  function read() {
    const text = location.hash.slice(1);
    return new URLSearchParams(text.includes("=") ? text : "");
  }

  Karat.get = (name, otherwise = "") => words.get(name) ?? otherwise;

  /** Set values; an empty value removes one. Listeners get the changed names. */
  Karat.set = (choices) => {
    const changed = [];
    for (const [name, value] of Object.entries(choices)) {
      const text = value === null || value === undefined ? "" : String(value);
      if (text === Karat.get(name)) continue;
      if (text === "") words.delete(name);
      else words.set(name, text);
      changed.push(name);
    }
    if (!changed.length) return;
    remember(changed.join());
    Karat.emit("state", changed);
  };

  let last = "";
  let within = false;

  /** Write the state to the address; Back undoes a click, or all letters typed into a search. */
  function remember(names) {
    const same = within || (names === "find" && last === "find");
    last = names;
    within = true;
    setTimeout(() => (within = false));
    try {
      history[same ? "replaceState" : "pushState"](null, "", `#${words}`);
    } catch {
      /* a page inside a frame may have no address */
    }
  }

  /** The address changed: a section's name is an anchor, the rest is state. */
  addEventListener("hashchange", () => {
    const text = location.hash.slice(1);
    if (text && !text.includes("=")) return;
    const before = words;
    words = read();
    const names = new Set([...before.keys(), ...words.keys()]);
    const changed = [...names].filter((name) => before.get(name) !== words.get(name));
    last = "";
    if (changed.every((name) => IN_DIALOG.includes(name))) Karat.emit("state", changed);
    else Karat.rebuild();
  });

  Karat.ranges = (numbers) => {
    const parts = [];
    for (const number of [...numbers].sort((a, b) => a - b)) {
      const last = parts.at(-1);
      if (last && last[1] === number - 1) last[1] = number;
      else parts.push([number, number]);
    }
    return parts.map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`)).join(",");
  };

  Karat.unranged = (text, limit) => {
    const numbers = [];
    for (const part of text.split(",").filter(Boolean)) {
      const [from, to] = part.split("-").map(Number);
      for (let i = from; i <= Math.min(to ?? from, limit - 1); i += 1) numbers.push(i);
    }
    return numbers;
  };

  // -- theme --------------------------------------------------------------------------------

  const KEPT = "karat-theme";

  function remembered() {
    try {
      return localStorage.getItem(KEPT) ?? "auto";
    } catch {
      return "auto";
    }
  }

  function show(theme) {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem(KEPT, theme);
    } catch {
      /* storage is not allowed: the theme is not saved */
    }
    Karat.theme = theme;
    Karat.emit("theme");
  }

  Karat.themes = () =>
    Karat.choice("Theme", ["auto", "light", "dark"], () => Karat.theme, show).node;

  /** Return a group of toggle buttons, and a function that updates them. */
  Karat.choice = (label, options, chosen, choose) => {
    const buttons = options.map((option) =>
      Karat.el("button", {
        type: "button",
        "data-option": option,
        text: option,
        click: () => {
          choose(option);
          press();
        },
      }),
    );
    const press = () =>
      buttons.forEach((button) =>
        button.setAttribute("aria-pressed", String(button.dataset.option === chosen())),
      );
    press();
    const node = Karat.el("div", { class: "switch", role: "group", "aria-label": label }, buttons);
    return { node, press };
  };

  // plots are drawn for paper before its styles apply, so the light colors are set for them
  addEventListener("beforeprint", () => (document.documentElement.dataset.theme = "light"));
  addEventListener("afterprint", () => {
    if (Karat.theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = Karat.theme;
  });

  show(remembered());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => Karat.emit("theme"));
})();
