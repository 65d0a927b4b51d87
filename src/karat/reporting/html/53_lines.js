/* Charts of lines with bands, for corruption and for learning. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { svg } = Karat;
  const HEIGHT = 210;
  const DOTS = 24;

  /** Return the models that have a line in any of some charts. */
  Karat.modelsOf = (charts) => [
    ...new Set(charts.flatMap((chart) => chart.lines.map((line) => line.model))),
  ];

  /** Return a chart of lines: a line is {model, x, mean, low, high}. */
  Karat.lineChart = ({ lines, width, label, across, y0 = null }) => {
    const box = { right: width - 12, top: 10, bottom: HEIGHT - 40 };
    const values = lines.flatMap((line) => [...line.mean, ...line.low, ...line.high]);
    const ends = Karat.extent(y0 === null ? values : [...values, y0]);
    const places = lines.flatMap((line) => line.x);
    const y = Karat.linear(ends, [box.bottom, box.top]);
    box.left = Karat.margin(y);
    const x = Karat.linear(Karat.extent(places, 0.02), [box.left, box.right]);
    const sheet = Karat.sheet(width, HEIGHT, label);
    sheet.append(Karat.xAxis(x, box, { title: across, count: 4 }), Karat.yAxis(y, box));
    for (const line of lines) sheet.append(lineOf(line, x, y));
    return sheet;
  };

  function lineOf(line, x, y) {
    const at = (values) => line.x.map((place, i) => [x(place), y(values[i] ?? line.mean[i])]);
    const around = [...at(line.high), ...at(line.low).reverse()];
    const group = svg("g", { class: Karat.color(line.model) });
    group.append(svg("path", { class: "band", d: `${Karat.path(around)}z` }));
    group.append(svg("path", { class: "line", d: Karat.path(at(line.mean)) }));
    if (line.x.length <= DOTS) group.append(...dotsOf(line, x, y));
    return group;
  }

  function dotsOf(line, x, y) {
    const known = line.x.map((_, i) => i).filter((i) => line.mean[i] !== null);
    return known.map((i) => {
      const name = Karat.short(Karat.model(line.model), 60);
      const small = Math.abs(line.mean[i]) < 1e-3;
      const at = Karat.number(line.x[i], 3).replace(/\.0+$/, "");
      const tip = `${name}\n${at}: ${Karat.number(line.mean[i], small ? 5 : 4)}`;
      const place = { cx: x(line.x[i]), cy: y(line.mean[i]) };
      return svg("circle", { class: "dot", ...place, r: 3.2, "data-tip": tip });
    });
  }

  /** Return the lines of a task's chart as rows of a file. */
  Karat.lineRows = (across, task, name, lines) => {
    const own = [Karat.data.tasks[task].name, name];
    const rows = lines.flatMap((line) =>
      line.x.map((at, i) => {
        const model = Karat.data.models[line.model].name;
        return [...own, model, at, line.mean[i], line.low[i], line.high[i]];
      }),
    );
    return [["task", "chart", "model", across, "mean", "low", "high"], ...rows];
  };
})();
