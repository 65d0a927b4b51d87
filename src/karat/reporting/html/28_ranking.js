/* The ranking of the selected tasks, metrics and models. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  /** maximum number of failures in a bundle; beyond it a missing fold counts as failed */
  const KNOWN = 2000;
  let stop = () => {};

  Karat.chosen = () => {
    const count = Karat.data.tasks.length;
    const text = Karat.get("tasks");
    if (text === "none") return [];
    return text ? Karat.unranged(text, count) : Array.from({ length: count }, (_, t) => t);
  };

  /** Select tasks; selecting all removes the state. */
  Karat.choose = (tasks) => {
    const all = tasks.length === Karat.data.tasks.length;
    Karat.set({ tasks: all ? "" : tasks.length ? Karat.ranges(tasks) : "none" });
  };

  /** Return the chosen metric of each task: a map of those that are not the first. */
  Karat.metrics = () => {
    const found = new Map();
    for (const part of Karat.get("metrics").split(",").filter(Boolean)) {
      const [t, k] = part.split(":").map(Number);
      if (k > 0 && Karat.data.tasks[t]?.metrics[k]) found.set(t, k);
    }
    return found;
  };

  Karat.measure = (tasks, k) => {
    const found = Karat.metrics();
    for (const t of tasks) {
      const place = typeof k === "function" ? k(t) : k;
      if (place > 0) found.set(t, place);
      else found.delete(t);
    }
    Karat.set({
      metrics: [...found]
        .sort((a, b) => a[0] - b[0])
        .map((each) => each.join(":"))
        .join(","),
    });
  };

  /** Return whether a model's name contains all search words. */
  Karat.matches = (m) => {
    const name = Karat.data.models[m].name.toLowerCase();
    return Karat.get("find")
      .toLowerCase()
      .split(/\s+/)
      .every((word) => name.includes(word));
  };

  Karat.shown = () => Karat.data.models.map((_, m) => m).filter(Karat.matches);

  /** Return the score of a model on a task under the chosen metric. */
  Karat.score = (t, m, k = Karat.ranking.metric(t)) => Karat.data.scores[t]?.[k]?.[m] ?? null;

  /** Return one number per fold, higher is better, NaN where it failed. */
  function foldsOf(t, k, m) {
    const sign = Karat.data.tasks[t].higher[k] ? 1 : -1;
    const folds = k === 0 ? Karat.data.folds?.[t]?.[m] : null;
    const values = folds?.length ? folds : [Karat.data.scores[t]?.[k]?.[m] ?? null];
    return values.map((value) => (value === null ? NaN : sign * value));
  }

  /** Return the models of a task under the rule, and their folds, all of equal length. */
  function contest(t, k, models, common) {
    const states = Karat.data.states[t] ?? "";
    const who = models.filter((m) => common || states[m] === "." || states[m] === "f");
    const found = who.map((m) => foldsOf(t, k, m));
    const most = Math.max(0, ...found.map((row) => row.length));
    const rows = found.map((row) =>
      row.length < most && Number.isNaN(row[0]) ? Array(most).fill(NaN) : row,
    );
    if (common) return commonFolds(who, rows);
    return { who, rows: triedFolds(t, who, rows) };
  }

  const known = new Map();

  /** Return the contest of a task; without a common subset it is always the same one. */
  function contestOf(t, k, models, common) {
    if (common) return contest(t, k, models, true);
    const key = `${t}:${k}`;
    if (known.get(key)?.data !== Karat.data)
      known.set(key, { data: Karat.data, found: contest(t, k, models, false) });
    return known.get(key).found;
  }

  /** Return the folds that all models have tried, so that unfinished runs are not penalized. */
  function triedFolds(t, who, rows) {
    const failures = Karat.data.failures.length;
    const open = who.map((m, i) => {
      const lost = rows[i].some(Number.isNaN) && Karat.data.states[t][m] === ".";
      return lost && failures < KNOWN && !Karat.failedAt.has(`${t} ${m}`);
    });
    if (!open.some(Boolean)) return rows;
    const all = rows[0].map((_, f) => f);
    const kept = all.filter((f) => rows.every((row, i) => !open[i] || !Number.isNaN(row[f])));
    if (kept.length) return rows.map((row) => kept.map((f) => row[f]));
    return rows.map((row) => [meanOf(row.filter((value) => !Number.isNaN(value)))]);
  }

  function meanOf(values) {
    return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : NaN;
  }

  /** Return the folds in which all models have a score. */
  function commonFolds(who, rows) {
    const kept = (rows[0] ?? [])
      .map((_, f) => f)
      .filter((f) => rows.every((row) => !Number.isNaN(row[f])));
    if (!kept.length) return { who: [], rows: [] };
    return { who, rows: rows.map((row) => kept.map((f) => row[f])) };
  }

  /** Return the ranked models: with the common subset, the shown ones with any score. */
  function contestants(common) {
    const all = Karat.data.models.map((_, m) => m);
    if (!common) return all;
    const scored = (m) => Karat.data.states.some((states) => states[m] === ".");
    return Karat.shown().filter(scored);
  }

  /** Return whether the selection is the ranking of the bundle. */
  function untouched() {
    return !Karat.get("tasks") && !Karat.get("metrics") && !Karat.get("common");
  }

  /** Rank again; models are compared in slices unless the bundle has the result. */
  Karat.rank = () => {
    stop();
    const started = performance.now();
    const chosen = Karat.chosen();
    const metrics = Karat.metrics();
    const common = Karat.get("common") === "1";
    const models = contestants(common);
    const metric = (t) => metrics.get(t) ?? 0;
    const tasks = chosen.map((t) => contestOf(t, metric(t), models, common));
    const found = Karat.ranks.rankEach(tasks, Karat.data.models.length);
    Karat.ranking = { chosen, metric, tasks, common, models: new Set(models), ...found };
    Karat.ranking.own = untouched();
    Karat.ranking.compared = tasks.filter(({ who }) => who.length > 1).length;
    Karat.ranking.taken = takenBy(tasks);
    Karat.ranking.fewTasks = Karat.fewTasks(Karat.ranking);
    Karat.ranking.took = performance.now() - started;
    if (Karat.ranking.own) useBundle();
    else compareAgain();
    Karat.emit("ranking");
  };

  /** Return how many of the chosen tasks each model takes. */
  function takenBy(tasks) {
    const counts = Karat.data.models.map(() => 0);
    for (const { who } of tasks) for (const m of who) counts[m] += 1;
    return counts;
  }

  function useBundle() {
    const models = Karat.data.models;
    Object.assign(Karat.ranking, {
      exact: Karat.ranking.mean,
      mean: models.map((model, m) => model.rank ?? Karat.ranking.mean[m]),
      low: models.map((model) => model.low ?? null),
      high: models.map((model) => model.high ?? null),
      tie: models.map((model) => model.tie ?? ""),
      top: models.map((model) => model.top ?? null),
      few: models.map((model) => Boolean(model.few)),
      ready: true,
    });
  }

  function compareAgain() {
    const ranking = Karat.ranking;
    const blank = ranking.mean.map(() => null);
    Object.assign(ranking, { low: blank, high: blank, top: blank, ready: false });
    ranking.tie = blank.map(() => "");
    ranking.few = Karat.ranks.few(ranking.taken);
    ranking.names = ranking.chosen.map((t) => Karat.data.tasks[t].name);
    ranking.places = Karat.data.models.map((model, m) => model.place ?? m);
    ranking.these = Karat.theseTasks(ranking);
    const steps =
      ranking.compared > 1 && !ranking.these.few
        ? Karat.ranks.compare(ranking)
        : Karat.ranks.compareFew(ranking);
    stop = Karat.slices(steps, (found) => {
      Object.assign(ranking, found, { ready: true });
      ranking.facts = differencesOf(ranking);
      ranking.overTasks = overTasks(ranking);
      Karat.emit("intervals");
    });
  }

  /** Return what the selected tasks show about the first model and the others, or null. */
  function differencesOf({ these, mean, few }) {
    if (!these.found?.test) return null;
    const order = Karat.order();
    const reference = order.find((m) => mean[m] !== null && !few[m]) ?? order[0];
    return Karat.differencesTo(reference, these, order);
  }

  /** Return the differences of mean ranks to the first model, as the verdict of the bundle has them. */
  function overTasks({ leads, compared, mean }) {
    if (!leads) return null;
    const rows = Karat.order().filter((m) => mean[m] !== null);
    const first = leads.find(({ verdict }) => verdict === "reference").model;
    return { reference: first, tasks: { length: compared }, models: rows.map((m) => leads[m]) };
  }

  /** Return models in the order of the ranking: of equal ranks few tasks last, then no rank. */
  Karat.order = () => {
    const { mean, few } = Karat.ranking;
    const key = (m) => mean[m] ?? 1e9;
    const models = Karat.data.models.map((_, m) => m);
    const place = (m) => Karat.data.models[m].place ?? m;
    return models.sort((a, b) => key(a) - key(b) || few[a] - few[b] || place(a) - place(b));
  };

  /** Return whether models take different tasks, of those that several models take. */
  Karat.takersDiffer = () => {
    const contested = Karat.ranking.tasks.filter(({ who }) => who.length > 1);
    const taking = new Set(contested.flatMap(({ who }) => who)).size;
    return contested.some(({ who }) => who.length < taking);
  };

  /** Return the ranks of all models on a chosen task's place, null where it has none. */
  Karat.ranksOn = (place) => {
    const ranks = Karat.data.models.map(() => null);
    const { who } = Karat.ranking.tasks[place];
    Karat.ranking.each[place]?.forEach((rank, i) => (ranks[who[i]] = rank));
    return ranks;
  };
})();
