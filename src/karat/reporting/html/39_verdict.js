/* The verdict: who leads, by how much, what it rests on, what weakens it, and what to do next. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el } = Karat;
  const LETTERS = /[a-z]|\[\d+\]/g;
  const HEADS = {
    corrupted: "Best on corrupted data",
    clean: "On clean data",
    margin: "Margin",
    tasks: "Task by task",
    basis: "Rests on",
    cost: "Cost",
  };

  /** Return the verdict on the group that is shown. */
  Karat.verdict = () => Karat.data.verdict[Karat.data.group] ?? null;

  /** Return why nothing is tested, or nothing if letters tell who differs. */
  Karat.untested = () => {
    const { tie, own, ready, mean, compared, each, chosen } = Karat.ranking;
    if (!ready || tie.some(Boolean) || mean.filter((rank) => rank !== null).length < 2) return "";
    if (own && Karat.verdict()?.reason) return Karat.plain(Karat.verdict().reason);
    const { lacks, found } = Karat.ranking.these ?? {};
    if (lacks || found?.why) return Karat.plain(lacks || found.why);
    if (compared > 1) return "too few tasks";
    const task = chosen[each.findIndex(Boolean)];
    return Karat.plain(Karat.data.tests.by_task?.[task]?.why || "one fold");
  };

  // -- the verdict on all tasks, as the bundle has it --------------------------------------------

  /** Return a text in which the name of the winner is marked. */
  function marked(text, winner, { models } = Karat.data) {
    const name = winner === null ? "" : Karat.short(models[winner]?.name ?? "");
    const at = name ? text.indexOf(name) : -1;
    if (at < 0) return [text];
    return [text.slice(0, at), el("strong", { text: name }), text.slice(at + name.length)];
  }

  function facts({ lines }) {
    const shown = lines.filter(({ what }) => HEADS[what]);
    const entries = shown.map(({ what, text }) => {
      const plain = Karat.plain(text).replace(/^(On clean|Best on corrupted) data: /, "");
      const wide = what === "tasks" ? "wide" : null;
      return el("div", { class: wide }, el("dt", { text: HEADS[what] }), el("dd", { text: plain }));
    });
    return el("dl", { class: "evidence" }, entries);
  }

  /** Return what the numbers hold for, and what they cannot show. */
  function limit({ lines }) {
    const text = lines.find(({ what }) => what === "limit")?.text;
    return text ? el("p", { class: "limit", text: Karat.plain(text) }) : null;
  }

  function weaknesses({ weak }) {
    if (!weak.length) return null;
    const items = weak.map((text) => {
      const [, code, rest] = Karat.plain(text).match(/^(KRT\d+) (.*)$/s) ?? [null, null, text];
      if (!code || !Karat.data.checks.length) return el("li", { text: Karat.plain(text) });
      const click = () => Karat.jump("checks");
      return el("li", null, el("button", { class: "link", type: "button", text: code, click }), ` ${rest}`);
    });
    return el("div", { class: "weak" }, el("h3", { text: "Weakened by" }), el("ul", null, items));
  }

  function step({ next_step: found }) {
    if (!found) return null;
    return el(
      "div",
      { class: "step" },
      el("h3", { text: `Next: ${Karat.plain(found.text)}` }),
      Karat.copied(Karat.plain(found.command)),
    );
  }

  /** Return the answer on all tasks, and what it rests on. */
  function whole() {
    const verdict = Karat.verdict();
    if (!verdict) return [[], []];
    const answer = verdict.lines.find(({ what }) => what === "answer")?.text ?? "";
    const rest = [facts(verdict), weaknesses(verdict), step(verdict), others(), limit(verdict)];
    return [marked(Karat.plain(answer), verdict.winner, Karat.given), rest.filter(Boolean)];
  }

  /** Return the answers of the other groups, each with a button that shows it. */
  function others() {
    const { groups, group, verdict } = Karat.data;
    const rest = verdict.map((one, g) => [one, g]).filter(([, g]) => g !== group);
    if (groups.length < 2 || !rest.length) return null;
    const items = rest.map(([one, g]) => {
      const click = () => Karat.showGroup(g);
      const name = el("button", { class: "link", type: "button", text: nameOf(g), click });
      const answer = one.lines.find(({ what }) => what === "answer")?.text ?? "";
      return el("li", null, name, ": ", marked(Karat.plain(answer), one.winner, Karat.given));
    });
    const title = "Other groups, which share too few tasks with these models";
    return el("div", { class: "others" }, el("h3", { text: title }), el("ul", null, items));
  }

  function nameOf(g) {
    return Karat.short(Karat.data.groups[g]?.name || `group ${g + 1}`, 40);
  }

  /** Return the buttons that choose a group, if there are several. */
  Karat.groupTabs = () => {
    const { groups } = Karat.data;
    if (groups.length < 2) return null;
    const keys = groups.map((_, g) => String(g));
    const choice = Karat.choice(
      "Group of models",
      keys,
      () => String(Karat.data.group),
      (key) => Karat.showGroup(Number(key)),
    );
    [...choice.node.children].forEach((button, g) => {
      button.textContent = nameOf(g);
      button.id = `group-${g}`;
    });
    choice.node.classList.add("tabs");
    return choice.node;
  };

  // -- the answer on selected tasks, ranked in the browser ---------------------------------------

  function signs(m) {
    return Karat.ranking.tie[m]?.match(LETTERS) ?? [];
  }

  /** Return what the tasks that a model shares with the first one show; empty if not tested. */
  function onCommonTasks(m, first) {
    const row = Karat.ranking.facts?.models.find(({ model }) => model === m);
    if (!row || row.p === null) return "";
    const words = { better: "it is better than", worse: "it is worse than" };
    const ends = [row.difference, row.low, row.high].map(Karat.signed);
    const what = words[row.verdict] ?? "no difference is shown to";
    return `; on these ${what} ${Karat.short(Karat.model(first))} (${ends[0]}, ${ends[1]} to ${ends[2]})`;
  }

  /** Return the leader on the selected tasks, and the models that do not differ from it. */
  function selected() {
    const { mean, low, high, few, ready, compared } = Karat.ranking;
    const ranked = Karat.order().filter((m) => mean[m] !== null && !few[m]);
    if (ranked.length < 2) return ["Fewer than two models have a rank on the selected tasks."];
    const first = ranked[0];
    const span =
      ready && low[first] !== null
        ? ` (${Karat.percent()} interval ${low[first].toFixed(1)} – ${high[first].toFixed(1)})`
        : "";
    const over = ` over ${Karat.count(compared, "selected task")}${span}. `;
    const parts = [strong(first), ` leads with a mean rank of ${mean[first].toFixed(2)}${over}`];
    for (const m of Karat.order().filter((m) => mean[m] !== null && few[m] && mean[m] < mean[first])) {
      const on = Karat.count(Karat.ranking.taken[m], "task");
      const shown = onCommonTasks(m, first);
      parts.push(strong(m), ` has a better mean rank, ${mean[m].toFixed(2)}, but on ${on} only${shown}. `);
    }
    if (!ready) return parts;
    const { these, facts: differences } = Karat.ranking;
    if (these.few && differences) return marked(Karat.taskSentences.headline(differences), first);
    const why = Karat.untested();
    if (why || !signs(first).length) return [...parts, `Not tested: ${why || "too few tasks"}.`];
    const mine = new Set(signs(first));
    const same = ranked.slice(1).filter((m) => signs(m).some((sign) => mine.has(sign)));
    const lost = compared > 1 && differences ? Karat.taskSentences.lossesText(differences) : "";
    const end = lost ? `; ${lost}.` : ".";
    if (!same.length) return [...parts, `It is significantly better than every other model${end}`];
    return [...parts, ...named(same), ` cannot be distinguished from it${end}`];
  }

  /** Return what the selected tasks show task by task, and what this holds for. */
  function belowSelected() {
    const { facts: differences, these, compared, ready } = Karat.ranking;
    if (!ready || !differences) return [];
    const { marginText, taskByTask, limitText, rivalsOf } = Karat.taskSentences;
    const rivals = rivalsOf(differences);
    const next = Karat.order().filter((m) => Karat.ranking.mean[m] !== null && !Karat.ranking.few[m])[1];
    const texts = {
      margin: these.few ? marginText(differences, next) : "",
      tasks: compared < 2 || (these.few && rivals.length === 1) ? "" : taskByTask(differences),
      limit: limitText(differences, these.few),
    };
    const lines = Object.entries(texts).map(([what, text]) => ({ what, text }));
    const known = { lines: lines.filter(({ text }) => text) };
    return [facts(known), limit(known)].filter(Boolean);
  }

  function named(models) {
    const nodes = models
      .slice(0, 3)
      .map(strong)
      .flatMap((node, i) => (i ? [", ", node] : [node]));
    return models.length > 3 ? [...nodes, ` and ${models.length - 3} more`] : nodes;
  }

  function strong(m) {
    return el("strong", { text: Karat.short(Karat.model(m), 48) });
  }

  // -- the section -------------------------------------------------------------------------------

  function build(root) {
    const answer = el("div", { role: "status" });
    const picture = Karat.differences();
    const rest = el("div");
    const title = root.querySelector("h2");
    const tabs = Karat.groupTabs();
    if (tabs) root.querySelector(".head").append(tabs);
    root.append(el("div", { class: "verdict" }, answer, picture.node, rest));
    const show = () => {
      const { own } = Karat.ranking;
      title.textContent = own ? "Verdict" : "Verdict on your selection";
      const [sentence, below] = own ? whole() : [selected(), belowSelected()];
      answer.replaceChildren(el("p", { class: "answer" }, sentence));
      rest.replaceChildren(...below);
      picture.show();
    };
    Karat.on("ranking", show);
    Karat.on("intervals", show);
    show();
  }

  Karat.section({
    id: "verdict",
    title: "Verdict",
    way: "Verdict",
    has: () => Karat.data.models.length > 0 && Karat.data.verdict.length > 0,
    build,
  });
})();
