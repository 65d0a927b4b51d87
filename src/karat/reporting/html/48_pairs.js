/* p of every pair of models, as a matrix. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { svg } = Karat;
  const ROW = 24;
  const TOP = 22;
  const ALPHA = 0.05;

  /** Return the matrix: where the row is better it is gold, where the column is, blue. */
  function draw(width, models) {
    const names = models.map((m) => Karat.short(Karat.model(m), width < 560 ? 12 : 22));
    const left = Math.max(0, ...names.map((name) => Karat.width(name))) + 36;
    const wide = Math.min(46, (width - left - 4) / models.length);
    const sheet = Karat.sheet(width, TOP + models.length * ROW + 4, "p of every pair of models");
    models.forEach((a, i) => {
      const y = TOP + i * ROW;
      const end = { class: "name", "text-anchor": "end" };
      sheet.append(Karat.label(left - 8, y + 16, `${names[i]} ${i + 1}`, end));
      sheet.append(Karat.label(left + (i + 0.5) * wide, 14, i + 1, { "text-anchor": "middle" }));
      models.forEach((b, j) => sheet.append(...square(a, b, { x: left + j * wide, y, wide })));
    });
    return sheet;
  }

  /** Return the square of a pair, with p where it fits; a pair without a test has none. */
  function square(a, b, { x, y, wide }) {
    const { p, diff } = Karat.data.tests.pairs;
    const value = p[a]?.[b] ?? null;
    if (a === b || value === null) return [];
    const sure = value < ALPHA;
    const share = diff[a][b] > 0 ? 1 : 0;
    const fill = sure ? Karat.ramp(share) : Karat.colorOf("--sunk");
    const box = { x, y, width: wide - 1.5, height: ROW - 1.5, rx: 2 };
    const found = [svg("rect", { ...box, fill, "data-tip": tip(a, b, value, diff[a][b]) })];
    if (wide <= 32) return found;
    const style = sure ? `fill:${Karat.over(share)}` : null;
    const more = { class: "small", "text-anchor": "middle", style, "pointer-events": "none" };
    return [...found, Karat.label(x + wide / 2, y + 15, Karat.p(value).replace("< ", "<"), more)];
  }

  function tip(a, b, p, difference) {
    const names = [a, b].map((m) => Karat.short(Karat.model(m), 40)).join(" against ");
    const by = Karat.number(Math.abs(difference), 3);
    const words = p < ALPHA ? ["better", "worse"] : ["ahead", "behind"];
    return `${names}\n${words[difference > 0 ? 0 : 1]} by ${by}, p ${Karat.p(p)}`;
  }

  function csv() {
    const { p, diff } = Karat.data.tests.pairs;
    const names = Karat.data.models.map((model) => model.name);
    const rows = names.flatMap((a, i) =>
      names.map((b, j) => [a, b, diff[i][j], p[i][j]]).filter((_, j) => j > i),
    );
    return [["a", "b", "difference", `p (${Karat.data.tests.procedure})`], ...rows];
  }

  /** Return the picture of the pairs, if they were tested; it is about the whole board only. */
  Karat.pairs = (best) => {
    const { pairs, procedure } = Karat.data.tests;
    if (!pairs || !procedure) return [];
    const title = `p of every pair (${procedure}). Gold: the row is better; blue: the column is better; pale: no significant difference; empty: not tested`;
    const picture = Karat.figure({
      name: "pairs",
      title,
      draw: (width) => draw(width, best()),
      csv,
    });
    picture.node.style.marginTop = "22px";
    const hide = () => (picture.node.hidden = !Karat.ranking.own);
    Karat.on("ranking", hide);
    hide();
    return [picture.node];
  };
})();
