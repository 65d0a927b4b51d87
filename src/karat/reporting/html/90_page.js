/* The page: its head, its navigation and its sections, and how they follow what is chosen. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el } = Karat;
  const RANKED_BY = ["tasks", "metrics", "common"];
  /** longer titles may be cut */
  const LONG = 80;

  // -- head -----------------------------------------------------------------------------------

  /** Return the summary: the leader, and the models that do not differ from it or share no task. */
  function verdict() {
    const { mean, low, high, tie, few, ready } = Karat.ranking;
    const ranked = Karat.order().filter((m) => mean[m] !== null && !few[m]);
    if (ranked.length < 2) return [];
    const first = ranked[0];
    const signs = new Set(tie[first].match(/[a-z]|\[\d+\]/g) ?? []);
    const met = rivalsOf(first);
    const same = ranked
      .slice(1)
      .filter((m) => (tie[m].match(/[a-z]|\[\d+\]/g) ?? []).some((sign) => signs.has(sign)))
      .filter((m) => met.has(m));
    const strange = ranked.slice(1).filter((m) => !met.has(m));
    const span =
      ready && low[first] !== null
        ? ` (${Karat.percent()} interval ${low[first].toFixed(1)} – ${high[first].toFixed(1)})`
        : "";
    const parts = [strong(first), ` leads with a mean rank of ${mean[first].toFixed(2)}${span}. `];
    if (!ready) return parts;
    const apart = strange.length ? ["It has no common task with ", ...named(strange), "."] : [];
    if (same.length)
      parts.push("It does not differ significantly from ", ...named(same), " on these tasks. ");
    else if (!strange.length)
      parts.push("It is significantly better than every other model.");
    else if (strange.length < ranked.length - 1)
      parts.push("It is significantly better than every model it shares tasks with. ");
    return [...parts, ...apart];
  }

  /** Return the models that share at least one chosen task with a model. */
  function rivalsOf(m) {
    const shared = Karat.ranking.tasks.filter(({ who }) => who.includes(m));
    return new Set(shared.flatMap(({ who }) => who));
  }

  /** Return the names of a few models, and how many more there are. */
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

  function facts() {
    const { models, tasks, runs, failures, made, karat } = Karat.data;
    const jobs = runs.reduce((sum, run) => sum + (run.jobs ?? 0), 0);
    const failed = runs.length
      ? runs.reduce((sum, run) => sum + (run.failed ?? 0), 0)
      : failures.length;
    const seeds = [
      ...new Set(
        models.map((model) => model.seed).filter((seed) => seed !== null && seed !== undefined),
      ),
    ];
    const facts = {
      models: models.length.toLocaleString("en-US"),
      tasks: tasks.length.toLocaleString("en-US"),
      jobs: jobs ? jobs.toLocaleString("en-US") : null,
      "failed jobs": jobs || failed ? failed.toLocaleString("en-US") : null,
      [seeds.length > 1 ? "seeds" : "seed"]:
        seeds.length && seeds.length < 6 ? seeds.join(", ") : null,
      "newest result": made ? made.slice(0, 16).replace("T", " ") : null,
      Karat: karat,
    };
    return el(
      "dl",
      { class: "facts" },
      Object.entries(facts)
        .filter(([, value]) => value)
        .map(([name, value]) =>
          el("div", null, el("dt", { text: name }), el("dd", { text: Karat.plain(value) })),
        ),
    );
  }

  function head() {
    const title = Karat.plain(Karat.data.title || "Leaderboard");
    const sentence = el("p", { class: "verdict", id: "verdict" });
    const refresh = () => sentence.replaceChildren(...verdict());
    Karat.on("ranking", refresh);
    Karat.on("intervals", refresh);
    refresh();
    return el(
      "header",
      { class: "top" },
      el("div", { class: "crown" }, el("p", { class: "brand", text: "Karat" }), Karat.themes()),
      el("h1", { text: title, title: title.length > LONG ? Karat.short(title, 600) : null }),
      sentence,
      facts(),
      Karat.progress?.() ?? null,
    );
  }

  // -- navigation -----------------------------------------------------------------------------

  function navigation(sections) {
    const links = sections.map(({ id, way }) =>
      el("li", null, el("a", { href: `#${id}`, text: way, click: (event) => jump(event, id) })),
    );
    return el("nav", { class: "ways", "aria-label": "Sections" }, el("ul", null, links));
  }

  /** Go to a section, and leave the choices in the address as they are. */
  function jump(event, id) {
    event.preventDefault();
    Karat.jump(id);
  }

  Karat.jump = (id) => {
    const target = document.getElementById(id);
    target.scrollIntoView();
    target.setAttribute("tabindex", "-1");
    target.focus({ preventScroll: true });
  };

  function follow(nodes) {
    const links = new Map(
      [...document.querySelectorAll(".ways a")].map((link) => [
        link.getAttribute("href").slice(1),
        link,
      ]),
    );
    const inView = new IntersectionObserver(
      (entries) => {
        for (const { isIntersecting, target } of entries) {
          if (!isIntersecting) continue;
          links.forEach((link) => link.removeAttribute("aria-current"));
          links.get(target.id)?.setAttribute("aria-current", "true");
          const list = document.querySelector(".ways ul");
          const link = links.get(target.id);
          if (link && list)
            list.scrollTo({ left: link.offsetLeft - list.clientWidth / 2 + link.clientWidth / 2 });
        }
      },
      { rootMargin: "-20% 0px -70% 0px" },
    );
    nodes.forEach((node) => inView.observe(node));
  }

  function foot() {
    const cut = Karat.data.cut.map((text) => el("p", { text: Karat.plain(text) }));
    return el(
      "footer",
      { class: "foot" },
      cut,
      el("p", {
        text: `Generated by Karat ${Karat.plain(Karat.data.karat ?? "")}. This file works offline.`,
      }),
    );
  }

  function nothing() {
    const notes = Karat.data.notes.length ? Karat.data.notes : ["No results yet."];
    return el(
      "section",
      { id: "board" },
      notes.map((text) => el("p", { text: Karat.plain(text) })),
    );
  }

  // -- the whole ------------------------------------------------------------------------------

  Karat.build = () => {
    Karat.forget();
    Karat.on("state", (names) => {
      const again =
        names.some((name) => RANKED_BY.includes(name)) ||
        (names.includes("find") && Karat.get("common"));
      if (again) Karat.rank();
      if (names.includes("task")) Karat.openTask();
    });
    Karat.on("theme", Karat.redrawAll);
    Karat.rank();
    const sections = Karat.present();
    const nodes = sections.length ? sections.map(Karat.raise) : [nothing()];
    const main = el("main", { id: "main" }, nodes);
    const skip = el("a", {
      class: "skip",
      href: "#main",
      text: "Skip to the leaderboard",
      click: (event) => jump(event, "board"),
    });
    for (const old of document.querySelectorAll(
      "body > header, body > nav, body > main, body > footer, body > .skip, body > noscript",
    ))
      old.remove();
    document.body.prepend(skip, head(), navigation(sections), main, foot());
    follow(nodes);
    Karat.openTask();
  };
})();
