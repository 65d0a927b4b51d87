/* Comparison of two models: scores, tests and settings. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el, svg } = Karat;
  const FEWEST = 6;

  /** Return the two that are compared: chosen ones, or the best two that share some tasks. */
  function pair() {
    const models = Karat.data.models;
    const a = Karat.placeOf(models, Karat.get("a"));
    const b = Karat.placeOf(models, Karat.get("b"));
    if (a >= 0 && b >= 0) return [a, b];
    if (a >= 0 || b >= 0) return a >= 0 ? [a, mate(a)] : [mate(b), b];
    const best =
      Karat.order()
        .slice(0, 12)
        .find((m) => shared(m, mate(m)) > 2) ?? 0;
    return [best, mate(best)];
  }

  /** Return how many of the chosen tasks two models both have a score on. */
  function shared(a, b) {
    return Karat.ranking.chosen.filter(
      (t) => Karat.score(t, a) !== null && Karat.score(t, b) !== null,
    ).length;
  }

  /** Return the best other model that has at least three tasks in common with one, or any. */
  function mate(m) {
    const others = Karat.order().filter((other) => other !== m);
    return others.find((other) => shared(m, other) > 2) ?? others[0];
  }

  /** Return the tasks on which both have a score, with the test of their items or folds. */
  function rowsOf([a, b]) {
    const rows = Karat.ranking.chosen.flatMap((t) => {
      const k = Karat.ranking.metric(t);
      const [x, y] = [Karat.score(t, a), Karat.score(t, b)];
      if (x === null || y === null) return [];
      const sign = Karat.data.tasks[t].higher[k] ? 1 : -1;
      return [{ t, k, x, y, better: sign * (x - y), ...testOf(t, k, a, b) }];
    });
    const few = new Map(fewOf(rows, [a, b])?.by_task.map(({ task, p }) => [task, p]));
    const holm = Karat.ranks.holm(rows.map((row) => row.p));
    holm.forEach((p, i) => (rows[i].corrected = few.get(rows[i].t) ?? p));
    return rows;
  }

  /** Return what two to five tasks show about two models by themselves, or null. */
  function fewOf(rows, [a, b]) {
    if (rows.length < 2 || rows.length >= FEWEST) return null;
    return Karat.meanDifference(Karat.ranking, a, b);
  }

  /** Return p of a pair on a task and the name of the test, or why there is none. */
  function testOf(t, k, a, b) {
    const tested = Karat.data.tests.by_task?.[t];
    if (k !== 0 || !tested) return { p: null, test: "not in this page" };
    const p = tested.p?.[a]?.[b] ?? null;
    const why = tested.p && tested.p[a]?.[b] === undefined ? "not in this page" : tested.why;
    return { p, test: p === null ? `not tested${why ? `: ${why}` : ""}` : tested.test };
  }

  /** Return a score between the worst (0) and the best (1) model of the task. */
  function normal({ t, k }, value) {
    const known = Karat.data.scores[t][k].filter((one) => one !== null);
    const [low, high] = [
      known.reduce((a, b) => Math.min(a, b)),
      known.reduce((a, b) => Math.max(a, b)),
    ];
    if (high === low) return 0.5;
    const share = (value - low) / (high - low);
    return Karat.data.tasks[t].higher[k] ? share : 1 - share;
  }

  function draw(width) {
    const [a, b] = pair();
    const side = Math.min(width, 430);
    const box = { left: 46, right: side - 12, top: 26, bottom: side - 44 };
    const x = Karat.linear([-0.03, 1.03], [box.left, box.right]);
    const y = Karat.linear([-0.03, 1.03], [box.bottom, box.top]);
    const sheet = Karat.sheet(side, side, `${Karat.model(a)} against ${Karat.model(b)}`);
    sheet.append(
      Karat.xAxis(x, box, { title: `${Karat.short(Karat.model(a), 34)} →` }),
      Karat.yAxis(y, box, { title: `${Karat.short(Karat.model(b), 34)} ↑` }),
    );
    sheet.append(svg("line", { class: "axis", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }));
    for (const row of rowsOf([a, b])) {
      const winner = row.better === 0 ? "none" : Karat.color(row.better > 0 ? a : b);
      const sure = row.corrected !== null && row.corrected < 0.05;
      const scores = `${Karat.number(row.x)} against ${Karat.number(row.y)}`;
      const facts = [Karat.short(Karat.task(row.t), 60), Karat.metric(row.t, row.k), scores];
      const tip = [...facts, ...(row.p === null ? [] : [Karat.equals(row.p)])].join("\n");
      const at = { cx: x(normal(row, row.x)), cy: y(normal(row, row.y)) };
      sheet.append(
        svg("circle", {
          class: `dot ${winner}`,
          ...at,
          r: sure ? 6.5 : 4.5,
          opacity: sure ? 1 : 0.6,
          "data-tip": tip,
        }),
      );
    }
    return sheet;
  }

  function summary([a, b]) {
    const rows = rowsOf([a, b]);
    const won = rows.filter((row) => row.better > 0).length;
    const lost = rows.filter((row) => row.better < 0).length;
    const sure = rows.filter((row) => row.corrected !== null && row.corrected < 0.05).length;
    const p = Karat.ranking.own ? Karat.data.tests.pairs?.p?.[a]?.[b] : null;
    const parts = [
      `${Karat.count(rows.length, "common task")}:`,
      `${Karat.short(Karat.model(a), 40)} is ahead on ${won},`,
      `${Karat.short(Karat.model(b), 40)} on ${lost}, ${rows.length - won - lost} equal.`,
    ];
    if (rows.some((row) => row.p !== null))
      parts.push(
        `${sure} significant at the 5 % level, corrected for all tasks.`,
      );
    const mean = meanOf(rows, [a, b]);
    if (mean) parts.push(mean);
    const { procedure, why } = Karat.data.tests;
    if (p !== null && p !== undefined)
      parts.push(`Corrected for all pairs, as the letters are: ${Karat.equals(p)} (${procedure}).`);
    else if (Karat.ranking.own && why) parts.push(`All pairs of models: not tested, ${why}.`);
    return parts.join(" ");
  }

  /** Return the mean gain of the first over two to five tasks, as karat compare has it. */
  function meanOf(rows, [a, b]) {
    const mean = fewOf(rows, [a, b]);
    if (!mean || mean.low === null) return "";
    const ends = `[${Karat.signed(mean.low)}, ${Karat.signed(mean.high)}]`;
    const over = `over these ${Karat.count(mean.tested, "task")}, ${Karat.equals(mean.p)} for the two alone.`;
    return `Mean gain of ${Karat.short(Karat.model(a), 40)} ${Karat.signed(mean.difference)} ${ends} ${over}`;
  }

  /** Return what the unit of the tests on items is: one line for all tasks, or one per task. */
  function unitNotes(rows) {
    const tested = rows.flatMap(({ t, p }) => {
      const { unit, clusters } = Karat.data.tests.by_task?.[t] ?? {};
      return unit && p !== null ? [{ name: Karat.task(t), unit, clusters }] : [];
    });
    const clustered = tested.filter(({ clusters }) => clusters);
    const others = tested.filter(({ clusters }) => !clusters);
    const notes = clustered.map(({ name, unit }) => (tested.length === 1 ? unit : `${name}: ${unit}`));
    if (!others.length) return notes;
    const names = clustered.length ? `${others.map(({ name }) => name).join(", ")}: ` : "";
    return [...notes, names + others[0].unit];
  }

  function table([a, b]) {
    const names = [
      "task",
      "metric",
      Karat.short(Karat.model(a), 24),
      Karat.short(Karat.model(b), 24),
      "A ahead by",
      "p",
      "p, all tasks",
      "test",
    ];
    const rows = rowsOf([a, b]).map((row) => [
      Karat.task(row.t),
      Karat.metric(row.t, row.k),
      row.x,
      row.y,
      row.better,
      row.p,
      row.corrected,
      row.test,
      row.t,
    ]);
    const cells = {
      0: (name, row) => el("span", { class: "cut" }, Karat.taskLink(row[8], name)),
      5: (p) => Karat.p(p),
      6: (p) => Karat.p(p),
    };
    return Karat.plainTable(
      "Results by task",
      names,
      rows,
      { cells },
    );
  }

  // -- what else differs ----------------------------------------------------------------------

  function originOf(m) {
    const run = Karat.data.runs.find((one) => one.model === m) ?? {};
    const { suite, constraint, seed, stamp } = Karat.data.models[m];
    return {
      suite,
      constraint,
      seed,
      stamp,
      folder: run.folder,
      platform: run.platform,
      command: run.command,
      ...(run.versions ?? {}),
    };
  }

  function differences([a, b]) {
    const [mine, other] = [originOf(a), originOf(b)];
    const keys = [...new Set([...Object.keys(mine), ...Object.keys(other)])];
    const text = (value) =>
      value === null || value === undefined
        ? null
        : typeof value === "object"
          ? JSON.stringify(value)
          : String(value);
    const rows = keys
      .map((key) => [key, text(mine[key]), text(other[key])])
      .filter(([, x, y]) => x !== y);
    if (!rows.length)
      return el("p", { class: "faint", text: "Seeds, versions and commands are identical." });
    return Karat.plainTable("Different settings and versions", ["setting", "A", "B"], rows, {
      wrap: [1, 2],
    });
  }

  function csv() {
    const [a, b] = pair();
    const rows = rowsOf([a, b]).map((row) => [
      Karat.data.tasks[row.t].name,
      Karat.data.tasks[row.t].metrics[row.k],
      row.x,
      row.y,
      row.better,
      row.p,
      row.corrected,
      row.test,
    ]);
    return [
      [
        "task",
        "metric",
        Karat.data.models[a].name,
        Karat.data.models[b].name,
        "a ahead by",
        "p",
        "p, all tasks",
        "test",
      ],
      ...rows,
    ];
  }

  function build(root) {
    const models = Karat.data.models;
    const options = models.map((_, m) => [m, Karat.short(Karat.model(m), 50)]);
    const textNode = el("p", { class: "lead", id: "compared" });
    const units = el("ul", { class: "notes" });
    const [tables, origins] = [el("div"), el("div", { style: "margin-top:22px" })];
    const picture = Karat.figure({
      name: "comparison",
      title: "Scores scaled from the worst (0) to the best model (1) of each task; large dots: significant",
      draw,
      csv,
    });
    const show = () => {
      textNode.textContent = summary(pair());
      const notes = unitNotes(rowsOf(pair())).map((text) => el("li", { text }));
      units.replaceChildren(...notes);
      tables.replaceChildren(table(pair()));
      origins.replaceChildren(differences(pair()));
      picture.redraw();
    };
    const list = (key, label, place) => {
      const node = Karat.select(label, options, pair()[place], (value) => {
        Karat.set({ [key]: Karat.keyOf(models, Number(value)) });
      });
      node.querySelector("select").id = `compare-${key}`;
      return node;
    };
    root.append(
      el("div", { class: "bar" }, list("a", "A", 0), list("b", "B", 1)),
      textNode,
      el("div", { class: "pair" }, picture.node, tables),
      units,
      origins,
    );
    Karat.on("ranking", show);
    Karat.on("state", (names) => {
      if (!names.includes("a") && !names.includes("b")) return;
      ["a", "b"].forEach((key, i) => (root.querySelector(`#compare-${key}`).value = pair()[i]));
      show();
    });
    Karat.on("marks", picture.redraw);
    show();
  }

  /** Show a model against the best other one, in the section that compares two. */
  Karat.compare = (m) => {
    Karat.jump("compare", { a: Karat.keyOf(Karat.data.models, m), b: "" });
  };

  Karat.section({
    id: "compare",
    title: "Compare two models",
    way: "Compare",
    has: () => Karat.data.models.length > 1,
    build,
  });
})();
