/* Selection of models, tasks and metrics. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el } = Karat;

  Karat.controls = () => {
    const panel = el("div", { class: "chooser", id: "chooser", hidden: !Karat.get("choosing") });
    const opener = Karat.button(
      "",
      () => {
        Karat.set({ choosing: panel.hidden ? "1" : "" });
      },
      { "aria-controls": "chooser", id: "choose-tasks" },
    );
    Karat.on("state", (names) => names.includes("choosing") && open());
    const open = () => {
      panel.hidden = !Karat.get("choosing");
      opener.setAttribute("aria-expanded", String(!panel.hidden));
      if (!panel.hidden) fillChooser(panel);
    };
    const refresh = () => (opener.textContent = `Tasks: ${selection()} ▾`);
    Karat.on("ranking", refresh);
    Karat.on("state", (names) => names.includes("tasks") && !panel.hidden && tick(panel));
    open();
    refresh();
    const status = el("span", {
      class: "status",
      id: "status",
      role: "status",
      "aria-live": "polite",
    });
    return [
      el("div", { class: "bar" }, finder(), opener, metricList(), commonBox(), status),
      panel,
    ];
  };

  /** Escape closes the panel; in a search field with a text it first clears the text. */
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !Karat.get("choosing")) return;
    const { target } = event;
    if (document.querySelector("dialog[open]") || (target.type === "search" && target.value)) return;
    Karat.set({ choosing: "" });
    document.getElementById("choose-tasks")?.focus();
  });

  function selection() {
    const [chosen, all] = [Karat.chosen().length, Karat.data.tasks.length];
    return chosen === all ? `all ${all}` : `${chosen} of ${all}`;
  }

  function finder() {
    const find = Karat.later(() => Karat.set({ find: input.value.trim() }), 80);
    const input = el("input", {
      type: "search",
      id: "find",
      placeholder: "Find models",
      "aria-label": "Find models",
      value: Karat.get("find"),
      input: find,
    });
    return el("label", null, input);
  }

  /** Return the list of metrics, if tasks have more than one: tasks without it keep their first. */
  function metricList() {
    const names = [...new Set(Karat.data.tasks.flatMap((task) => task.metrics))];
    if (Karat.data.tasks.every((task) => task.metrics.length < 2)) return null;
    const options = [
      ["", "each task's first"],
      ...names.map((name) => [name, Karat.short(name, 30)]),
    ];
    const every = Karat.data.tasks.map((_, t) => t);
    const list = Karat.select("Metric", options, Karat.get("metric"), (name) => {
      Karat.set({ metric: name });
      Karat.measure(every, (t) => (name ? Karat.data.tasks[t].metrics.indexOf(name) : 0));
    });
    list.querySelector("select").id = "metric";
    return list;
  }

  function commonBox() {
    const label = "Only tasks that all shown models have";
    const box = Karat.box(label, Karat.get("common") === "1", (on) =>
      Karat.set({ common: on ? "1" : "" }),
    );
    box.querySelector("input").id = "common";
    return box;
  }

  // -- the panel ------------------------------------------------------------------------------

  /** Fill the panel: a group per kind, dataset or language, a box per task. */
  function fillChooser(panel) {
    const by = Karat.get("groups", "kind");
    const search = el("input", {
      type: "search",
      placeholder: "Find tasks",
      "aria-label": "Find tasks",
    });
    search.addEventListener("input", () => sift(panel, search.value));
    const groupBy = Karat.choice(
      "Group tasks by",
      ["kind", "dataset", ...(Karat.data.tasks.some((task) => task.language) ? ["language"] : [])],
      () => Karat.get("groups", "kind"),
      (value) => {
        Karat.set({ groups: value === "kind" ? "" : value });
        fillChooser(panel);
      },
    ).node;
    const all = Karat.data.tasks.map((_, t) => t);
    const bar = el(
      "div",
      { class: "bar" },
      search,
      groupBy,
      Karat.button("All", () => Karat.choose(all), { class: "button quiet" }),
      Karat.button("None", () => Karat.choose([]), { class: "button quiet" }),
      Karat.button("Invert", () => Karat.choose(inverted(all)), { class: "button quiet" }),
    );
    const groups = [...groupsOf(by)].map(([name, tasks]) => group(name, tasks));
    panel.replaceChildren(bar, el("div", { class: "groups" }, groups));
    tick(panel);
  }

  function inverted(all) {
    const chosen = new Set(Karat.chosen());
    return all.filter((t) => !chosen.has(t));
  }

  /** Return the tasks by kind or dataset, in their order. */
  function groupsOf(by) {
    const groups = new Map();
    Karat.data.tasks.forEach((task, t) => {
      const name = Karat.plain(task[by]) || "other";
      groups.set(name, [...(groups.get(name) ?? []), t]);
    });
    return groups;
  }
  Karat.groupsOf = groupsOf;

  function group(name, tasks) {
    const box = el("input", {
      type: "checkbox",
      "data-tasks": tasks.join(","),
      change: () => {
        const rest = Karat.chosen().filter((t) => !tasks.includes(t));
        Karat.choose(box.checked ? [...rest, ...tasks].sort((a, b) => a - b) : rest);
      },
    });
    const title = el(
      "legend",
      null,
      el("label", { class: "tick" }, box, el("span", { text: `${name} · ${tasks.length}` })),
    );
    return el("fieldset", null, title, tasks.map(tickOf));
  }

  /** Return the box of a task, and its metrics where it has several. */
  function tickOf(t) {
    const box = el("input", {
      type: "checkbox",
      "data-task": t,
      change: () => {
        const rest = Karat.chosen().filter((one) => one !== t);
        Karat.choose(box.checked ? [...rest, t].sort((a, b) => a - b) : rest);
      },
    });
    const task = Karat.data.tasks[t];
    const label = el(
      "label",
      null,
      box,
      el("span", { text: Karat.task(t), title: Karat.short(task.name, 300) }),
    );
    if (task.metrics.length < 2) return el("div", { class: "tick" }, label);
    const options = task.metrics.map((name, k) => [k, Karat.short(name, 24)]);
    const list = Karat.select("", options, Karat.metrics().get(t) ?? 0, (k) =>
      Karat.measure([t], Number(k)),
    );
    const choice = list.querySelector("select");
    choice.setAttribute("aria-label", `Metric of ${Karat.short(task.name, 60)}`);
    return el("div", { class: "tick" }, label, choice);
  }

  /** Tick the boxes of what is chosen; a group's box has a third state. */
  function tick(panel) {
    const chosen = new Set(Karat.chosen());
    for (const box of panel.querySelectorAll("[data-task]"))
      box.checked = chosen.has(Number(box.dataset.task));
    for (const box of panel.querySelectorAll("[data-tasks]")) {
      const tasks = box.dataset.tasks.split(",").map(Number);
      const there = tasks.filter((t) => chosen.has(t)).length;
      box.checked = there === tasks.length;
      box.indeterminate = there > 0 && there < tasks.length;
    }
  }

  function sift(panel, text) {
    for (const row of panel.querySelectorAll("fieldset > .tick")) {
      row.hidden = !row.textContent.toLowerCase().includes(text.toLowerCase());
      row.style.display = row.hidden ? "none" : "";
    }
  }
})();
