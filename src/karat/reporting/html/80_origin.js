/* Checks, failures, datasets and provenance. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el } = Karat;
  const LEVELS = ["error", "warning", "note"];
  const MOST = 300;
  /** how many names a line has, and how many reasons of failures are shown at once */
  const FEW = 3;
  const SHOWN = 8;
  const COMMANDS = 3;

  // -- checks ---------------------------------------------------------------------------------

  /** Return the findings by code, the most severe first. */
  function byCode() {
    const groups = new Map();
    for (const check of Karat.sortBy(Karat.data.checks, ({ level }) => LEVELS.indexOf(level)))
      groups.set(check.code, [...(groups.get(check.code) ?? []), check]);
    return [...groups.values()];
  }

  /** Return models with their tasks: "a on t, u; b on t", a few of each. */
  function places(checks) {
    const tasksOf = new Map();
    for (const { model, task } of checks) {
      const name = model === null ? "" : Karat.short(Karat.model(model));
      const tasks = tasksOf.get(name) ?? [];
      if (task !== null && !tasks.includes(Karat.task(task))) tasks.push(Karat.task(task));
      tasksOf.set(name, tasks);
    }
    const texts = [...tasksOf].map(([name, tasks]) => {
      const where = some(tasks.map((task) => Karat.short(task)), ", ");
      return name && where ? `${name} on ${where}` : name || where;
    });
    return some(texts.filter(Boolean), "; ");
  }

  function some(names, separator) {
    const rest = names.length - FEW;
    return names.slice(0, FEW).join(separator) + (rest > 0 ? ` and ${rest} more` : "");
  }

  function buildChecks(root) {
    const { checks } = Karat.data;
    const counts = LEVELS.map((level) => [level, checks.filter((one) => one.level === level).length]);
    const known = counts.filter(([, number]) => number);
    const lead = known.map(([level, number]) => Karat.count(number, level)).join(", ");
    root.append(el("p", { class: "lead", text: `${lead}.` }), ...byCode().map(checkGroup));
  }

  /** Return the findings of one check: a line about all of them, each of them behind it. */
  function checkGroup(checks) {
    const { code, level, title, message, advice } = checks[0];
    const name = LEVELS.includes(level) ? level : "note";
    const alone = checks.length === 1;
    const about = alone ? message : `${places(checks)}`;
    const line = el(
      "summary",
      null,
      el("span", { class: `level ${name}`, text: Karat.plain(level) }),
      el("strong", { text: ` ${Karat.plain(code)} ${Karat.plain(title ?? "")}` }),
      alone ? "" : el("span", { class: "tally", text: ` ${checks.length}` }),
      el("span", { class: "faint", text: ` ${Karat.plain(about)}` }),
    );
    const items = checks.slice(0, MOST).map(({ message: text, task }) => {
      const link = task === null ? "" : el("span", null, " ", Karat.taskLink(task, "open the task"));
      return el("li", null, Karat.plain(text), link);
    });
    const more = checks.length > MOST ? [el("li", { text: `${checks.length - MOST} more` })] : [];
    const list = el("ul", { class: "findings" }, ...items, ...more);
    return el("details", { class: "group" }, line, el("p", { text: Karat.plain(advice) }), list);
  }

  Karat.section({
    id: "checks",
    title: "Checks",
    way: "Checks",
    has: () => Karat.data.checks.length > 0,
    build: buildChecks,
  });

  // -- failures -------------------------------------------------------------------------------

  /** Return a reason without numbers, quoted names and paths, which differ between jobs. */
  function pattern(info) {
    return Karat.plain(info)
      .replace(/(["'`]).*?\1/g, "…")
      .replace(/(\/[\w.+-]+){2,}/g, "…")
      .replace(/0x[0-9a-f]+|\d[\d.,:_-]*/gi, "#")
      .slice(0, 120);
  }

  /** Return the failures by model and reason, the most frequent first. */
  function byReason() {
    const groups = new Map();
    for (const failure of Karat.data.failures) {
      const key = `${failure.model} ${failure.status} ${pattern(failure.info)}`;
      groups.set(key, [...(groups.get(key) ?? []), failure]);
    }
    return Karat.sortBy([...groups.values()], (group) => group.length, true);
  }

  /** Return the failures of one model for one reason; their logs are added when it is opened. */
  function failureGroup(group) {
    if (group.length === 1) return Karat.failure(group[0]);
    const [{ model, status, info }] = group;
    const tasks = [...new Set(group.map(({ task }) => Karat.short(Karat.task(task))))];
    const where = tasks.length > 1 ? `${tasks.length} tasks` : tasks[0];
    const line = el(
      "summary",
      null,
      el("strong", { text: Karat.short(Karat.model(model), 60) }),
      el("span", { class: "tally", text: ` ${Karat.count(group.length, "job")}` }),
      ` ${Karat.plain(status)} on ${where}: `,
      el("span", { class: "lost", text: Karat.short(info, 160) }),
    );
    const node = el("details", { class: "group" }, line);
    const fill = () => {
      if (!node.open || node.children.length > 1) return;
      node.append(el("div", { class: "inner" }, group.slice(0, MOST).map(Karat.failure)));
    };
    node.addEventListener("toggle", fill);
    return node;
  }

  function buildFailures(root) {
    const groups = byReason().map(failureGroup);
    const rest = groups.slice(SHOWN);
    root.append(...groups.slice(0, SHOWN));
    if (rest.length)
      root.append(
        el("details", { class: "group" }, el("summary", { text: Karat.count(rest.length, "more reason") }), rest),
      );
  }

  Karat.section({
    id: "failures",
    title: "Failures",
    way: "Failures",
    lead: "Failed jobs by model and reason, with the ends of their logs.",
    has: () => Karat.data.failures.length > 0,
    build: buildFailures,
  });

  // -- data -----------------------------------------------------------------------------------

  /** Return pairs of a name and a text; an address becomes a link only if it is one of the web. */
  function pairs(found) {
    return Object.entries(found)
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .flatMap(([name, value]) => [el("dt", { text: name }), el("dd", null, linked(value))]);
  }

  function linked(value) {
    const text = Karat.plain(
      typeof value === "object" && !(value instanceof Node) ? JSON.stringify(value) : value,
    );
    if (value instanceof Node) return value;
    if (!/^https?:\/\/[^\s"<>]+$/i.test(text)) return text;
    return el("a", { href: text, rel: "noopener noreferrer", text });
  }

  function cardOf(card) {
    const counts = [
      card.items && Karat.count(card.items, "item"),
      card.questions && Karat.count(card.questions, "question"),
      card.columns && Karat.count(card.columns, "column"),
    ];
    const facts = {
      kind: card.kind,
      size: counts.filter(Boolean).join(", "),
      source: card.source,
      homepage: card.homepage,
      license: card.license,
      citation: card.citation,
    };
    const print = card.fingerprint ? el("code", { text: Karat.plain(card.fingerprint) }) : null;
    const tasks = (card.tasks ?? []).map((t) => el("span", null, Karat.taskLink(t), " "));
    const rest = {
      checksum: card.sha256 ? el("code", { text: Karat.plain(card.sha256) }) : null,
      fingerprint: print,
    };
    return el(
      "article",
      { class: "card" },
      el("h3", { text: Karat.plain(card.title || card.dataset) }),
      el(
        "dl",
        null,
        pairs({ ...facts, ...rest, tasks: tasks.length ? el("span", null, tasks) : null }),
      ),
    );
  }

  function buildCards(root) {
    const { cards } = Karat.data;
    const names = cards.map((card) => Karat.short(card.title || card.dataset));
    const text = cards.length > 1 ? `${Karat.count(cards.length, "dataset")}: ${some(names, ", ")}` : names[0];
    const node = el("details", { class: "group" }, el("summary", { text }));
    const fill = () => {
      if (node.open && node.children.length < 2)
        node.append(el("div", { class: "cards" }, cards.map(cardOf)));
    };
    node.addEventListener("toggle", fill);
    root.append(node);
  }

  const cards =
    "Source, license, citation and fingerprint of each dataset.";
  Karat.section({
    id: "data",
    title: "The data",
    way: "Data",
    lead: cards,
    has: () => Karat.data.cards.length > 0,
    build: buildCards,
  });

  // -- how to reproduce -----------------------------------------------------------------------

  /** Return a command with a button that copies it. */
  Karat.copied = (text) => {
    const button = Karat.button("Copy", async () => {
      const done = await Karat.copy(text);
      button.textContent = done ? "Copied" : "Press Ctrl-C";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    return el("div", { class: "copy" }, el("pre", { text, tabindex: "0" }), button);
  };

  /** Copy a text; return whether the browser allowed it. */
  Karat.copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return false;
    }
  };

  function buildOrigin(root) {
    const commands = [
      ...new Set(
        Karat.data.runs
          .map((run) => run.command)
          .concat(Karat.data.models.map((model) => model.command))
          .filter(Boolean),
      ),
    ];
    for (const command of commands.slice(0, COMMANDS)) root.append(Karat.copied(command));
    const more = commands.slice(COMMANDS);
    if (more.length) {
      const line = el("summary", { text: `${Karat.count(more.length, "more command")}` });
      root.append(el("details", { class: "group" }, line, more.map(Karat.copied)));
    }
    root.append(versions(), runs());
  }

  /** Return the versions that all runs share, and which differ. */
  function versions() {
    const all = Karat.data.runs.map((run) => run.versions ?? {});
    const names = [...new Set(all.flatMap(Object.keys))];
    const facts = names.map((name) => {
      const values = [...new Set(all.map((one) => one[name]).filter(Boolean))];
      return [
        Karat.plain(name),
        values.length > 3 ? `${values.length} versions` : values.join(", "),
      ];
    });
    if (!facts.length) return "";
    return el(
      "details",
      { class: "group" },
      el("summary", {
        text: `Versions of ${Karat.count(facts.length, "library").replace("librarys", "libraries")}`,
      }),
      el("dl", { class: "pairs" }, pairs(Object.fromEntries(facts))),
    );
  }

  function runs() {
    if (!Karat.data.runs.length) return "";
    const names = ["model", "seed", "jobs", "ok", "failed", "folder", "platform", "command"];
    const text = (value) =>
      value === null || value === undefined
        ? null
        : typeof value === "object"
          ? JSON.stringify(value)
          : String(value);
    const rows = Karat.data.runs.map((run) => [
      Karat.model(run.model),
      text(run.seed),
      run.jobs,
      run.ok,
      run.failed,
      text(run.folder),
      text(run.platform),
      text(run.command),
    ]);
    const line = el("summary", { text: `${Karat.count(rows.length, "run")}: jobs, folders, platforms` });
    return el("details", { class: "group" }, line, Karat.plainTable("The runs", names, rows));
  }

  const has = () => Karat.data.runs.length > 0 || Karat.data.models.some((model) => model.command);
  const again = "The same command with the same seed and versions reproduces the numbers.";
  Karat.section({
    id: "origin",
    title: "How to reproduce",
    way: "Reproduce",
    lead: again,
    has,
    build: buildOrigin,
  });
})();
