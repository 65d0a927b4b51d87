/* The strip plot: every fold of a task as a dot, a row per model. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el, svg } = Karat;
  const MOST = 40;
  const ROW = 22;

  function tasks() {
    const folds = Karat.data.folds ?? [];
    return folds.map((_, t) => t).filter((t) => folds[t]?.some((row) => row?.length > 1));
  }

  /** Return the models with a score on a task, the better first. */
  Karat.bestOn = (t, k = 0) => {
    const scores = Karat.data.scores[t]?.[k] ?? [];
    const models = scores.map((_, m) => m).filter((m) => scores[m] !== null);
    return Karat.sortBy(models, (m) => scores[m], Karat.data.tasks[t].higher[k]);
  };

  Karat.strips = (t, width, models) => {
    const folds = Karat.data.folds?.[t] ?? [];
    const names = models.map((m) => Karat.short(Karat.model(m), width < 560 ? 15 : 30));
    const left = Math.max(60, ...names.map((name) => Karat.width(name))) + 14;
    const box = { left, right: width - 18, top: 8, bottom: 8 + models.length * ROW };
    const shown = models.flatMap((m) => [Karat.data.scores[t][0][m], ...(folds[m] ?? [])]);
    const x = Karat.linear(Karat.extent(shown), [box.left, box.right]);
    const sheet = Karat.sheet(width, box.bottom + 40, `Folds of ${Karat.short(Karat.task(t), 60)}`);
    sheet.append(Karat.xAxis(x, box, { title: Karat.metric(t, 0), count: width < 560 ? 3 : 6 }));
    models.forEach((m, i) =>
      sheet.append(strip({ t, m, x, y: box.top + (i + 0.5) * ROW, name: names[i], left })),
    );
    return sheet;
  };

  /** Return a model's row: its folds as dots, their mean as a line. */
  function strip({ t, m, x, y, name, left }) {
    const mean = Karat.data.scores[t][0][m];
    const folds = Karat.data.folds?.[t]?.[m] ?? [];
    const who = Karat.short(Karat.model(m), 60);
    const tip = `${who}\nmean ${Karat.number(mean, 5)}`;
    const ground = { x: 0, y: y - ROW / 2, width: "100%", height: ROW, fill: "transparent" };
    const group = svg("g", { class: Karat.color(m) });
    group.append(Karat.label(left - 8, y + 4, name, { class: "name", "text-anchor": "end" }));
    group.append(svg("rect", { ...ground, "data-tip": tip }));
    folds.forEach((value, f) => {
      if (value === null) return;
      const tip = `${who}\nfold ${f}: ${Karat.number(value, 5)}`;
      const dot = { class: "dot", cx: x(value), cy: y, r: 4, opacity: 0.55 };
      group.append(svg("circle", { ...dot, "data-tip": tip }));
    });
    if (mean === null) return group;
    const line = { x1: x(mean), x2: x(mean), y1: y - 7, y2: y + 7 };
    group.append(svg("line", { class: "thin", style: "stroke-width:2", ...line }));
    return group;
  }

  /** Return the folds of a task as rows of a file. */
  Karat.foldRows = (t) => {
    const rows = Karat.bestOn(t).flatMap((m) =>
      (Karat.data.folds?.[t]?.[m] ?? []).map((value, f) => [
        Karat.data.models[m].name,
        Karat.data.tasks[t].name,
        f,
        value,
      ]),
    );
    return [["model", "task", "fold", Karat.data.tasks[t].metrics[0]], ...rows];
  };

  function build(root) {
    const places = tasks();
    const now = () => Karat.chosenOf("strip", places);
    const draw = (width) => Karat.strips(now(), width, Karat.bestOn(now()).slice(0, MOST));
    const caption = () =>
      [
        `${Karat.short(Karat.task(now()), 60)}: dots are folds, lines are means`,
        Karat.bestOn(now()).length > MOST ? `; the best ${MOST}` : "",
      ].join("");
    const picture = Karat.figure({
      name: "folds",
      title: caption(),
      draw,
      csv: () => Karat.foldRows(now()),
    });
    const fresh = () => {
      picture.title.textContent = caption();
      picture.redraw();
    };
    const bar = el(
      "div",
      { class: "bar" },
      Karat.taskList("strip", places, fresh),
      Karat.button("Open the task", () =>
        Karat.set({ task: Karat.keyOf(Karat.data.tasks, now()) }),
      ),
    );
    root.append(bar, picture.node);
    Karat.on("marks", picture.redraw);
  }

  Karat.section({
    id: "folds",
    title: "Scores by fold",
    way: "Folds",
    has: () => tasks().length > 0,
    build,
  });
})();
