/* Learning curves: values reported after each epoch. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el } = Karat;

  /** Return a line with its band: a standard deviation around the mean. */
  function banded(line) {
    const away = (sign) =>
      line.mean.map((value, i) => (value === null ? null : value + sign * (line.std?.[i] ?? 0)));
    return { ...line, low: away(-1), high: away(1) };
  }

  function chartOf(chart, i, models) {
    const lines = chart.lines.map(banded);
    const shown = lines.filter((line) => models.includes(line.model));
    const label = `${Karat.short(Karat.task(chart.task), 60)}, ${Karat.short(chart.metric, 60)}`;
    const draw = (width) => Karat.lineChart({ lines: shown, width, label, across: "epoch" });
    const csv = () => Karat.lineRows("epoch", chart.task, chart.metric, lines);
    const title = Karat.plain(chart.metric).replaceAll("_", " ");
    return Karat.figure({ name: `learning-${chart.task}-${i}`, title, draw, csv }).node;
  }

  function chartsOf(t) {
    const charts = Karat.data.learning.filter((chart) => chart.task === t);
    const models = Karat.markedOf(Karat.modelsOf(charts));
    const nodes = charts.map((chart, i) => chartOf(chart, i, models));
    return [Karat.keys(models), el("div", { class: "charts" }, nodes)];
  }

  function build(root) {
    const places = [...new Set(Karat.data.learning.map((chart) => chart.task))];
    const home = el("div");
    const show = () => home.replaceChildren(...chartsOf(Karat.chosenOf("learning", places)));
    root.append(el("div", { class: "bar" }, Karat.taskList("learning", places, show)), home);
    Karat.on("marks", show);
    show();
  }

  const lead = "Means over the folds that were still training; bands are standard deviations.";
  const has = () => Karat.data.learning.length > 0;
  Karat.section({ id: "learning", title: "Learning curves", way: "Learning", lead, has, build });
})();
