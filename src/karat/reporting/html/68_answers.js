/* Plots of predictions: confusion matrix, calibration, target against prediction. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { svg } = Karat;

  /** Return a confusion matrix colored by the share of the true class. */
  Karat.matrix = ({ classes, counts }, width, who) => {
    const names = classes.map((name) => Karat.short(name, width < 420 ? 10 : 18));
    const left = Math.min(150, Math.max(...names.map((name) => Karat.width(name))) + 14);
    const cell = Math.min(56, (Math.min(width, 560) - left - 6) / classes.length);
    const top = 66;
    const sheet = Karat.sheet(
      Math.ceil(left + cell * classes.length + 50),
      Math.ceil(top + cell * classes.length + 8),
      `Confusion matrix of ${who}`,
    );
    names.forEach((name, i) => {
      sheet.append(
        Karat.label(left - 8, top + (i + 0.5) * cell + 4, name, {
          class: "name",
          "text-anchor": "end",
        }),
      );
      const [x, y] = [left + (i + 0.5) * cell, top - 8];
      sheet.append(
        Karat.label(x, y, Karat.short(name, 10), { transform: `rotate(-40 ${x} ${y})` }),
      );
    });
    counts.forEach((row, i) => {
      const total = row.reduce((sum, count) => sum + count, 0);
      row.forEach((count, j) =>
        sheet.append(...square({ count, total, i, j, cell, left, top, classes })),
      );
    });
    return sheet;
  };

  function square({ count, total, i, j, cell, left, top, classes }) {
    const share = total ? count / total : 0;
    const [x, y] = [left + j * cell, top + i * cell];
    const names = [i, j].map((place) => Karat.short(classes[place], 60)).join(" predicted as ");
    const often = [count, total].map((value) => value.toLocaleString("en-US")).join(" of ");
    const tip = `${names}\n${often} (${Math.round(100 * share)} %)`;
    const empty = count === 0;
    const fill = empty ? Karat.colorOf("--sunk") : Karat.ramp(share);
    const nodes = [
      svg("rect", { x, y, width: cell - 1.5, height: cell - 1.5, rx: 2, fill, "data-tip": tip }),
    ];
    if (cell >= 24 && !empty) {
      nodes.push(
        Karat.label(x + cell / 2, y + cell / 2 + 4, Karat.number(count, 3).replace(/\.0+$/, ""), {
          "text-anchor": "middle",
          class: "small",
          style: `fill:${Karat.over(share)}`,
          "pointer-events": "none",
        }),
      );
    }
    return nodes;
  }

  /** Return accuracy over confidence; the size of a dot is the number of answers. */
  Karat.calibration = (bins, width) => {
    const side = Math.min(width, 360);
    const box = { left: 46, right: side - 14, top: 26, bottom: side - 44 };
    const x = Karat.linear([0, 1], [box.left, box.right]);
    const y = Karat.linear([0, 1], [box.bottom, box.top]);
    const most = Math.max(...bins.map((bin) => bin.count));
    const sheet = Karat.sheet(side, side, "Calibration");
    sheet.append(Karat.xAxis(x, box, { title: "confidence" }));
    sheet.append(Karat.yAxis(y, box, { title: "accuracy" }));
    const ends = { x1: x(0), y1: y(0), x2: x(1), y2: y(1) };
    sheet.append(svg("line", { class: "axis", ...ends, "stroke-dasharray": "4 4" }));
    const line = bins.map((bin) => [x(bin.confidence), y(bin.accuracy)]);
    sheet.append(svg("path", { class: "line c0", d: Karat.path(line) }));
    bins.forEach(({ confidence, accuracy, count }, i) => {
      const facts = `confidence ${Math.round(100 * confidence)} %, accuracy ${Math.round(100 * accuracy)} %`;
      const dot = {
        cx: line[i][0],
        cy: line[i][1],
        r: 3 + 6 * Math.sqrt(count / most),
        opacity: 0.75,
      };
      const tip = `${facts}\n${Karat.count(count, "prediction")}`;
      sheet.append(svg("circle", { class: "dot c0", ...dot, "data-tip": tip }));
    });
    return sheet;
  };

  Karat.scatter = (points, width) => {
    const side = Math.min(width, 400);
    const box = { right: side - 14, top: 26, bottom: side - 44 };
    const [truths, answers] = [points.map((point) => point[0]), points.map((point) => point[1])];
    const y = Karat.linear(Karat.extent(answers), [box.bottom, box.top]);
    box.left = Karat.margin(y, 52);
    const x = Karat.linear(Karat.extent(truths), [box.left, box.right]);
    const sheet = Karat.sheet(side, side, "Target against prediction");
    sheet.append(
      Karat.xAxis(x, box, { title: "truth" }),
      Karat.yAxis(y, box, { title: "answer" }),
    );
    const [low, high] = [Math.max(x.domain[0], y.domain[0]), Math.min(x.domain[1], y.domain[1])];
    if (low < high)
      sheet.append(
        svg("line", { class: "axis", x1: x(low), y1: y(low), x2: x(high), y2: y(high) }),
      );
    for (const [truth, answer] of points) {
      if (truth === null || answer === null) continue;
      const tip = `truth ${Karat.number(truth)}\nanswer ${Karat.number(answer)}`;
      sheet.append(
        svg("circle", {
          class: "dot c0",
          cx: x(truth),
          cy: y(answer),
          r: 3.2,
          opacity: 0.55,
          "data-tip": tip,
        }),
      );
    }
    return sheet;
  };
})();
