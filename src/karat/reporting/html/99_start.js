/* Start: read the bundle, build the page, follow a running evaluation where it is served. */
(() => {
  "use strict";
  const { Karat } = window;
  Karat.given = Karat.read();
  Karat.take(Karat.given);
  Karat.build();
  if (Karat.here()) Karat.land(Karat.here(), "instant");
  document.documentElement.dataset.ready = "1";
  if (Karat.address()) Karat.follow(Karat.address());
})();
