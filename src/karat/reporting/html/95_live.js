/* Live: a served page follows events, or polls, shows newer results and keeps its state. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el } = Karat;
  const EVERY = 2000;
  /** milliseconds without a first event after which the page polls: a proxy may hold events back */
  const PATIENCE = 30000;
  /** other pages of the server */
  const SCREENS = { "/upload": "Upload", "/evaluate": "Evaluate", "/docs": "API", "/report.html": "Download" };
  let tag = null;

  /** Return the address to poll, if the page is served. */
  Karat.address = () => {
    const { live, address } = document.documentElement.dataset;
    if (live === "true" && address) return address;
    return document.body.dataset.live || null;
  };

  Karat.progress = () => {
    if (!Karat.address()) return null;
    const node = el("div", { class: "progress", id: "progress", role: "status" });
    showProgress(node);
    return Karat.data.events ? el("div", { class: "served" }, links(), node) : node;
  };

  function links() {
    const list = Object.entries(SCREENS).map(([href, text]) => el("a", { href, text }));
    return el("nav", { "aria-label": "Pages of this server" }, list);
  }

  function showProgress(node = document.getElementById("progress")) {
    if (!node) return;
    const { done = 0, running = [], failed = 0, left = 0 } = Karat.data.progress ?? {};
    node.hidden = !Karat.data.progress;
    const all = done + left + running.length;
    const bar = el("progress", { max: Math.max(1, all), value: done, "aria-label": "jobs done" });
    const names = running
      .slice(0, 3)
      .map((job) => Karat.short(typeof job === "string" ? job : Object.values(job).join(" "), 48));
    const parts = [
      `${done} of ${Karat.count(all, "job")} done`,
      failed ? `${failed} failed` : "",
      names.length ? `running: ${names.join(", ")}` : "",
    ];
    node.replaceChildren(bar, el("span", { text: parts.filter(Boolean).join(" · ") }));
  }

  /** Use a newer bundle; selections by index are mapped by name. */
  function renew(bundle) {
    const before = Karat.data.tasks;
    const chosen = Karat.get("tasks") ? Karat.chosen().map((t) => before[t].name) : null;
    const back = stay();
    Karat.take(bundle);
    if (chosen) {
      const names = new Set(chosen);
      const { tasks } = Karat.data;
      Karat.forget();
      Karat.choose([...tasks.keys()].filter((t) => names.has(tasks[t].name)));
    }
    Karat.build();
    back();
  }

  /** Build the page again after Back or Forward, so that all controls show the state. */
  Karat.rebuild = () => {
    const back = stay();
    Karat.regroup();
    Karat.build();
    back();
  };

  /** Return how to go back to where the reader is: in the page, the board, and with the focus. */
  function stay() {
    const { id, selectionStart } = document.activeElement ?? {};
    const at = scrollY;
    const rolled = document.querySelector("#board .wide");
    const [down, aside] = [rolled?.scrollTop ?? 0, rolled?.scrollLeft ?? 0];
    return () => {
      scrollTo({ top: at, behavior: "instant" });
      document
        .querySelector("#board .wide")
        ?.scrollTo({ top: down, left: aside, behavior: "instant" });
      const node = id ? document.getElementById(id) : null;
      node?.focus({ preventScroll: true });
      if (node?.type === "search") node.setSelectionRange(selectionStart, selectionStart);
    };
  }

  /** Return whether two bundles differ in more than the progress. */
  function differ(a, b) {
    return JSON.stringify({ ...a, progress: null }) !== JSON.stringify({ ...b, progress: null });
  }

  async function ask(address) {
    const answer = await fetch(address, {
      headers: tag ? { "If-None-Match": tag } : {},
      cache: "no-store",
    });
    if (answer.status !== 200) return;
    tag = answer.headers.get("ETag");
    const bundle = await answer.json();
    if (differ(Karat.given, bundle)) {
      Karat.given = bundle;
      renew(bundle);
    }
    Karat.data.progress = bundle.progress;
    showProgress();
  }

  // -- events ---------------------------------------------------------------------------------

  /** Follow the events of the server, or poll if it has none. */
  Karat.follow = (address) => {
    highlight();
    const { events } = Karat.given;
    if (events && window.EventSource) listen(address, events);
    else poll(address);
  };

  /** Listen while the page is in view: a browser opens few connections to a server. */
  function listen(address, events) {
    let source = null;
    let timer = 0;
    const stop = () => {
      clearTimeout(timer);
      source?.close();
      source = null;
    };
    const giveUp = () => {
      stop();
      document.removeEventListener("visibilitychange", turn);
      poll(address);
    };
    const start = () => {
      source = new EventSource(events);
      timer = setTimeout(giveUp, PATIENCE);
      source.addEventListener("progress", ({ data }) => {
        clearTimeout(timer);
        hear(address, JSON.parse(data));
      });
      source.addEventListener("end", giveUp);
      source.addEventListener("error", () => {
        if (source?.readyState === EventSource.CLOSED) giveUp();
      });
    };
    const turn = () => {
      stop();
      if (!document.hidden) start();
    };
    document.addEventListener("visibilitychange", turn);
    turn();
  }

  let wanted = "";
  let busy = false;

  /** Show the progress of an event, and get the data of its version. */
  async function hear(address, { version, progress }) {
    Karat.data.progress = progress;
    showProgress();
    wanted = version;
    if (busy) return;
    busy = true;
    while (wanted && wanted !== Karat.given.version) {
      await ask(address).catch(() => null);
      if (wanted !== Karat.given.version) await new Promise((done) => setTimeout(done, EVERY));
    }
    busy = false;
  }

  /** Poll, more slowly while the server does not answer. */
  function poll(address) {
    let wait = EVERY;
    const turn = async () => {
      try {
        if (!document.hidden) await ask(address);
        wait = EVERY;
      } catch {
        wait = Math.min(30000, wait * 2);
      }
      setTimeout(turn, wait);
    };
    setTimeout(turn, EVERY);
  }

  // -- highlighted models -----------------------------------------------------------------------

  /** Highlight the rows of the models in the address, as #rows=NAME, whenever the board is drawn. */
  function highlight() {
    const names = Karat.get("rows").split("\n").map(Karat.plain).filter(Boolean);
    if (!names.length) return;
    let found = false;
    const isMine = (text) => names.some((name) => text === name || text.startsWith(`${name} · `));
    const show = () => {
      for (const row of document.querySelectorAll("#board tbody tr")) {
        const mine = isMine(Karat.plain(row.querySelector("th .cut")?.textContent));
        row.classList.toggle("mine", mine);
        if (!mine) continue;
        row.setAttribute("aria-current", "true");
        if (!found) row.scrollIntoView({ block: "center", behavior: "instant" });
        found = true;
      }
    };
    new MutationObserver(show).observe(document.body, { childList: true, subtree: true });
    show();
  }
})();
