/* Maps: the vectors of a task's items in two dimensions, colored by label. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el, svg } = Karat;
  const HEIGHT = 430;
  const COLORS = 8;

  function now() {
    const place = Number(Karat.get("map", "0"));
    return Karat.data.maps[place] ?? Karat.data.maps[0];
  }

  /** Return the color of a point: of its label, or of its number between the least and greatest. */
  function coloring(map) {
    const values = map.points
      .map((point) => point[2])
      .filter((value) => value !== null && value !== undefined);
    if (map.labels)
      return (value) => ({
        class: value === null || value === undefined ? "none" : `c${value % COLORS}`,
      });
    const [low, high] = Karat.extent(values, 0);
    return (value) => ({ style: `fill:${Karat.ramp((value - low) / (high - low || 1))}` });
  }

  /** Return a sign of a place: a dot, or beyond eight labels a diamond, so that colors may return. */
  function sign(x, y, value, attributes, labeled) {
    const diamond = labeled && value >= COLORS;
    if (!diamond)
      return svg("circle", {
        cx: x,
        cy: y,
        r: 3.6,
        opacity: 0.75,
        ...attributes,
        class: `dot ${attributes.class ?? ""}`,
      });
    return svg("path", {
      d: `M${x} ${y - 5}l5 5l-5 5l-5 -5z`,
      opacity: 0.75,
      ...attributes,
      class: `dot ${attributes.class ?? ""}`,
    });
  }

  function draw(width) {
    const map = now();
    const column = (i) => Karat.extent(map.points.map((point) => point[i]));
    const x = Karat.linear(column(0), [14, width - 14]);
    const y = Karat.linear(column(1), [HEIGHT - 30, 12]);
    const sheet = Karat.sheet(width, HEIGHT, `Map of ${Karat.count(map.points.length, "item")}`);
    const frame = { x: 1, y: 1, width: width - 2, height: HEIGHT - 24, rx: 8, fill: "none" };
    sheet.append(svg("rect", { ...frame, class: "grid" }));
    const color = coloring(map);
    const texts = itemTexts(map.task);
    map.points.forEach(([a, b, value], i) => {
      const label = map.labels ? (map.labels[value] ?? "no label") : Karat.number(value);
      const item = itemOf(map, i, texts);
      const tip = [Karat.short(label, 80), item].filter(Boolean).join("\n");
      const look = { ...color(value), "data-tip": tip };
      sheet.append(sign(x(a), y(b), value, look, Boolean(map.labels)));
    });
    sheet.append(Karat.label(4, HEIGHT - 6, axes(map)));
    return sheet;
  }

  /** Return the texts of a task's items by key; each is stored with the first map that needs it. */
  function itemTexts(task) {
    const maps = Karat.data.maps.filter((map) => map.task === task);
    return new Map(maps.flatMap((map) => Object.entries(map.items ?? {})));
  }

  /** Return the key and text of a point's item; runs of earlier versions have none. */
  function itemOf({ keys }, i, texts) {
    if (!keys) return "";
    const text = texts.get(keys[i]);
    return Karat.short(text ? `${keys[i]}: ${text}` : `item ${keys[i]}`, 120);
  }

  function axes({ method, explained }) {
    if (method !== "pca") return Karat.plain(method);
    const [first, second] = (explained ?? []).map((share) => ` (${Math.round(100 * share)} %)`);
    return `principal components 1${first ?? ""} and 2${second ?? ""}`;
  }

  function keys() {
    const { labels } = now();
    if (!labels) return Karat.rampKey("lowest", "highest");
    return el(
      "ul",
      { class: "keys" },
      labels.map((label, i) =>
        el(
          "li",
          null,
          el("i", {
            class: `c${i % COLORS}`,
            style: i >= COLORS ? "transform:rotate(45deg);width:9px;height:9px" : null,
          }),
          el("span", { class: "cut", text: Karat.plain(label) }),
        ),
      ),
    );
  }

  function csv() {
    const { labels, points, keys } = now();
    return [
      ["x", "y", "label", ...(keys ? ["item"] : [])],
      ...points.map(([x, y, value], i) => [
        x,
        y,
        labels ? (labels[value] ?? "") : value,
        ...(keys ? [keys[i]] : []),
      ]),
    ];
  }

  function title() {
    const { model, task, method } = now();
    return `${Karat.short(Karat.model(model), 40)} on ${Karat.short(Karat.task(task), 40)}, ${method}`;
  }

  function build(root) {
    const home = el("div");
    const picture = Karat.figure({ name: "map", title: title(), draw, csv });
    const show = () => {
      home.replaceChildren(keys());
      picture.title.textContent = title();
      picture.redraw();
    };
    const options = Karat.data.maps.map(({ task, model, method }, i) => [
      i,
      `${Karat.short(Karat.task(task), 30)} · ${Karat.short(Karat.model(model), 30)} · ${method}`,
    ]);
    const chosen = Karat.data.maps.indexOf(now());
    const list = Karat.select("Map", options, chosen, (value) => {
      Karat.set({ map: value });
      show();
    });
    root.append(el("div", { class: "bar" }, list), home, picture.node);
    show();
  }

  const lead = "Projected vectors of the items of the first test fold, colored by label.";
  Karat.section({
    id: "maps",
    title: "Maps of vectors",
    way: "Maps",
    lead,
    has: () => Karat.data.maps.length > 0,
    build,
  });
})();
