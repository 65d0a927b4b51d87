/* The evaluation page: what to evaluate, how far it is, and all evaluations. */
(() => {
  "use strict";
  const { Karat } = window;
  const { el } = Karat;
  const facts = document.documentElement.dataset;
  const get = (id) => document.getElementById(id);
  let stop = () => null;
  let before = "";

  // -- the form ---------------------------------------------------------------------------------

  /** Show checkboxes for names; those that are chosen stay chosen. */
  function ticks(id, names, chosen = []) {
    const boxes = names.map((name) => {
      const box = el("input", { type: "checkbox", value: name, checked: chosen.includes(name) });
      return el("label", { title: name }, box, el("span", { text: name }));
    });
    get(id).querySelector(".ticks").replaceChildren(...boxes);
    filter(get(id));
  }

  const chosen = (id) => [...get(id).querySelectorAll(".ticks input:checked")].map((box) => box.value);

  /** Show the names with the words of the search, and those that are chosen. */
  function filter(field) {
    const words = field.querySelector("input[type=search]").value.toLowerCase().split(/\s+/);
    for (const label of field.querySelectorAll(".ticks label")) {
      const text = label.textContent.toLowerCase();
      label.hidden = !label.firstChild.checked && !words.every((word) => text.includes(word));
      label.style.display = label.hidden ? "none" : "";
    }
  }

  for (const id of ["models", "tasks"])
    get(id)
      .querySelector("input[type=search]")
      .addEventListener("input", () => filter(get(id)));

  async function showSuite() {
    Karat.clear();
    const suite = get("suite").value;
    const answer = await Karat.request("GET", `/tasks?${new URLSearchParams({ suite })}`);
    if (suite !== get("suite").value) return;
    if (answer.status !== 200) Karat.fail("suite", Karat.sentences(answer));
    const { items = [], models = [] } = answer.data;
    ticks("tasks", items, chosen("tasks"));
    get("models-help").textContent = models.length
      ? `None chosen: the models of the suite (${models.join(", ")}).`
      : "Choose at least one: this suite has no models of its own.";
  }

  async function prepare() {
    const asked = new URLSearchParams(location.search);
    const vectors = await Karat.read("/vectors");
    const answer = await Karat.request("GET", "/names");
    if (answer.status !== 200) return Karat.fail("suite", Karat.sentences(answer));
    const names = answer.data;
    const group = (label, list) =>
      el("optgroup", { label }, list.map((name) => el("option", { value: name, text: name })));
    get("suite").replaceChildren(group("Suites", names.suites), group("Single tasks", names.tasks));
    const suite = asked.get("suite") ?? "quickstart";
    if ([...names.suites, ...names.tasks].includes(suite)) get("suite").value = suite;
    const uploaded = (vectors.items ?? []).map(({ model }) => model);
    ticks("models", [...uploaded, ...names.models], asked.getAll("model"));
    return showSuite();
  }

  get("suite").addEventListener("change", showSuite);

  /** Return whole numbers in a text, or null with a message next to the field. */
  function numbers(id, text) {
    const words = text.split(/[\s,]+/).filter(Boolean);
    if (words.every((word) => /^\d{1,9}$/.test(word))) return words.map(Number);
    Karat.fail(id, "Use whole numbers of at least 0.");
    return null;
  }

  get("order").addEventListener("submit", async (event) => {
    event.preventDefault();
    Karat.clear();
    const folds = numbers("folds", get("folds").value);
    const seed = folds && numbers("seed", get("seed").value);
    if (!folds || !seed) return;
    if (seed.length !== 1) return Karat.fail("seed", "Give one number, such as 42.");
    if (!get("token").value.trim()) return Karat.fail("token", "Enter the token of this server.");
    const order = { suite: get("suite").value, models: chosen("models"), tasks: chosen("tasks") };
    const body = JSON.stringify({ ...order, folds, seed: seed[0] });
    get("send").disabled = true;
    const answer = await Karat.request("POST", "/evaluations", { body, type: "application/json" });
    get("send").disabled = false;
    if (answer.status !== 202) return Karat.refused(answer);
    history.pushState(null, "", `?${new URLSearchParams({ id: answer.data.id })}`);
    open(answer.data.id);
    list();
  });

  // -- one evaluation ---------------------------------------------------------------------------

  const STATES = {
    queued: ({ position }) => `Waiting: number ${position ?? 1} in the queue.`,
    running: () => "Running.",
    finished: ({ code }) => (code ? "Finished; some jobs failed." : "Finished."),
    failed: ({ code }) => `Failed${code === null ? "" : ` with exit code ${code}`}. The output has the reason.`,
    cancelled: () => "Cancelled. Finished jobs are kept.",
    stopped: () => "Stopped with the server. Resume it to run the remaining jobs.",
  };

  function words({ order }) {
    if (order.vectors) return `${order.vectors} on GEval's tasks (${order.tasks.join(", ") || "all"})`;
    const models = order.models.length ? order.models.join(", ") : "the models of the suite";
    const tasks = order.tasks.length ? ` (${order.tasks.join(", ")})` : "";
    return `${models} on ${order.suite}${tasks}, seed ${order.seed}`;
  }

  function show(evaluation) {
    const { status, progress, output, models } = evaluation;
    const { done, failed, left, running } = progress;
    const all = done + left + running.length;
    get("ordered").textContent = words(evaluation);
    get("bar").max = Math.max(1, all);
    if (status === "running" && !all) get("bar").removeAttribute("value");
    else get("bar").value = done;
    const now = running.slice(0, 3).map((job) => `${job.model} ${job.task} ${job.fold}`);
    const parts = [
      STATES[status](evaluation),
      all ? `${done} of ${Karat.count(all, "job")} done` : "",
      failed ? `${failed} failed` : "",
      now.length ? `running: ${now.join(", ")}` : "",
    ];
    get("state").textContent = parts.filter(Boolean).join(" · ").replace(". ·", " ·");
    get("output").hidden = !output.trim();
    get("output").querySelector("pre").textContent = output;
    if (status === "failed") get("output").open = true;
    get("actions").replaceChildren(...actions(evaluation));
    if (status === "finished" && before && before !== status) location.assign(Karat.board(models));
    if (before !== status) list();
    before = status;
  }

  function actions({ id, status, models }) {
    const nodes = [];
    if (models.length)
      nodes.push(el("a", { class: "button main", href: Karat.board(models), text: "Show on the leaderboard" }));
    const name = status === "finished" ? null : Karat.ended({ status }) ? "resume" : "cancel";
    if (name && facts.writable === "true")
      nodes.push(
        el("button", {
          class: "button",
          type: "button",
          text: name === "resume" ? "Resume" : "Cancel",
          click: () => Karat.act(id, name, open),
        }),
      );
    return nodes;
  }

  function open(id) {
    stop();
    before = "";
    stop = Karat.follow(id, show);
  }

  // -- all evaluations --------------------------------------------------------------------------

  async function list() {
    const { items = [] } = await Karat.read("/evaluations?limit=50");
    get("all").replaceChildren(...items.map(entry));
    if (!items.length) get("all").append(el("li", { class: "soft", text: "There are none yet." }));
  }

  function entry(evaluation) {
    const { id, status, created, order } = evaluation;
    const page = order.vectors ? "/geval" : "";
    const link = el("a", { href: `${page}?${new URLSearchParams({ id })}`, text: words(evaluation) });
    return Karat.entry(link, `${status} · ${created.slice(0, 16).replace("T", " ")}`);
  }

  function start() {
    const id = new URLSearchParams(location.search).get("id");
    if (id) open(id);
    else {
      stop();
      get("current").hidden = true;
    }
  }

  addEventListener("popstate", start);
  start();
  prepare();
  list();
})();
