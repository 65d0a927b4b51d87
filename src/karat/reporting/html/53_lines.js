/* Charts of lines with bands, for corruption and for learning, and of bars. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { svg } = Karat;
  const HEIGHT = 210;
  const ROW = 24;
  const DOTS = 24;

  /** Return the models that have a line in any of some charts. */
  Karat.modelsOf = (charts) => [
    ...new Set(charts.flatMap((chart) => chart.lines.map((line) => line.model))),
  ];

  /**
   * Return a chart of lines: a line is {model, x, mean, low, high}. `levels` are horizontal lines
   * {model, y} at the clean scores.
   */
  Karat.lineChart = ({ lines, width, label, across, y0 = null, levels = [], height = HEIGHT }) => {
    const box = { right: width - 12, top: 10, bottom: height - 40 };
    const values = lines.flatMap((line) => [...line.mean, ...line.low, ...line.high]);
    const ends = Karat.extent(y0 === null ? values : [...values, y0]);
    const places = lines.flatMap((line) => line.x);
    const y = Karat.linear(ends, [box.bottom, box.top]);
    box.left = Karat.margin(y);
    const x = Karat.linear(Karat.extent(places, 0.02), [box.left, box.right]);
    const sheet = Karat.sheet(width, height, label);
    sheet.append(Karat.xAxis(x, box, { title: across, count: 4 }), Karat.yAxis(y, box));
    for (const line of lines) sheet.append(lineOf(line, x, y));
    for (const level of levels) sheet.append(levelOf(level, y, box));
    return sheet;
  };

  function levelOf({ model, y: value }, y, box) {
    const place = { x1: box.left, x2: box.right, y1: y(value), y2: y(value) };
    const tip = `${Karat.short(Karat.model(model), 60)}\nclean: ${Karat.number(value, 4)}`;
    const line = svg("line", { class: "thin level", ...place, "data-tip": tip });
    return svg("g", { class: Karat.color(model) }, line);
  }

  /** Return a chart of bars from zero: a row is {model, value}. */
  Karat.barChart = ({ rows, width, label }) => {
    const names = rows.map(({ model }) => Karat.short(Karat.model(model), width < 560 ? 15 : 30));
    const left = Math.max(60, ...names.map((name) => Karat.width(name))) + 14;
    const box = { left, right: width - 64, top: 8, bottom: 8 + rows.length * ROW };
    const values = rows.map(({ value }) => value);
    const ends = [Math.min(0, ...values), Math.max(0, ...values)];
    const x = Karat.linear(ends, [box.left, box.right]);
    const sheet = Karat.sheet(width, box.bottom + 24, label);
    sheet.append(Karat.xAxis(x, box, { count: 4 }));
    rows.forEach((row, i) => {
      const middle = box.top + (i + 0.5) * ROW;
      const name = { class: "name", "text-anchor": "end" };
      sheet.append(Karat.label(left - 8, middle + 4, names[i], name), barOf(row, x, middle));
    });
    return sheet;
  };

  function barOf({ model, value }, x, y) {
    const [from, to] = [Math.min(x(0), x(value)), Math.max(x(0), x(value))];
    const place = { x: from, y: y - ROW / 2 + 4, width: to - from, height: ROW - 8 };
    const tip = `${Karat.short(Karat.model(model), 60)}\n${Karat.number(value, 5)}`;
    return svg(
      "g",
      { class: Karat.color(model) },
      svg("rect", { class: "dot", ...place, "data-tip": tip }),
      Karat.label(to + 6, y + 4, Karat.number(value)),
    );
  }

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
