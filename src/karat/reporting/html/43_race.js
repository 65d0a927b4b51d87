/* Races: how many models ran each task, and the evidence against each model. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el, svg } = Karat;
  const HEIGHT = 260;
  /** smaller powers of ten are drawn here */
  const LEAST = -3;

  const races = () => Karat.given.races ?? [];
  const placeOf = (name) => Karat.data.models.findIndex((model) => model.name === name);

  function sheetOf(width, label, values) {
    const box = { right: width - 16, top: 12, bottom: HEIGHT - 44 };
    const y = Karat.linear(Karat.extent(values), [box.bottom, box.top]);
    box.left = Karat.margin(y);
    return { box, y, sheet: Karat.sheet(width, HEIGHT, label) };
  }

  /** Return a chart of the models that ran each task, over the jobs spent. */
  function survivors(race, width) {
    const { jobs, models, task } = race.trace;
    const { box, y, sheet } = sheetOf(width, "models over jobs", [0, ...models]);
    const x = Karat.linear([0, Math.max(1, ...jobs)], [box.left, box.right]);
    const points = models.flatMap((count, i) => [
      [x(i ? jobs[i - 1] : 0), y(count)],
      [x(jobs[i]), y(count)],
    ]);
    sheet.append(
      Karat.xAxis(x, box, { title: "jobs →" }),
      Karat.yAxis(y, box),
      svg("g", { class: Karat.color(0) }, svg("path", { class: "line", d: Karat.path(points) })),
    );
    models.forEach((count, i) => {
      const from = x(i ? jobs[i - 1] : 0);
      const name = `task ${i + 1}: ${Karat.short(task[i], 60)}`;
      const tip = `${name}\n${count} models, ${jobs[i]} jobs so far`;
      const place = { x: from, width: Math.max(1, x(jobs[i]) - from), y: box.top };
      const height = box.bottom - box.top;
      sheet.append(svg("rect", { ...place, height, fill: "transparent", "data-tip": tip }));
    });
    return sheet;
  }

  /** Return a chart of the evidence against each model after each task, as powers of ten. */
  function evidence(race, width) {
    const { needed } = race.trace;
    const known = needed.map((value) => (value ? Math.log10(value) : null));
    const values = [...race.lines.flatMap(({ log }) => log), ...known]
      .filter((value) => value !== null)
      .map((value) => Math.max(value, LEAST));
    const { box, y, sheet } = sheetOf(width, "evidence over tasks", values);
    const x = Karat.linear([1, Math.max(2, needed.length)], [box.left, box.right]);
    const format = (value) => (Number.isInteger(value) ? `1e${value}` : "");
    sheet.append(Karat.xAxis(x, box, { title: "tasks →" }), Karat.yAxis(y, box, { format }));
    const level = known.map((value, i) => [x(i + 1), value === null ? null : y(value)]);
    const dashed = { class: "line", style: "stroke-dasharray:5 4", "data-tip": "evidence needed" };
    if (known.every((value) => value !== null))
      sheet.append(svg("g", { class: "none" }, svg("path", { ...dashed, d: Karat.path(level) })));
    for (const line of race.lines) sheet.append(lineOf(line, x, y));
    return sheet;
  }

  function lineOf({ model, status, tasks, log }, x, y) {
    const place = placeOf(model);
    const at = log.map((value, i) => [x(i + 1), y(Math.max(value, LEAST))]);
    const [cx, cy] = at.at(-1) ?? [0, 0];
    const power = log.at(-1) ?? 0;
    const found = `${status} after ${tasks} tasks, e-value 10^${Karat.number(power, 2)}`;
    const tip = `${Karat.short(model, 60)}\n${found}`;
    return svg(
      "g",
      { class: place < 0 ? "none" : Karat.color(place) },
      svg("path", { class: "line", d: Karat.path(at), "data-tip": tip }),
      svg("circle", { class: "dot", cx, cy, r: 3.2, "data-tip": tip }),
    );
  }

  function csv(race) {
    const { task, jobs, models, needed } = race.trace;
    const names = race.lines.map(({ model }) => `log10 e-value ${model}`);
    const rows = task.map((name, i) => {
      const own = race.lines.map(({ log }) => log[i] ?? null);
      return [name, jobs[i], models[i], needed[i], ...own];
    });
    return [["task", "jobs", "models", "needed", ...names], ...rows];
  }

  function raceOf(race, i) {
    const spent = `${race.jobs.toLocaleString("en-US")} of ${race.full.toLocaleString("en-US")} jobs`;
    const figures = [
      ["survivors", `Models that ran each task; ${spent} were run`, survivors],
      ["evidence", "Evidence against each model; a model leaves above the dashed line", evidence],
    ].map(([name, title, draw]) =>
      Karat.figure({
        name: `race-${name}-${i}`,
        title,
        draw: (width) => draw(race, width),
        csv: () => csv(race),
      }),
    );
    Karat.on("marks", () => figures.forEach(({ redraw }) => redraw()));
    return [
      el("p", { text: Karat.plain(race.sentence) }),
      el("div", { class: "charts" }, figures.map(({ node }) => node)),
      Karat.plainTable("Models of the race", race.columns, race.rows),
      el(
        "ul",
        { class: "notes" },
        race.notes.map((line) => el("li", { text: Karat.plain(line) })),
      ),
    ];
  }

  function build(root) {
    root.append(...races().flatMap(raceOf));
  }

  Karat.section({ id: "race", title: "Race", way: "Race", has: () => races().length > 0, build });
})();
