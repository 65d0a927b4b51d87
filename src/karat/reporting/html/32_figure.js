/* A plot: drawn when it comes into view, saved as SVG, PNG or CSV. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el } = Karat;
  const STYLED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap"];
  STYLED.push("stroke-linejoin", "opacity", "font-family", "font-size", "font-weight");
  const SHARPNESS = 2;
  const PAPER = 690;
  let pictures = [];
  let printing = false;

  Karat.save = (name, content, type) => {
    const blob = content instanceof Blob ? content : new Blob([content], { type });
    const address = URL.createObjectURL(blob);
    const link = el("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  };

  /** Return a standalone SVG file with the styles inlined. */
  Karat.standalone = (drawing) => {
    const copy = drawing.cloneNode(true);
    const ours = [drawing, ...drawing.querySelectorAll("*")];
    const theirs = [copy, ...copy.querySelectorAll("*")];
    ours.forEach((node, i) => {
      const style = getComputedStyle(node);
      for (const name of STYLED) {
        const value = style.getPropertyValue(name);
        if (value && node.tagName !== "title") theirs[i].setAttribute(name, value);
      }
      for (const name of ["class", "data-tip", "tabindex", "style"])
        theirs[i].removeAttribute(name);
    });
    const ground = Karat.svg("rect", { width: "100%", height: "100%", fill: colorOf("--card") });
    copy.prepend(ground);
    return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(copy)}\n`;
  };

  function colorOf(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }
  Karat.colorOf = colorOf;

  /** Save a drawing as a PNG file. */
  Karat.savePixels = (name, text, width, height) => {
    const picture = new Image();
    picture.onload = () => {
      const canvas = el("canvas", { width: width * SHARPNESS, height: height * SHARPNESS });
      canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => Karat.save(`${name}.png`, blob), "image/png");
    };
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  };

  /** Attach a drawing to the page while its styles are read. */
  function withDrawing(picture, action) {
    picture.show();
    const shown = picture.body.querySelector("svg");
    if (shown && !picture.vector) return action(shown);
    const drawing = (picture.vector ?? picture.draw)(picture.width());
    const aside = el("div", { class: "hidden", "aria-hidden": "true" }, drawing);
    picture.body.append(aside);
    action(drawing);
    aside.remove();
  }

  function savers(picture) {
    const name = `karat-${picture.name}`;
    const asVector = () =>
      withDrawing(picture, (drawing) =>
        Karat.save(`${name}.svg`, Karat.standalone(drawing), "image/svg+xml"),
      );
    const asPixels = () =>
      withDrawing(picture, (drawing) => {
        const size = [drawing.getAttribute("width"), drawing.getAttribute("height")].map(Number);
        Karat.savePixels(name, Karat.standalone(drawing), ...size);
      });
    const asTable = () => Karat.save(`${name}.csv`, Karat.csv(picture.csv()), "text/csv");
    const button = (text, click) =>
      el("button", {
        type: "button",
        text,
        click,
        "aria-label": `Save ${picture.name} as ${text}`,
      });
    const buttons = [button("SVG", asVector), button("PNG", asPixels), button("CSV", asTable)];
    return el("span", { class: "saves" }, buttons);
  }

  /**
   * Return a plot: `draw(width)` returns its content, `csv()` the rows of its data, `vector` a
   * drawing if the content is not an SVG. `redraw()` draws again, at once or when it comes into view.
   */
  Karat.figure = ({ name, title, draw, csv, vector, rolls = false, under = null }) => {
    const body = el("div", { class: rolls ? "plot rolls" : "plot" });
    const picture = { name, draw, csv, vector, body, stale: true, near: false };
    picture.width = () => {
      const room = Math.max(240, Math.floor(body.clientWidth) || 640);
      return printing ? Math.min(PAPER, room) : room;
    };
    picture.redraw = () => {
      picture.stale = true;
      if (picture.near) picture.show();
    };
    picture.show = () => {
      if (!picture.stale) return;
      picture.stale = false;
      picture.drawn = picture.width();
      body.replaceChildren(draw(picture.drawn));
    };
    picture.title = el("span", { text: title });
    const caption = el("figcaption", null, picture.title, savers(picture));
    picture.node = el("figure", { class: "figure", id: `figure-${name}` }, caption, body, under);
    body.picture = picture;
    pictures.push(picture);
    inView.observe(body);
    return picture;
  };

  const inView = new IntersectionObserver(
    (entries) =>
      entries.forEach(({ isIntersecting, target }) => {
        target.picture.near = isIntersecting;
        if (!isIntersecting) return;
        target.picture.show();
        resized.observe(target);
      }),
    { rootMargin: "500px 0px" },
  );

  const resized = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const { picture } = target;
      if (target.clientWidth && picture.drawn !== picture.width())
        requestAnimationFrame(picture.redraw);
    }
  });

  Karat.drawAll = () => {
    pictures = pictures.filter((picture) => picture.body.isConnected);
    pictures.forEach((picture) => picture.show());
  };

  /** Draw what stands above the end of an element, which then does not move while one scrolls. */
  Karat.drawUntil = (target) => {
    const isBelow = ({ body }) =>
      target.compareDocumentPosition(body) & Node.DOCUMENT_POSITION_FOLLOWING &&
      !target.contains(body);
    pictures
      .filter((picture) => picture.body.isConnected && !isBelow(picture))
      .forEach((picture) => picture.show());
  };

  Karat.redrawAll = () => {
    pictures = pictures.filter((picture) => picture.body.isConnected);
    pictures.forEach((picture) => picture.redraw());
  };

  /** In print, a plot that is too wide is scaled down. */
  function fit(on) {
    for (const { body } of pictures.filter((picture) => picture.body.classList.contains("rolls"))) {
      const content = body.firstElementChild;
      if (content) content.style.zoom = on ? Math.min(1, PAPER / content.offsetWidth) : "";
    }
  }

  addEventListener("beforeprint", () => {
    printing = true;
    pictures.forEach((picture) => (picture.stale = true));
    Karat.drawAll();
    fit(true);
  });
  addEventListener("afterprint", () => {
    printing = false;
    fit(false);
    Karat.redrawAll();
  });
})();
