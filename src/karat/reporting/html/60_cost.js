/* Rank against cost, with the Pareto front. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el, svg } = Karat;
  const COSTS = {
    seconds: ["time", Karat.seconds],
    memory_mb: ["memory", Karat.megabytes],
    dimensions: ["dimensions", (value) => Karat.fixed(value, 0)],
    price: ["price", Karat.money],
  };
  const HEIGHT = 430;
  /** room left of a logarithmic axis for models that cost nothing */
  const FREE = 34;

  /** Return the costs that are known of more than one model. */
  function known() {
    return Object.keys(COSTS).filter(
      (key) => Karat.data.models.filter((model) => isCost(model[key])).length > 1,
    );
  }

  function isCost(value) {
    return value !== null && value !== undefined && value >= 0;
  }

  function costOf() {
    const costs = known();
    return costs.includes(Karat.get("cost")) ? Karat.get("cost") : costs[0];
  }

  /** Return the models with a cost and a quality: [model, cost, mean rank]. */
  function points() {
    const key = costOf();
    return Karat.order()
      .filter(
        (m) =>
          Karat.ranking.mean[m] !== null &&
          !Karat.ranking.few[m] &&
          isCost(Karat.data.models[m][key]),
      )
      .map((m) => [m, Karat.data.models[m][key], Karat.ranking.mean[m]]);
  }

  /** Return those that no other beats in cost and rank, the cheapest first. */
  Karat.front = (all) => {
    const found = [];
    let best = Infinity;
    for (const point of [...all].sort((a, b) => a[1] - b[1] || a[2] - b[2])) {
      if (point[2] >= best) continue;
      best = point[2];
      found.push(point);
    }
    return found;
  };

  function draw(width) {
    const all = points();
    if (!all.length)
      return el("p", { class: "faint", text: "No model has both a rank and this cost." });
    const [name, format] = COSTS[costOf()];
    const box = { left: 46, right: width - 16, top: 22, bottom: HEIGHT - 44 };
    const costs = all.map((point) => point[1]);
    const logs = Karat.get("linear") !== "1" && Math.max(...costs) > 0;
    const { x, ticks } = scaleOf(costs, logs, box);
    const [low, high] = Karat.extent(
      all.map((point) => point[2]),
      0.08,
    );
    const y = Karat.linear([Math.max(0.8, low), high], [box.top, box.bottom]);
    const sheet = Karat.sheet(width, HEIGHT, `Mean rank against ${name}`);
    const write = (value) => (value ? format(value).replace(".0 ", " ") : "0");
    sheet.append(
      Karat.xAxis(x, box, { title: `${name}${logs ? " (log)" : ""} →`, format: write, ticks }),
    );
    sheet.append(Karat.yAxis(y, box, { title: "mean rank ↑ better" }));
    sheet.append(...frontOf(all, x, y, box), ...dots(all, x, y, format), ...labels(all, x, y, box));
    return sheet;
  }

  /** Return the scale of costs and its ticks; on a log scale zero has a place of its own. */
  function scaleOf(costs, logs, box) {
    const count = box.right < 544 ? 3 : 6;
    const most = Math.max(...costs) || 1;
    if (!logs) {
      const x = Karat.linear([0, most * 1.08], [box.left, box.right]);
      return { x, ticks: x.ticks(count) };
    }
    const some = costs.filter((cost) => cost > 0);
    const free = some.length < costs.length;
    const span = [Math.min(...some) / 1.25, most * 1.5];
    const scale = Karat.log(span, [box.left + (free ? FREE : 0), box.right]);
    const x = (cost) => (cost > 0 ? scale(cost) : box.left + FREE / 3);
    return { x, ticks: [...(free ? [0] : []), ...ticksOf(scale, span, logs, count)] };
  }

  /** Return the ticks of a cost; those of time go by minutes and hours. */
  function ticksOf(x, [low, high], logs, count) {
    if (!logs || costOf() !== "seconds") return x.ticks(count);
    return [0.01, 0.1, 1, 10, 60, 600, 3600, 36000, 360000].filter(
      (tick) => tick >= low && tick <= high,
    );
  }

  function frontOf(all, x, y, box) {
    const steps = [];
    Karat.front(all).forEach(([, cost, rank], i, front) => {
      steps.push([x(cost), i ? y(front[i - 1][2]) : box.bottom], [x(cost), y(rank)]);
      if (i === front.length - 1) steps.push([box.right, y(rank)]);
    });
    return [svg("path", { class: "front", d: Karat.path(steps) })];
  }

  function dots(all, x, y, format) {
    const front = new Set(Karat.front(all).map(([m]) => m));
    const marks = new Set(Karat.marks());
    const ordered = [...all].sort((a, b) => marks.has(a[0]) - marks.has(b[0]));
    return ordered.map(([m, cost, rank]) => {
      const facts = [
        Karat.short(Karat.model(m), 60),
        `mean rank ${rank.toFixed(2)}, ${format(cost)}`,
      ];
      const tip = [...facts, ...(front.has(m) ? ["on the Pareto front"] : [])].join("\n");
      return svg("circle", {
        class: `dot ${Karat.color(m)}`,
        cx: x(cost),
        cy: y(rank),
        r: front.has(m) ? 6.5 : marks.has(m) ? 5.5 : 4,
        opacity: marks.has(m) || front.has(m) ? 0.95 : 0.5,
        "data-tip": tip,
      });
    });
  }

  /** Return places for a text next to a point, the better first. */
  function spots(x, y, wide) {
    const middle = x - wide / 2;
    return [
      [x + 9, y - 8],
      [x + 10, y + 4],
      [x - 10 - wide, y + 4],
      [middle, y - 11],
      [middle, y + 20],
      [x - wide, y - 11],
    ];
  }

  /**
   * Return names next to points, as far as they have room: `named` are [text, x, y], the most
   * important first, `dots` the places [x, y] of all points.
   */
  Karat.pointNames = (named, dots, box) => {
    const taken = dots.map(([x, y]) => [x - 5, x + 5, y]);
    const nodes = [];
    for (const [text, x, y] of named) {
      const wide = Karat.width(text);
      const free = spots(x, y, wide).find(([left, at]) => {
        if (left < box.left || left + wide > box.right + 12) return false;
        return !taken.some(
          ([from, to, on]) => to > left && from < left + wide && Math.abs(on - at + 4) < 12,
        );
      });
      if (!free) continue;
      taken.push([free[0], free[0] + wide, free[1] - 4]);
      nodes.push(Karat.label(...free, text, { class: "name" }));
    }
    return nodes;
  };

  function labels(all, x, y, box) {
    const front = new Set(Karat.front(all).map(([m]) => m));
    const marks = new Set(Karat.marks());
    const ordered = Karat.sortBy(all, ([m]) => (front.has(m) ? 0 : marks.has(m) ? 1 : null));
    const named = ordered
      .filter(([m]) => front.has(m) || marks.has(m))
      .map(([m, cost, rank]) => [Karat.short(Karat.model(m), 24), x(cost), y(rank)]);
    return Karat.pointNames(
      named,
      all.map(([, cost, rank]) => [x(cost), y(rank)]),
      box,
    );
  }

  function csv() {
    const front = new Set(Karat.front(points()).map(([m]) => m));
    return [
      ["model", costOf(), "mean rank", "front"],
      ...points().map(([m, cost, rank]) => [
        Karat.data.models[m].name,
        cost,
        rank,
        front.has(m) ? 1 : 0,
      ]),
    ];
  }

  function build(root) {
    const picture = Karat.figure({
      name: "cost",
      title: "Dashed line: Pareto front (no other model is both cheaper and better)",
      draw,
      csv,
    });
    const change = (choice) => {
      Karat.set(choice);
      picture.redraw();
    };
    const options = known().map((key) => [key, COSTS[key][0]]);
    root.append(
      el(
        "div",
        { class: "bar" },
        Karat.select("Cost", options, costOf(), (value) => change({ cost: value })),
        Karat.box("Log scale", Karat.get("linear") !== "1", (on) =>
          change({ linear: on ? "" : "1" }),
        ),
      ),
      picture.node,
    );
    for (const name of ["ranking", "marks"]) Karat.on(name, picture.redraw);
  }

  Karat.section({
    id: "cost",
    title: "Rank against cost",
    way: "Cost",
    has: () => Karat.data.models.length > 1 && known().length > 0,
    build,
  });
})();
