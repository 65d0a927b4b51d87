/* The picture of the verdict: the difference of each model to the first one over these tasks. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el, svg } = Karat;
  const ROW = 44;
  const FOOT = 46;
  /** a model that is worse by this many times the width of the open ones is off the scale */
  const FAR = 6;
  /** from this width on, the numbers have a column */
  const WIDE = 620;
  /** the axis of mean ranks reaches at least twice as far on either side */
  const LEAST_RANK = 0.25;
  const NUMBERS = 172;
  /** characters and size of a name */
  const [LONGEST, NAME_SIZE] = [22, 14];

  const several = (facts) => (facts?.models?.length > 1 ? facts : null);

  /** Return what these tasks show about the group that is shown, or the selection; or null. */
  const onThese = () => {
    const { own, facts } = Karat.ranking;
    return several(own ? Karat.data.verdict[Karat.data.group]?.these_tasks : facts);
  };

  /** Return the differences of mean ranks, which the letters are about; null without a test of them. */
  const overTasks = () => {
    const { own, overTasks: selected } = Karat.ranking;
    return several(own ? Karat.data.verdict[Karat.data.group]?.over_tasks : selected);
  };

  /** Return what is drawn: the statement about other tasks like these if there is one. */
  const found = () => overTasks() ?? onThese();

  /** Return the bundle that the numbers of models and tasks are about. */
  const source = () => (Karat.ranking.own ? Karat.given : Karat.data);

  const nameOf = (m) => source().models[m]?.name ?? "";

  /** Return a difference of mean ranks. */
  function rankText(value) {
    const text = value.toFixed(2);
    return Number(text) > 0 ? `+${text}` : Number(text) ? text : "0.00";
  }

  const taskOf = (t) => Karat.short(source().tasks[t]?.name, 40);

  /** Return a difference with its interval: of scores, or of mean ranks. */
  function written({ difference, low, high }, { margin } = found()) {
    const signed = margin ? Karat.signed : rankText;
    if (difference === null) return "–";
    if (low === null) return signed(difference);
    return `${signed(difference)} [${signed(low)}, ${signed(high)}]`;
  }

  /** Return what is shown about a model against the first one. */
  function wordOf({ verdict, tasks }, { margin, tasks: all } = found()) {
    if (verdict === "not tested" && !margin) return `on ${Karat.count(tasks, "task")} only`;
    const words = { open: "cannot tell", same: `same within ${margin}`, equal: "equal scores" };
    const fewer = verdict !== "reference" && tasks < all.length;
    return `${words[verdict] ?? verdict}${fewer ? `, ${Karat.count(tasks, "task")}` : ""}`;
  }

  /** Return a name that is cut to a width. */
  function fitted(name, width) {
    let length = LONGEST;
    while (length > 6 && Karat.width(Karat.short(name, length), NAME_SIZE) > width) length -= 1;
    return Karat.short(name, length);
  }

  /** Return the ends of the axis, and which models are off it. */
  function scaleOf({ models, margin }, ends) {
    const known = models.filter(({ low }) => low !== null);
    const size = ({ low, high }) => Math.max(-low, high);
    const close = known.filter(({ verdict }) => verdict !== "worse").map(size);
    const least = 2 * (margin ?? LEAST_RANK);
    const reach = margin && close.length ? FAR * Math.max(1.25 * least, ...close) : Infinity;
    const inside = known.filter(({ difference }) => difference >= -reach);
    const points = models.flatMap(({ difference, low }) => (low === null ? (difference ?? []) : []));
    const from = Math.min(-least, ...inside.map(({ low }) => low), ...points);
    const to = Math.max(least, ...inside.map(({ high }) => high), ...points);
    const air = (to - from) * 0.05;
    const x = Karat.linear([from - air, to + air], ends);
    return { x, off: ({ difference }) => difference < -reach };
  }

  function markOf({ verdict }, x, y) {
    if (verdict === "reference") {
      const d = `M${x} ${y - 8}L${x + 8} ${y}L${x} ${y + 8}L${x - 8} ${y}Z`;
      return svg("path", { class: "first", d });
    }
    if (verdict === "worse")
      return svg("rect", { class: "behind", x: x - 5.5, y: y - 5.5, width: 11, height: 11 });
    const open = verdict === "open" || verdict === "not tested";
    return svg("circle", { class: open ? "open" : "point", cx: x, cy: y, r: open ? 5 : 6 });
  }

  /** Return the text at the pointer: the mean, and the difference on each task. */
  function tipOf(row) {
    const lines = (row.by_task ?? []).map((on) => {
      return `${taskOf(on.task)}: ${written(on, onThese())}${on.verdict === "open" ? "" : `, ${on.verdict}`}`;
    });
    const p = row.p === null ? "" : `, ${Karat.equals(row.p)}`;
    return [`${Karat.short(nameOf(row.model), 60)}: ${written(row)}${p}`, ...lines].join("\n");
  }

  function rowOf(row, y, { x, off, left, right, width }) {
    const middle = y + ROW / 2;
    const group = svg("g", { "data-tip": row.verdict === "reference" ? null : tipOf(row) });
    const ground = { x: 0, y, width, height: ROW };
    group.append(svg("rect", { class: row.verdict === "reference" ? "picked" : "unpicked", ...ground }));
    const name = fitted(nameOf(row.model), left - 12);
    group.append(svg("line", { class: "grid", x1: 0, x2: width, y1: y, y2: y }));
    const { margin } = found();
    if (margin)
      group.append(svg("rect", { class: "margin", x: x(-margin), y, width: x(margin) - x(-margin), height: ROW }));
    group.append(
      svg("line", { class: "axis", x1: x(0), x2: x(0), y1: y, y2: y + ROW }),
      Karat.label(6, middle - 3, name, { class: "name", style: "font-weight:600;font-size:13px" }),
      Karat.label(6, middle + 13, wordOf(row)),
    );
    if (row.difference === null) return group;
    if (off(row)) {
      group.append(Karat.label(left + 4, middle + 4, `◀ ${written(row)}`, { class: "off" }));
      return group;
    }
    if (row.low !== null)
      group.append(svg("line", { class: "reach", x1: x(row.low), x2: x(row.high), y1: middle, y2: middle }));
    group.append(markOf(row, x(row.difference), middle));
    if (width >= WIDE && row.verdict !== "reference")
      group.append(Karat.label(right + 12, middle + 4, written(row), { class: "value" }));
    return group;
  }

  /** Return the picture as a sentence, for screen readers. */
  function sentence() {
    const { reference, models } = found();
    const rows = models.filter(({ verdict }) => verdict !== "reference");
    const parts = rows.map((row) => `${Karat.short(nameOf(row.model), 40)} ${written(row)}, ${wordOf(row)}`);
    return `Difference to ${Karat.short(nameOf(reference), 40)} with 95 % intervals: ${parts.join("; ")}`;
  }

  function draw(width) {
    const facts = found();
    if (!facts) return el("div");
    const names = facts.models.flatMap((row) => [
      Karat.width(Karat.short(nameOf(row.model), LONGEST), NAME_SIZE),
      Karat.width(wordOf(row)),
    ]);
    const left = Math.min(width * 0.4, Math.max(...names) + 18);
    const right = width - (width >= WIDE ? NUMBERS : 14);
    const rows = facts.models.length * ROW;
    const sheet = Karat.sheet(width, rows + FOOT, sentence());
    const place = { ...scaleOf(facts, [left + 8, right - 8]), left, right, width };
    facts.models.forEach((row, i) => sheet.append(rowOf(row, i * ROW, place)));
    const { x } = place;
    const count = Math.max(2, Math.min(6, Math.floor((right - left) / 90)));
    const ticks = x.ticks(count);
    const box = { left, right, top: rows, bottom: rows + 2 };
    const format = (tick) => (tick > 0 ? `+${tick}` : String(tick));
    sheet.append(Karat.xAxis(x, box, { ticks, format }));
    sheet.append(Karat.label(right, rows + 38, "better →", { "text-anchor": "end" }));
    return sheet;
  }

  const HEAD = ["model", "difference", "low", "high", "p", "verdict", "tasks"];

  function csv() {
    const { models } = found() ?? { models: [] };
    return [HEAD, ...models.map((row) => [nameOf(row.model), ...HEAD.slice(1).map((key) => row[key])])];
  }

  /** Return the columns of the mean ranks: a head, and a text of each row. */
  function rankColumns(facts) {
    if (!facts) return [];
    return [
      ["rank [95 %]", (row) => written(row, facts)],
      ["p, all pairs", (row) => (row.p === null ? "–" : Karat.p(row.p))],
      ["verdict", (row) => wordOf(row, facts)],
    ];
  }

  /** Return the columns of these tasks: their mean, and one for each of a few tasks. */
  function taskColumns(facts) {
    if (!facts) return [];
    const rows = new Map(facts.models.map((row) => [row.model, row]));
    const tasks = [...new Set(facts.models.flatMap(({ by_task }) => by_task.map(({ task }) => task)))];
    const what = overTasks() ? "gain" : "difference";
    const of = (text) => (row) => (rows.has(row.model) ? text(rows.get(row.model)) : "–");
    const onTask = (t) => (row) => {
      const on = row.by_task.find(({ task }) => task === t);
      return on ? `${written(on, facts)} ${on.verdict}` : "–";
    };
    return [
      [`${what} [95 %]`, of((row) => written(row, facts))],
      ["p, all pairs", of((row) => (row.p === null ? "–" : Karat.p(row.p)))],
      [overTasks() ? "on these tasks" : "verdict", of((row) => wordOf(row, facts))],
      ...tasks.map((t) => [taskOf(t), of(onTask(t))]),
    ];
  }

  /** Return the numbers as a table. */
  function numbers() {
    const rows = found().models.filter(({ verdict }) => verdict !== "reference");
    const columns = [...rankColumns(overTasks()), ...taskColumns(onThese())];
    const lines = rows.map((row) => [nameOf(row.model), ...columns.map(([, text]) => text(row))]);
    const head = ["model", ...columns.map(([name]) => name)];
    const gains = `mean gain on these ${onThese()?.tasks.length} tasks alone`;
    const both = overTasks() && onThese() ? `: of mean ranks, and ${gains}` : "";
    const table = Karat.plainTable(`Differences to the first model${both}`, head, lines);
    const what = overTasks() ? "Numbers, also of these tasks alone" : "Numbers, also of each task";
    return el("details", { class: "numbers" }, el("summary", { text: what }), table);
  }

  /** Return the title of the picture. */
  function titleOf({ reference, margin }) {
    const first = Karat.short(nameOf(reference), 40);
    const ends = "95 % intervals for all pairs together";
    if (!margin) return `Difference of mean ranks to ${first}, with ${ends}: tasks like these`;
    return `Difference to ${first} on common tasks, with ${ends}; the band is ±${margin}`;
  }

  /** Return the picture with its numbers, hidden if there is nothing to draw. */
  Karat.differences = () => {
    const home = el("div");
    const picture = Karat.figure({ name: "answer", title: "", draw, csv });
    const node = el("div", { class: "differences" }, picture.node, home);
    const show = () => {
      const facts = found();
      node.hidden = !facts;
      if (!facts) return;
      picture.title.textContent = titleOf(facts);
      home.replaceChildren(numbers());
      picture.redraw();
    };
    return { node, show };
  };
})();
