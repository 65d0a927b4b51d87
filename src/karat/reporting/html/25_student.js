/* Student's t distribution, also for degrees of freedom that are no whole numbers. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const TINY = 1e-300;
  const ALPHA = 0.05;
  const STEPS = 20_000;
  /** with so many degrees of freedom, t is normal to six digits */
  const NORMAL = 1e6;
  /** coefficients of Lanczos for the logarithm of the gamma function */
  const LANCZOS = [
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
    -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
    1.5056327351493116e-7,
  ];

  function logGamma(value) {
    const z = value - 1;
    const sum = LANCZOS.reduce((total, one, i) => total + (i ? one / (z + i) : one), 0);
    const t = z + 7.5;
    return 0.5 * Math.log(2 * Math.PI) + (z + 0.5) * Math.log(t) - t + Math.log(sum);
  }

  const away = (value) => (Math.abs(value) < TINY ? TINY : value);

  /** Return the continued fraction of the incomplete beta function (Lentz). */
  function fraction(a, b, x) {
    let c = 1;
    let d = 1 / away(1 - ((a + b) * x) / (a + 1));
    let product = d;
    for (let m = 1; m < STEPS; m += 1) {
      const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
      const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
      let change = 1;
      for (const step of [even, odd]) {
        d = 1 / away(1 + step * d);
        c = away(1 + step / c);
        change = d * c;
        product *= change;
      }
      if (Math.abs(change - 1) < 1e-15) break;
    }
    return product;
  }

  /** Return the chance of a value above t. */
  function above(t, freedom) {
    if (Number.isNaN(t) || !(freedom > 0)) return NaN;
    if (t < 0) return 1 - above(-t, freedom);
    if (t === 0) return 0.5;
    if (t === Infinity) return 0;
    const [a, b] = [freedom / 2, 0.5];
    const share = t ** 2 / (freedom + t ** 2); // 1 - x of the incomplete beta function
    const x = freedom / (freedom + t ** 2);
    const logs = logGamma(a + b) - logGamma(a) - logGamma(b);
    const front = Math.exp(logs - a * Math.log1p(t ** 2 / freedom) + b * Math.log(share));
    if (x < (a + 1) / (a + b + 2)) return (front * fraction(a, b, x)) / a / 2;
    return (1 - (front * fraction(b, a, share)) / b) / 2;
  }

  /** Return the value that is exceeded with a chance below one half. */
  function exceeded(chance, freedom) {
    if (!(freedom > 0)) return NaN;
    let [low, high] = [0, 1];
    while (above(high, freedom) > chance && high < 1e12) high *= 2;
    for (let i = 0; i < 100 && high - low > 1e-13 * high; i += 1) {
      const middle = (low + high) / 2;
      if (above(middle, freedom) > chance) low = middle;
      else high = middle;
    }
    return (low + high) / 2;
  }

  /** Return the value that a normal variable exceeds with a chance below one half. */
  const normal = (chance) => exceeded(chance, NORMAL);

  /** Return an interval that contains 0 if and only if p is at least 0.05; as in Python. */
  function agreeing([low, high], p) {
    const middle = (low + high) / 2;
    const [size, half] = [Math.abs(middle), (high - low) / 2];
    if (!(size > 0) || Number.isNaN(p) || p < ALPHA === half < size) return [low, high];
    const z = normal(Math.min(Math.max(p, 1e-12), 0.5) / 2);
    const other = (size * normal(ALPHA / 2)) / z;
    return [middle - other, middle + other];
  }

  Karat.student = { above, exceeded, agreeing };
})();
