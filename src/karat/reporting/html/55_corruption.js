/* Robustness to corruption: curves, radar and table. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el } = Karat;

  const relative = () => Karat.get("relative") === "1";

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

  function chartOf(chart, i) {
    const { task, corruption } = chart;
    const label = `${Karat.short(Karat.task(task), 60)}, ${Karat.short(corruption, 60)}`;
    const y0 = relative() ? 1 : null;
    const lines = linesOf(chart);
    const draw = (width) => Karat.lineChart({ lines, width, label, across: "severity", y0 });
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

  /** Return the charts of a task's corruptions, with what they show. */
  function chartsOf(t) {
    const charts = Karat.data.curves.filter((chart) => chart.task === t);
    const metric = Karat.plain(`${charts[0].metric} ${charts[0].higher ? "↑" : "↓"}`);
    const as = relative() ? " as a share of the clean score" : "";
    const text = `${metric}${as}; bands are standard deviations over folds and draws.`;
    const keys = Karat.keys(Karat.markedOf(Karat.modelsOf(charts)));
    const nodes = [...charts.map(chartOf), radarOf(charts, t)];
    return [el("p", { class: "lead", text }), keys, el("div", { class: "charts" }, nodes)];
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
    const show = () => home.replaceChildren(...chartsOf(Karat.chosenOf("curves", places)));
    const box = Karat.box("Relative to clean", relative(), (on) => {
      Karat.set({ relative: on ? "1" : "" });
      show();
    });
    const bar = el("div", { class: "bar" }, Karat.taskList("curves", places, show), box);
    root.append(bar, home, table());
    Karat.on("marks", show);
    show();
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
