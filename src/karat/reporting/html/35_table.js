/* Tables: sortable by click and key, and only the rows in view where there are many. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el } = Karat;
  const MANY = 120;
  const HEIGHT = 35;
  const AROUND = 12;
  /** width of an A4 page, upright and across */
  const PAPER = 690;
  const ACROSS = 1020;
  const SMALLER = 0.86;
  /** letters of a leaderboard on paper have 8.5 points times this or more */
  const LEAST = 7 / 8.5;
  let tables = [];

  /**
   * Return a table. A column is {name, label, key, number, cell(row) -> text or node, sort(row)
   * -> number or text, down, stay, head}; `sorted()` returns [key, descending] and `sort(key, down)`
   * is called when the order changes. `rows(list)` shows other rows.
   */
  Karat.table = ({ caption, columns, sorted, sort, label }) => {
    const body = el("tbody");
    const head = el("tr");
    const table = el(
      "table",
      null,
      el("caption", { class: "hidden", text: label ?? caption }),
      el("thead", null, head),
      body,
    );
    const wide = el(
      "div",
      { class: "wide", tabindex: "0", role: "region", "aria-label": `Table: ${label ?? caption}` },
      table,
    );
    const textNode = caption ? el("p", { class: "lead caption", text: caption }) : null;
    const shown = {
      node: el("div", { class: "tabled" }, textNode, wide),
      wide,
      textNode,
      table,
      list: [],
      columns,
    };
    shown.heads = () =>
      head.replaceChildren(...shown.columns.map((column) => headOf(column, sorted, sort)));
    shown.rows = (list) => {
      shown.list = list;
      wide.classList.toggle("tall", list.length > MANY);
      table.setAttribute("aria-rowcount", String(list.length + 1));
      fill(shown, body, true);
    };
    shown.fresh = () => fill(shown, body, true);
    wide.addEventListener("scroll", () => fill(shown, body, false), { passive: true });
    wide.addEventListener("scroll", () => hint(wide), { passive: true });
    new ResizeObserver(() => hint(wide)).observe(wide);
    shown.heads();
    tables.push(shown);
    return shown;
  };

  /** In print all rows are shown, and a wide table is scaled down. */
  addEventListener("beforeprint", () => {
    tables = tables.filter(({ node }) => node.isConnected);
    for (const shown of tables) {
      shown.whole = true;
      shown.fresh();
      shown.table.style.zoom = shown.fewer ? legible(shown) : shrink(shown.table, PAPER);
    }
  });

  /** Return by how much a table must shrink to fit on paper, where its letters are smaller anyway. */
  function shrink(table, paper) {
    table.style.minWidth = "0";
    const natural = table.scrollWidth * SMALLER;
    table.style.minWidth = "";
    return Math.max(0.4, Math.min(1, paper / natural));
  }

  /** Return the same for a table that may stand across the page and, if need be, have fewer columns. */
  function legible(shown) {
    const upright = shrink(shown.table, PAPER);
    if (upright >= LEAST) return upright;
    shown.node.closest("section")?.classList.add("across");
    if (shrink(shown.table, ACROSS) < LEAST) shown.fewer(true);
    return shrink(shown.table, ACROSS);
  }

  addEventListener("afterprint", () => {
    for (const shown of tables) {
      shown.whole = false;
      shown.table.style.zoom = "";
      shown.node.closest("section")?.classList.remove("across");
      shown.fewer?.(false);
      shown.fresh();
    }
  });

  /** Fade the right edge while there is more to the right. */
  function hint(wide) {
    wide.classList.toggle("more", wide.scrollLeft + wide.clientWidth < wide.scrollWidth - 2);
  }

  /** Return the head of a column; a button where one can sort by it. */
  function headOf(column, sorted, sort) {
    const [key, down] = sorted?.() ?? [];
    const attributes = { scope: "col", class: classOf(column), title: column.title };
    if (!column.key || !sort)
      return el("th", attributes, column.head ?? column.name, small(column));
    if (key === column.key) attributes["aria-sort"] = down ? "descending" : "ascending";
    const button = el("button", {
      class: "sort",
      type: "button",
      "data-key": column.key,
      text: column.name,
      click: () => sort(column.key, key === column.key ? !down : Boolean(column.down)),
    });
    return el("th", attributes, button, small(column));
  }

  function small(column) {
    return column.label ? el("small", { text: column.label }) : null;
  }

  function classOf(column) {
    return [column.number && "number", column.stay && "stay"].filter(Boolean).join(" ") || null;
  }

  /** Put the rows in view into the body, with empty space for those above and below. */
  function fill(shown, body, always) {
    const { list, wide: node } = shown;
    const many = list.length > MANY && !shown.whole;
    const room = Math.ceil((node.clientHeight || 700) / HEIGHT) + 2 * AROUND;
    const from = many
      ? Math.max(0, Math.min(Math.floor(node.scrollTop / HEIGHT) - AROUND, list.length - room))
      : 0;
    const to = many ? Math.min(list.length, from + room) : list.length;
    if (
      !always &&
      (!many || (Math.abs(from - shown.from) < AROUND / 2 && to === shown.to + from - shown.from))
    )
      return;
    Object.assign(shown, { from, to });
    const rows = list.slice(from, to).map((row, i) => rowOf(shown.columns, row, from + i));
    body.replaceChildren(space(from, shown), ...rows, space(list.length - to, shown));
  }

  function space(count, { columns }) {
    if (!count) return "";
    const cell = el("td", { colspan: columns.length, style: `height:${count * HEIGHT}px` });
    return el("tr", { class: "spacer", "aria-hidden": "true" }, cell);
  }

  function rowOf(columns, row, place) {
    const cells = columns.map((column) => {
      const found = column.cell(row, place);
      const kind = column.heading ? "th" : "td";
      const facts = { class: classOf(column), scope: column.heading ? "row" : null };
      const cell = found instanceof HTMLTableCellElement ? found : el(kind, facts, found ?? "");
      cell.dataset.label = column.name;
      return cell;
    });
    return el("tr", { "aria-rowindex": place + 2 }, cells);
  }

  /** Return a plain table of texts that its own heads sort. */
  Karat.plainTable = (caption, names, rows, options = {}) => {
    let order = options.order ?? [null, false];
    const numbers = names.map(
      (_, i) =>
        rows.length > 0 && rows.every((row) => row[i] === null || typeof row[i] === "number"),
    );
    const whole = names.map((_, i) =>
      rows.every((row) => row[i] === null || Number.isInteger(row[i])),
    );
    const columns = names.map((name, i) => ({
      name,
      key: String(i),
      number: numbers[i],
      heading: i === (options.heading ?? 0),
      cell: (row) =>
        options.cells?.[i]?.(row[i], row) ?? textCell(row[i], options.wrap?.includes(i), whole[i]),
    }));
    const shown = Karat.table({
      caption,
      label: caption,
      columns,
      sorted: () => order,
      sort: (key, down) => {
        order = [key, down];
        shown.heads();
        shown.rows(sortRows(rows, Number(key), down));
        shown.node.querySelector(`[data-key="${key}"]`)?.focus();
      },
    });
    shown.rows(rows);
    return shown.node;
  };

  function textCell(value, wrap, whole) {
    if (value === null || value === undefined) return "–";
    if (whole) return value.toLocaleString("en-US");
    if (typeof value === "number") return Karat.number(value);
    return el("span", { class: wrap ? "wrap" : "cut", text: Karat.plain(value) });
  }

  /** Return rows sorted by a column; empty cells come last. */
  function sortRows(rows, i, down) {
    return Karat.sortBy(rows, (row) => row[i], down);
  }

  /** Return things sorted by a key, numbers before texts, unknown ones last, equal ones as they were. */
  Karat.sortBy = (things, key, down = false) => {
    const sign = down ? -1 : 1;
    const missing = (value) => value === null || value === undefined || value === "";
    return things
      .map((thing, i) => [key(thing), i, thing])
      .sort(([a, i], [b, j]) => {
        if (missing(a) || missing(b)) return missing(a) - missing(b) || i - j;
        const way =
          typeof a === "number" && typeof b === "number"
            ? a - b
            : String(a).localeCompare(String(b));
        return sign * way || i - j;
      })
      .map(([, , thing]) => thing);
  };
})();
