/* The board: models in the order of their mean rank, with intervals, ties, scores and costs. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el, svg } = Karat;
  /** with more tasks than this, columns are kinds by default */
  const WIDE = 14;
  const WIDEST = 60;
  /** lengths of the bar of an interval: with few columns, and with many */
  const BARS = [100, 52];
  const MANY = 6;
  const EXPLAINED = ["borda", "wins", "elo", "pareto"];
  const BY_PAIRS =
    "Models took different tasks: ranks are by pairs, over the tasks that both have.";
  const SHOWN_BY = ["sort", "down", "find", "columns"];
  let board = null;

  function shape() {
    if (board.fewer) return "kinds";
    const fits = Karat.ranking.chosen.length <= WIDE;
    return Karat.get("columns", fits ? "tasks" : "kinds");
  }

  // -- cells ----------------------------------------------------------------------------------

  function modelCell(m) {
    const mark = el("button", {
      class: `mark ${Karat.color(m)}`,
      type: "button",
      "aria-pressed": String(Karat.marks().includes(m)),
      "aria-label": `Color ${Karat.short(Karat.model(m), 60)} in plots`,
      click: () => Karat.mark(m),
    });
    const name = Karat.model(m);
    const title = Karat.short(name, 300);
    if (Karat.data.models.length < 2)
      return el("th", { scope: "row", class: "stay" }, mark, el("span", { class: "cut", title, text: name }));
    const click = () => Karat.compare(m);
    const text = el("button", {
      class: "link cut",
      type: "button",
      title: `${title}: compare with others`,
      text: name,
      click,
    });
    return el("th", { scope: "row", class: "stay" }, mark, text);
  }

  /** Return the interval of a mean rank: its ends, and a bar on the scale from 1 to the last rank. */
  function intervalCell(m) {
    const { mean, low, high } = Karat.ranking;
    if (mean[m] === null) return "";
    const bar = BARS[Number(shape() === "tasks" && Karat.ranking.chosen.length > MANY)];
    const x = Karat.linear([1, Math.max(2, board.last)], [5, bar - 5]);
    const known = low[m] !== null && high[m] !== null;
    const text = known ? `${low[m].toFixed(1)} – ${high[m].toFixed(1)}` : "";
    const picture = svg("svg", { width: bar, height: 16, "aria-hidden": "true" });
    picture.append(svg("line", { class: "grid", x1: 5, x2: bar - 5, y1: 8, y2: 8 }));
    if (known) {
      const wide = Math.max(3, x(high[m]) - x(low[m]));
      picture.append(
        svg("rect", { class: "gauge", x: x(low[m]), y: 4.5, width: wide, height: 7, rx: 3.5 }),
      );
    }
    picture.append(svg("circle", { class: "point", cx: x(mean[m]), cy: 8, r: 3.2 }));
    const ends = el("span", { class: known ? null : "faint", text: text || "–" });
    return el("span", { class: "interval" }, ends, picture);
  }

  function scoreCell(t, m) {
    const value = Karat.score(t, m);
    if (value === null) {
      const failed = Karat.data.states[t]?.[m] === "f";
      return el(
        "td",
        { class: "number", title: Karat.why(t, m) },
        el("span", { class: failed ? "lost" : "faint", text: Karat.sign(t, m) }),
      );
    }
    const best = board.best.get(t) === value;
    const text = best
      ? el("span", { class: "best", text: Karat.number(value) })
      : Karat.number(value);
    const [have, planned] = Karat.partialAt.get(`${t} ${m}`) ?? [];
    if (!have) return el("td", { class: "number", title: String(value) }, text);
    const title = `${value}: mean of ${have} of ${planned} planned folds`;
    const sign = el("span", { class: "partial", text: ` ${have}/${planned}` });
    return el("td", { class: "number", title }, text, sign);
  }

  /** Return the head of the letters, which says if they are about the models as fitted. */
  function tieHead() {
    const { own, these, fewTasks, compared, each, chosen } = Karat.ranking;
    const only = compared === 1 ? chosen[each.findIndex(Boolean)] : -1;
    const few = fewTasks ? (own ? Karat.verdict()?.these_tasks : these?.found) : null;
    const { claim } = few ?? Karat.data.tests?.by_task?.[only] ?? {};
    return claim === "as fitted" ? `tie, ${claim}` : "tie";
  }

  /** Return the letters of a model's groups, each in a place of its own. */
  function tieCell(m) {
    const letters = Karat.ranking.tie[m] ?? "";
    if (Karat.ranking.few[m] && !letters) {
      const text = `${Karat.count(Karat.ranking.taken[m], "task")} only`;
      return el("span", { class: "few", title: "too few tasks for a letter", text });
    }
    if (!letters && Karat.ranking.ready && Karat.ranking.mean[m] !== null)
      return el("span", { class: "few", text: "not tested" });
    if (board.letters > 8) return el("span", { class: "tie", text: letters });
    const text = Array.from({ length: board.letters }, (_, i) => {
      const sign = String.fromCharCode(97 + i);
      return letters.includes(sign) ? sign : "\u00a0";
    }).join("");
    return el("span", { class: "tie", text });
  }

  /** Return the bounds of the rank on a new task, the chance to be first there, and the loss. */
  function nextCell(m) {
    const next = board.next[m];
    if (!next) return el("span", { class: "faint", text: "–", title: "fewer than 19 tasks" });
    const [first, loss] = [chanceOf(next.first), Karat.fixed(next.loss, 3)];
    const title =
      `On 90 % of new tasks like these ${next.tasks}: rank ${next.low} to ${next.high}. ` +
      `Chance to be first: ${first}. Mean loss to the best model of a task: ${loss} of the ` +
      "distance from the worst to the best.";
    const text = `${next.low} – ${next.high}`;
    return el("span", { class: "next", title }, text, el("small", { text: `${first} · ${loss}` }));
  }

  /** Return a chance as a whole percentage, never 0 or 100. */
  function chanceOf(share) {
    if (share < 0.005 || share > 0.995) return share < 0.5 ? "< 1 %" : "> 99 %";
    return `${Karat.fixed(100 * share, 0)} %`;
  }

  // -- columns --------------------------------------------------------------------------------

  /** Return the column of the next task, where at least 19 tasks are compared. */
  function nextColumns() {
    if (!board.next) return [];
    const last = Karat.data.models.length + 1;
    const column = {
      name: "next task",
      label: "90 % · first · loss",
      title: "rank on a new task like these: bounds for 90 % of them, chance to be first, loss",
      key: "next",
      sort: (m) => (board.next[m] ? board.next[m].high * last + board.next[m].low : null),
      cell: nextCell,
    };
    return [column];
  }

  function rankColumns() {
    const { mean } = Karat.ranking;
    const rankCell = (m) => {
      const text = mean[m] === null ? "–" : mean[m].toFixed(mean[m] < 100 ? 2 : 1);
      return Karat.ranking.few[m] ? el("span", { class: "faint", text }) : text;
    };
    const interval = {
      name: `${Karat.percent()} interval`,
      key: "low",
      sort: (m) => Karat.ranking.low[m],
      cell: intervalCell,
    };
    const { ready, low, fewTasks, compared } = Karat.ranking;
    const without = fewTasks || compared < 2 || (ready && low.every((end) => end === null));
    const tie = { name: tieHead(), key: "tie", sort: (m) => Karat.ranking.tie[m], cell: tieCell };
    return [
      { name: "model", key: "model", stay: true, sort: Karat.model, cell: modelCell },
      { name: "mean rank", key: "rank", number: true, sort: (m) => mean[m], cell: rankCell },
      ...(without ? [] : [interval]),
      ...(Karat.untested() ? [] : [tie]),
    ];
  }

  function taskColumns() {
    return Karat.ranking.chosen.slice(0, WIDEST).map((t) => {
      const up = Karat.data.tasks[t].higher[Karat.ranking.metric(t)];
      return {
        name: Karat.task(t),
        title: Karat.short(Karat.data.tasks[t].name, 300),
        label: Karat.metric(t, Karat.ranking.metric(t)),
        key: `t${t}`,
        number: true,
        down: up,
        sort: (m) => Karat.score(t, m),
        cell: (m) => scoreCell(t, m),
      };
    });
  }

  /** Return the mean rank within each kind of task. */
  function kindColumns() {
    const places = new Map();
    Karat.ranking.chosen.forEach((t, place) => {
      const kind = Karat.plain(Karat.data.tasks[t].kind) || "other";
      places.set(kind, [...(places.get(kind) ?? []), place]);
    });
    if (places.size < 2) return []; // it would repeat the mean rank
    return [...places].map(([kind, own], i) => {
      const means = meansOf(own);
      const cell = (m) =>
        means[m] === null ? el("span", { class: "faint", text: "–" }) : means[m].toFixed(1);
      const label = `rank, ${Karat.count(own.length, "task")}`;
      return { name: kind, label, key: `k${i}`, number: true, sort: (m) => means[m], cell };
    });
  }

  /** Return the mean rank of each model on some of the chosen tasks, computed once per ranking. */
  function meansOf(places) {
    const known = (Karat.ranking.means ??= new Map());
    const key = places.join();
    if (!known.has(key)) {
      const tasks = places.map((place) => Karat.ranking.tasks[place]);
      known.set(key, Karat.ranks.rankEach(tasks, Karat.data.models.length).mean);
    }
    return known.get(key);
  }

  /** Return the columns of costs and of the whole board's ratings, those that are known. */
  function costColumns() {
    const models = Karat.data.models;
    const whole = Karat.ranking.own;
    const of = (name, key, format, more) => ({
      name,
      key,
      number: true,
      sort: (m) => models[m][key],
      cell: (m) =>
        models[m][key] === null || models[m][key] === undefined ? "–" : format(models[m][key]),
      ...more,
    });
    const lost = (value) => (value ? el("span", { class: "lost", text: value }) : "0");
    const share = (value) => (value <= 1 ? `${Math.round(100 * value)} %` : Karat.number(value));
    const declined = "tasks that are not applicable to the model, or whose library or data are missing";
    const costs = [
      of("time", "seconds", Karat.seconds),
      of("memory", "memory_mb", Karat.megabytes),
      of("dims", "dimensions", String, { title: "length of the model's vectors" }),
      of("tokens", "tokens", (value) => Karat.fixed(value, 0), { title: "sent to an endpoint" }),
      of("price", "price", Karat.money, { title: "of these tokens, in dollars" }),
      of("latency", "request_seconds_median", Karat.seconds, {
        title: "of a request to an endpoint: median over jobs",
      }),
      of("failed", "failed", lost),
      models.some((model) => model.declined) && of("n/a", "declined", String, { title: declined }),
    ];
    const ratings = [
      whole && of("wins", "wins", share, { down: true }),
      whole && of("Elo", "elo", (value) => Math.round(value).toString(), { down: true }),
    ];
    const known = (key) => models.some((model) => model[key] !== null && model[key] !== undefined);
    return [costs, ratings].map((each) => each.filter((column) => column && known(column.key)));
  }

  // -- the whole ------------------------------------------------------------------------------

  /** Return all columns: costs before tasks, so that they are in view where there are many tasks. */
  function columnsOf() {
    const tasks = shape() === "tasks" ? taskColumns() : kindColumns();
    const [costs, ratings] = costColumns();
    return [...rankColumns(), ...nextColumns(), ...costs, ...tasks, ...ratings];
  }

  /** Note what all cells need: the last rank, the best scores, how many letters there are. */
  function survey() {
    const { chosen, mean, high } = Karat.ranking;
    if (board.nextOf !== Karat.ranking) {
      board.nextOf = Karat.ranking;
      board.next = Karat.nextTask(Karat.ranking, mean.length);
    }
    board.last = 1;
    for (let m = 0; m < mean.length; m += 1)
      board.last = Math.max(board.last, mean[m] ?? 1, high[m] ?? 1);
    board.letters = Math.max(
      0,
      ...Karat.ranking.tie.map((text) => (text ? text.charCodeAt(text.length - 1) - 96 : 0)),
    );
    board.best = new Map();
    for (const t of chosen) {
      const k = Karat.ranking.metric(t);
      const known = (Karat.data.scores[t]?.[k] ?? []).filter((value) => value !== null);
      const best = Karat.data.tasks[t].higher[k] ? Math.max : Math.min;
      board.best.set(
        t,
        known.reduce((a, b) => best(a, b), known[0]),
      );
    }
  }

  /** Return the shown models in the order the reader asked for. */
  function sorted(columns) {
    const [key, down] = order();
    const column = columns.find((one) => one.key === key) ?? columns[1];
    const models = Karat.order().filter((m) => Karat.matches(m) && Karat.ranking.models.has(m));
    return Karat.sortBy(models, column.sort, down);
  }

  function order() {
    return [Karat.get("sort", "rank"), Karat.get("down") === "1"];
  }

  /** Sort by a column that was chosen from the list, the better first. */
  function sortFrom(key) {
    const column = board.table.columns.find((one) => one.key === key);
    Karat.set({ sort: key === "rank" ? "" : key, down: column?.down ? "1" : "" });
  }

  /** Draw the leaderboard again; the heading with the keyboard focus keeps it. */
  function show() {
    const held = document.activeElement?.dataset?.key;
    survey();
    board.table.columns = columnsOf();
    board.table.heads();
    board.table.rows(sorted(board.table.columns));
    const options = board.table.columns.map(({ key, name }) =>
      el("option", { value: key, text: name, selected: key === order()[0] }),
    );
    board.sorter.replaceChildren(...options);
    if (held)
      board.table.node.querySelector(`[data-key="${held}"]`)?.focus({ preventScroll: true });
    refresh();
  }

  /** Show intervals that have come; heads stay, so that a click on them is not lost. */
  function showIntervals() {
    survey();
    if (["low", "tie"].includes(order()[0])) board.table.rows(sorted(board.table.columns));
    else board.table.fresh();
    refresh();
  }

  /** Tell how many models are shown, and on what they are compared. */
  function refresh() {
    const { compared, chosen, ready } = Karat.ranking;
    const shown = board.table.list.length;
    const parts = [`${shown} of ${Karat.count(Karat.data.models.length, "model")}`];
    parts.push(`compared on ${Karat.count(compared, "task")}`);
    if (shape() === "tasks" && chosen.length > WIDEST) parts.push(`columns: the first ${WIDEST}`);
    if (!ready) parts.push("computing intervals");
    board.shapes.press();
    board.table.textNode.textContent = captionOf();
    board.narrow.textContent = narrower();
    board.narrow.hidden = !board.narrow.textContent;
    board.untested.textContent = untested();
    board.untested.hidden = !board.untested.textContent;
    board.none.textContent = nothingCommon();
    board.none.hidden = !board.none.textContent;
    board.notes.replaceChildren(...notes());
    board.status.textContent = parts.join(" · ");
  }

  /** Return what is ranked: as the board tells it, or what was chosen since. */
  function captionOf() {
    const { own, compared, models } = Karat.ranking;
    if (own) return Karat.plain(Karat.data.notes[0] ?? "");
    const of = `${compared} of ${Karat.count(Karat.data.tasks.length, "task")}`;
    const what = `${Karat.count(models.size, "model")} by mean rank over ${of}, 1 is best;`;
    const pairs = Karat.takersDiffer() ? `${BY_PAIRS} ` : "";
    return `${what} ranked in the browser. ${pairs}The notes below are about the full leaderboard.`;
  }

  /** Return the rows of the board as they are shown, for a file. */
  function rowsOf() {
    const { chosen, mean, low, high, tie } = Karat.ranking;
    const paid = ["tokens", "price", "request_seconds_median", "request_seconds_p95"];
    const costs = [
      ...["failed", "declined", "seconds", "memory_mb", "dimensions"],
      ...[...paid, "texts_per_second"].filter((key) =>
        Karat.data.models.some((model) => (model[key] ?? null) !== null),
      ),
    ];
    const heads = [
      "model",
      "rank",
      "rank_low",
      "rank_high",
      "tie",
      ...(board.next ? ["next_low", "next_high", "first", "loss"] : []),
      ...chosen.map((t) => Karat.data.tasks[t].name),
      ...costs,
    ];
    const rows = board.table.list.map((m) => {
      const model = Karat.data.models[m];
      const scores = chosen.map((t) => Karat.score(t, m));
      return [
        model.name,
        mean[m],
        low[m],
        high[m],
        tie[m],
        ...(board.next ? ["low", "high", "first", "loss"].map((k) => board.next[m]?.[k] ?? null) : []),
        ...scores,
        ...costs.map((name) => model[name]),
      ];
    });
    return [heads, ...rows];
  }

  /** Return why nothing is ranked on common tasks: who has the fewest, and what to do. */
  function nothingCommon() {
    const { common, compared, models, chosen } = Karat.ranking;
    if (!common || compared) return "";
    if (models.size < 2) return "A comparison on common tasks needs at least two models.";
    const scored = (m) => chosen.filter((t) => Karat.score(t, m) !== null).length;
    const least = Karat.sortBy([...models], scored)[0];
    const who = `${Karat.short(Karat.model(least), 60)} has the fewest, ${scored(least)} of ${chosen.length}`;
    return (
      `No selected task has a score of all ${models.size} shown models: ${who}. ` +
      "Show fewer models with the search, select other tasks, or clear the box above."
    );
  }

  /** Return that intervals rest on tasks alone, where folds were there but are not in the page. */
  function narrower() {
    const { own, chosen, tasks, metric } = Karat.ranking;
    const without = chosen.filter((t, place) => {
      const { who, rows } = tasks[place];
      const held = Karat.data.folds && metric(t) === 0;
      return !held && who.length > 1 && rows[0].length < 2 && Karat.data.tasks[t].folds > 1;
    });
    if (own || !without.length) return "";
    const [what, which] = Karat.data.folds
      ? ["Fold scores of other metrics", "their"]
      : ["Fold scores", "these"];
    const why = "intervals resample tasks only and are narrower.";
    return `${what} are not included in this page: ${which} ${why}`;
  }

  /** Return the notes, without those that explain columns which are not shown. */
  Karat.boardNotes = (apart) => {
    const isShown = (text) => !apart.some((key) => text.startsWith(`${key}: `));
    return Karat.data.notes.slice(1).filter(isShown).map(Karat.plain);
  };

  function notes() {
    const keys = board.table.columns.map((column) => column.key);
    const apart = EXPLAINED.filter((key) => !keys.includes(key));
    const texts = Karat.boardNotes(apart).filter((text) => text !== board.untested.textContent);
    return texts.map((text) => el("li", { text }));
  }

  /** Return that differences are not tested, and why: as the notes have it, or in short. */
  function untested() {
    const why = Karat.untested();
    if (!why) return "";
    const short = `Differences are not tested: ${why}`;
    const note = Karat.ranking.own && Karat.boardNotes([]).find((text) => text.startsWith(short));
    return note || `${short}.`;
  }

  Karat.boardModels = () => board.table.list;
  Karat.boardCaption = captionOf;
  Karat.boardRows = rowsOf;

  function build(root) {
    board = { best: new Map(), last: 1, letters: 0, fewer: false };
    const sort = (key, down) =>
      Karat.set({ sort: key === "rank" ? "" : key, down: down ? "1" : "" });
    const about = { label: "Leaderboard", caption: " " };
    board.table = Karat.table({ ...about, columns: [], sorted: order, sort });
    // on paper, tasks that do not fit are summarized by kind; the heat map has their scores
    board.table.fewer = (on) => {
      if (board.fewer === on) return;
      board.fewer = on;
      show();
    };
    const choose = (value) => Karat.set({ columns: value });
    board.shapes = Karat.choice("Columns", ["tasks", "kinds"], shape, choose);
    root.querySelector(".head").append(Karat.shareMenu());
    root.append(...Karat.controls());
    board.status = root.querySelector("#status");
    board.sorter = el("select", { id: "sorter", change: () => sortFrom(board.sorter.value) });
    board.status.before(board.shapes.node, el("label", { class: "phone" }, "Sort by", board.sorter));
    board.narrow = el("p", { class: "faint", id: "narrower", hidden: true });
    board.none = el("p", { id: "none-common", role: "status", hidden: true });
    board.untested = el("p", { class: "untested", hidden: true });
    board.notes = el("ul", { class: "notes" });
    root.append(board.none, board.untested, board.table.node, board.narrow, board.notes);
    Karat.on("ranking", show);
    Karat.on("intervals", showIntervals);
    Karat.on("marks", () => board.table.fresh());
    Karat.on("state", (names) => names.some((name) => SHOWN_BY.includes(name)) && show());
    show();
  }

  Karat.section({
    id: "board",
    title: "Leaderboard",
    way: "Leaderboard",
    has: () => Karat.data.models.length > 0,
    build,
  });
})();
