/* GEval's page: a vector file and GEval's parameters, the progress, and the results. */
(() => {
  "use strict";
  const { Karat } = window;
  const { el } = Karat;
  const facts = document.documentElement.dataset;
  const get = (id) => document.getElementById(id);
  let stop = () => null;
  let shown = "";

  // -- the form ---------------------------------------------------------------------------------

  const option = (value, text = value) => el("option", { value, text });

  function select(id, values, first = null) {
    const before = get(id).value;
    const all = values.map((each) => option(each));
    get(id).replaceChildren(...(first === null ? all : [option("", first), ...all]));
    if (before && values.includes(before)) get(id).value = before;
  }

  /** Show checkboxes, as {value, text, disabled}; those that are chosen stay chosen. */
  function ticks(id, items, none) {
    const before = chosen(id);
    const boxes = items.map(({ value, text, disabled = false }) => {
      const box = el("input", { type: "checkbox", value, disabled, checked: before.includes(value) });
      return el("label", { title: text }, box, el("span", { text }));
    });
    get(id)
      .querySelector(".ticks")
      .replaceChildren(...(boxes.length ? boxes : [el("p", { text: none })]));
  }

  const chosen = (id) => [...get(id).querySelectorAll(".ticks input:checked")].map((box) => box.value);

  function taskItems({ tasks, gold_standards: golds }) {
    return tasks.map(({ name }) => {
      const own = golds.filter(({ task }) => task === name);
      const here = own.filter(({ available }) => available);
      const missing = own.length - here.length;
      const note = !here.length ? " (no data)" : missing ? ` (${here.length} of ${own.length})` : "";
      return { value: name, text: name + note, disabled: !here.length };
    });
  }

  async function prepare() {
    const answer = await Karat.request("GET", "/geval");
    if (answer.status !== 200) return Karat.fail("form", Karat.sentences(answer));
    const { data } = answer;
    get("gold-error").textContent = data.message;
    const asked = new URLSearchParams(location.search).get("vectors") ?? "";
    ticks("tasks", taskItems(data), "There are no tasks.");
    select("vector_file_format", data.formats, "by the suffix of the file");
    select("similarity_metric", data.similarity_metrics);
    select("analogy_function", data.analogy_functions);
    if (data.analogy_functions.includes("default")) get("analogy_function").value = "default";
    select("protocol", data.protocols);
    return Promise.all([stored(asked), list()]);
  }

  async function stored(name = "") {
    const { items = [] } = await Karat.read("/vectors");
    select("vectors", items.map((each) => each.name), "a new file");
    if (items.some((each) => each.name === name)) get("vectors").value = name;
    const runs = (await Karat.read("/geval/runs?limit=500")).items ?? [];
    ticks("compare_with", runs.reverse().map(({ id }) => ({ value: id, text: id })), "There are none yet.");
  }

  get("file").addEventListener("change", () => {
    Karat.clear();
    const [file] = get("file").files;
    if (!file) return;
    get("name").value = Karat.nameOf(file.name);
    get("vectors").value = "";
  });

  /** Return a whole number of at least 1, null for an empty field, or undefined with a message. */
  function number(id) {
    const text = get(id).value.trim();
    if (!text) return null;
    if (/^\d{1,7}$/.test(text) && Number(text) > 0) return Number(text);
    Karat.fail(id, "Use a whole number of at least 1.");
    return undefined;
  }

  function mistaken(file, name) {
    const limit = Number(facts.limit);
    if (!get("vectors").value) {
      if (!file) Karat.fail("file", "Choose a file first.");
      else if (!file.size) Karat.fail("file", "The file is empty. Choose another one.");
      else if (file.size > limit)
        Karat.fail("file", `The file has ${Karat.size(file.size)}; the limit is ${Karat.size(limit)}.`);
      else if (!name) Karat.fail("name", "Give the file a name.");
      if (!file || !file.size || file.size > limit || !name) return true;
    }
    if (get("token").value.trim()) return false;
    Karat.fail("token", "Enter the token of this server.");
    return true;
  }

  /** Upload the new file, and return its name on the server; null if it was refused. */
  async function upload(file, name) {
    get("sent").hidden = false;
    const answer = await Karat.request("POST", `/vectors?${new URLSearchParams({ name })}`, {
      body: file,
      type: "application/octet-stream",
      sent: (part) => (get("sent").value = part),
    });
    get("sent").hidden = true;
    if (answer.status === 201) return answer.data.name;
    Karat.refused(answer, "file");
    return null;
  }

  get("order").addEventListener("submit", async (event) => {
    event.preventDefault();
    Karat.clear();
    const size = number("vector_size");
    const top = size === undefined ? undefined : number("top_k");
    const [file] = get("file").files;
    const name = get("name").value.trim();
    if (top === undefined || mistaken(file, name)) return;
    get("send").disabled = true;
    const vectors = get("vectors").value || (await upload(file, name));
    if (vectors) await submit({ vectors, vector_size: size, top_k: top ?? 2 });
    get("send").disabled = false;
  });

  async function submit(given) {
    if (!get("vectors").value) await stored(given.vectors);
    const order = { ...given, tasks: chosen("tasks"), compare_with: chosen("compare_with") };
    for (const id of ["vector_file_format", "similarity_metric", "analogy_function", "protocol"])
      order[id] = get(id).value;
    const answer = await Karat.request("POST", "/geval", { body: JSON.stringify(order), type: "application/json" });
    if (answer.status !== 202) return Karat.refused(answer);
    history.pushState(null, "", `?${new URLSearchParams({ id: answer.data.id })}`);
    return open(answer.data.id);
  }

  // -- one evaluation ---------------------------------------------------------------------------

  const STATES = {
    queued: ({ position }) => `Waiting: number ${position ?? 1} in the queue.`,
    running: () => "Running.",
    finished: ({ code }) => (code ? "Finished; some parts failed." : "Finished."),
    failed: ({ code }) => `Failed${code === null ? "" : ` with exit code ${code}`}. The output has the reason.`,
    cancelled: () => "Cancelled.",
    stopped: () => "Stopped with the server. Resume it to run it again.",
  };

  function show(evaluation) {
    const { status, progress, output, order, result } = evaluation;
    const { done, failed, left, running } = progress;
    const all = done + left + running.length;
    const tasks = order.tasks?.length ? order.tasks.join(", ") : "all tasks";
    get("ordered").textContent = `${order.vectors ?? ""} on ${tasks}, ${order.similarity_metric}`;
    get("bar").max = Math.max(1, all);
    if (status === "running" && !all) get("bar").removeAttribute("value");
    else get("bar").value = done;
    const parts = [STATES[status](evaluation)];
    if (all) parts.push(`${done} of ${Karat.count(all, "job")} done`);
    if (failed) parts.push(`${failed} failed`);
    get("state").textContent = parts.join(" · ").replace(". ·", " ·");
    get("output").hidden = !output.trim();
    get("output").querySelector("pre").textContent = output;
    if (status === "failed") get("output").open = true;
    get("actions").replaceChildren(...actions(evaluation));
    if (result && Karat.ended(evaluation) && shown !== result) showResult(result);
    if (Karat.ended(evaluation)) list();
  }

  function actions({ id, status }) {
    const name = status === "finished" ? null : Karat.ended({ status }) ? "resume" : "cancel";
    if (!name || facts.writable !== "true") return [];
    const text = name === "resume" ? "Run again" : "Cancel";
    return [el("button", { class: "button", type: "button", text, click: () => Karat.act(id, name, open) })];
  }

  function open(id) {
    stop();
    shown = "";
    get("result").hidden = true;
    stop = Karat.follow(id, show);
  }

  // -- results ----------------------------------------------------------------------------------

  const isNumber = (value) => typeof value === "number";

  /** Return a cell; whole numbers have no decimals unless ``digits`` is given. */
  function cell(value, digits = Number.isInteger(value) ? 0 : 4) {
    const text = isNumber(value) ? Karat.fixed(value, digits) : String(value ?? "") || "–";
    const pieces = text.split(/(?<=_)/).flatMap((piece) => [el("wbr"), piece]);
    return el("td", { class: isNumber(value) ? "number" : "" }, pieces);
  }

  function table(columns, rows, caption) {
    const head = columns.map((text, i) =>
      el("th", { scope: "col", class: isNumber(rows[0]?.[i]) ? "number" : "", text }),
    );
    return el(
      "table",
      null,
      el("caption", { class: "hidden", text: caption }),
      el("thead", null, el("tr", null, head)),
      el("tbody", null, rows.map((row) => el("tr", null, row.map((value) => cell(value))))),
    );
  }

  async function showResult(name) {
    shown = name;
    const answer = await Karat.request("GET", `/geval/results/${encodeURIComponent(name)}`);
    if (shown !== name) return;
    get("result").hidden = false;
    get("result-error").textContent = answer.status === 200 ? "" : Karat.sentences(answer);
    const { data } = answer;
    if (answer.status !== 200) return clearResult();
    const size = data.vector_size ? `size ${data.vector_size}` : "";
    const about = [data.vectors, data.run, data.tasks, size, data.similarity_metric, data.protocol, data.started];
    get("about").textContent = about.filter(Boolean).join(" · ");
    const href = `/api/v1/geval/results/${encodeURIComponent(name)}/files.zip`;
    get("files").replaceChildren(el("a", { class: "button", href, download: "", text: "Download all files (zip)" }));
    get("problems").hidden = !data.problems.length;
    get("problems").replaceChildren(
      el("h3", { text: "Problems" }),
      el("ul", { class: "notes" }, data.problems.map((text) => el("li", { text }))),
    );
    showRanks(data);
    showTables(data);
    if (get("current").hidden) get("result-title").focus();
  }

  function clearResult() {
    for (const id of ["about", "files", "ranks", "ranks-help", "tables"]) get(id).replaceChildren();
    get("problems").hidden = true;
  }

  /** Show the rank of the run for every model and metric, with the score. */
  function showRanks({ comparison_ranking: ranks, comparison_values: values, run }) {
    if (!ranks || !values) {
      get("ranks-help").textContent = "There are no scores to compare.";
      get("ranks").replaceChildren();
      return;
    }
    const at = (columns) => (row, name) => row[columns.indexOf(name)];
    const rank = at(ranks.columns);
    const value = at(values.columns);
    const KEYS = ["task_name", "gold_standard_file", "model", "model_configuration", "metric"];
    const key = (get_) => (row) => JSON.stringify(KEYS.map((name) => get_(row, name) || ""));
    const own = values.rows.filter((row) => value(row, "test_name") === run);
    const scores = new Map(own.map((row) => [key(value)(row), value(row, "score_value")]));
    const others = new Set(values.rows.map((row) => value(row, "test_name")));
    get("ranks-help").textContent = `${Karat.count(others.size, "run")}; the rank of ${run} among them.`;
    const groups = new Map();
    for (const row of ranks.rows) {
      const name = `${rank(row, "task_name")} · ${rank(row, "gold_standard_file")}`;
      if (!groups.has(name)) groups.set(name, []);
      const cells = [
        [rank(row, "model"), rank(row, "model_configuration")].filter(given).join(", "),
        rank(row, "metric"),
        scores.get(key(rank)(row)) ?? null,
        rank(row, "ranking") < 0 ? null : `${rank(row, "ranking")} of ${rank(row, "absolute_total")}`,
      ];
      const nodes = cells.map((value) => cell(value, 4));
      nodes[2].className = "number";
      groups.get(name).push(el("tr", { class: "score" }, nodes));
    }
    get("ranks").replaceChildren(grouped(groups));
  }

  const given = (text) => text && text !== "-";

  /** Return a table with the rows of each group below its name. */
  function grouped(groups) {
    const names = ["Model", "Metric", "Score", "Rank"];
    const head = names.map((text) => el("th", { scope: "col", class: text === "Score" ? "number" : "", text }));
    const bodies = [...groups].map(([text, rows]) =>
      el("tbody", null, el("tr", null, el("th", { scope: "rowgroup", colspan: names.length, text })), rows),
    );
    const caption = el("caption", { class: "hidden", text: "Scores and ranks" });
    return el("table", null, caption, el("thead", null, el("tr", null, head)), bodies);
  }

  function showTables({ tables, ignored, log }) {
    const parts = Object.entries(tables).map(([name, { columns, rows, total }]) =>
      folded(`${name} (${Karat.count(total, "row")})`, scrolled(table(columns, rows, name), name)),
    );
    for (const [name, lines] of Object.entries(ignored))
      parts.push(folded(`${name} (${Karat.count(lines.length, "line")})`, lines_(lines.join("\n"))));
    parts.push(folded("log.txt", lines_(log)));
    get("tables").replaceChildren(...parts);
  }

  const folded = (text, node) => el("details", null, el("summary", { text }), node);
  const lines_ = (text) => el("pre", { tabindex: "0", text });
  const scrolled = (node, name) =>
    el("div", { class: "wide tall", role: "region", tabindex: "0", "aria-label": name }, node);

  // -- all results ------------------------------------------------------------------------------

  async function list() {
    const { items = [] } = await Karat.read("/geval/results?limit=100");
    get("all").replaceChildren(...items.map(entry));
    if (!items.length) get("all").append(el("li", { class: "soft", text: "There are none yet." }));
  }

  function entry({ name, run, vectors, tasks, started }) {
    const href = `?${new URLSearchParams({ result: name })}`;
    const link = el("a", { href, text: run && !run.startsWith("none") ? run : vectors || name });
    return Karat.entry(link, `${tasks} · ${started.slice(0, 16)}`);
  }

  function start() {
    const asked = new URLSearchParams(location.search);
    stop();
    get("current").hidden = get("result").hidden = true;
    if (asked.get("id")) open(asked.get("id"));
    else if (asked.get("result")) showResult(asked.get("result"));
  }

  addEventListener("popstate", start);
  start();
  prepare();
})();
