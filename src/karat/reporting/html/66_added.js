/* Sections of installed extensions: their sentences, their table, and their notes. */
(() => {
  "use strict";
  const Karat = (window.Karat ??= {});
  const { el } = Karat;

  const paragraph = (line) => el("p", { text: Karat.plain(line) });

  function build(root, { title, sentences, columns, rows, notes }) {
    root.append(...sentences.map(paragraph));
    if (columns.length) root.append(Karat.plainTable(title, columns, rows));
    root.append(...notes.map(paragraph));
  }

  Karat.addedSections = () =>
    (Karat.given.added ?? []).map((text, i) => ({
      id: `added-${i}`,
      title: text.title,
      way: text.title,
      has: () => true,
      build: (root) => build(root, text),
    }));
})();
