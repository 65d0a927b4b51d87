/* The page: its head, its navigation and its sections, and how they follow what is chosen. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el } = Karat;
  const RANKED_BY = ["tasks", "metrics", "common"];
  /** facts whose name comes before their value */
  const NAMED = ["seed", "seeds", "newest result", "Karat"];
  /** longer titles may be cut */
  const LONG = 80;
  /** milliseconds after which a page has its final size */
  const SETTLED = 3000;

  // -- head -----------------------------------------------------------------------------------

  function facts() {
    // of all groups
    const { models = [], tasks = [], runs = [], failures = [], made, karat } = Karat.given;
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
      groups: Karat.data.groups.length > 1 ? String(Karat.data.groups.length) : null,
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
          el(
            "div",
            { class: NAMED.includes(name) ? "named" : null },
            el("dt", { text: value === "1" ? name.replace(/s$/, "") : name }),
            el("dd", { text: Karat.plain(value) }),
          ),
        ),
    );
  }

  function head() {
    const title = Karat.plain(Karat.data.title || "Leaderboard");
    return el(
      "header",
      { class: "top" },
      el("div", { class: "crown" }, el("p", { class: "brand", text: "Karat" }), Karat.themes()),
      el("h1", { text: title, title: title.length > LONG ? Karat.short(title, 600) : null }),
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

  /** Go to a section; a click with a key pressed opens it elsewhere. */
  function jump(event, id) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    Karat.jump(id);
  }

  /** Go to a section and put it into the address; the choices stay, unless others are given. */
  Karat.jump = (id, choices = {}) => {
    Karat.set(choices, id);
    Karat.land(id);
  };

  let landing = null;

  /** Scroll to a section, and stay there while what is above it takes its size. */
  Karat.land = (id, behavior = "auto") => {
    const target = document.getElementById(id);
    if (!target?.closest("main")) return;
    const folded = target.querySelectorAll("details");
    if (folded.length === 1) folded[0].open = true;
    Karat.drawUntil(target);
    target.scrollIntoView({ behavior });
    target.setAttribute("tabindex", "-1");
    target.focus({ preventScroll: true });
    landing = target;
    setTimeout(() => landing === target && (landing = null), SETTLED);
  };

  new ResizeObserver(() => landing?.scrollIntoView({ behavior: "instant" })).observe(document.body);
  for (const moved of ["wheel", "touchstart", "pointerdown", "keydown"])
    addEventListener(moved, () => (landing = null), { passive: true, capture: true });

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
