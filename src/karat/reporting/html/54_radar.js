/* The radar: retention by corruption. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el, svg } = Karat;
  const HEIGHT = 300;
  const EDGE = 48;
  const MOST = 6;

  /** Return the clean score of a model: that of severity 0 in any chart. */
  Karat.clean = (charts, m) => {
    const lines = charts.flatMap((chart) => chart.lines.filter((line) => line.model === m));
    const found = lines.map((line) => line.mean[line.x.indexOf(0)] ?? null);
    return found.find((value) => value !== null) ?? null;
  };

  /** Return the models of a radar: the marked ones, not too many. */
  const shownIn = (charts) => Karat.markedOf(Karat.modelsOf(charts)).slice(0, MOST);

  /** Return the retention under a corruption, mean over severities. */
  Karat.kept = (chart, m) => {
    const line = chart.lines.find((one) => one.model === m);
    if (!line) return null;
    const clean = line.mean[line.x.indexOf(0)];
    const rest = line.mean.filter((value, i) => line.x[i] !== 0 && value !== null);
    if (!clean || !rest.length) return null;
    const mean = rest.reduce((sum, value) => sum + value, 0) / rest.length;
    return chart.higher ? mean / clean : clean / mean;
  };

  /** Return the layout: the center, the scale, and the point of a share on an axis. */
  function layout(charts, models, width) {
    const height = Math.min(width, HEIGHT);
    const shares = models.map((m) => charts.map((chart) => Karat.kept(chart, m)));
    const known = shares.flat().filter((value) => value !== null);
    const low = Math.max(0, Math.floor(10 * Math.min(...known, 0.9)) / 10 - 0.1);
    const r = Karat.linear([low, Math.max(1, ...known)], [0, height / 2 - EDGE]);
    const [cx, cy] = [width / 2, height / 2];
    const point = (share, i) => {
      const turn = (2 * Math.PI * i) / charts.length - Math.PI / 2;
      return [cx + r(share) * Math.cos(turn), cy + r(share) * Math.sin(turn)];
    };
    return { width, height, shares, low, r, cx, cy, point };
  }

  /** Return the radar of the marked models: one axis per corruption. */
  Karat.radar = (charts, width) => {
    const models = shownIn(charts);
    const plan = layout(charts, models, width);
    const sheet = Karat.sheet(width, plan.height, "Retention: corrupted score as a share of the clean score");
    sheet.append(...rings(charts, plan), ...axes(charts, plan));
    models.forEach((m, i) => sheet.append(shapeOf(charts, plan, m, i, models.length < 4)));
    return sheet;
  };

  function rings(charts, { r, cx, cy, point }) {
    return r.ticks(4).flatMap((ring) => {
      const d = `${Karat.path(charts.map((_, i) => point(ring, i)))}z`;
      const text = ring < 0.99 ? percent(ring) : "";
      const label = Karat.label(cx + 3, cy - r(ring) - 2, text, { class: "small" });
      return [svg("path", { class: "grid", fill: "none", d }), label];
    });
  }

  /** Return a name without its middle if it is too long: names often differ in their ends. */
  function fitting(name, width) {
    const text = Karat.plain(name);
    const end = Math.floor((width - 1) / 2);
    return text.length <= width ? text : `${text.slice(0, width - 1 - end)}…${text.slice(-end)}`;
  }

  function axes(charts, { r, cx, cy, point, width }) {
    return charts.flatMap(({ corruption }, i) => {
      const [x, y] = point(r.domain[1], i);
      const anchor = Math.abs(x - cx) < 12 ? "middle" : x > cx ? "start" : "end";
      const place = [x + (x - cx) * 0.05, y + (y - cy) * 0.09 + 4];
      const room = { middle: width, start: width - place[0], end: place[0] }[anchor];
      const name = fitting(corruption, Math.max(4, Math.floor(room / 7)));
      const line = svg("line", { class: "grid", x1: cx, y1: cy, x2: x, y2: y });
      return [line, Karat.label(...place, name, { "text-anchor": anchor })];
    });
  }

  function shapeOf(charts, { shares, low, point }, m, i, filled) {
    const d = `${Karat.path(shares[i].map((share, j) => point(share ?? low, j)))}z`;
    const facts = charts.map(
      (chart, j) => `${Karat.short(chart.corruption, 24)} ${percent(shares[i][j])}`,
    );
    const clean = `clean ${Karat.number(Karat.clean(charts, m))}`;
    const tip = [Karat.short(Karat.model(m), 60), clean, ...facts].join("\n");
    const band = filled ? svg("path", { class: "band", d }) : null;
    return svg(
      "g",
      { class: Karat.color(m) },
      band,
      svg("path", { class: "line", d, "data-tip": tip }),
    );
  }

  function percent(value) {
    return value === null ? "–" : `${Math.round(100 * value)} %`;
  }

  /** Return the note of the radar: what retention is relative to. */
  Karat.radarNote = (charts) => {
    const text =
      "Retention is relative to each model's own clean score: a model no better than chance " +
      "has a high retention.";
    const items = shownIn(charts).map((m) => {
      const clean = Karat.number(Karat.clean(charts, m));
      const text = `${Karat.short(Karat.model(m), 24)}: clean ${clean}`;
      return el("li", null, el("i", { class: Karat.color(m) }), el("span", { text }));
    });
    const textNode = el("p", { class: "faint beneath", text });
    return el("div", null, textNode, el("ul", { class: "keys" }, items));
  };

  Karat.radarRows = (charts) => {
    const rows = Karat.modelsOf(charts).map((m) => {
      return [Karat.data.models[m].name, ...charts.map((chart) => Karat.kept(chart, m))];
    });
    return [["model", ...charts.map((chart) => chart.corruption)], ...rows];
  };
})();
