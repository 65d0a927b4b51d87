/* What selected tasks show about each pair of models: the rules of karat.analysis.these_tasks. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const ALPHA = 0.05;
  const FEWEST = 6;
  const MARGIN = 0.01;
  /** gains below this are differences of rounding */
  const EQUAL_SCORES = 1e-6;
  /** the least p of a bootstrap; it is no bound for a correction over many tasks */
  const LEAST_P = 1 / 2000;
  const TEST = "t over these tasks, Bonferroni";
  const LEARNERS = "learners";
  const UNTESTED = { gain: NaN, error: NaN, freedom: NaN, step: NaN };

  const { agreeing } = Karat.student;
  const turned = (pair) => ({ ...pair, gain: -pair.gain });

  /** Return p of the one-sided test that a gain is at most a bound. */
  function above({ gain, error, freedom, step }, bound) {
    const away = gain - bound;
    const spread = Math.hypot(error, step);
    if (Number.isNaN(away) || Number.isNaN(spread)) return NaN;
    if (spread === 0) return away === 0 ? 0.5 : away > 0 ? 0 : 1;
    const rest = away - (2 / 3) * step;
    if (!(step > 0) || rest <= 0) return Karat.student.above(rest / spread, freedom);
    const root = Math.sqrt(spread ** 2 + (4 / 3) * step * rest) - spread;
    return Karat.student.above((1.5 * root) / step, freedom);
  }

  const twoSided = (pair) => Math.min(1, 2 * Math.min(above(pair, 0), above(turned(pair), 0)));

  /** Return the ends of a 95 % interval that holds together with so many others. */
  function bounds({ gain, error, freedom, step }, statements) {
    const z = Karat.student.exceeded(ALPHA / 2 / Math.max(statements, 1), freedom);
    const half = step * (1 + (z ** 2 - 1) / 3) + z * Math.hypot(error, step);
    return [gain - half, gain + half];
  }

  /** Return the mean over fixed tasks, of those on which the pair was tested. */
  function meanOf(pairs) {
    const tested = pairs.filter(({ error }) => !Number.isNaN(error));
    const count = tested.length;
    if (!count) return { ...UNTESTED, tested: 0 };
    const sum = (value) => tested.reduce((total, pair) => total + value(pair), 0);
    const whole = sum(({ error }) => error ** 2) / count ** 2;
    const shares = sum(({ error, freedom }) => (error / count) ** 4 / freedom);
    const freedom = shares > 0 ? whole ** 2 / shares : sum((pair) => pair.freedom);
    const step = tested.reduce((most, pair) => Math.max(most, pair.step), 0) / count;
    const gain = sum((pair) => pair.gain) / count;
    return { gain, error: Math.sqrt(whole), freedom, step, tested: count };
  }

  const number = (value) => value ?? NaN;

  /** Return the differences of all pairs on a task; ``alone``: with p of two models by themselves. */
  function taskOf(t, who, alone) {
    const { pairs, step, test, claim, why } = Karat.data.tests.differences[t];
    const found = new Map();
    for (const [a, b, gain, error, freedom, ofAll] of pairs) {
      const known = error !== null && error !== undefined;
      const pair = { gain: number(gain), error: number(error), freedom: number(freedom) };
      const p = alone ? Karat.data.tests.by_task[t].p?.[a]?.[b] : ofAll;
      found.set(`${a} ${b}`, { ...pair, step: known ? step : NaN, p: number(p) });
    }
    const none = { ...UNTESTED, p: NaN };
    const at = (a, b) =>
      a < b ? (found.get(`${a} ${b}`) ?? none) : turned(found.get(`${b} ${a}`) ?? none);
    return { t, who: new Set(who), at, test, claim, why };
  }

  /** Return models × models without any test. */
  Karat.noTests = (models) =>
    models.map((_, m) => Float64Array.from(models, (_, other) => (other === m ? 1 : NaN)));

  /** The statements about all pairs of models on some tasks. */
  class TheseTasks {
    constructor(tasks, models) {
      this.tasks = tasks;
      const pairs = models.flatMap((a) => models.filter((b) => b > a).map((b) => [a, b]));
      this.means = new Map(
        pairs.map(([a, b]) => [`${a} ${b}`, meanOf(tasks.map(({ at }) => at(a, b)))]),
      );
      this.pairs = [...this.means.values()].filter(({ tested }) => tested).length;
      this.statements = [...this.means.values()].reduce((sum, { tested }) => sum + tested, 0);
      this.p = Karat.noTests(Karat.data.models);
      for (const [a, b] of pairs) this.p[a][b] = this.p[b][a] = this.pOf(a, b);
      const named = tasks.filter(({ test }) => test);
      this.test = named.length ? (tasks.length > 1 ? TEST : named[0].test) : "";
      const learners = named.length && named.every(({ claim }) => claim === LEARNERS);
      this.claim = learners ? LEARNERS : "as fitted";
      const reasons = tasks.map(({ why }) => why).filter(Boolean);
      this.why = named.length ? "" : [...new Set(reasons)].join(", ");
    }

    mean(a, b) {
      return a < b ? this.means.get(`${a} ${b}`) : turned(this.means.get(`${b} ${a}`));
    }

    /** Return p of a mean gain, corrected for all pairs; that of the test of a single task. */
    pOf(a, b) {
      if (this.tasks.length === 1) return this.tasks[0].at(a, b).p;
      return Math.min(1, twoSided(this.mean(a, b)) * Math.max(this.pairs, 1));
    }

    verdict(one, other) {
      const p = this.p[one][other];
      if (Number.isNaN(p)) return "not tested";
      const pairs = this.tasks.map(({ at }) => at(one, other));
      const gains = pairs.map(({ gain }) => gain).filter((gain) => !Number.isNaN(gain));
      if (gains.every((gain) => Math.abs(gain) < EQUAL_SCORES)) return "equal";
      const mean = this.mean(one, other);
      if (p < ALPHA) return mean.gain > 0 ? "better" : "worse";
      const beyond = [mean, turned(mean)].map((pair) => above(pair, -MARGIN));
      const same = Math.min(1, Math.max(...beyond) * Math.max(this.pairs, 1));
      return same < ALPHA / 2 ? "same" : "open";
    }

    /** Return what a task shows about two models, or null if one of them does not take it. */
    onTask({ t, who, at }, one, other) {
      if (!who.has(one) || !who.has(other)) return null;
      const pair = at(one, other);
      const raised = (pair.p > LEAST_P ? pair.p : 0) * this.tasks.length;
      const p = Math.max(twoSided(pair) * Math.max(this.statements, 1), raised);
      const [low, high] = agreeing(bounds(pair, this.statements), Math.min(1, p));
      const row = { task: t, difference: pair.gain, low, high, p: Math.min(1, p) };
      return { ...row, verdict: verdictOf(row) };
    }

    /** Return a row per model: its difference to a reference, and on each common task. */
    against(reference, models) {
      return models.map((model) => {
        const blank = { model, difference: 0, low: NaN, high: NaN, p: NaN, verdict: "reference" };
        if (model === reference) return { ...blank, tasks: 0, tested: 0, by_task: [] };
        const mean = this.mean(model, reference);
        const p = this.p[model][reference];
        const [low, high] = agreeing(bounds(mean, this.pairs), p);
        const by_task = this.tasks.flatMap((task) => this.onTask(task, model, reference) ?? []);
        const tested = { tasks: by_task.length, tested: mean.tested, by_task };
        const verdict = this.verdict(model, reference);
        return { model, difference: mean.gain, low, high, p, verdict, ...tested };
      });
    }
  }

  function verdictOf({ difference, p }) {
    if (Math.abs(difference) < EQUAL_SCORES) return "equal";
    if (Number.isNaN(p) || Number.isNaN(difference)) return "not tested";
    return !(p < ALPHA) ? "open" : difference > 0 ? "better" : "worse";
  }

  /** Return a value in which NaN is null, as in the bundle. */
  function plain(value) {
    if (Array.isArray(value)) return value.map(plain);
    if (value === null || typeof value !== "object") return Number.isNaN(value) ? null : value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]));
  }

  /** Return which models are compared on a ranking's tasks of more than one model. */
  function contested({ tasks, chosen }) {
    return tasks.flatMap(({ who }, i) => (who.length > 1 ? [{ t: chosen[i], who }] : []));
  }

  /** Return whether two models share enough tasks for a test over tasks. */
  function enough(parts) {
    const shared = new Map();
    for (const { who } of parts)
      for (const a of who)
        for (const b of who) {
          if (b <= a) continue;
          const key = `${a} ${b}`;
          shared.set(key, (shared.get(key) ?? 0) + 1);
          if (shared.get(key) >= FEWEST) return true;
        }
    return false;
  }

  /** Return whether a ranking is on tasks that are too few for a test over tasks. */
  Karat.fewTasks = (ranking) => {
    const parts = contested(ranking);
    return parts.length > 1 && !enough(parts);
  };

  /** Return why the page cannot tell what the selected tasks show, with a command that can. */
  function lacking(ranking, parts) {
    const other = parts.find(({ t }) => ranking.metric(t) > 0);
    const where = Karat.data.where || "RUNS";
    const by = parts.length > 1 ? " --by task" : "";
    const command = (more) => `${Karat.quoted(["karat", "leaderboard", where])}${by} ${more}`;
    if (ranking.common)
      return `the page has no tests of common folds; ${command("--common")} makes them`;
    if (other) {
      const metric = Karat.data.tasks[other.t].metrics[ranking.metric(other.t)];
      const option = Karat.quoted(["--metric", `${Karat.data.tasks[other.t].name}=${metric}`]);
      return `the page has no tests of other metrics; ${command(option)} makes them`;
    }
    if (parts.some(({ t }) => !Karat.data.tests.differences?.[t]))
      return `the page has no tests of single tasks; ${command("").trim()} makes them`;
    return "";
  }

  /**
   * Return what the selected tasks show: ``few``, whether no test over tasks is possible, ``lacks``,
   * why the page cannot tell, and the statements, ``found``.
   */
  Karat.theseTasks = (ranking, alone = false) => {
    const parts = contested(ranking);
    if (!parts.length) return { few: false, lacks: "", found: null };
    const few = Karat.fewTasks(ranking);
    const lacks = lacking(ranking, parts);
    if (lacks) return { few, lacks, found: null };
    const models = [...new Set(parts.flatMap(({ who }) => [...who]))].sort((a, b) => a - b);
    const tasks = parts.map(({ t, who }) => taskOf(t, who, alone));
    return { few, lacks, found: new TheseTasks(tasks, models), models };
  };

  /** Return the differences of all models to the first one, as the verdict of the bundle has them. */
  Karat.differencesTo = (reference, { found, models }, order) => {
    const rows = order.filter((m) => models.includes(m));
    return plain({
      reference,
      margin: MARGIN,
      test: found.test,
      claim: found.claim,
      tasks: found.tasks.map(({ t }) => t),
      models: found.against(reference, rows),
    });
  };

  /** Return the difference of two models over the tasks that both take, by themselves. */
  Karat.meanDifference = (ranking, a, b) => {
    const tasks = ranking.tasks.map(({ who }) => ({ who: [a, b].filter((m) => [...who].includes(m)) }));
    const { found } = Karat.theseTasks({ ...ranking, tasks }, true);
    if (!found || found.tasks.length < 2) return null;
    return plain(found.against(b, [a])[0]);
  };
})();
