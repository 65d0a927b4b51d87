/* Sharing the leaderboard: as a picture, as Markdown, LaTeX or CSV, and as a link. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el, svg } = Karat;
  /** letters of ties are not aligned if there are this many or more */
  const LETTERS = 8;
  const SIGNS = /[\\`*[\]|~]/g;
  const HTML = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
  const TEX = {
    "\\": "\\textbackslash{}",
    "^": "\\textasciicircum{}",
    "~": "\\textasciitilde{}",
    "`": "\\textasciigrave{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    '"': "{\\char34}",
    "–": "\\textendash{}",
    "…": "\\ldots{}",
    "·": "\\textperiodcentered{}",
    "×": "$\\times$",
    "↑": "$\\uparrow$",
    "↓": "$\\downarrow$",
    "\ufffd": "?",
  };

  // -- the table that is shared: the columns of karat leaderboard -------------------------------

  /** Return a column: a name, a label below it, and cells as [text, whether it is the best]. */
  function column(name, cells, { label = "", left = false } = {}) {
    return { name, label, left, cells: cells.map((cell) => (Array.isArray(cell) ? cell : [cell, false])) };
  }

  function rankColumns(models) {
    const { mean, low, high, tie, few } = Karat.ranking;
    const rank = (value) => (value === null ? "–" : Karat.fixed(value, 1));
    const enough = (m) => (few.some(Boolean) ? !few[m] : tie[m] || !models.some((one) => tie[one]));
    const known = models.filter((m) => mean[m] !== null && enough(m));
    const best = Math.min(...known.map((m) => mean[m]));
    const ends = (m) => (low[m] === null ? "–" : `${rank(low[m])} – ${rank(high[m])}`);
    const found = [
      column("model", models.map(Karat.model), { left: true }),
      column("rank", models.map((m) => [rank(mean[m]), known.includes(m) && mean[m] === best])),
    ];
    if (models.some((m) => low[m] !== null)) found.push(column("95 %", models.map(ends)));
    if (models.some((m) => tie[m])) found.push(column("tie", ties(models), { left: true }));
    return found;
  }

  /** Return the letters of ties, each in a place of its own unless there are many. */
  function ties(models) {
    const { tie } = Karat.ranking;
    const letters = [...new Set(models.flatMap((m) => [...(tie[m] ?? "")]))].sort();
    if (letters.length >= LETTERS) return models.map((m) => tie[m] ?? "");
    return models.map((m) => letters.map((x) => (tie[m].includes(x) ? x : " ")).join(" "));
  }

  function taskColumns(models) {
    const scored = Karat.ranking.chosen.filter((t) => models.some((m) => Karat.score(t, m) !== null));
    return scored.map((t) => {
      const k = Karat.ranking.metric(t);
      const values = models.map((m) => Karat.score(t, m)).filter((value) => value !== null);
      const best = values.reduce((a, b) => Karat.data.tasks[t].higher[k] === b > a ? b : a);
      const cell = (m) => {
        const value = Karat.score(t, m);
        if (value === null) return Karat.sign(t, m);
        const star = k === 0 && Karat.partialAt.has(`${t} ${m}`) ? "*" : "";
        return [Karat.number(value) + star, value === best];
      };
      return column(Karat.task(t), models.map(cell), { label: Karat.metric(t, k) });
    });
  }

  function costColumns(models) {
    const of = (key, write) =>
      models.map((m) => {
        const value = Karat.data.models[m][key];
        return (value ?? null) === null ? "–" : write(value);
      });
    const counted = (key) => models.map((m) => String(Karat.data.models[m][key] ?? 0));
    const found = [
      column("failed", counted("failed")),
      column("n/a", counted("declined")),
      column("time", of("seconds", Karat.duration)),
      column("memory", of("memory_mb", (value) => `${(value / 1024).toFixed(1)} GB`)),
    ];
    const dims = of("dimensions", (value) => Karat.fixed(value, 0));
    return dims.every((text) => text === "–") ? found : [...found, column("dims", dims)];
  }

  /** Return the shown leaderboard: columns, caption and notes. */
  Karat.sharedTable = () => {
    const models = Karat.boardModels();
    const columns = [...rankColumns(models), ...taskColumns(models), ...costColumns(models)];
    const why = Karat.untested();
    const notes = why ? [`Differences are not tested: ${why}.`] : [];
    const whole = Karat.ranking.own && models.length === Karat.data.models.length;
    return {
      columns,
      caption: Karat.boardCaption(),
      notes: whole ? Karat.boardNotes(["borda", "wins", "elo", "pareto"]) : notes,
    };
  };

  // -- texts ------------------------------------------------------------------------------------

  Karat.escapeMarkdown = (text) =>
    text
      .replace(/[&<>]/g, (sign) => HTML[sign])
      .replace(SIGNS, "\\$&")
      .replace(/(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, "\\_");

  /** Return the table as `karat leaderboard --format markdown` writes it. */
  Karat.markdown = ({ columns, caption, notes }) => {
    const escape = Karat.escapeMarkdown;
    const parts = columns.map(({ name, label, left, cells }) => {
      const head = [name, label].filter(Boolean).map(escape).join("<br>");
      const body = cells.map(([text, best]) =>
        best ? `**${escape(text.trim())}**` : escape(text.trim()),
      );
      const wide = Math.max(3, ...[head, ...body].map((text) => [...text].length));
      const pad = (text) => {
        const space = " ".repeat(wide - [...text].length);
        return left ? text + space : space + text;
      };
      const rule = left ? "-".repeat(wide) : `${"-".repeat(wide - 1)}:`;
      return [pad(head), rule, ...body.map(pad)];
    });
    const lines = parts[0].map((_, i) => `| ${parts.map((part) => part[i]).join(" | ")} |`);
    const blocks = [escape(caption), lines.join("\n"), escape(notes.join(" "))];
    return `${blocks.filter(Boolean).join("\n\n")}\n`;
  };

  Karat.escapeLatex = (text) =>
    [...text]
      .map((sign) => {
        if ("{}$&#_%".includes(sign)) return `\\${sign}`;
        return "[]*".includes(sign) ? `{${sign}}` : (TEX[sign] ?? sign);
      })
      .join("")
      .replace(/-(?=-)/g, "-{}");

  /** Return the table as `karat leaderboard --format latex` writes it. */
  Karat.latex = ({ columns, caption, notes }) => {
    const escape = Karat.escapeLatex;
    const row = (texts) => `${texts.join(" & ")} \\\\`;
    const heads = [row(columns.map(({ name }) => escape(name)))];
    if (columns.some(({ label }) => label))
      heads.push(row(columns.map(({ label }) => escape(label))));
    const cell = ([text, best]) =>
      best ? `\\textbf{${escape(text.trim())}}` : escape(text.trim());
    const body = columns[0].cells.map((_, i) => row(columns.map(({ cells }) => cell(cells[i]))));
    const sides = columns.map(({ left }) => (left ? "l" : "r")).join("");
    const below = escape([caption, ...notes].filter(Boolean).join(" "));
    const lines = ["% \\usepackage{booktabs}", `\\begin{tabular}{${sides}}`, "\\toprule", ...heads];
    lines.push("\\midrule", ...body, "\\bottomrule", "\\end{tabular}");
    if (below) lines.push("\\par\\smallskip", `{\\footnotesize ${below}\\par}`);
    return `${lines.join("\n")}\n`;
  };

  // -- picture ----------------------------------------------------------------------------------

  const ROW = 26;
  const AIR = 18;
  const EDGE = 20;
  const CAPTION = 110;
  /** bold letters are wider by this factor */
  const BOLD = 1.12;
  /** largest number of tasks in a picture (with more it has none), and of models */
  const TASKS = 20;
  const MODELS = 200;

  /** Return the columns of a picture, and what it leaves out. */
  function pictured() {
    const { columns, caption } = Karat.sharedTable();
    const tasks = columns.filter(({ label }) => label).length;
    const models = columns[0].cells.length;
    const shown = tasks > TASKS ? columns.filter(({ label }) => !label) : columns;
    const why = Karat.untested();
    const parts = [
      caption,
      why ? `Differences are not tested: ${why}.` : "",
      models > MODELS ? `The first ${MODELS} of ${models} models.` : "",
    ];
    const cut = shown.map((one) => ({ ...one, cells: one.cells.slice(0, MODELS) }));
    return { columns: cut, caption: parts.filter(Boolean).join(" ") };
  }

  /** Return the leaderboard as a drawing. */
  function drawing() {
    const { columns, caption } = pictured();
    const wide = columns.map(({ name, label, cells }) => {
      const bold = [name, ...cells.map(([text]) => text)].map((text) => BOLD * Karat.width(text, 13));
      return Math.max(Karat.width(label, 11.5), ...bold);
    });
    const total = wide.reduce((sum, one) => sum + one + AIR, 2 * EDGE - AIR);
    const rows = columns[0].cells.length;
    const title = Karat.plain(Karat.data.title || "Leaderboard");
    const texts = broken(caption, Math.max(60, Math.floor(total / 7)));
    const top = 84;
    const width = Math.max(total, Karat.width(title, 20) + 2 * EDGE, 420);
    const height = top + rows * ROW + 16 + texts.length * 17 + EDGE;
    const sheet = Karat.sheet(Math.ceil(width), height, title);
    sheet.append(Karat.label(EDGE, 34, title, { class: "name", style: "font-size:20px;font-weight:600" }));
    let x = EDGE;
    columns.forEach((one, i) => {
      sheet.append(...columnOf(one, x, wide[i], top));
      x += wide[i] + AIR;
    });
    sheet.append(svg("line", { class: "axis", x1: EDGE, x2: width - EDGE, y1: top - 8, y2: top - 8 }));
    texts.forEach((text, i) =>
      sheet.append(Karat.label(EDGE, top + rows * ROW + 26 + i * 17, text, { style: "font-size:12px" })),
    );
    return sheet;
  }

  function columnOf({ name, label, left, cells }, x, wide, top) {
    const at = left ? x : x + wide;
    const anchor = { "text-anchor": left ? "start" : "end" };
    const text = (y, content, style, kind = "name") =>
      Karat.label(at, y, content, { class: kind, style, ...anchor, "xml:space": "preserve" });
    const heads = [text(top - 30, name, "font-size:13px;font-weight:600")];
    if (label) heads.push(text(top - 15, label, "font-size:11.5px", "label"));
    const body = cells.map(([content, best], i) => {
      const weight = best || name === "model" ? 650 : 400;
      return text(top + i * ROW + 14, content, `font-size:13px;font-weight:${weight}`);
    });
    return [...heads, ...body];
  }

  /** Return a text in lines of at most this many characters. */
  function broken(text, most) {
    const lines = [];
    for (const word of text.split(" ")) {
      const last = lines.at(-1);
      if (last !== undefined && `${last} ${word}`.length <= Math.min(most, CAPTION))
        lines[lines.length - 1] = `${last} ${word}`;
      else lines.push(word);
    }
    return lines;
  }

  /** Run an action with the drawing, which is in the page while its styles are read. */
  function withDrawing(action) {
    const sheet = drawing();
    const aside = el("div", { class: "hidden", "aria-hidden": "true" }, sheet);
    document.getElementById("board").append(aside);
    action(Karat.standalone(sheet), sheet);
    aside.remove();
  }

  // -- menu -------------------------------------------------------------------------------------

  const NAME = "karat-leaderboard";

  const ACTIONS = {
    "Copy link": () => copied(location.href, null),
    "Copy as Markdown": () => copied(Karat.markdown(Karat.sharedTable()), "md"),
    "Copy as LaTeX": () => copied(Karat.latex(Karat.sharedTable()), "tex"),
    "Save as PNG": () =>
      withDrawing((text, sheet) =>
        Karat.savePixels(NAME, text, ...["width", "height"].map((key) => Number(sheet.getAttribute(key)))),
      ),
    "Save as SVG": () =>
      withDrawing((text) => Karat.save(`${NAME}.svg`, text, "image/svg+xml")),
    "Save as Markdown": () =>
      Karat.save(`${NAME}.md`, Karat.markdown(Karat.sharedTable()), "text/markdown"),
    "Save as LaTeX": () => Karat.save(`${NAME}.tex`, Karat.latex(Karat.sharedTable()), "text/x-tex"),
    "Save as CSV": () => Karat.save("karat-board.csv", Karat.csv(Karat.boardRows()), "text/csv"),
  };

  /** Copy a text, and say so; where that is not allowed, show it or save it. */
  async function copied(text, ending) {
    if (await Karat.copy(text)) return "Copied";
    if (!ending) return text;
    Karat.save(`${NAME}.${ending}`, text, "text/plain");
    return "Saved, because the browser does not allow copying";
  }

  /** Return the menu that shares the leaderboard. */
  Karat.shareMenu = () => {
    const status = el("p", { class: "shared-status", role: "status" });
    const buttons = Object.entries(ACTIONS).map(([text, action]) =>
      el("button", {
        type: "button",
        text,
        click: async () => {
          status.textContent = (await action()) ?? "Saved";
          menu.querySelector("summary").focus();
        },
      }),
    );
    const panel = el("div", { class: "panel", role: "group", "aria-label": "Share" }, buttons, status);
    const menu = el(
      "details",
      { class: "menu", id: "share" },
      el("summary", { class: "button", text: "Share ▾" }),
      panel,
    );
    menu.addEventListener("toggle", () => (status.textContent = ""));
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !menu.open) return;
      menu.open = false;
      menu.querySelector("summary").focus();
      event.stopPropagation();
    });
    return menu;
  };

  addEventListener("click", (event) => {
    const menu = document.getElementById("share");
    if (menu?.open && !menu.contains(event.target)) menu.open = false;
  });
})();
