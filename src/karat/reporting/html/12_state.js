/* The state of the page, stored in the address after #, so that links reproduce it.
 *
 * An address is the name of a section ("#compare"), a task ("#/task/adult") or a model
 * ("#/model/onehot"), and the choices after a question mark ("#board?find=tree").
 */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  /** state of the dialog, which shows it without the page being rebuilt */
  const IN_DIALOG = ["task", "model"];
  /** the section of which an address names a model, and the choice that it is */
  const OF_MODEL = "compare";
  const MODEL = "a";
  let { section, words } = read();

  /** Return the section and the choices in the address; without a path, choices need no mark. */
  function read() {
    const text = location.hash.slice(1);
    const mark = text.indexOf("?");
    const bare = mark < 0 && text.includes("=") && !text.startsWith("/");
    const path = bare ? "" : text.slice(0, mark < 0 ? undefined : mark);
    const words = new URLSearchParams(bare ? text : mark < 0 ? "" : text.slice(mark + 1));
    const [, kind, name] = /^\/(task|model)\/(.*)$/.exec(path) ?? [];
    if (kind) words.set(kind === "task" ? "task" : MODEL, decoded(name));
    if (kind === "model") words.delete("b");
    return { section: kind ? (kind === "model" ? OF_MODEL : "") : decoded(path), words };
  }

  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text; // typed by hand, with a lone per cent sign
    }
  }

  /** Return the address of a section and choices. */
  function written(section, words) {
    const rest = new URLSearchParams(words);
    let path = encodeURIComponent(section);
    if (rest.has("task")) path = `/task/${encodeURIComponent(rest.get("task"))}`;
    else if (section === OF_MODEL && rest.has(MODEL) && !rest.has("b"))
      path = `/model/${encodeURIComponent(rest.get(MODEL))}`;
    if (path.startsWith("/task/")) rest.delete("task");
    else if (path.startsWith("/model/")) rest.delete(MODEL);
    return `#${path}${rest.size ? `?${rest}` : ""}`;
  }

  Karat.get = (name, otherwise = "") => words.get(name) ?? otherwise;

  /** Return the section in the address. */
  Karat.here = () => section;

  /** Set values; an empty value removes one. Listeners get the changed names. */
  Karat.set = (choices, to = section) => {
    const changed = [];
    for (const [name, value] of Object.entries(choices)) {
      const text = value === null || value === undefined ? "" : String(value);
      if (text === Karat.get(name)) continue;
      if (text === "") words.delete(name);
      else words.set(name, text);
      changed.push(name);
    }
    if (!changed.length && to === section) return;
    section = to;
    remember(changed.join());
    if (changed.length) Karat.emit("state", changed);
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
      history[same ? "replaceState" : "pushState"](null, "", written(section, words));
    } catch {
      /* a page inside a frame may have no address */
    }
  }

  /** The address changed, by Back, Forward or by hand. */
  addEventListener("hashchange", () => {
    const [before, where] = [words, section];
    ({ section, words } = read());
    const names = new Set([...before.keys(), ...words.keys()]);
    const changed = [...names].filter((name) => before.get(name) !== words.get(name));
    last = "";
    if (changed.length && changed.every((name) => IN_DIALOG.includes(name)))
      Karat.emit("state", changed);
    else if (changed.length) Karat.rebuild();
    if (section && section !== where) Karat.land(section);
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
