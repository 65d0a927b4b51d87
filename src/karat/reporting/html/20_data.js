/* The bundle: the data of the page, with look-ups. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const LONG = 80;

  Karat.read = () => JSON.parse(document.getElementById("bundle").textContent);

  /** Use a bundle: all of it, or the models and tasks of the group that the address names. */
  Karat.take = (bundle) => {
    const lists = ["models", "tasks", "scores", "spread", "states", "curves", "learning", "groups"];
    lists.push("failures", "maps", "cards", "checks", "runs", "cut", "notes", "verdict", "partial");
    lists.push("cheapest");
    const whole = { tests: {}, details: {}, folds: null, ...bundle };
    for (const name of lists) whole[name] = whole[name] ?? [];
    whole.tests = whole.tests ?? {};
    whole.details = whole.details ?? {};
    const place = groupOf(whole);
    Karat.data = whole.groups.length > 1 ? part(whole, place) : whole;
    Karat.data.group = place;
    Karat.failedAt = new Map();
    for (const failure of Karat.data.failures) {
      const key = `${failure.task} ${failure.model}`;
      Karat.failedAt.set(key, [...(Karat.failedAt.get(key) ?? []), failure]);
    }
    Karat.partialAt = new Map(
      Karat.data.partial.map(([m, t, have, planned]) => [`${t} ${m}`, [have, planned]]),
    );
  };

  function groupOf({ groups }) {
    const place = Karat.placeOf(groups, Karat.get("group"));
    return Math.max(0, place);
  }

  /** Take the bundle again if the address names another group. */
  Karat.regroup = () => {
    if (groupOf(Karat.data) !== Karat.data.group) Karat.take(Karat.given);
  };

  /** Show another group of models; its tasks have other numbers, so they are all chosen. */
  Karat.showGroup = (place) => {
    const group = place ? Karat.keyOf(Karat.data.groups, place) : "";
    Karat.set({ group, tasks: "", metrics: "", metric: "", common: "", task: "", model: "" });
    Karat.rebuild();
  };

  // -- a group: the bundle with some of its models and tasks, numbered anew --------------------

  function part(whole, place) {
    const group = whole.groups[place];
    const { models, tasks } = group;
    const model = new Map(models.map((m, i) => [m, i]));
    const task = new Map(tasks.map((t, i) => [t, i]));
    const pick = (row) => (row ? models.map((m) => row[m]) : row);
    const of = (list) => tasks.map((t) => list[t]);
    const has = (one) =>
      (one.model ?? null) === null || model.has(one.model)
        ? (one.task ?? null) === null || task.has(one.task)
        : false;
    const renumber = (one) => ({
      ...one,
      ...((one.model ?? null) === null ? {} : { model: model.get(one.model) }),
      ...((one.task ?? null) === null ? {} : { task: task.get(one.task) }),
    });
    const among = (list) => list.filter(has).map(renumber);
    const lines = (list) =>
      list
        .filter((chart) => task.has(chart.task))
        .map((chart) => ({ ...renumber(chart), lines: among(chart.lines) }))
        .filter((chart) => chart.lines.length);
    return {
      ...whole,
      models: models.map((m, i) => ({ ...whole.models[m], ...group.rows[i] })),
      tasks: of(whole.tasks),
      scores: of(whole.scores).map((metrics) => metrics.map(pick)),
      spread: of(whole.spread).map(pick),
      folds: whole.folds && of(whole.folds).map(pick),
      states: of(whole.states).map((signs) => pick([...signs]).join("")),
      tests: testsOf(whole.tests, { place, model, pick, of }),
      curves: lines(whole.curves),
      learning: lines(whole.learning),
      robustness: robustnessOf(whole, group),
      details: Object.fromEntries(
        tasks.flatMap((t, i) => (whole.details[t] ? [[i, among(whole.details[t])]] : [])),
      ),
      cards: whole.cards
        .map((card) => ({ ...card, tasks: card.tasks.flatMap((t) => task.get(t) ?? []) }))
        .filter((card) => card.tasks.length),
      partial: whole.partial.flatMap(([m, t, ...rest]) =>
        model.has(m) && task.has(t) ? [[model.get(m), task.get(t), ...rest]] : [],
      ),
      notes: [whole.notes[place], ...notesOf(whole, group.name)],
      ...Object.fromEntries(
        ["failures", "maps", "checks", "runs"].map((name) => [name, among(whole[name])]),
      ),
    };
  }

  /** Return the notes of a group; notes of some groups begin with their names. */
  function notesOf({ notes, groups }, own) {
    const names = groups.map(({ name }) => name);
    return notes.slice(groups.length).flatMap((note) => {
      const [, start, rest] = note.match(/^([^:]+): (.*)$/s) ?? [];
      const about = start?.split(", ") ?? [];
      if (!about.length || !about.every((name) => names.includes(name))) return [note];
      return about.includes(own) ? [rest] : [];
    });
  }

  /** Return the tests of a group: those of its models, under their numbers in the group. */
  function testsOf(tests, { place, model, pick, of }) {
    const square = (rows) => rows && pick(rows).map((row) => row && pick(row));
    const own = tests.groups?.[place] ?? { friedman: null };
    const cliques = (own.cliques ?? tests.cliques ?? [])
      .map((one) => one.flatMap((m) => model.get(m) ?? []))
      .filter((one) => one.length > 1);
    const pairs =
      tests.pairs &&
      Object.fromEntries(
        Object.entries(tests.pairs).map(([name, rows]) => [
          name,
          Array.isArray(rows) ? square(rows) : rows,
        ]),
      );
    const by_task =
      tests.by_task && of(tests.by_task).map((one) => one && { ...one, p: square(one.p) });
    const differences = tests.differences && of(tests.differences).map((one) => one && rowsOf(one, model));
    return { ...tests, ...own, cliques, pairs, by_task, differences };
  }

  /** Return the differences on a task of the models of a group. */
  function rowsOf(one, model) {
    const pairs = one.pairs.flatMap(([a, b, gain, ...rest]) => {
      const [i, j] = [model.get(a), model.get(b)];
      if (i === undefined || j === undefined) return [];
      return [i < j ? [i, j, gain, ...rest] : [j, i, gain === null ? null : -gain, ...rest]];
    });
    return { ...one, pairs };
  }

  function robustnessOf({ robustness, models, tasks }, group) {
    if (!robustness) return robustness;
    const names = [group.models.map((m) => models[m].name), group.tasks.map((t) => tasks[t].name)];
    const [m, t] = ["model", "task"].map((name) => robustness.columns.indexOf(name));
    const rows = robustness.rows.filter((row) => names[0].includes(row[m]) && names[1].includes(row[t]));
    return rows.length ? { ...robustness, rows } : null;
  }

  Karat.model = (m) => Karat.plain(Karat.data.models[m]?.name ?? "");

  Karat.task = (t) => Karat.plain(Karat.data.tasks[t]?.name ?? "");

  /** Return the word for a model or task in an address: its name, or its number if that is long. */
  Karat.keyOf = (list, i) => {
    const name = list[i]?.name ?? "";
    return name.length <= LONG && !/^~\d+$/.test(name) ? name : `~${i}`;
  };

  Karat.placeOf = (list, key) => {
    if (/^~\d+$/.test(key)) return Number(key.slice(1)) < list.length ? Number(key.slice(1)) : -1;
    return list.findIndex((one) => one.name === key);
  };

  /** Return a metric with an arrow to the better side. */
  Karat.metric = (t, k) => {
    const task = Karat.data.tasks[t];
    return `${Karat.short(task.metrics[k] ?? "", 24)} ${task.higher[k] ? "↑" : "↓"}`;
  };

  Karat.sign = (t, m) => ({ f: "failed", d: "–", n: "…" })[Karat.data.states[t]?.[m]] ?? "–";

  Karat.why = (t, m) =>
    ({ f: "failed", d: "not applicable to this model, or its library or data are missing", n: "not run" })[Karat.data.states[t]?.[m]] ??
    "no score";

  Karat.percent = () => `${Math.round(100 * (Karat.data.confidence ?? 0.95))} %`;

  // -- marked models: those with a color in every plot ---------------------------------

  const MOST = 8;

  /** Return the marked models in the order of their colors. */
  Karat.marks = () => {
    const models = Karat.data.models;
    const text = Karat.get("marks");
    if (text === "none") return [];
    if (!text) return models.slice(0, MOST).map((_, m) => m);
    return text.split("\n").map((key) => Karat.placeOf(models, key));
  };

  Karat.color = (m) => {
    const place = Karat.marks().indexOf(m);
    return place < 0 ? "none" : `c${place % MOST}`;
  };

  /** Mark or unmark a model; free colors are reused. */
  Karat.mark = (m) => {
    const marks = Karat.marks();
    const place = marks.indexOf(m);
    const free = marks.indexOf(-1);
    if (place >= 0) marks[place] = -1;
    else if (free >= 0) marks[free] = m;
    else marks.push(m);
    const left = marks.some((one) => one >= 0);
    const keys = marks.map((one) => (one < 0 ? "" : Karat.keyOf(Karat.data.models, one)));
    Karat.set({ marks: left ? keys.join("\n") : "none" });
    Karat.emit("marks");
  };
})();
