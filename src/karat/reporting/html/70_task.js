/* One task in a dialog of its own: scores, folds, answers and failures. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el } = Karat;
  const MOST = 40;
  let dialog = null;
  let before = null;

  /** Open the task that the address names, or close. */
  Karat.openTask = () => {
    const t = Karat.get("task") ? Karat.placeOf(Karat.data.tasks, Karat.get("task")) : -1;
    if (t < 0) {
      if (dialog?.open) dialog.close();
      return;
    }
    dialog ??= makeDialog();
    fill(t);
    if (dialog.open) return;
    before = document.activeElement;
    dialog.showModal();
  };

  function makeDialog() {
    const node = el("dialog", { id: "task", "aria-labelledby": "task-title" });
    node.addEventListener("close", () => {
      Karat.set({ task: "", model: "" });
      before?.focus?.({ preventScroll: true });
    });
    node.addEventListener("click", (event) => event.target === node && node.close());
    document.body.append(node);
    return node;
  }

  function fill(t) {
    const count = Karat.data.tasks.length;
    const go = (step) => () =>
      Karat.set({ task: Karat.keyOf(Karat.data.tasks, (t + step + count) % count), model: "" });
    const close = Karat.button("Close", () => dialog.close(), {
      id: "close-task",
      autofocus: true,
    });
    const head = el(
      "header",
      null,
      el("h2", { id: "task-title", text: Karat.task(t) }),
      Karat.button("‹", go(-1), { "aria-label": "Task before" }),
      Karat.button("›", go(1), { "aria-label": "Next task" }),
      close,
    );
    const answers = el("div");
    const body = el("div", null, facts(t), scores(t), folds(t), answers, ...failures(t));
    // an update of the same task keeps the scroll position
    const at = dialog.dataset.task === String(t) ? dialog.scrollTop : 0;
    dialog.dataset.task = t;
    dialog.replaceChildren(head, body);
    dialog.scrollTop = at;
    showAnswers(t, answers);
  }

  function facts(t) {
    const task = Karat.data.tasks[t];
    const card = Karat.data.cards.find((one) => one.tasks?.includes(t));
    const parts = [
      task.kind,
      task.dataset && `data: ${task.dataset}`,
      task.folds && Karat.count(task.folds, "fold"),
    ];
    if (task.questions) parts.push(Karat.count(task.questions, "question"));
    if (task.duplicate_rows)
      parts.push(
        `${task.duplicate_rows.map((count) => count.toLocaleString("en-US")).join(" of ")} test rows ` +
          "also occur in the training data",
      );
    if (card?.license) parts.push(`license: ${card.license}`);
    return el("p", { class: "lead", text: parts.filter(Boolean).map(Karat.plain).join(" · ") });
  }

  /** Return the table of all metrics, a row per model. */
  function scores(t) {
    const task = Karat.data.tasks[t];
    const ranked = Karat.bestOn(t);
    const rest = Karat.data.models
      .map((_, m) => m)
      .filter((m) => !ranked.includes(m) && Karat.data.states[t][m] === "f");
    const names = ["model", ...task.metrics.map((_, k) => Karat.metric(t, k)), "spread"];
    const rows = [...ranked, ...rest].map((m) => [
      Karat.model(m),
      ...task.metrics.map((_, k) => Karat.data.scores[t][k][m]),
      Karat.data.spread[t]?.[m] ?? null,
      m,
    ]);
    const sign = (value, row) =>
      value === null ? el("span", { class: "lost", text: Karat.sign(t, row.at(-1)) }) : null;
    const cells = Object.fromEntries(task.metrics.map((_, k) => [k + 1, sign]));
    const without = Karat.data.models.length - rows.length;
    const note = without
      ? `; ${Karat.count(without, "model")} without a score not listed`
      : "";
    return Karat.plainTable(
      `Scores, mean over folds; spread is the standard deviation over folds${note}`,
      names,
      rows,
      { cells },
    );
  }

  function folds(t) {
    const there = Karat.data.folds?.[t]?.some((row) => row?.length > 1);
    if (!there) return null;
    const models = Karat.bestOn(t).slice(0, MOST);
    const picture = Karat.figure({
      name: `task-${t}-folds`,
      title: "Scores by fold: dots are folds, lines are means",
      draw: (width) => Karat.strips(t, width, models),
      csv: () => Karat.foldRows(t),
    });
    picture.node.style.marginTop = "22px";
    return picture.node;
  }

  // -- answers of one model -------------------------------------------------------------------

  function showAnswers(t, home) {
    const details = Karat.data.details[String(t)] ?? [];
    if (!details.length) return;
    const chosen = Karat.placeOf(Karat.data.models, Karat.get("model"));
    const detail = details.find((one) => one.model === chosen) ?? details[0];
    const options = details.map((one) => [one.model, Karat.short(Karat.model(one.model), 50)]);
    const list = Karat.select("Model", options, detail.model, (value) => {
      Karat.set({ model: Karat.keyOf(Karat.data.models, Number(value)) });
      showAnswers(t, home);
    });
    list.querySelector("select").id = "answers-of";
    const pictures = [confusion(t, detail), calibration(t, detail), scatter(t, detail)].filter(
      Boolean,
    );
    home.replaceChildren(
      el("h3", { text: "Predictions" }),
      el("div", { class: "bar" }, list),
      el("div", { class: "pair" }, pictures),
      wrong(t, detail) ?? "",
    );
  }

  function confusion(t, { confusion: found, model }) {
    if (!found) return null;
    const csv = () => [
      ["truth", ...found.classes],
      ...found.classes.map((name, i) => [name, ...found.counts[i]]),
    ];
    const title = "Confusion matrix: rows are targets, columns are predictions";
    return Karat.figure({
      name: `task-${t}-confusion`,
      title,
      draw: (width) => Karat.matrix(found, width, Karat.model(model)),
      csv,
    }).node;
  }

  function calibration(t, { calibration: bins }) {
    if (!bins?.length) return null;
    const csv = () => [
      ["confidence", "accuracy", "count"],
      ...bins.map((bin) => [bin.confidence, bin.accuracy, bin.count]),
    ];
    return Karat.figure({
      name: `task-${t}-calibration`,
      title: "Calibration: accuracy by confidence",
      draw: (width) => Karat.calibration(bins, width),
      csv,
    }).node;
  }

  function scatter(t, { scatter: points }) {
    if (!points?.length) return null;
    const csv = () => [["truth", "prediction"], ...points];
    return Karat.figure({
      name: `task-${t}-scatter`,
      title: "Target against prediction",
      draw: (width) => Karat.scatter(points, width),
      csv,
    }).node;
  }

  /** Return the texts of a task's items by key; each is stored with the first model that needs it. */
  function itemTexts(t) {
    const details = Karat.data.details[String(t)] ?? [];
    return new Map(details.flatMap((one) => Object.entries(one.items ?? {})));
  }

  function wrong(t, { rows }) {
    if (!rows?.length) return null;
    const texts = itemTexts(t);
    const text = (row) => texts.get(String(row[1])) ?? "";
    const there = rows.some(text);
    const keyed = rows.some((row) => typeof row[1] === "string");
    const names = [
      "fold",
      keyed ? "item" : "row",
      ...(there ? ["content"] : []),
      "target",
      "prediction",
      "confidence",
    ];
    const shown = rows.map((row) => [
      ...row.slice(0, 2),
      ...(there ? [text(row)] : []),
      ...row.slice(2),
    ]);
    const last = names.length - 1;
    const cells = {
      0: String,
      1: (value) => Karat.short(String(value), 40),
      [last]: (value) => (value === null ? "–" : `${Math.round(100 * value)} %`),
    };
    const long = (i) => shown.some((row) => String(row[i]).length > 24);
    const wrap = names.map((_, i) => i).filter((i) => i > 1 && i < last && long(i));
    const table = Karat.plainTable("Worst predictions", names, shown, { cells, wrap });
    table.style.marginTop = "20px";
    return table;
  }

  // -- failures -------------------------------------------------------------------------------

  function failures(t) {
    const found = Karat.data.failures.filter((failure) => failure.task === t);
    if (!found.length) return [];
    return [
      el("h3", { text: `Failures: ${found.length}` }),
      ...found.slice(0, 200).map(Karat.failure),
    ];
  }

  /** Return a failure: what failed in a line, its log behind it. */
  Karat.failure = ({ model, task, fold, status, info, log }) => {
    const where = [
      Karat.short(Karat.model(model), 60),
      Karat.short(Karat.task(task), 60),
      fold === null || fold === undefined ? null : `fold ${fold}`,
    ];
    const line = el(
      "summary",
      null,
      el("strong", { text: where.filter(Boolean).join(" · ") }),
      ` ${Karat.plain(status)}: `,
      el("span", { class: "lost", text: Karat.plain(info) }),
    );
    return el("details", null, line, el("pre", { text: log || "No log.", tabindex: "0" }));
  };
})();
