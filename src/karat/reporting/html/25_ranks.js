/* Ranks, their intervals, and which models differ: the rules of karat.stats.ranking. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const FEWEST = 6;
  const FEWEST_RANKED = 3;
  const EXACT = 12;
  const PATTERNS = 2048;
  const PRIOR = 0.5;
  const ALPHA = 0.05;
  /** steps of a loop between two pauses */
  const PAUSE = 200_000;

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

  /** Return how many of some tasks each model takes. */
  function countTasks(tasks, models) {
    const counts = new Int32Array(models);
    for (const { who } of tasks) for (const m of who) counts[m] += 1;
    return counts;
  }

  /** All pairs of models on their common tasks; see karat.stats.pairwise_ranks. */
  class Pairs {
    constructor(contested, models) {
      this.models = models;
      const counts = countTasks(contested, models);
      const taking = counts.filter((count) => count > 0).length;
      this.complete = contested.every(({ who }) => who.length === taking);
      this.common = this.complete ? null : this.countCommon(contested);
      this.ranked = this.complete ? counts.map((count) => (count ? 1 : 0)) : this.comparable(counts);
      this.tasks = taking === this.size() ? contested : this.without(contested);
      this.own = countTasks(this.tasks, models);
      this.lost = this.complete ? null : this.countLost();
    }

    size() {
      return this.ranked.reduce((sum, one) => sum + one, 0);
    }

    /** Return models × models: the number of common tasks. */
    countCommon(tasks) {
      const common = new Int32Array(this.models ** 2);
      for (const { who } of tasks)
        for (const a of who) for (const b of who) common[a * this.models + b] += 1;
      return common;
    }

    /** Return 1 for the models that share a task with every other, 0 for those left out. */
    comparable(counts) {
      const ranked = counts.map((count) => (count ? 1 : 0));
      const all = Array.from(ranked, (_, m) => m);
      const lacking = (a, there) =>
        there.reduce((sum, b) => sum + (this.common[a * this.models + b] ? 0 : 1), 0);
      for (;;) {
        const there = all.filter((m) => ranked[m]);
        const lacks = there.map((m) => lacking(m, there));
        const most = lacks.reduce((a, b) => Math.max(a, b), 0);
        if (!most) return there.length > 1 ? ranked : ranked.fill(0);
        const worst = there.filter((_, i) => lacks[i] === most);
        const fewest = worst.reduce((least, m) => Math.min(least, counts[m]), Infinity);
        for (const m of worst) if (counts[m] === fewest) ranked[m] = 0;
      }
    }

    /** Return the tasks without the models that are left out. */
    without(tasks) {
      const rest = tasks.map(({ who, ranks }) => {
        const places = who.map((_, i) => i).filter((i) => this.ranked[who[i]]);
        return { who: places.map((i) => who[i]), ranks: places.map((i) => ranks[i]) };
      });
      return rest.filter(({ who }) => who.length > 1);
    }

    /** Return models × models: on how many common tasks the other is better, a tie is half. */
    countLost() {
      const lost = new Float64Array(this.models ** 2);
      for (const { who, ranks } of this.tasks) {
        for (let i = 0; i < who.length; i += 1) {
          const row = who[i] * this.models;
          for (let j = 0; j < who.length; j += 1)
            lost[row + who[j]] += ranks[j] < ranks[i] ? 1 : ranks[j] === ranks[i] ? 0.5 : 0;
        }
      }
      return lost;
    }

    /** Return 1 + the shares of common tasks on which the others are better, by model. */
    means() {
      if (this.complete) return this.meansOfComplete();
      const most = this.own.reduce((a, b) => Math.max(a, b), 0);
      return Array.from(this.ranked, (ranked, m) => {
        if (!ranked) return null;
        const sums = new Float64Array(most + 1);
        for (let other = 0; other < this.models; other += 1) {
          const pair = m * this.models + other;
          if (other === m) sums[this.own[m]] += this.own[m];
          else if (this.ranked[other]) sums[this.common[pair]] += this.lost[pair];
        }
        return sums.reduce((sum, lost, count) => (lost ? sum + lost / count : sum), 0);
      });
    }

    meansOfComplete() {
      const total = new Float64Array(this.models);
      for (const { who, ranks } of this.tasks) who.forEach((m, i) => (total[m] += ranks[i]));
      return Array.from(total, (sum, m) => (this.own[m] ? sum / this.own[m] : null));
    }

    /** Add a task's part of the squares of the jackknife, and of the variance of random ranks. */
    addTask({ who, ranks }, squares, random) {
      who.forEach((m, i) => {
        let [moved, once, twice] = [0, 0, 0];
        for (let j = 0; j < who.length; j += 1) {
          if (j === i) continue;
          const pair = m * this.models + who[j];
          const common = this.common[pair];
          const lost = ranks[j] < ranks[i] ? 1 : ranks[j] === ranks[i] ? 0.5 : 0;
          if (common > 1) moved += (lost - this.lost[pair] / common) / (common - 1);
          once += 1 / common;
          twice += 1 / common ** 2;
        }
        squares[m] += moved ** 2;
        random[m] += (once ** 2 + 2 * twice) / 12;
      });
    }

    /** Return tasks × models: by how much a rank is lower without the task; 0 if not taken. */
    *leftOut(means) {
      const found = [];
      for (const { who, ranks } of this.tasks) {
        const moved = new Float64Array(this.models);
        who.forEach((m, i) => {
          if (this.complete) moved[m] = (ranks[i] - means[m]) / (this.own[m] - 1);
          else moved[m] = this.movedBy(m, who, ranks, ranks[i]);
        });
        found.push(moved);
        yield;
      }
      return found;
    }

    /** Return by how much the rank of a model is lower without a task. */
    movedBy(m, who, ranks, rank) {
      let moved = 0;
      who.forEach((other, j) => {
        const pair = m * this.models + other;
        const common = this.common[pair];
        if (other === m || common < 2) return;
        const lost = ranks[j] < rank ? 1 : ranks[j] === rank ? 0.5 : 0;
        moved += (lost - this.lost[pair] / common) / (common - 1);
      });
      return moved;
    }

    /** Return the number of common tasks of two models, and of those that either takes. */
    countOf(a, b) {
      const either = this.own[a] + this.own[b];
      const common = this.complete ? this.own[a] : this.common[a * this.models + b];
      return { common, either: either - common };
    }

    /** Return the variance of each rank, of a jackknife and of random ranks together. */
    *variances(means) {
      const squares = new Float64Array(this.models);
      const random = new Float64Array(this.models);
      for (const task of this.tasks) {
        const size = task.who.length;
        if (!this.complete) this.addTask(task, squares, random);
        else
          task.who.forEach((m, i) => {
            squares[m] += ((task.ranks[i] - means[m]) / (this.own[m] - 1)) ** 2;
            random[m] += (size ** 2 - 1) / 12 / this.own[m] ** 2;
          });
        yield;
      }
      return Array.from(this.own, (n, m) => (((n - 1) ** 2 / n) * squares[m] + random[m]) / n);
    }
  }

  /** Rank models on tasks: the ranks on each, and the mean rank of each model by pairs. */
  function rankEach(tasks, models) {
    const each = tasks.map((task) => (task.ranks ??= rankTask(task)));
    const contested = tasks.map(({ who }, t) => ({ who, ranks: each[t] }));
    const pairs = new Pairs(
      contested.filter(({ ranks }) => ranks),
      models,
    );
    return { each, mean: pairs.means(), pairs };
  }

  /** Return 32 well-mixed bits of a task and a pattern (the finalizer of MurmurHash3). */
  function hashed(task, pattern) {
    let bits = (Math.imul(pattern, 0x9e3779b1) + Math.imul(task + 1, 0x85ebca77)) | 0;
    bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
    bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
    return (bits ^ (bits >>> 16)) >>> 0;
  }

  /** Return the signs of each task under all patterns; the first pattern is all 1. */
  function signPatterns(tasks) {
    const few = tasks <= EXACT;
    const count = few ? 2 ** Math.max(tasks - 1, 0) : PATTERNS;
    return Array.from({ length: tasks }, (_, t) => {
      const negative = (r) => (few ? (r >> t) & 1 : r > 0 && hashed(t, r) >>> 31);
      return Float64Array.from({ length: count }, (_, r) => (negative(r) ? -1 : 1));
    });
  }

  /**
   * Return the ranks of the contested tasks sorted by name, NaN where a model does not take one,
   * by model; and each model's signed sums over its tasks under all patterns.
   */
  function rankTable(tasks, each, names, models) {
    const order = tasks.map((_, t) => t).filter((t) => each[t]);
    order.sort((a, b) => (names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : a - b));
    const ranks = Array.from({ length: models }, () => new Float64Array(order.length).fill(NaN));
    order.forEach((t, place) => {
      tasks[t].who.forEach((m, i) => (ranks[m][place] = each[t][i]));
    });
    return { ranks };
  }

  /** Return the probability that Student's t is within -t and t, of whole degrees of freedom. */
  function within(t, degrees) {
    const angle = Math.atan(t / Math.sqrt(degrees));
    const square = Math.cos(angle) ** 2;
    const odd = degrees % 2;
    let term = odd ? Math.cos(angle) : 1;
    let sum = degrees > 1 ? term : 0;
    for (let k = odd ? 2 : 1; k < degrees - 2; k += 2) {
      term *= (k / (k + 1)) * square;
      sum += term;
    }
    sum *= Math.sin(angle);
    return odd ? (2 / Math.PI) * (angle + sum) : sum;
  }

  /** Return the two-sided quantile of Student's t. */
  function quantile(share, degrees) {
    let low = 0;
    let high = 1e3;
    for (let i = 0; i < 100; i += 1) {
      const middle = (low + high) / 2;
      if (1 - within(middle, degrees) > share) low = middle;
      else high = middle;
    }
    return (low + high) / 2;
  }

  /**
   * Return the bounds of each model's mean rank: a t interval of a jackknife over tasks, with one
   * more task of the variance of random ranks. null below six tasks.
   */
  function* intervals(pairs, means) {
    const last = means.filter((value) => value !== null).length;
    const variances = yield* pairs.variances(means);
    return means.map((value, m) => {
      const count = pairs.own[m];
      if (value === null || count < FEWEST) return [null, null];
      const half = quantile(ALPHA, count - 1) * Math.sqrt(variances[m]);
      return [-half, half].map((by) => Math.min(Math.max(value + by, 1), last));
    });
  }

  /** Return the sums of a model's ranks under all sign patterns. */
  function signedSums(row, signs) {
    const sums = new Float64Array(signs[0]?.length ?? 1);
    row.forEach((rank, t) => {
      if (Number.isNaN(rank)) return;
      for (let r = 0; r < sums.length; r += 1) sums[r] += rank * signs[t][r];
    });
    return sums;
  }

  /** Compares two models on the tasks that both take; see _Paired of karat.stats.ranking. */
  class Paired {
    constructor({ ranks }) {
      this.ranks = ranks;
      this.signs = signPatterns(ranks[0]?.length ?? 0);
      this.patterns = this.signs[0]?.length ?? 1;
      this.sums = ranks.map((row) => signedSums(row, this.signs));
      const taking = ranks.filter((row) => row.some((rank) => !Number.isNaN(rank)));
      this.prior = taking.length * PRIOR;
    }

    /** Return shared tasks, the sum of differences, and that of squares with the prior. */
    pair(a, b) {
      let [shared, sum, squares] = [0, 0, 0];
      for (let t = 0; t < this.signs.length; t += 1) {
        const apart = this.ranks[a][t] - this.ranks[b][t];
        if (Number.isNaN(apart)) continue;
        shared += 1;
        sum += apart;
        squares += apart * apart;
      }
      return { shared, sum, squares: squares + this.prior };
    }

    /** Put the sums of differences over shared tasks under all patterns into an array. */
    resampled(a, b, into) {
      const [first, second] = [this.sums[a], this.sums[b]];
      for (let r = 0; r < into.length; r += 1) into[r] = first[r] - second[r];
      this.signs.forEach((signs, t) => {
        const [one, other] = [this.ranks[a][t], this.ranks[b][t]];
        if (Number.isNaN(one) === Number.isNaN(other)) return;
        const off = Number.isNaN(one) ? -other : one;
        for (let r = 0; r < into.length; r += 1) into[r] -= off * signs[r];
      });
    }
  }

  /** Return all pairs that share enough tasks, and their statistics. */
  function* testedPairs(paired) {
    const found = [];
    for (let a = 0; a < paired.ranks.length; a += 1) {
      for (let b = a + 1; b < paired.ranks.length; b += 1) {
        const { shared, sum, squares } = paired.pair(a, b);
        if (shared >= FEWEST) found.push({ a, b, sum, squares, value: (sum * sum) / squares });
      }
      yield;
    }
    return found;
  }

  /**
   * Return models × models: the adjusted p of each pair (step-down max-T), 1 on the diagonal, NaN
   * where it is not tested.
   */
  function* stepDown(paired, pairs) {
    const models = paired.ranks.length;
    const p = Array.from({ length: models }, (_, m) => {
      return new Float64Array(models).fill(NaN).fill(1, m, m + 1);
    });
    const highest = new Float64Array(paired.patterns);
    const sums = new Float64Array(paired.patterns);
    const sorted = [...pairs].sort((x, y) => x.value - y.value);
    const shares = new Float64Array(sorted.length);
    for (const [place, { a, b, squares, value }] of sorted.entries()) {
      paired.resampled(a, b, sums);
      let reached = 0;
      for (let r = 0; r < sums.length; r += 1) {
        const found = (sums[r] * sums[r]) / squares;
        if (found > highest[r]) highest[r] = found;
        if (highest[r] >= value) reached += 1;
      }
      shares[place] = reached / sums.length;
      if (place % Math.ceil(PAUSE / sums.length) === 0) yield;
    }
    let least = 0;
    for (let place = sorted.length - 1; place >= 0; place -= 1) {
      const { a, b } = sorted[place];
      least = Math.max(least, shares[place]);
      p[a][b] = p[b][a] = least;
    }
    return p;
  }

  /** Return how often the best of the others is as far ahead of a model as it is, by chance. */
  function chance(paired, m, others) {
    const signed = (sum, squares) => (sum * Math.abs(sum)) / squares;
    const behind = Math.max(...others.map(({ sum, squares }) => signed(sum, squares)));
    if (others.length * Math.exp(-behind / 2) < ALPHA) return 0;
    const sums = new Float64Array(paired.patterns);
    const most = new Float64Array(paired.patterns).fill(-Infinity);
    const least = new Float64Array(paired.patterns).fill(Infinity);
    for (const { other, squares } of others) {
      paired.resampled(m, other, sums);
      for (let r = 0; r < sums.length; r += 1) {
        const found = signed(sums[r], squares);
        if (found > most[r]) most[r] = found;
        if (found < least[r]) least[r] = found;
      }
    }
    let reached = 0;
    for (let r = 0; r < sums.length; r += 1) reached += (most[r] >= behind) + (-least[r] >= behind);
    return reached / (2 * sums.length);
  }

  /** Return which models may be the best, with 95 % confidence. */
  function* topSet(paired, pairs, means) {
    const others = means.map(() => []);
    for (const { a, b, sum, squares } of pairs) {
      others[a].push({ other: b, sum, squares });
      others[b].push({ other: a, sum: -sum, squares });
    }
    const top = [];
    for (const [m, rivals] of others.entries()) {
      top.push(means[m] !== null && !(rivals.length && chance(paired, m, rivals) < ALPHA));
      yield;
    }
    return top;
  }

  /** Return a pair with others that tie with all members: those with most wanted pairs first. */
  function grown(tied, covered, one, other) {
    const size = tied.length;
    const wanted = (a, b) => (tied[a][b] && !covered[a][b] ? 1 : 0);
    const members = new Set([one, other]);
    const could = new Set();
    for (let m = 0; m < size; m += 1) {
      if (!members.has(m) && tied[one][m] && tied[other][m]) could.add(m);
    }
    const gain = Int32Array.from({ length: size }, (_, m) => wanted(one, m) + wanted(other, m));
    while (could.size) {
      let added = -1;
      for (const m of could) if (added < 0 || gain[m] > gain[added]) added = m;
      members.add(added);
      could.delete(added);
      for (const m of could) if (!tied[added][m]) could.delete(m);
      for (const m of could) gain[m] += wanted(added, m);
    }
    return [...members].sort((a, b) => a - b);
  }

  /** Count the pairs of a group in a matrix. */
  function countPairs(covered, group, by) {
    for (const a of group) for (const b of group) covered[a][b] += by;
  }

  /** Return groups of places that all tie, which together hold every pair that ties. */
  function* cover(tied) {
    const covered = tied.map(() => new Int32Array(tied.length));
    const groups = [];
    for (let one = 0; one < tied.length; one += 1) {
      for (let other = one; other < tied.length; other += 1) {
        if (!tied[one][other] || covered[one][other]) continue;
        groups.push(grown(tied, covered, one, other));
        countPairs(covered, groups.at(-1), 1);
        yield;
      }
    }
    const kept = groups.reverse().filter((group) => {
      const spare = group.every((a) => group.every((b) => covered[a][b] > 1));
      if (spare) countPairs(covered, group, -1);
      return !spare;
    });
    return kept.sort((x, y) => {
      const at = x.findIndex((place, i) => place !== y[i]);
      return at < 0 ? x.length - y.length : at >= y.length ? 1 : x[at] - y[at];
    });
  }

  /**
   * Return the letters of models: two share one if and only if they do not differ. Models without
   * any tested pair have none.
   */
  function* letters(means, p, places = means.map((_, m) => m)) {
    const tested = (m) => p[m].some((value, other) => other !== m && !Number.isNaN(value));
    const order = means.map((_, m) => m).filter((m) => means[m] !== null && tested(m));
    order.sort((a, b) => means[a] - means[b] || places[a] - places[b]);
    const tied = order.map((a) => order.map((b) => a === b || !(p[a][b] < ALPHA)));
    const found = means.map(() => "");
    const groups = yield* cover(tied);
    groups.forEach((group, i) => group.forEach((place) => (found[order[place]] += letter(i))));
    return found;
  }

  function letter(i) {
    return i < 26 ? String.fromCharCode(97 + i) : `[${i + 1}]`;
  }

  /** Return p-values corrected after Holm; null (not tested) stays. */
  function holm(values) {
    const order = values.map((_, i) => i).filter((i) => values[i] !== null);
    order.sort((a, b) => values[a] - values[b]);
    const found = values.map(() => null);
    let most = 0;
    order.forEach((i, rank) => {
      most = Math.max(most, Math.min(1, values[i] * (order.length - rank)));
      found[i] = most;
    });
    return found;
  }

  /** Return which models have too few tasks to be ranked with the others. */
  function few(counts) {
    const taking = counts.filter((count) => count > 0).length;
    for (const fewest of [FEWEST, FEWEST_RANKED]) {
      const enough = counts.filter((count) => count >= fewest).length;
      if (enough && 2 * enough >= taking) return counts.map((count) => count < fewest);
    }
    return counts.map(() => false);
  }

  /**
   * Return letters and which models may be the best on one task, or on a few, from what these tasks
   * show. The rank over tasks cannot be estimated from them, so it has no interval.
   */
  function* compareFew({ mean: means, places, these }) {
    const blank = means.map(() => null);
    const { found, few } = these;
    const p = found?.p ?? Karat.noTests(means);
    const ahead = (m, n) => (few ? found.mean(m, n)?.gain < 0 : means[n] < means[m]);
    const beaten = (m) => means.some((_, n) => p[m][n] < ALPHA && ahead(m, n));
    const top = means.map((value, m) => value !== null && !beaten(m));
    return { low: blank, high: blank, tie: yield* letters(means, p, places), top, p };
  }

  /**
   * Return by how much the mean rank of each model is better than that of the first one; see
   * rank_leads of karat.stats.ranking. The intervals agree with p, corrected for all pairs.
   */
  function* leads(shares, means, p, first) {
    const moved = yield* shares.leftOut(means);
    const models = shares.size();
    const random = (models * (models + 1)) / 6;
    const pairs = p.reduce((sum, row, a) => {
      return sum + row.filter((value, b) => b > a && !Number.isNaN(value)).length;
    }, 0);
    return means.map((mean, m) => {
      const difference = means[first] - mean;
      const blank = { model: m, difference, low: null, high: null, p: null };
      const { common: tasks, either } = shares.countOf(first, m);
      if (m === first) return { ...blank, tasks, verdict: "reference" };
      if (mean === null || Number.isNaN(p[first][m]))
        return { ...blank, difference: mean === null ? null : difference, tasks, verdict: "not tested" };
      const squares = moved.reduce((sum, row) => sum + (row[m] - row[first]) ** 2, 0);
      const jackknife = (squares * (either - 1)) / either;
      const error = Math.sqrt(((tasks - 1) * jackknife + random / tasks) / tasks);
      const half = Karat.student.exceeded(ALPHA / 2 / Math.max(pairs, 1), tasks - 1) * error;
      const ends = [difference - half, difference + half];
      const [low, high] = Karat.student.agreeing(ends, p[first][m]);
      const verdict = !(p[first][m] < ALPHA) ? "open" : difference < 0 ? "worse" : "better";
      return { model: m, difference, low, high, p: p[first][m], tasks, verdict };
    });
  }

  /** Return the model that the others are compared with: the best one with enough tasks. */
  function reference(means, few, places) {
    const key = (m) => (few[m] ? 1e9 : 0) + (means[m] ?? 1e9);
    const order = means.map((_, m) => m);
    return order.sort((a, b) => key(a) - key(b) || places[a] - places[b])[0];
  }

  /** Return intervals, letters, which models may be the best, and p, from ranks on tasks. */
  function* compare({ tasks, each, mean: means, names, places, few: onFew, pairs: shares }) {
    const table = rankTable(tasks, each, names, means.length);
    const ends = yield* intervals(shares, means);
    const paired = new Paired(table);
    yield;
    const pairs = yield* testedPairs(paired);
    const p = yield* stepDown(paired, pairs);
    return {
      low: ends.map(([low]) => low),
      high: ends.map(([, high]) => high),
      tie: yield* letters(means, p, places),
      top: yield* topSet(paired, pairs, means),
      p,
      leads: yield* leads(shares, means, p, reference(means, onFew, places)),
    };
  }

  Karat.ranks = { ranked, rankEach, compare, compareFew, letters, few, worstForFailed };
  Object.assign(Karat.ranks, { signPatterns, quantile, holm });
})();
