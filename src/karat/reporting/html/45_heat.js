/* The heat map: models × tasks, colored by the rank within each task. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el, svg } = Karat;
  const MANY = 3000;
  const LEVELS = 32;

  /** Return what is drawn: models, tasks by kind, a share (1 is best) per cell, and the measures. */
  function plan(width) {
    const models = Karat.order().filter((m) => Karat.matches(m) && Karat.ranking.models.has(m));
    const { chosen } = Karat.ranking;
    const kindOf = (place) => Karat.plain(Karat.data.tasks[chosen[place]].kind) || "other";
    const places = chosen.map((_, place) => place);
    const kinds = [...new Set(places.map(kindOf))];
    places.sort((a, b) => kinds.indexOf(kindOf(a)) - kinds.indexOf(kindOf(b)) || a - b);
    const shares = places.map(sharesOn);
    const names = models.map((m) => Karat.short(Karat.model(m), width < 560 ? 16 : 30));
    const titles = places.map((place) => Karat.short(Karat.task(chosen[place]), 18));
    const found = { models, chosen, places, shares, names, titles, kindOf };
    return { ...found, ...measure(found, width) };
  }

  /** Return how large cells are, and how much room names need. */
  function measure({ models, places, names, titles }, width) {
    const widest = Math.max(40, ...names.slice(0, 400).map((name) => Karat.width(name)));
    const left = Math.min(220, Math.ceil(widest) + 12);
    const least = models.length * places.length <= MANY ? 34 : 4;
    const wide = Math.max(least, Math.min(124, (width - left - 8) / Math.max(1, places.length)));
    const tall = Math.max(3, Math.min(26, Math.round(1300 / Math.max(1, models.length))));
    const longest = Math.max(0, ...titles.map((title) => Karat.width(title)));
    const labeled = wide >= 13;
    const slanted = labeled && longest > wide - 6;
    const room = slanted ? Math.ceil(longest * 0.67) + 16 : 22;
    return { left, wide, tall, labeled, slanted, top: 26 + (labeled ? room : 0) };
  }

  /** Return by model how good its rank on a task is: 1 the best, 0 the worst, null without. */
  function sharesOn(place) {
    const ranks = Karat.ranksOn(place);
    const last = Karat.ranking.tasks[place].who.length;
    return ranks.map((rank) => (rank === null ? null : last < 2 ? 1 : 1 - (rank - 1) / (last - 1)));
  }

  function sizeOf({ models, places, left, top, wide, tall, slanted }) {
    return [
      Math.ceil(left + places.length * wide + (slanted ? 60 : 4)),
      top + models.length * tall + 6,
    ];
  }

  function names(map) {
    const { models, places, left, top, wide, tall } = map;
    const group = svg("g");
    const every = Math.max(1, Math.ceil(13 / tall));
    models.forEach((m, i) => {
      if (i % every) return;
      const y = top + i * tall + tall / 2 + 4;
      const text = Karat.label(left - 8, y, map.names[i], { "text-anchor": "end", class: "name" });
      group.append(text);
    });
    if (map.labeled) places.forEach((place, j) => group.append(taskName(map, place, j)));
    group.append(...kindNames(map));
    return group;
  }

  function taskName({ titles, left, top, wide, slanted }, place, j) {
    const [x, y] = [left + (j + 0.5) * wide, top - 8];
    if (!slanted) return Karat.label(x, y, titles[j], { "text-anchor": "middle" });
    return Karat.label(x, y, titles[j], { transform: `rotate(-42 ${x} ${y})` });
  }

  /** Return the names of kinds above their tasks, with a line. */
  function kindNames({ places, left, wide, kindOf }) {
    const nodes = [];
    for (let start = 0; start < places.length;) {
      let end = start;
      while (end + 1 < places.length && kindOf(places[end + 1]) === kindOf(places[start])) end += 1;
      const [from, to] = [left + start * wide + 1, left + (end + 1) * wide - 2];
      const fitting = Math.max(2, Math.floor((to - from) / 6.2));
      nodes.push(svg("line", { class: "axis", x1: from, x2: to, y1: 18, y2: 18 }));
      nodes.push(
        Karat.label(from, 12, Karat.short(kindOf(places[start]), fitting), { class: "value" }),
      );
      start = end + 1;
    }
    return nodes;
  }

  function hatching() {
    const pattern = svg("pattern", {
      id: "hatch",
      width: 6,
      height: 6,
      patternUnits: "userSpaceOnUse",
      patternTransform: "rotate(45)",
    });
    pattern.append(svg("rect", { width: 6, height: 6, fill: Karat.colorOf("--sunk") }));
    pattern.append(
      svg("line", {
        x1: 0,
        y1: 0,
        x2: 0,
        y2: 6,
        stroke: Karat.colorOf("--strong"),
        "stroke-width": 1.6,
      }),
    );
    return svg("defs", null, pattern);
  }

  /** Return the cells of each level of color, -1 for those without a rank. */
  function byLevel({ models, places, shares }) {
    const levels = new Map();
    places.forEach((_, j) =>
      models.forEach((m, i) => {
        const share = shares[j][m];
        const level = share === null ? -1 : Math.round(share * LEVELS);
        if (!levels.has(level)) levels.set(level, []);
        levels.get(level).push(j * models.length + i);
      }),
    );
    return levels;
  }

  /** Return the map as a drawing: one path per color, and the scores where they fit. */
  function drawing(map) {
    const { models, places, left, top, wide, tall } = map;
    const sheet = Karat.sheet(...sizeOf(map), label(map));
    const gap = tall > 12 ? 1.5 : 0;
    const shape = `h${(wide - gap).toFixed(1)}v${tall - gap}h${(gap - wide).toFixed(1)}z`;
    sheet.append(hatching());
    for (const [level, cells] of byLevel(map)) {
      const at = (cell) => [
        left + Math.floor(cell / models.length) * wide,
        top + (cell % models.length) * tall,
      ];
      const d = cells
        .map(at)
        .map(([x, y]) => `M${x.toFixed(1)} ${y}${shape}`)
        .join("");
      sheet.append(
        svg("path", { d, fill: level < 0 ? "url(#hatch)" : Karat.ramp(level / LEVELS) }),
      );
    }
    sheet.append(names(map));
    if (wide >= 34 && tall >= 20 && models.length * places.length <= MANY)
      sheet.append(scores(map));
    return sheet;
  }

  function scores({ models, places, shares, chosen, left, top, wide, tall }) {
    const group = svg("g");
    places.forEach((place, j) =>
      models.forEach((m, i) => {
        const share = shares[j][m];
        if (share === null) return;
        const text =
          Karat.score(chosen[place], m) === null
            ? "failed"
            : Karat.number(Karat.score(chosen[place], m), wide < 46 ? 3 : 4);
        if (Karat.width(text, 10.5) > wide) return;
        const style = `fill:${Karat.over(share)}`;
        group.append(
          Karat.label(left + (j + 0.5) * wide, top + i * tall + tall / 2 + 3.5, text, {
            "text-anchor": "middle",
            class: "small",
            style,
          }),
        );
      }),
    );
    return group;
  }

  function label({ models, places }) {
    return `Heat map of ${Karat.count(models.length, "model")} and ${Karat.count(places.length, "task")}`;
  }

  /** Return the map as pixels, with the names drawn over them. */
  function painting(map) {
    const [width, height] = sizeOf(map);
    const { models, places, left, top, wide, tall } = map;
    const sharp = Math.min(2, devicePixelRatio || 1);
    const canvas = el("canvas", {
      width: width * sharp,
      height: height * sharp,
      style: `width:${width}px;height:${height}px`,
      "aria-hidden": "true",
    });
    const pen = canvas.getContext("2d");
    pen.scale(sharp, sharp);
    const hatch = hatched(pen);
    const edges = Array.from({ length: places.length + 1 }, (_, j) => Math.round(left + j * wide));
    for (const [level, cells] of byLevel(map)) {
      pen.fillStyle = level < 0 ? hatch : Karat.ramp(level / LEVELS);
      for (const cell of cells) {
        const [i, j] = [cell % models.length, Math.floor(cell / models.length)];
        pen.fillRect(edges[j], top + i * tall, edges[j + 1] - edges[j], tall);
      }
    }
    const sheet = Karat.sheet(width, height, label(map));
    sheet.style.cssText = "position:absolute;left:0;top:0;max-width:none";
    sheet.append(names(map));
    return el("div", { style: `position:relative;width:${width}px` }, canvas, sheet);
  }

  function hatched(pen) {
    const tile = el("canvas", { width: 4, height: 4 });
    const own = tile.getContext("2d");
    own.fillStyle = Karat.colorOf("--sunk");
    own.fillRect(0, 0, 4, 4);
    own.strokeStyle = Karat.colorOf("--strong");
    own.beginPath();
    own.moveTo(0, 4);
    own.lineTo(4, 0);
    own.stroke();
    return pen.createPattern(tile, "repeat");
  }

  // -- pointing: a cell under the pointer, or walked to with the arrow keys ----------------------

  function tell(map, i, j) {
    const [m, place] = [map.models[i], map.places[j]];
    const t = map.chosen[place];
    const rank = Karat.ranksOn(place)[m];
    const value = Karat.score(t, m);
    const metric = Karat.metric(t, Karat.ranking.metric(t));
    const lines = [Karat.short(Karat.model(m), 60), Karat.short(Karat.task(t), 60)];
    lines.push(value === null ? Karat.why(t, m) : `${metric} ${Karat.number(value, 5)}`);
    if (rank !== null) lines.push(`rank ${rank} of ${Karat.ranking.tasks[place].who.length}`);
    return lines.join("\n");
  }

  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  function openAt(map, i, j) {
    if (!(i in map.models) || !(j in map.places)) return;
    Karat.set({ task: Karat.keyOf(Karat.data.tasks, map.chosen[map.places[j]]) });
  }

  /** Show tooltips of cells, and open tasks on click. */
  function point(map, node) {
    const at = (event) => {
      const box = node.getBoundingClientRect();
      const scale = sizeOf(map)[0] / node.firstChild.getBoundingClientRect().width;
      const j = Math.floor(((event.clientX - box.left) * scale - map.left) / map.wide);
      return [Math.floor(((event.clientY - box.top) * scale - map.top) / map.tall), j];
    };
    node.addEventListener("pointermove", (event) => {
      const [i, j] = at(event);
      const there = i in map.models && j in map.places;
      Karat.tip(there ? tell(map, i, j) : "", event.clientX, event.clientY);
    });
    node.addEventListener("pointerleave", () => Karat.tip(""));
    node.addEventListener("click", (event) => openAt(map, ...at(event)));
  }

  /** Move between cells with arrow keys, and open a task with Enter. */
  function walk(map, node) {
    let [i, j] = [0, 0];
    // at the top, as below the map it would make it scroll
    const textNode = el("p", { class: "hidden", "aria-live": "polite", style: "top:0;margin:0" });
    node.append(textNode);
    node.addEventListener("keydown", (event) => {
      const step = STEPS[event.key];
      if (!step && event.key !== "Enter") return;
      // or the key would go on to the button that gets the focus
      event.preventDefault();
      if (!step) return void openAt(map, i, j);
      i = Math.max(0, Math.min(map.models.length - 1, i + step[0]));
      j = Math.max(0, Math.min(map.places.length - 1, j + step[1]));
      textNode.textContent = tell(map, i, j);
      const { left, top } = node.getBoundingClientRect();
      const place = [map.left + (j + 0.5) * map.wide, map.top + (i + 0.5) * map.tall];
      Karat.tip(textNode.textContent, left + place[0], top + place[1]);
    });
  }

  function draw(width) {
    const map = plan(width);
    const cells = map.models.length * map.places.length;
    if (!cells) return el("p", { class: "faint", text: "No models or tasks selected." });
    const node = el("div", {
      id: "heat",
      tabindex: "0",
      role: "group",
      "data-tips": "1",
      "aria-label": `${label(map)}; use arrow keys to move, Enter to open the task`,
      style: `width:${sizeOf(map)[0]}px;cursor:pointer`,
    });
    node.append(cells > MANY ? painting(map) : drawing(map));
    point(map, node);
    walk(map, node);
    return node;
  }

  function csv() {
    const { models, places, chosen } = plan(900);
    const rows = models.flatMap((m) =>
      places.map((place) => {
        const t = chosen[place];
        const metric = Karat.data.tasks[t].metrics[Karat.ranking.metric(t)];
        return [
          Karat.data.models[m].name,
          Karat.data.tasks[t].name,
          metric,
          Karat.score(t, m),
          Karat.ranksOn(place)[m],
          Karat.data.states[t][m],
        ];
      }),
    );
    return [["model", "task", "metric", "score", "rank", "state"], ...rows];
  }

  function build(root) {
    const key = el(
      "div",
      { class: "bar" },
      Karat.rampKey("worst of the task", "best of the task"),
      el("span", { class: "scale", text: "▨ no score" }),
    );
    const picture = Karat.figure({
      name: "heatmap",
      title: "Rank within each task",
      draw,
      csv,
      vector: (width) => drawing(plan(width)),
      rolls: true,
    });
    root.append(key, picture.node);
    Karat.on("ranking", picture.redraw);
    Karat.on("state", (names) => names.includes("find") && picture.redraw());
  }

  const has = () => Karat.data.models.length > 1 && Karat.data.tasks.length > 1;
  Karat.section({
    id: "heatmap",
    title: "Ranks by task",
    way: "Heat map",
    has,
    build,
  });
})();
