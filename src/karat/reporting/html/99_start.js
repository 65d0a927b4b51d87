/* Start: read the bundle, build the page, follow a running evaluation where it is served. */
(() => {
  "use strict";
  const { Karat } = window;
  Karat.given = Karat.read();
  Karat.take(Karat.given);
  Karat.build();
  document.getElementById(location.hash.slice(1))?.scrollIntoView({ behavior: "instant" });
  document.documentElement.dataset.ready = "1";
  if (Karat.address()) Karat.follow(Karat.address());
})();
