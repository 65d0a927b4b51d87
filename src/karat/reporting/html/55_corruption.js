/* Robustness to corruption: curves, bars, radar and tables. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el } = Karat;

  const relative = () => Karat.get("relative") === "1";
  const baselines = () => Karat.get("baselines") === "1";

  /** Return whether a corruption is made of several, one after the other. */
  const isComposed = ({ corruption }) => corruption.includes("+");

  /** Return whether a chart is a curve: that of a composition at a single severity is not. */
  const isCurve = (chart) => !isComposed(chart) || chart.lines.some((line) => line.x.length > 2);

  const chartsOn = (t) => Karat.data.curves.filter((chart) => chart.task === t);

  /** Return the chosen corruption of a task, or an empty text for all. */
  function chosenIn(charts) {
    const name = Karat.get("corruption");
    return charts.some((chart) => chart.corruption === name) ? name : "";
  }

  /** Return the lines of the marked models, as they are or relative to clean. */
  function linesOf(chart) {
    const models = Karat.markedOf(chart.lines.map((line) => line.model));
    const lines = chart.lines.filter((line) => models.includes(line.model));
    return relative() ? lines.map(toClean) : lines;
  }

  function toClean(line) {
    const clean = line.mean[line.x.indexOf(0)] ?? line.mean[0];
    const share = (value) => (value === null || !clean ? null : value / clean);
    const [mean, low, high] = [line.mean, line.low, line.high].map((values) => values.map(share));
    return { ...line, mean, low, high };
  }

  /** Return the clean score of each line, if the box is checked. */
  function levelsOf(lines) {
    const levels = lines.map(({ model, x, mean }) => ({ model, y: mean[x.indexOf(0)] ?? null }));
    return baselines() ? levels.filter(({ y }) => y !== null) : [];
  }

  function chartOf(chart, i, height) {
    const { task, corruption } = chart;
    const label = `${Karat.short(Karat.task(task), 60)}, ${Karat.short(corruption, 60)}`;
    const y0 = relative() ? 1 : null;
    const lines = linesOf(chart);
    const facts = { lines, label, across: "severity", y0, levels: levelsOf(lines), height };
    const draw = (width) => Karat.lineChart({ ...facts, width });
    const csv = () => Karat.lineRows("severity", task, corruption, chart.lines);
    const title = Karat.plain(corruption);
    return Karat.figure({ name: `corruption-${task}-${i}`, title, draw, csv }).node;
  }

  /** Return the radar, where there are enough corruptions for one. */
  function radarOf(charts, t) {
    if (charts.length < 3) return null;
    const title = "Retention, mean over severities";
    const draw = (width) => Karat.radar(charts, width);
    const csv = () => Karat.radarRows(charts);
    const under = Karat.radarNote(charts);
    return Karat.figure({ name: `radar-${t}`, title, draw, csv, under }).node;
  }

  /** Return the bars of one number per model, the better first. */
  function barsOf(charts, name, title, value) {
    const models = Karat.markedOf(Karat.modelsOf(charts));
    const known = models.map((model) => ({ model, value: value(model) }));
    const rows = Karat.sortBy(
      known.filter((row) => row.value !== null),
      (row) => row.value,
      charts[0]?.higher,
    );
    if (!rows.length) return null;
    const draw = (width) => Karat.barChart({ rows, width, label: title });
    const lines = rows.map((row) => [Karat.data.models[row.model].name, row.value]);
    const csv = () => [["model", "value"], ...lines];
    return Karat.figure({ name, title, draw, csv }).node;
  }

  /** Return the mean score of a model under compositions, each a mean over its severities. */
  function meanUnder(charts, m) {
    const means = charts.flatMap((chart) =>
      chart.lines.filter((line) => line.model === m).flatMap((line) => meanOf(corrupted(line))),
    );
    return meanOf(means)[0] ?? null;
  }

  const corrupted = ({ x, mean }) => mean.filter((value, i) => x[i] !== 0 && value !== null);
  const meanOf = (values) =>
    values.length ? [values.reduce((sum, value) => sum + value, 0) / values.length] : [];

  /** Return the table of all scores of some charts. */
  function scoresOf(charts) {
    const rows = charts.flatMap(({ corruption, metric, lines }) =>
      lines.flatMap(({ model, x, mean }) =>
        x.map((severity, i) => [Karat.model(model), corruption, severity, mean[i], metric]),
      ),
    );
    const names = ["model", "corruption", "severity", "value", "metric"];
    const cells = { 2: (severity) => String(severity) };
    return Karat.plainTable("Scores", names, rows, { cells, wrap: [1] });
  }

  /** Return the charts of a task's corruptions, or that of the chosen one and its scores. */
  function chartsOf(t) {
    const all = chartsOn(t);
    const chosen = chosenIn(all);
    const charts = chosen ? all.filter((chart) => chart.corruption === chosen) : all;
    const metric = Karat.plain(`${charts[0].metric} ${charts[0].higher ? "↑" : "↓"}`);
    const as = relative() ? " as a share of the clean score" : "";
    const text = `${metric}${as}; bands are standard deviations over folds and draws.`;
    const keys = Karat.keys(Karat.markedOf(Karat.modelsOf(charts)));
    const head = [el("p", { class: "lead", text }), keys];
    if (chosen) return [...head, chartOf(charts[0], all.indexOf(charts[0]), 340), scoresOf(charts)];
    const curved = all.filter(isCurve);
    const composed = all.filter(isComposed);
    const clean = (m) => Karat.clean(all, m);
    const nodes = [
      barsOf(all, `clean-${t}`, "Clean score", clean),
      ...curved.map((chart) => chartOf(chart, all.indexOf(chart))),
      barsOf(composed, `composed-${t}`, "Compositions, mean score", (m) => meanUnder(composed, m)),
      radarOf(all.filter((chart) => !isComposed(chart)), t),
    ];
    const summary = el("summary", { text: "Scores by corruption and severity" });
    const folded = el("details", { class: "group" }, summary, scoresOf(all));
    return [...head, el("div", { class: "charts" }, nodes), folded];
  }

  function table() {
    const found = Karat.data.robustness;
    if (!found?.rows?.length) return "";
    const heading = Math.max(0, found.columns.indexOf("model"));
    const title = "Robustness table";
    const body = Karat.plainTable(title, found.columns.map(Karat.plain), found.rows, { heading });
    const csv = () => Karat.csv([found.columns, ...found.rows]);
    const click = () => Karat.save("karat-robustness.csv", csv(), "text/csv");
    const save = el("button", { type: "button", text: "CSV", "aria-label": "Save as CSV", click });
    const saves = el("span", { class: "saves", style: "float:right" }, save);
    return el("div", { style: "margin-top:26px" }, saves, body);
  }

  function build(root) {
    const places = [...new Set(Karat.data.curves.map((chart) => chart.task))];
    const home = el("div");
    const list = el("span", { style: "display:contents" });
    const now = () => Karat.chosenOf("curves", places);
    const show = () => home.replaceChildren(...chartsOf(now()));
    const change = (choices) => {
      Karat.set(choices);
      show();
    };
    const fresh = () => {
      list.replaceChildren(corruptionList(chartsOn(now()), change));
      show();
    };
    const bar = el(
      "div",
      { class: "bar" },
      Karat.taskList("curves", places, fresh),
      list,
      Karat.box("Relative to clean", relative(), (on) => change({ relative: on ? "1" : "" })),
      Karat.box("Clean baselines", baselines(), (on) => change({ baselines: on ? "1" : "" })),
    );
    root.append(bar, home, table());
    Karat.on("marks", show);
    fresh();
  }

  function corruptionList(charts, change) {
    const names = charts.map(({ corruption }) => [corruption, Karat.short(corruption, 60)]);
    const choose = (corruption) => change({ corruption });
    return Karat.select("Corruption", [["", "all"], ...names], chosenIn(charts), choose);
  }

  const has = () => Karat.data.curves.length > 0;
  Karat.section({
    id: "corruption",
    title: "Robustness to corruption",
    way: "Corruption",
    has,
    build,
  });
})();
