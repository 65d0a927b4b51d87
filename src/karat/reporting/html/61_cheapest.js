/* Scores against cost: the cheapest model that is not worse than a reference by a margin. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el, svg } = Karat;
  const HEIGHT = 380;
  const FREE = 34;
  const NAMES = { seconds: "time per question", bytes: "bytes per vector" };

  const answers = () => Karat.data.cheapest[Karat.data.group] ?? [];

  function answer() {
    return answers().find(({ cost }) => cost === Karat.get("cheapest")) ?? answers()[0];
  }

  function write(value, cost) {
    if (cost === "price") return Karat.money(value);
    if (cost !== "seconds") return Karat.fixed(value, 0);
    const [size, unit] = value >= 1 ? [1, "s"] : value >= 1e-3 ? [1e-3, "ms"] : [1e-6, "µs"];
    return `${Number((value / size).toPrecision(3))} ${unit}`;
  }

  /** Return the points with a cost: their score is that of the reference plus the difference. */
  function points({ points: all, level }) {
    const zero = level ?? 0;
    return all
      .filter(({ cost }) => cost !== null)
      .map((point) => ({
        ...point,
        y: zero + (point.difference ?? 0),
        low: zero + (point.difference_low ?? point.difference ?? 0),
        high: zero + (point.difference_high ?? point.difference ?? 0),
        place: Karat.data.models.findIndex(({ name }) => name === point.base),
      }));
  }

  function draw(width) {
    const found = answer();
    const all = points(found);
    const at = all.find(({ model }) => model === found.reference);
    const box = { right: width - 16, top: 24, bottom: HEIGHT - 44 };
    const sides = [at.y - found.margin, at.y + found.margin];
    const ends = Karat.extent([...sides, ...all.flatMap(({ low, high }) => [low, high])]);
    const y = Karat.linear(ends, [box.bottom, box.top]);
    box.left = Karat.margin(y);
    const x = scaleOf(
      all.map(({ cost }) => cost),
      box,
    );
    const name = NAMES[found.cost] ?? found.cost;
    const score = found.level === null ? "difference to the reference" : "mean score";
    const sheet = Karat.sheet(width, HEIGHT, `${score} against ${name}`);
    const format = (value) => (value ? write(value, found.cost) : "0");
    const ticks = x.ticks(width < 560 ? 3 : 6);
    sheet.append(
      svg("rect", {
        class: "band none",
        style: "opacity:0.22",
        x: box.left,
        width: box.right - box.left,
        y: y(sides[1]),
        height: y(sides[0]) - y(sides[1]),
        "data-tip": `within ${found.margin} of ${Karat.short(found.reference, 60)}`,
      }),
      Karat.xAxis(x, box, { title: `${name} (log) →`, format, ticks }),
      Karat.yAxis(y, box, { title: `${score} ↑ better` }),
      ...curves(all, x, y),
      ...names(found, all, { x, y, box }),
    );
    return sheet;
  }

  /** Return a logarithmic scale of costs, with a place for those that are 0. */
  function scaleOf(costs, box) {
    const some = costs.filter((cost) => cost > 0);
    const free = some.length < costs.length ? FREE : 0;
    if (!some.length) some.push(1);
    const ends = [Math.min(...some) / 1.3, Math.max(...some) * 1.3];
    const scale = Karat.log(ends, [box.left + free, box.right]);
    const x = (cost) => (cost > 0 ? scale(cost) : box.left + FREE / 3);
    x.ticks = (count) => {
      const found = scale.ticks(count);
      return [...(free ? [0] : []), ...(found.length ? found : some.slice(0, 1))];
    };
    return x;
  }

  /** Return a line for each base encoder, through the variants that beat all cheaper ones. */
  function curves(all, x, y) {
    const bases = [...new Set(all.map(({ base }) => base))];
    return bases.map((base) => {
      const own = all.filter((point) => point.base === base);
      const group = svg("g", { class: Karat.color(own[0].place) });
      const front = Karat.front(own.map((point) => [point, point.cost, -point.y]));
      const path = Karat.path(front.map(([point]) => [x(point.cost), y(point.y)]));
      group.append(svg("path", { class: "line", d: path }));
      const best = new Set(front.map(([point]) => point));
      for (const point of own) group.append(...dotOf(point, best.has(point), x(point.cost), y));
      return group;
    });
  }

  function dotOf(point, leads, at, y) {
    const { cost } = answer();
    const apart = `${Karat.number(point.difference, 4)} [${Karat.number(point.difference_low, 4)}, ${Karat.number(point.difference_high, 4)}]`;
    const facts = [Karat.short(point.model, 60), `${write(point.cost, cost)}, ${point.verdict}`];
    if (point.difference !== null) facts.push(`difference ${apart}`);
    const bar = { x1: at, x2: at, y1: y(point.low), y2: y(point.high) };
    return [
      svg("line", { class: "line", ...bar, style: "stroke-width:1.2", opacity: leads ? 0.8 : 0.3 }),
      svg("circle", {
        class: "dot",
        cx: at,
        cy: y(point.y),
        r: point.model === answer().model ? 6.5 : leads ? 4.5 : 3.5,
        opacity: leads ? 1 : 0.5,
        "data-tip": facts.join("\n"),
      }),
    ];
  }

  /** Return the name of a model; that of a variant without its base, which has the same color. */
  function nameOf({ model, base }) {
    const own = model !== base && model.startsWith(`${base}@`) ? model.slice(base.length) : model;
    return Karat.short(own, 24);
  }

  function names(found, all, { x, y, box }) {
    const first = [found.model, found.reference];
    const ordered = Karat.sortBy(all, ({ model, place }) => {
      if (first.includes(model)) return first.indexOf(model);
      return Karat.marks().includes(place) ? 2 : 3;
    });
    const named = ordered.map((one) => [nameOf(one), x(one.cost), y(one.y)]);
    return Karat.pointNames(
      named,
      all.map((one) => [x(one.cost), y(one.y)]),
      box,
    );
  }

  function csv() {
    const keys = ["model", "base", "cost", "score", "difference"];
    keys.push("difference_low", "difference_high");
    const head = keys.map((key) => (key === "cost" ? answer().cost : key));
    return [
      [...head, "verdict"],
      ...points(answer()).map((one) => [...keys.map((key) => one[key]), one.verdict]),
    ];
  }

  function build(root) {
    const text = el("p");
    const home = el("div");
    const notes = el("ul", { class: "notes" });
    const picture = Karat.figure({
      name: "cheapest",
      title:
        "Lines connect the variants of an encoder that beat all cheaper ones; bars are 95 % intervals of the difference to the reference; the band is the margin",
      draw,
      csv,
    });
    const show = () => {
      const { sentence, columns, rows, cost, notes: lines } = answer();
      text.textContent = Karat.plain(sentence);
      home.replaceChildren(Karat.plainTable(`Models by ${cost}`, columns, rows));
      notes.replaceChildren(...lines.map((line) => el("li", { text: Karat.plain(line) })));
      picture.redraw();
    };
    const options = answers().map(({ cost }) => [cost, cost]);
    const choose = (cheapest) => {
      Karat.set({ cheapest });
      show();
    };
    const bar = Karat.select("Cost", options, answer().cost, choose);
    root.append(text, el("div", { class: "bar" }, bar), picture.node, home, notes);
    Karat.on("marks", picture.redraw);
    show();
  }

  Karat.section({
    id: "cheapest",
    title: "Cheapest equivalent model",
    way: "Cheapest",
    has: () => answers().length > 0,
    build,
  });
})();
