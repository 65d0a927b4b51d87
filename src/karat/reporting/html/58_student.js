/* The t-test of folds that share their rows (Nadeau and Bengio), and Holm's correction. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const LANCZOS = [76.18009172947146, -86.50532032941677, 24.01409824083091];
  LANCZOS.push(-1.231739572450155, 0.001208650973866179, -0.000005395239384953);

  function logGamma(x) {
    const base = x + 5.5 - (x + 0.5) * Math.log(x + 5.5);
    const sum = LANCZOS.reduce((total, c, i) => total + c / (x + 1 + i), 1.000000000190015);
    return -base + Math.log((2.5066282746310005 * sum) / x);
  }

  /** Return the continued fraction of the incomplete beta function. */
  function fraction(a, b, x) {
    const tiny = 1e-300;
    let c = 1;
    let d = 1 / (Math.abs(1 - ((a + b) * x) / (a + 1)) < tiny ? tiny : 1 - ((a + b) * x) / (a + 1));
    let result = d;
    for (let m = 1; m < 300; m += 1) {
      const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
      const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
      for (const part of [even, odd]) {
        d = 1 / (1 + part * d || tiny);
        c = 1 + part / c || tiny;
        result *= d * c;
      }
      if (Math.abs(d * c - 1) < 1e-14) break;
    }
    return result;
  }

  /** Return the regularized incomplete beta function. */
  function beta(a, b, x) {
    if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
    const front = Math.exp(
      logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(1 - x),
    );
    return x < (a + 1) / (a + b + 2)
      ? (front * fraction(a, b, x)) / a
      : 1 - (front * fraction(b, a, 1 - x)) / b;
  }

  Karat.tP = (t, degrees) => beta(degrees / 2, 0.5, degrees / (degrees + t * t));

  /**
   * Return mean and two-sided p of paired differences over folds: the variance of their mean is
   * (1/n + 1/(n - 1)) times theirs, as one of n folds tests and the others train.
   */
  Karat.correctedT = (differences) => {
    const known = differences.filter((value) => value !== null && Number.isFinite(value));
    const n = known.length;
    const mean = n ? known.reduce((sum, value) => sum + value, 0) / n : null;
    if (n && known.every((value) => value === 0)) return { mean: 0, p: 1 };
    if (n < 2) return { mean, p: null };
    const variance = known.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1);
    const size = Math.max(...known.map(Math.abs));
    if (Math.sqrt(variance) <= 1e-12 * size) return { mean, p: null };
    return { mean, p: Karat.tP(mean / Math.sqrt(variance * (1 / n + 1 / (n - 1))), n - 1) };
  };

  /** Return Holm-corrected p values; null (no test) stays. */
  Karat.holm = (values) => {
    const order = values.map((_, i) => i).filter((i) => values[i] !== null);
    order.sort((a, b) => values[a] - values[b]);
    const found = values.map(() => null);
    let most = 0;
    order.forEach((i, rank) => {
      most = Math.max(most, Math.min(1, values[i] * (order.length - rank)));
      found[i] = most;
    });
    return found;
  };
})();
