/* Sections of the page; those without data are left out. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el } = Karat;
  const sections = [];

  /** Add a section: {id, title, way (its name in the navigation), has(), build(root)}. */
  Karat.section = (section) => sections.push(section);

  /** Sections that come directly after the verdict, by its kind. */
  const FIRST = { robustness: "corruption", comparison: "compare" };

  /** Return the sections that have something to show, what the verdict is about first. */
  Karat.present = () => {
    const there = [...sections, ...Karat.addedSections()].filter((section) => section.has());
    const lead = there.find(({ id }) => id === FIRST[Karat.verdict()?.kind]);
    if (!lead) return there;
    const rest = there.filter((section) => section !== lead);
    const at = rest.findIndex(({ id }) => id === "verdict") + 1;
    return [...rest.slice(0, at), lead, ...rest.slice(at)];
  };

  Karat.raise = (section) => {
    const root = el("section", { id: section.id, "aria-labelledby": `${section.id}-title` });
    const title = el("h2", { id: `${section.id}-title`, text: section.title });
    root.append(el("div", { class: "head" }, title));
    if (section.lead) root.append(el("p", { class: "lead", text: section.lead }));
    section.build(root);
    return root;
  };

  /** Return a list to choose from, with its label: `options` are [value, text]. */
  Karat.select = (label, options, chosen, choose) => {
    const list = el(
      "select",
      { change: () => choose(list.value) },
      options.map(([value, text]) =>
        el("option", { value, text, selected: String(value) === String(chosen) }),
      ),
    );
    return el("label", null, label, list);
  };

  Karat.box = (label, checked, change) => {
    const box = el("input", { type: "checkbox", checked, change: () => change(box.checked) });
    return el("label", null, box, label);
  };

  Karat.button = (text, click, more) =>
    el("button", { type: "button", class: "button", text, click, ...more });

  /** Return the place of a task that was chosen under a name, or the first of those there are. */
  Karat.chosenOf = (name, places) => {
    const place = Karat.placeOf(Karat.data.tasks, Karat.get(name));
    return places.includes(place) ? place : places[0];
  };

  /** Return a list of tasks to choose from; the selection is stored under a name. */
  Karat.taskList = (name, places, change) =>
    Karat.select(
      "Task",
      places.map((t) => [t, Karat.short(Karat.task(t), 60)]),
      Karat.chosenOf(name, places),
      (value) => {
        Karat.set({ [name]: Karat.keyOf(Karat.data.tasks, Number(value)) });
        change();
      },
    );

  Karat.taskLink = (t, text) =>
    el("button", {
      class: "link",
      type: "button",
      text: text ?? Karat.task(t),
      click: () => Karat.set({ task: Karat.keyOf(Karat.data.tasks, t) }),
    });

  /** Return the models a picture with lines shows: the marked ones among those that have any. */
  Karat.markedOf = (models) => {
    const marked = Karat.marks().filter((m) => m >= 0 && models.includes(m));
    return marked.length ? marked : models.slice(0, 8);
  };
})();
