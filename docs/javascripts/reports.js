/* The reports on the landing page are light or dark as the page is. */
(() => {
  "use strict";

  function follow() {
    const scheme = document.body.getAttribute("data-md-color-scheme");
    const theme = scheme === "slate" ? "dark" : "light";
    for (const frame of document.querySelectorAll(".report iframe")) {
      try {
        frame.contentDocument.documentElement.dataset.theme = theme;
      } catch {
        /* pages opened as files cannot reach into a frame: it follows the system */
      }
    }
  }

  for (const frame of document.querySelectorAll(".report iframe"))
    frame.addEventListener("load", follow);
  new MutationObserver(follow).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  follow();
})();
