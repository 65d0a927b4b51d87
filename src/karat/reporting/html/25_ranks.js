/* Ranks and their uncertainty: the rules of karat.results.ranks, in the browser. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const FEWEST = 3;
  const SEED = 0;
  const ROOM = 8e6;

  /** Return the first place in sorted numbers whose number is not below, or is above, a value. */
  function bound(sorted, value, above) {
    let low = 0;
    let high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] < value || (above && sorted[middle] === value)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Return the ranks of numbers, the highest first; equal ones share their mean. */
  function ranked(values) {
    const sorted = Float64Array.from(values, (value) => -value).sort();
    return Float64Array.from(values, (value) => {
      return (bound(sorted, -value, false) + 1 + bound(sorted, -value, true)) / 2;
    });
  }

  /** Put a little less than the worst of its fold where a fold failed (NaN). */
  function worstForFailed(rows) {
    const folds = rows[0]?.length ?? 0;
    for (let f = 0; f < folds; f += 1) {
      let worst = Infinity;
      for (const row of rows) if (row[f] < worst) worst = row[f];
      if (!Number.isFinite(worst)) worst = 0;
      const less = worst - 1e-12 - Math.abs(worst) * 1e-9;
      for (const row of rows) if (Number.isNaN(row[f])) row[f] = less;
    }
    return rows;
  }

  function mean(row) {
    let total = 0;
    for (const value of row) total += value;
    return total / row.length;
  }

  /**
   * Rank the models of a task. A task is {who, rows}: which models take it, and for each of them
   * one number per fold, higher is better, NaN where it failed. One model alone has no rank.
   */
  function rankTask({ who, rows }) {
    if (who.length < 2) return null;
    return ranked(worstForFailed(rows.map((row) => Float64Array.from(row))).map(mean));
  }

  /** Rank models on tasks: the ranks on each, and the mean rank of each model. */
  function rankEach(tasks, models) {
    const total = new Float64Array(models);
    const count = new Int32Array(models);
    const each = tasks.map((task) => (task.ranks ??= rankTask(task)));
    tasks.forEach(({ who }, t) => {
      each[t]?.forEach((rank, i) => {
        total[who[i]] += rank;
        count[who[i]] += 1;
      });
    });
    return { each, mean: Array.from(total, (sum, m) => (count[m] ? sum / count[m] : null)) };
  }

  function drawn(random, count, into) {
    into.fill(0);
    for (let i = 0; i < count; i += 1) into[Math.floor(random() * count)] += 1;
    return into;
  }

  /** Return the ranks of one task in every resample of its folds: resamples × who. */
  function* resampledRanks({ who, rows }, resamples, random) {
    const filled = worstForFailed(rows.map((row) => Float64Array.from(row)));
    const folds = filled[0].length;
    if (folds < 2) return { fixed: true, ranks: Float32Array.from(ranked(filled.map(mean))) };
    const ranks = new Float32Array(resamples * who.length);
    const weights = new Float64Array(folds);
    for (let r = 0; r < resamples; r += 1) {
      drawn(random, folds, weights);
      const sums = filled.map((row) => row.reduce((sum, value, f) => sum + value * weights[f], 0));
      ranks.set(ranked(sums), r * who.length);
      if (r % 20 === 19) yield;
    }
    return { fixed: false, ranks };
  }

  /** All resamples: ranks by task, weights of tasks, models of each task. */
  function* draw(tasks, models) {
    const contested = tasks.filter(({ who }) => who.length > 1);
    const cells = Math.max(1, models * contested.length);
    const resamples = Math.max(200, Math.min(1000, Math.floor(ROOM / cells)));
    const random = Karat.lots(SEED);
    const place = contested.map(() => new Int32Array(models).fill(-1));
    const held = [];
    for (const [t, task] of contested.entries()) {
      task.who.forEach((m, i) => (place[t][m] = i));
      held.push({ ...(yield* resampledRanks(task, resamples, random)), size: task.who.length });
      yield;
    }
    const weights = Array.from({ length: resamples }, () => {
      return drawn(random, contested.length, new Float64Array(contested.length));
    });
    return { held, place, weights, resamples };
  }

  /** Return a model's mean rank in every resample, over its tasks (NaN: none of them drawn). */
  function resampledMeans(all, m) {
    const means = new Float64Array(all.resamples);
    const total = new Float64Array(all.resamples);
    for (const [t, task] of all.held.entries()) {
      const i = all.place[t][m];
      if (i < 0) continue;
      for (let r = 0; r < all.resamples; r += 1) {
        const weight = all.weights[r][t];
        if (!weight) continue;
        means[r] += weight * task.ranks[task.fixed ? i : r * task.size + i];
        total[r] += weight;
      }
    }
    for (let r = 0; r < all.resamples; r += 1) means[r] = total[r] ? means[r] / total[r] : NaN;
    return means;
  }

  /** Return two quantiles of those numbers that are known, between neighbors as numpy does. */
  function bounds(values, confidence) {
    const known = values.filter((value) => !Number.isNaN(value)).sort();
    if (!known.length) return [null, null];
    return [(1 - confidence) / 2, (1 + confidence) / 2].map((share) => {
      const at = share * (known.length - 1);
      const low = Math.floor(at);
      const next = known[Math.min(low + 1, known.length - 1)];
      return known[low] + (next - known[low]) * (at - low);
    });
  }

  /**
   * Return the bounds of resampled means, moved by what their own mean is off, within 1 and the
   * last rank, holding the mean: folds drawn anew are noisier, which pulls all to the middle.
   */
  function interval(mean, resampled, last, confidence) {
    const known = resampled.filter((value) => !Number.isNaN(value));
    if (mean === null || !known.length) return [null, null];
    const off = known.reduce((sum, value) => sum + value, 0) / known.length - mean;
    const [low, high] = bounds(known, confidence).map((value) => {
      return Math.min(Math.max(value - off, 1), last);
    });
    return [Math.min(low, mean), Math.max(high, mean)];
  }

  /** Return by how much one model's mean rank is above another's on shared tasks, per resample. */
  function apart(all, a, b, shared) {
    const still = Int32Array.from(shared.filter((t) => all.held[t].fixed));
    const delta = Float64Array.from(still, (t) => {
      return all.held[t].ranks[all.place[t][b]] - all.held[t].ranks[all.place[t][a]];
    });
    const moving = shared.filter((t) => !all.held[t].fixed);
    const found = new Float64Array(all.resamples);
    for (let r = 0; r < all.resamples; r += 1) {
      const weights = all.weights[r];
      let sum = 0;
      let total = 0;
      for (let k = 0; k < still.length; k += 1) {
        sum += weights[still[k]] * delta[k];
        total += weights[still[k]];
      }
      for (const t of moving) {
        const { ranks, size } = all.held[t];
        sum += weights[t] * (ranks[r * size + all.place[t][b]] - ranks[r * size + all.place[t][a]]);
        total += weights[t];
      }
      found[r] = total ? sum / total : NaN;
    }
    return found;
  }

  /** Return a test of whether two models do not differ on their common tasks. */
  function makeTied(all, means, confidence) {
    const takes = means.map((_, m) => all.place.flatMap((places, t) => (places[m] < 0 ? [] : [t])));
    const words = takes.map(String);
    return (a, b) => {
      const same = words[a] === words[b];
      const shared = same ? takes[a] : takes[a].filter((t) => all.place[t][b] >= 0);
      if (shared.length < FEWEST) return true;
      const mine = means[a];
      const found = same ? means[b].map((value, r) => value - mine[r]) : apart(all, a, b, shared);
      const [low, high] = bounds(found, confidence);
      return !(low > 0 || high < 0);
    };
  }

  /** Return the letters of the groups of models that do not differ. */
  function* letters(mean, order, tied) {
    const found = mean.map(() => "");
    let groups = 0;
    let last = -1;
    let end = 0;
    for (let start = 0; start < order.length; start += 1) {
      for (let grows = true; grows && end + 1 < order.length;) {
        for (let i = start; grows && i <= end; i += 1) {
          grows = tied(order[i], order[end + 1]);
          yield;
        }
        if (grows) end += 1;
      }
      if (end <= last) continue;
      for (let i = start; i <= end; i += 1) found[order[i]] += letter(groups);
      groups += 1;
      last = end;
    }
    return found;
  }

  function letter(i) {
    return i < 26 ? String.fromCharCode(97 + i) : `[${i + 1}]`;
  }

  /** Return which models have too few tasks to compare, where most have enough. */
  function few(counts) {
    const enough = counts.filter((count) => count >= FEWEST).length;
    const usual = enough > 0 && 2 * enough >= counts.filter((count) => count > 0).length;
    return counts.map((count) => usual && count < FEWEST);
  }

  /** Resample tasks, and folds inside them: intervals of mean ranks and tie letters. */
  function* bootstrap(tasks, means, takes, confidence) {
    const models = means.length;
    const all = yield* draw(tasks, models);
    const last = means.filter((mean) => mean !== null).length;
    const low = [];
    const high = [];
    const resampled = [];
    for (let m = 0; m < models; m += 1) {
      resampled.push(resampledMeans(all, m));
      const [from, to] = interval(means[m], resampled[m], last, confidence);
      low.push(from);
      high.push(to);
      yield;
    }
    const scarce = few(takes);
    const order = means.map((_, m) => m).filter((m) => means[m] !== null && !scarce[m]);
    order.sort((a, b) => means[a] - means[b] || a - b);
    const tie = yield* letters(means, order, makeTied(all, resampled, confidence));
    return { low, high, tie };
  }

  Karat.ranks = { ranked, rankEach, bootstrap, letters, bounds, interval, few, worstForFailed };
})();
