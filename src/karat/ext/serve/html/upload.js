/* The upload page: a file, its kind and its name; and the vector files that are stored. */
(() => {
  "use strict";
  const { Karat } = window;
  const { el } = Karat;
  const facts = document.documentElement.dataset;
  const get = (id) => document.getElementById(id);
  const ARCHIVE = /\.(zip|tar|tar\.gz|tgz)$/i;
  let named = false;

  const kind = () => document.querySelector("input[name=kind]:checked").value;

  function nameOf(file) {
    const stem = kind() === "runs" ? file.name.replace(ARCHIVE, "") : file.name;
    return Karat.nameOf(stem);
  }

  function suggest() {
    const [file] = get("file").files;
    if (file && !named) get("name").value = nameOf(file);
  }

  get("file").addEventListener("change", () => {
    Karat.clear();
    const [file] = get("file").files;
    if (!file) return;
    const archive = ARCHIVE.test(file.name);
    document.querySelector(`input[name=kind][value=${archive ? "runs" : "vectors"}]`).checked = true;
    named = false;
    suggest();
  });
  get("kind").addEventListener("change", suggest);
  get("name").addEventListener("input", () => (named = get("name").value !== ""));

  const drop = document.querySelector(".drop");
  for (const name of ["dragenter", "dragover"])
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  for (const name of ["dragleave", "drop"])
    drop.addEventListener(name, () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    if (get("file").disabled || !event.dataTransfer.files.length) return;
    get("file").files = event.dataTransfer.files;
    get("file").dispatchEvent(new Event("change"));
  });

  /** Return whether something is missing or wrong, with a message next to the first such field. */
  function mistaken(file, name) {
    const limit = Number(facts.limit);
    if (!file) Karat.fail("file", "Choose a file first.");
    else if (!file.size) Karat.fail("file", "The file is empty. Choose another one.");
    else if (file.size > limit)
      Karat.fail("file", `The file has ${Karat.size(file.size)}; the limit is ${Karat.size(limit)}.`);
    else if (!name) Karat.fail("name", "Give the upload a name.");
    else if (!get("token").value.trim()) Karat.fail("token", "Enter the token of this server.");
    else return false;
    return true;
  }

  get("upload").addEventListener("submit", async (event) => {
    event.preventDefault();
    Karat.clear();
    get("uploaded").textContent = "";
    const [file] = get("file").files;
    const name = get("name").value.trim();
    if (mistaken(file, name)) return;
    const path = `/${kind()}?${new URLSearchParams({ name })}`;
    const sent = (part) => (get("sent").value = part);
    busy(true);
    const answer = await Karat.request("POST", path, {
      body: file,
      type: "application/octet-stream",
      sent,
    });
    busy(false);
    if (answer.status !== 201) Karat.refused(answer, "file");
    else await finish(answer.data);
  });

  function busy(now) {
    get("send").disabled = now;
    get("sent").hidden = !now;
    get("sent").value = 0;
  }

  /** After a run folder, show it on the leaderboard; after vectors, offer to evaluate them. */
  async function finish(data) {
    if (data.id) {
      const run = await Karat.read(`/runs/${encodeURIComponent(data.id)}`);
      location.assign(Karat.board(run.model ? [run.model] : []));
      return;
    }
    get("uploaded").replaceChildren("Uploaded. ", evaluation(data.model, "Evaluate it"));
    get("uploaded").querySelector("a").focus();
    await list();
  }

  function evaluation(model, text) {
    return el("a", { class: "button", href: `/evaluate?${new URLSearchParams({ model })}`, text });
  }

  async function list() {
    const { items = [] } = await Karat.read("/vectors");
    get("stored").replaceChildren(...items.map(entry));
    if (!items.length) get("stored").append(el("li", { class: "soft", text: "There are none yet." }));
  }

  function entry({ name, bytes, utc, model }) {
    const remove = el("button", {
      class: "button quiet",
      type: "button",
      text: "Delete",
      "aria-label": `Delete ${name}`,
      disabled: facts.writable !== "true",
      click: async () => {
        if (!confirm(`Delete ${name}? Results that were computed with it are kept.`)) return;
        Karat.clear();
        const answer = await Karat.request("DELETE", `/vectors/${encodeURIComponent(name)}`);
        if (answer.status === 200) await list();
        else Karat.refused(answer);
      },
    });
    const about = `${Karat.size(bytes)} · ${utc.slice(0, 16).replace("T", " ")}`;
    const geval = el("a", { class: "button", href: `/geval?${new URLSearchParams({ vectors: name })}`, text: "GEval" });
    geval.setAttribute("aria-label", `Evaluate ${name} with GEval`);
    return Karat.entry(name, about, evaluation(model, "Evaluate"), geval, remove);
  }

  list();
})();
