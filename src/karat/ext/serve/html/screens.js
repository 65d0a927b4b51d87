/* What the pages of the server share: the theme, requests, errors next to fields, events. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el } = Karat;
  const API = "/api/v1";
  const KEPT = "karat-token";
  const EVERY = 2000;
  const PATIENCE = 30000;

  document.querySelector(".crown").append(Karat.themes());

  // -- requests ---------------------------------------------------------------------------------

  /** Return {status, data} of a request; `sent` receives the part of a body that is uploaded. */
  Karat.request = (method, path, { body = null, type = null, sent = null } = {}) =>
    new Promise((done) => {
      const request = new XMLHttpRequest();
      request.open(method, API + path);
      if (type) request.setRequestHeader("Content-Type", type);
      const token = document.getElementById("token")?.value.trim();
      if (token && method !== "GET") request.setRequestHeader("Authorization", `Bearer ${token}`);
      if (sent) request.upload.onprogress = ({ loaded, total }) => sent(total ? loaded / total : 0);
      request.onload = () => done({ status: request.status, data: parsed(request.responseText) });
      request.onerror = () => done({ status: 0, data: {} });
      request.send(body);
    });

  Karat.read = async (path) => (await Karat.request("GET", path)).data;

  function parsed(text) {
    try {
      return JSON.parse(text);
    } catch {
      return {};
    }
  }

  /** Return an error as sentences. */
  Karat.sentences = ({ status, data }) => {
    if (!status) return "The server does not answer. Is it running? Nothing was changed.";
    const parts = [data.error || `The server answered with status ${status}.`, data.hint ?? ""];
    return parts
      .filter(Boolean)
      .map((part) => part[0].toUpperCase() + part.slice(1))
      .map((part) => (/[.?!]$/.test(part) ? part : `${part}.`))
      .join(" ");
  };

  // -- errors -----------------------------------------------------------------------------------

  /** Show an error next to a field and focus the field; without such a field, below the form. */
  Karat.fail = (field, text) => {
    const place = document.getElementById(`${field}-error`) ?? document.getElementById("form-error");
    place.textContent = text;
    const node = document.getElementById(field);
    if (!node) return;
    const input = node.matches("fieldset") ? node.querySelector("input") : node;
    input.setAttribute("aria-invalid", "true");
    input.focus();
  };

  /** Remove the errors of the form. */
  Karat.clear = () => {
    for (const node of document.querySelectorAll("form .wrong")) node.textContent = "";
    for (const node of document.querySelectorAll("[aria-invalid]")) node.removeAttribute("aria-invalid");
  };

  /** Show a refused request next to the field that it names. */
  Karat.refused = (answer, otherwise = "form") => {
    const { status, data } = answer;
    Karat.fail(status === 401 ? "token" : (data.field ?? otherwise), Karat.sentences(answer));
  };

  // -- the token --------------------------------------------------------------------------------

  const token = document.getElementById("token");
  if (token) {
    try {
      token.value = sessionStorage.getItem(KEPT) ?? "";
      token.addEventListener("change", () => sessionStorage.setItem(KEPT, token.value.trim()));
    } catch {
      /* storage is not allowed: the token is typed on every page */
    }
  }

  // -- events -----------------------------------------------------------------------------------

  /**
   * Call `show` with an evaluation whenever it changes, until it has ended, or `fail` with the
   * answer if there is none; return how to stop.
   */
  Karat.watch = (id, show, fail) => {
    const key = encodeURIComponent(id);
    let source = null;
    let timer = 0;
    let stopped = false;
    const stop = () => {
      stopped = true;
      clearTimeout(timer);
      source?.close();
    };
    const poll = async () => {
      clearTimeout(timer);
      source?.close();
      const answer = await Karat.request("GET", `/evaluations/${key}`);
      if (stopped) return;
      if (answer.status === 200) show(answer.data);
      else fail(answer);
      if (answer.status !== 404 && !Karat.ended(answer.data)) timer = setTimeout(poll, EVERY);
    };
    if (!window.EventSource) {
      poll();
      return stop;
    }
    source = new EventSource(`${API}/events?evaluation=${key}`);
    timer = setTimeout(poll, PATIENCE);
    source.addEventListener("evaluation", ({ data }) => {
      clearTimeout(timer);
      if (!stopped) show(JSON.parse(data));
    });
    source.addEventListener("end", stop);
    source.addEventListener("error", () => {
      if (!stopped && source.readyState === EventSource.CLOSED) poll();
    });
    return stop;
  };

  Karat.ended = ({ status }) => Boolean(status) && !["queued", "running"].includes(status);

  /** Open the part of the page about an evaluation, and `watch` it; return what stops it. */
  Karat.follow = (id, show) => {
    const get = (each) => document.getElementById(each);
    get("current").hidden = false;
    get("state").textContent = "";
    get("current-error").textContent = "";
    get("current-title").focus();
    get("current").scrollIntoView({ block: "start" });
    return Karat.watch(id, show, (answer) => {
      get("current-error").textContent = Karat.sentences(answer);
    });
  };

  /** Cancel or resume an evaluation; one that is resumed is shown with `open`. */
  Karat.act = async (id, name, open) => {
    const place = document.getElementById("current-error");
    Karat.clear();
    place.textContent = "";
    const answer = await Karat.request("POST", `/evaluations/${encodeURIComponent(id)}/${name}`);
    if (answer.status !== 202) {
      place.textContent = Karat.sentences(answer);
      if (answer.status === 401) Karat.refused(answer);
    } else if (name === "resume") open(id);
  };

  // -- lists and links --------------------------------------------------------------------------

  /** Return the address of the leaderboard with the rows of some models highlighted. */
  Karat.board = (models) =>
    models.length ? `/#${new URLSearchParams({ rows: models.join("\n") })}` : "/";

  Karat.entry = (what, about, ...more) =>
    el(
      "li",
      null,
      el("span", { class: "what" }, what),
      el("span", { class: "soft", text: about }),
      more,
    );

  /** Return a name that the server accepts, made from the name of a file. */
  Karat.nameOf = (name) =>
    name
      .normalize("NFKD")
      .replace(/[^A-Za-z0-9_@+,.-]+/g, "-")
      .replace(/\.{2,}/g, ".")
      .replace(/^[^A-Za-z0-9]+|[.-]+$/g, "")
      .slice(0, 150);

  Karat.size = (bytes) =>
    bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`;

  // -- the API page -----------------------------------------------------------------------------

  for (const pre of document.querySelectorAll("pre[data-example]")) {
    const base = document.documentElement.dataset.base;
    if (base !== location.origin) pre.textContent = pre.textContent.replaceAll(base, location.origin);
    const button = el("button", { class: "button quiet", type: "button", text: "Copy" });
    button.setAttribute("aria-label", `Copy the ${pre.dataset.example} example`);
    button.addEventListener("click", async () => {
      await navigator.clipboard?.writeText(pre.textContent).catch(() => null);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), EVERY);
    });
    const row = el("div", { class: "copy" });
    pre.replaceWith(row);
    row.append(pre, button);
  }

  document.documentElement.dataset.ready = "1";
})();
