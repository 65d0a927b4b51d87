/* The critical-difference diagram. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el, svg } = Karat;
  const MOST = 20;
  const ROW = 19;
  const NARROW = 560;
  const AXIS = 34;

  function best() {
    return Karat.order()
      .filter((m) => Karat.ranking.mean[m] !== null && !(Karat.ranking.few[m] && !Karat.ranking.fewTasks))
      .slice(0, MOST);
  }

  /** Return the groups none of which differ: of the test, or of the letters after a choice. */
  function cliques(models) {
    const there = new Set(models);
    if (Karat.ranking.own) {
      return (Karat.data.tests.cliques ?? [])
        .map((one) => one.filter((m) => there.has(m)))
        .filter((one) => one.length > 1);
    }
    const groups = new Map();
    for (const m of models) {
      for (const sign of Karat.ranking.tie[m].match(/[a-z]|\[\d+\]/g) ?? []) {
        groups.set(sign, [...(groups.get(sign) ?? []), m]);
      }
    }
    return [...groups.values()].filter((one) => one.length > 1);
  }

  /** Return the ranks of each group, in order, and the first line that has room for it. */
  function spans(models) {
    const { mean } = Karat.ranking;
    const groups = cliques(models).map((one) => one.map((m) => mean[m]).sort((a, b) => a - b));
    const lines = [];
    const found = groups
      .sort((a, b) => a[0] - b[0] || a.at(-1) - b.at(-1))
      .map((ranks) => {
        const free = lines.findIndex((end) => end < ranks[0] - 0.02);
        const line = free < 0 ? lines.length : free;
        lines[line] = ranks.at(-1);
        return { ranks, line };
      });
    return { found, lines: lines.length };
  }

  function draw(width) {
    const models = best();
    if (models.length < 2)
      return el("p", { class: "faint", text: "Fewer than two ranked models." });
    return width < NARROW ? drawNarrow(width, models) : drawWide(width, models);
  }

  /** Return the diagram for a phone: a row per model, groups as bars at the right. */
  function drawNarrow(width, models) {
    const groups = cliques(models).map((one) => one.map((m) => models.indexOf(m)));
    const names = models.map((m) => Karat.short(Karat.model(m), 17));
    const left = Math.max(...names.map((name) => Karat.width(name))) + 12;
    const right = width - 14 - groups.length * 8;
    const box = { left, right, top: 6, bottom: 6 + models.length * ROW };
    const ranks = models.map((m) => Karat.ranking.mean[m]);
    const x = Karat.linear(Karat.extent(ranks), [left, right]);
    const sheet = Karat.sheet(width, box.bottom + 38, label(models));
    sheet.append(Karat.xAxis(x, box, { title: "mean rank", count: 4 }));
    models.forEach((m, i) => {
      const y = box.top + (i + 0.5) * ROW;
      const dot = svg("circle", {
        class: "dot",
        cx: x(ranks[i]),
        cy: y,
        r: 5,
        "data-tip": tipOf(m),
      });
      const name = Karat.label(left - 8, y + 4, names[i], { class: "name", "text-anchor": "end" });
      sheet.append(svg("g", { class: Karat.color(m) }, name, dot));
    });
    groups.forEach((one, i) => {
      const [at, from, to] = [right + 14 + i * 8, Math.min(...one), Math.max(...one)];
      const span = { y1: box.top + from * ROW + 5, y2: box.top + (to + 1) * ROW - 5 };
      sheet.append(svg("line", { class: "thick", x1: at, x2: at, ...span }));
      for (const row of one)
        sheet.append(svg("circle", { class: "member", cx: at, cy: box.top + (row + 0.5) * ROW, r: 3 }));
    });
    return sheet;
  }

  function label(models) {
    return `Critical differences of ${models.length} models`;
  }

  function tipOf(m) {
    return `${Karat.short(Karat.model(m), 60)}\nmean rank ${Karat.ranking.mean[m].toFixed(2)}`;
  }

  /** Return the diagram: better ranks left, names at both sides, bars over groups. */
  function drawWide(width, models) {
    const { found, lines } = spans(models);
    const half = Math.ceil(models.length / 2);
    const names = models.map((m) => Karat.short(Karat.model(m), 30));
    const side = Math.min(width * 0.34, Math.max(...names.map((name) => Karat.width(name))) + 52);
    const ranks = models.map((m) => Karat.ranking.mean[m]);
    const low = Math.max(1, Math.floor(Math.min(...ranks)));
    const high = Math.max(low + 1, Math.ceil(Math.max(...ranks)));
    const x = Karat.linear([low, high], [side, width - side]);
    const start = AXIS + 14 + lines * 9;
    const sheet = Karat.sheet(width, start + half * ROW + 8, label(models));
    sheet.append(...axisOf(x, side, width));
    models.forEach((m, i) => {
      const row = i < half ? i : models.length - 1 - i;
      const place = { x: x(ranks[i]), y: start + ROW * row + 8, side, width, left: i < half };
      sheet.append(stem(m, names[i], place));
    });
    for (const { ranks, line } of found) {
      const y = AXIS + 10 + line * 9;
      const ends = { x1: x(ranks[0]) - 3, x2: x(ranks.at(-1)) + 3 };
      sheet.append(svg("line", { class: "thick", ...ends, y1: y, y2: y }));
      for (const rank of ranks)
        sheet.append(svg("circle", { class: "member", cx: x(rank), cy: y, r: 3.4 }));
    }
    return sheet;
  }

  function axisOf(x, side, width) {
    const ticks = x.ticks(Math.min(10, Math.round((width - 2 * side) / 46)));
    const line = svg("line", { class: "thin", x1: side, x2: width - side, y1: AXIS, y2: AXIS });
    const marks = ticks.flatMap((tick) => [
      svg("line", { class: "thin", x1: x(tick), x2: x(tick), y1: AXIS - 5, y2: AXIS }),
      Karat.label(x(tick), AXIS - 10, String(tick), { "text-anchor": "middle" }),
    ]);
    return [line, ...marks];
  }

  /** Return the line from a model's rank to its name. */
  function stem(m, name, { x, y, side, width, left }) {
    const edge = left ? side - 6 : width - side + 6;
    const out = left ? -1 : 1;
    const anchor = { "text-anchor": left ? "end" : "start" };
    const d = `M${x} ${AXIS}V${y}H${edge}`;
    const path = svg("path", { class: "line", style: "stroke-width:1.4", d });
    const text = Karat.label(edge + 40 * out, y + 4, name, { class: "name", ...anchor });
    const rank = Karat.ranking.mean[m].toFixed(2);
    const number = Karat.label(edge + 4 * out, y + 4, rank, { class: "small", ...anchor });
    return svg("g", { class: Karat.color(m), "data-tip": tipOf(m) }, path, text, number);
  }

  function csv() {
    const models = best();
    const groups = cliques(models);
    const rows = models.map((m) => [
      Karat.data.models[m].name,
      Karat.ranking.mean[m],
      groups
        .map((one, i) => (one.includes(m) ? i + 1 : ""))
        .filter(Boolean)
        .join(" "),
    ]);
    return [["model", "mean rank", "groups"], ...rows];
  }

  function note() {
    const { friedman, procedure, why } = Karat.data.tests;
    if (!Karat.ranking.own)
      return "Dots on a bar are models that share a letter on the selected tasks.";
    const where = Karat.ranking.fewTasks ? " on average over these tasks" : "";
    const joined = procedure
      ? `Dots on a bar are models that do not differ significantly${where} (${procedure}).`
      : `Pairs of models are not tested: ${why || "too few tasks"}.`;
    if (!friedman || Karat.ranking.fewTasks) return joined; // that test is about other tasks
    const sure = `${Karat.equals(friedman.p)}, ${Karat.count(friedman.tasks, "task")}`;
    return `${joined} ${friedman.test ?? "Friedman"}: χ² = ${Karat.number(friedman.statistic, 3)}, ${sure}.`;
  }

  function build(root) {
    const textNode = el("p", { class: "lead" });
    const picture = Karat.figure({ name: "differences", title: "", draw, csv });
    root.append(textNode, picture.node, ...Karat.pairs(best));
    const fresh = () => {
      const whom = best().length < MOST ? "all ranked models" : `the best ${MOST}`;
      textNode.textContent = note();
      picture.title.textContent = `Mean ranks, ${whom}; 1 is best`;
      picture.redraw();
    };
    for (const name of ["ranking", "intervals", "marks"]) Karat.on(name, fresh);
    fresh();
  }

  const has = () => Karat.data.models.length > 1;
  const [title, way] = ["Critical differences", "Differences"];
  Karat.section({ id: "differences", title, way, has, build });
})();
