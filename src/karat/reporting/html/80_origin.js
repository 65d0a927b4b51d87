/* Checks, failures, datasets and provenance. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el } = Karat;
  const LEVELS = ["error", "warning", "note"];
  const MOST = 300;

  // -- checks ---------------------------------------------------------------------------------

  function buildChecks(root) {
    const checks = [...Karat.data.checks].sort(
      (a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level),
    );
    const rows = checks.map((check) => [
      check.code,
      check.level,
      check.model === null ? null : Karat.model(check.model),
      check.task === null ? null : Karat.task(check.task),
      check.message,
      check.advice,
      check.task,
    ]);
    const cells = {
      1: (level) =>
        el("span", {
          class: `level ${LEVELS.includes(level) ? level : "note"}`,
          text: Karat.plain(level),
        }),
      3: (name, row) =>
        name === null ? "–" : el("span", { class: "cut" }, Karat.taskLink(row[6], name)),
    };
    const names = ["check", "level", "model", "task", "finding", "advice"];
    const caption = `${Karat.count(rows.length, "finding")}, most severe first`;
    root.append(Karat.plainTable(caption, names, rows, { cells, wrap: [4, 5] }));
  }

  Karat.section({
    id: "checks",
    title: "Checks",
    way: "Checks",
    has: () => Karat.data.checks.length > 0,
    build: buildChecks,
  });

  // -- failures -------------------------------------------------------------------------------

  function buildFailures(root) {
    const { failures } = Karat.data;
    root.append(...failures.slice(0, MOST).map(Karat.failure));
    if (failures.length > MOST)
      root.append(
        el("p", {
          class: "faint",
          text: `${failures.length - MOST} more: open a task to see its failures.`,
        }),
      );
  }

  Karat.section({
    id: "failures",
    title: "Failures",
    way: "Failures",
    lead: "Failed jobs with the ends of their logs.",
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

  const buildCards = (root) =>
    root.append(el("div", { class: "cards" }, Karat.data.cards.map(cardOf)));
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

  function copied(text) {
    const button = Karat.button("Copy", async () => {
      const done = await copy(text);
      button.textContent = done ? "Copied" : "Press Ctrl-C";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    return el("div", { class: "copy" }, el("pre", { text, tabindex: "0" }), button);
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return false;
    }
  }

  function buildOrigin(root) {
    const commands = [
      ...new Set(
        Karat.data.runs
          .map((run) => run.command)
          .concat(Karat.data.models.map((model) => model.command))
          .filter(Boolean),
      ),
    ];
    for (const command of commands.slice(0, 12)) root.append(copied(command));
    if (commands.length > 12)
      root.append(
        el("p", {
          class: "faint",
          text: `${commands.length - 12} more commands are in the table below.`,
        }),
      );
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
      { open: facts.length < 20 },
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
    const table = Karat.plainTable("The runs", names, rows);
    table.style.marginTop = "18px";
    return table;
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
