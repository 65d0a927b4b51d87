/* Sentences on what selected tasks show: those of karat.reporting.task_sentences. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const [MAX_NAMES, MAX_RIVALS, MAX_TASKS] = [3, 3, 5];
  const EQUAL_SCORES = 1e-6;
  const FEWEST = 6;

  const model = (m) => Karat.short(Karat.model(m));
  const task = (t) => Karat.short(Karat.task(t));

  function joined(names) {
    if (names.length > MAX_NAMES)
      return `${names.slice(0, MAX_NAMES).join(", ")} and ${names.length - MAX_NAMES} more`;
    return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
  }

  /** Return the models other than the first one that share a task with it. */
  const rivalsOf = ({ models, reference }) =>
    models.filter((row) => row.tasks && row.model !== reference);

  /** Return the gain of the first model over another one with its interval. */
  function gainText({ difference, low, high }) {
    const value = Karat.signed(-difference);
    if (low === null) return value;
    return `${value}, 95 % interval ${Karat.signed(-high)} to ${Karat.signed(-low)}`;
  }

  /** Return the names of models; of a single one with its interval and its common tasks. */
  function rowsText(rows, rivals, tasks) {
    if (rows.length > 1)
      return rows.length === rivals.length
        ? "every other model"
        : joined(rows.map((row) => model(row.model)));
    const [row] = rows;
    const open = row.verdict === "open";
    const ends = open ? ` (${Karat.signed(row.low)} to ${Karat.signed(row.high)})` : "";
    const name = model(row.model) + ends;
    if (row.verdict === "worse") return name;
    if (row.verdict !== "not tested" && row.tested < row.tasks)
      return `${name}, tested on ${row.tested} of ${Karat.count(row.tasks, "task")}`;
    return row.tasks < tasks ? `${name}, which shares ${Karat.count(row.tasks, "task")}` : name;
  }

  /** Return the tasks that a mean difference is about. */
  function testedText(row) {
    const tasks = row.by_task.length;
    const part = row.tested > 0 && row.tested < tasks ? `${row.tested} of ` : "";
    return `${part}these ${Karat.count(tasks, "task")}`;
  }

  function pairHeadline({ reference, margin }, row) {
    const [a, b] = [model(reference), model(row.model)];
    const over = `over ${testedText(row)}`;
    const on = over.replace("over", "on");
    const mean = gainText(row);
    const text = {
      worse: `${a} is better than ${b} on average ${over} (${mean})`,
      better: `${a} has the better mean rank, but ${b} is better on average ${over} (${mean})`,
      same: `${a} and ${b} are the same within ${margin} on average ${over} (${mean})`,
      open: `${a} and ${b}: no difference shown on average ${over} (${mean})`,
      equal: `${a} and ${b} have equal scores ${on}`,
      "not tested": `${a} and ${b} are not tested ${on}`,
    }[row.verdict];
    const untested = ({ verdict }) => verdict === "not tested";
    const byTask = row.verdict === "equal" ? row.by_task.filter(untested) : row.by_task;
    return byTask.length ? `${text}: ${differencesText(byTask)}.` : `${text}.`;
  }

  /** Return whom the first model beats on these tasks, and against whom it is open. */
  function headline(facts) {
    const rivals = rivalsOf(facts);
    if (rivals.length === 1) return pairHeadline(facts, rivals[0]);
    const words = {
      worse: "better than",
      equal: "equal to",
      same: `the same within ${facts.margin} as`,
      open: "open against",
      better: "worse on average than",
      "not tested": "not tested against",
    };
    const tasks = facts.tasks.length;
    const parts = Object.entries(words).flatMap(([verdict, word]) => {
      const rows = rivals.filter((row) => row.verdict === verdict);
      return rows.length ? [`${word} ${rowsText(rows, rivals, tasks)}`] : [];
    });
    const lost = lossesText(facts);
    const start = `${model(facts.reference)} leads on these ${tasks} tasks`;
    return `${start}: ${parts.join(", ")}${lost ? `; ${lost}` : ""}.`;
  }

  /** Return the tasks that the first model clearly loses, by the model that is the best there. */
  function lostTasks(facts) {
    const lost = new Map();
    for (const row of rivalsOf(facts))
      for (const on of row.by_task)
        if (on.verdict === "better" && on.difference > (lost.get(on.task)?.difference ?? 0))
          lost.set(on.task, { difference: on.difference, to: row.model });
    const found = new Map();
    for (const [t, { to }] of lost) found.set(to, [...(found.get(to) ?? []), t]);
    return found;
  }

  /** Return tasks by their names, or by their kind if it has no others. */
  function tasksText(tasks, all) {
    const kindOf = (t) => Karat.data.tasks[t].kind;
    const kind = kindOf(tasks[0]);
    const alike = all.filter((t) => kindOf(t) === kind);
    if (kind && tasks.length > 1 && alike.length === tasks.length && alike.every((t) => tasks.includes(t)))
      return `${tasks.length === 2 ? "both" : `all ${tasks.length}`} ${Karat.short(kind)} tasks`;
    return joined(tasks.map(task));
  }

  /** Return on how many tasks the first model is first, which it clearly loses, and to whom. */
  function lossesText(facts) {
    const lost = [...lostTasks(facts)].map(
      ([to, tasks]) => `${tasksText(tasks, facts.tasks)} to ${model(to)}`,
    );
    if (!lost.length) return "";
    const more = lost.length - MAX_NAMES;
    const rest = more > 0 ? [`tasks to ${Karat.count(more, "more model")}`] : [];
    const ahead = new Map();
    for (const row of rivalsOf(facts))
      for (const on of row.by_task) {
        const wins = on.verdict !== "equal" && on.difference > 0;
        ahead.set(on.task, ahead.get(on.task) || wins);
      }
    const first = [...ahead.values()].filter((wins) => !wins).length;
    const parts = [...lost.slice(0, MAX_NAMES), ...rest].join(", ");
    return `first on ${first} of ${ahead.size}, loses ${parts}`;
  }

  function differenceOn({ task: t, difference, low, high, verdict }) {
    if (verdict === "equal" || difference === null) return task(t);
    const ends = low === null ? "" : `, ${Karat.signed(-high)} to ${Karat.signed(-low)}`;
    return `${task(t)} (${Karat.signed(-difference)}${ends})`;
  }

  /** Return on which tasks the first model is better, worse, or not shown to differ. */
  function differencesText(byTask) {
    const words = {
      worse: "better on",
      better: "worse on",
      open: "no difference shown on",
      equal: "equal scores on",
      "not tested": "not tested on",
    };
    const parts = Object.entries(words).flatMap(([verdict, word]) => {
      const rows = byTask.filter((row) => row.verdict === verdict);
      if (!rows.length) return [];
      const many = rows.length > MAX_TASKS || (verdict === "equal" && rows.length > 1);
      return [`${word} ${many ? rows.length : rows.map(differenceOn).join(", ")}`];
    });
    return parts.join(", ");
  }

  /** Return on which tasks the first model differs from those that it does not clearly beat. */
  function taskByTask(facts) {
    const rivals = rivalsOf(facts);
    const open = rivals.filter(({ verdict }) => verdict !== "worse");
    const close = open.length ? open : rivals.slice(0, 1);
    const first = model(facts.reference);
    return close
      .slice(0, MAX_RIVALS)
      .filter((row) => row.by_task.length)
      .map((row) => `${first} and ${model(row.model)}: ${differencesText(row.by_task)}.`)
      .join(" ");
  }

  /** Return on which tasks two models differ if their scores are equal on most; else nothing. */
  function equalTasks({ tasks }, a, b) {
    const scores = tasks.map((t) => [t, Karat.score(t, a), Karat.score(t, b)]);
    const both = scores.filter(([, x, y]) => x !== null && y !== null);
    const apart = both.filter(
      ([, x, y]) => Math.abs(x - y) > EQUAL_SCORES * Math.max(1, Math.abs(x), Math.abs(y)),
    );
    if (both.length < 2 || 2 * apart.length >= both.length) return "";
    const differ = apart.length ? `, they differ on ${joined(apart.map(([t]) => task(t)))}` : "";
    const common = Karat.count(both.length, "common task");
    return `; equal scores on ${both.length - apart.length} of ${common}${differ}`;
  }

  /** Return the mean gain of the first model over the next one. */
  function marginText(facts, next) {
    const row = rivalsOf(facts).find((one) => one.model === next);
    if (!row) return "";
    const over = ` over ${Karat.count(row.tested, "common task")}`;
    const text = `Mean gain over ${model(next)} ${Karat.signed(-row.difference)}`;
    const equal = equalTasks(facts, facts.reference, next);
    if (row.low === null) return `${text}${over}${equal}.`;
    const ends = `${Karat.signed(-row.high)} to ${Karat.signed(-row.low)}`;
    return `${text} (95 % interval ${ends}${over})${equal}.`;
  }

  /** Return what the intervals over these tasks hold for, and what few tasks cannot show. */
  function limitText({ claim, tasks, test }, few) {
    const whom = claim === "learners" ? "new training data" : "the models as fitted";
    const which = tasks.length > 1 ? `these ${tasks.length} tasks` : "this task";
    const other = "Whether this holds on other tasks like these needs at least 6 tasks.";
    const what = tasks.length < FEWEST ? "Intervals" : "Intervals of gains";
    return `${what} hold for ${which} and ${whom} (${test}).${few ? ` ${other}` : ""}`;
  }

  Karat.taskSentences = { headline, lossesText, taskByTask, marginText, limitText, rivalsOf };
})();
