"use strict";
/* What the pages of runs share. The body of a report knows its height, also when it becomes less; the frame follows it, so
   that there is one scroll bar, and takes on the theme of the page around it. */
function followReport(frame) {
  frame.addEventListener("load", () => {
    const inner = frame.contentDocument; if (!inner || !inner.body) return;
    new ResizeObserver(() => { frame.style.height = Math.ceil(inner.body.getBoundingClientRect().height) + 4 + "px"; }).observe(inner.body);
    const theme = () => { inner.documentElement.dataset.theme = document.documentElement.dataset.theme || ""; };
    if (document.documentElement.dataset.theme) theme();
    document.getElementById("theme").addEventListener("click", theme);
  });
}
