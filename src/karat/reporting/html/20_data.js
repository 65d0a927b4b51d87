/* The bundle: the data of the page, with look-ups. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const LONG = 80;

  Karat.read = () => JSON.parse(document.getElementById("bundle").textContent);

  Karat.take = (bundle) => {
    const lists = ["models", "tasks", "scores", "spread", "states", "curves", "learning"];
    lists.push("failures", "maps", "cards", "checks", "runs", "cut", "notes");
    const whole = { tests: {}, details: {}, folds: null, ...bundle };
    for (const name of lists) whole[name] = whole[name] ?? [];
    whole.tests = whole.tests ?? {};
    whole.details = whole.details ?? {};
    Karat.data = whole;
    Karat.failedAt = new Map();
    for (const failure of whole.failures) {
      const key = `${failure.task} ${failure.model}`;
      Karat.failedAt.set(key, [...(Karat.failedAt.get(key) ?? []), failure]);
    }
  };

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
