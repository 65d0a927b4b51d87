/* The rank on the next task: the rules of karat.stats.conformal_ranks. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  /** the part of new tasks that an interval may miss */
  const MISSED = 0.1;
  const FEWEST_SEEN = 19;
  const TAKEN_PART = 0.5;
  const STEPS = 200;

  /** Return how many of the tasks seen may be below and above an interval, plus one each. */
  function tailCounts(tasks) {
    const both = Math.floor(MISSED * (tasks + 1) + 1e-9);
    return [Math.floor(both / 2), both - Math.floor(both / 2)];
  }

  /** Return the tasks that enough models take, with ranks stretched to the number of all models. */
  function usable({ tasks, each }, models) {
    const taking = new Set(tasks.flatMap(({ who }, t) => (each[t] ? [...who] : [])));
    const others = taking.size - 1;
    const found = tasks.flatMap((task, t) => {
      const rivals = task.who.length - 1;
      if (!each[t] || rivals < TAKEN_PART * others) return [];
      const ranks = new Float64Array(models).fill(NaN);
      task.who.forEach((m, i) => (ranks[m] = 1 + (each[t][i] - 1) * (others / rivals)));
      return [{ ranks, task }];
    });
    return { found, count: taking.size };
  }

  /** Return the bounds of a model's rank on a new task: order statistics, rounded outwards. */
  function boundsOf(ranks) {
    const sorted = Float64Array.from(ranks).sort();
    const [below, above] = tailCounts(sorted.length);
    return [
      Math.floor(sorted[below - 1] + 1e-9),
      Math.ceil(sorted[sorted.length - above] - 1e-9),
    ];
  }

  /**
   * Return the share of tasks on which each model is first; ties share a task, and a model that
   * skips a task is taken to win it as often as those it takes.
   */
  function firstShares(found, models, counts) {
    const winners = found.map(({ ranks }) => {
      const least = ranks.reduce((a, b) => (b < a ? b : a), Infinity);
      return [...ranks.keys()].filter((m) => ranks[m] === least);
    });
    const skips = found.map(({ ranks }) => [...ranks.keys()].filter((m) => Number.isNaN(ranks[m])));
    let share = new Float64Array(models).fill(1 / models);
    for (let step = 0; step < STEPS; step += 1) {
      const next = new Float64Array(models);
      winners.forEach((tied, t) => {
        let absent = 0;
        for (const m of skips[t]) absent += share[m];
        for (const m of tied) next[m] += (1 - absent) / tied.length / counts[m];
      });
      const settled = next.every((value, m) => Math.abs(value - share[m]) < 1e-13);
      share = next;
      if (settled) break;
    }
    return share;
  }

  /** Return how far the models of a task are below the best, as a share of the whole distance. */
  function losses({ who, rows }, models) {
    const loss = new Float64Array(models).fill(NaN);
    const failed = rows.map((row) => row.every(Number.isNaN));
    const folds = rows[0].map((_, f) => f).filter((f) => rows.some((row) => !Number.isNaN(row[f])));
    const worst = folds.map((f) => Math.min(...rows.map((row) => row[f]).filter((v) => !Number.isNaN(v))));
    const means = rows.map((row) => {
      const values = folds.map((f, i) => (Number.isNaN(row[f]) ? worst[i] : row[f]));
      return values.reduce((sum, value) => sum + value, 0) / values.length;
    });
    const finite = means.filter(Number.isFinite);
    const [low, high] = finite.length ? [Math.min(...finite), Math.max(...finite)] : [0, 0];
    const equal = Math.abs(high - low) <= 1e-12 * Math.max(Math.abs(high), Math.abs(low));
    who.forEach((m, i) => {
      if (!equal) loss[m] = Math.min(1, Math.max(0, (high - means[i]) / (high - low)));
      else loss[m] = failed[i] && !failed.every(Boolean) ? 1 : 0;
    });
    return loss;
  }

  /**
   * Return by model {low, high, first, loss, tasks} on a new task like the chosen ones, or null
   * where it has fewer than 19 tasks; null if that is all models.
   */
  Karat.nextTask = (ranking, models) => {
    const { found, count } = usable(ranking, models);
    if (found.length < FEWEST_SEEN) return null;
    const counts = Int32Array.from({ length: models }, (_, m) => {
      return found.filter(({ ranks }) => !Number.isNaN(ranks[m])).length;
    });
    if (!counts.some((tasks) => tasks >= FEWEST_SEEN)) return null;
    const share = firstShares(found, models, counts);
    const lost = found.map(({ task }) => losses(task, models));
    return Array.from(counts, (tasks, m) => {
      if (tasks < FEWEST_SEEN) return null;
      const known = found.map(({ ranks }) => ranks[m]).filter((rank) => !Number.isNaN(rank));
      const [low, high] = boundsOf(known);
      const first = (share[m] * tasks + 1 / count) / (tasks + 1);
      const own = lost.map((row) => row[m]).filter((value) => !Number.isNaN(value));
      const loss = own.reduce((sum, value) => sum + value, 0) / own.length;
      return { low, high, first, loss, tasks };
    });
  };
})();
