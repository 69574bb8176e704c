"use strict";
/* Small SVG charts: axes, points, lines, a tip under the pointer. Text only ever enters through textContent. */
const Charts = (() => {
  const NS = "http://www.w3.org/2000/svg";
  const make = (name, attributes, text) => {
    const node = document.createElementNS(NS, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    return node;
  };

  const show = (value) => {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e5 || size < 1e-3) return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
    return String(Number(value.toPrecision(4)));
  };

  const tickText = (value, step) => {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e5 || size < 1e-3) return value.toExponential(1).replace(/\.0e/, "e").replace("e+", "e");
    const digits = Math.max(0, Math.min(8, Math.ceil(-Math.log10(step) - 1e-9)));
    return value.toFixed(digits);
  };

  const linearTicks = (low, high, count) => {
    const raw = (high - low) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw) || 10 * power;
    const ticks = [];
    for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) ticks.push(Math.abs(v) < step * 1e-9 ? 0 : v);
    return ticks.map((v) => [v, tickText(v, step)]);
  };

  const logTicks = (low, high, count) => {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    if (last - first < 1) return linearTicks(low, high, count).filter(([v]) => v > 0);
    const step = Math.max(1, Math.ceil((last - first) / count)), ticks = [];
    for (let p = first; p <= last; p += step) ticks.push([10 ** p, p >= -2 && p <= 4 ? String(Number((10 ** p).toPrecision(1))) : "1e" + p]);
    return ticks;
  };

  const extent = (series, key, log) => {
    let low = Infinity, high = -Infinity;
    for (const s of series) for (const v of s[key]) if (v !== null && Number.isFinite(v) && (!log || v > 0)) { low = Math.min(low, v); high = Math.max(high, v); }
    return low > high ? null : [low, high];
  };

  const scale = (range, log, from, to) => {
    const f = log ? Math.log10 : (v) => v;
    let a = f(range[0]), b = f(range[1]);
    if (a === b) { const pad = log ? 0.5 : Math.abs(a) * 0.1 || 1; a -= pad; b += pad; } else { const pad = (b - a) * 0.05; a -= pad; b += pad; }
    const map = (v) => from + ((f(v) - a) / (b - a)) * (to - from);
    map.low = log ? 10 ** a : a; map.high = log ? 10 ** b : b;
    return map;
  };

  /* spec: {label, height, x: {label, log, range}, y: {...}, series: [{kind, x, y, className, titles, onPick, picked}], diagonal, zero} */
  function draw(holder, spec) {
    const render = () => {
      const width = Math.max(240, holder.clientWidth || 480), height = spec.height || 300;
      const box = { left: 62, right: 14, top: 10, bottom: 44 };
      const xr = spec.x.range || extent(spec.series, "x", spec.x.log), yr = spec.y.range || extent(spec.series, "y", spec.y.log);
      const focused = holder.contains(document.activeElement) ? document.activeElement.getAttribute("data-k") : null;
      holder.replaceChildren();
      if (!xr || !yr) { const p = document.createElement("p"); p.className = "soft"; p.textContent = spec.empty || "nothing to show yet"; holder.append(p); return; }
      const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": spec.label });
      const sx = scale(xr, spec.x.log, box.left, width - box.right), sy = scale(yr, spec.y.log, height - box.bottom, box.top);
      const xt = (spec.x.log ? logTicks : linearTicks)(sx.low, sx.high, width / 90), yt = (spec.y.log ? logTicks : linearTicks)(sy.low, sy.high, height / 55);
      for (const [v, text] of xt) { const at = sx(v); svg.append(make("line", { class: "gridline", x1: at, x2: at, y1: box.top, y2: height - box.bottom }), make("text", { x: at, y: height - box.bottom + 16, "text-anchor": "middle" }, text)); }
      for (const [v, text] of yt) { const at = sy(v); svg.append(make("line", { class: "gridline", y1: at, y2: at, x1: box.left, x2: width - box.right }), make("text", { x: box.left - 7, y: at + 4, "text-anchor": "end" }, text)); }
      svg.append(make("line", { class: "axis", x1: box.left, x2: width - box.right, y1: height - box.bottom, y2: height - box.bottom }), make("line", { class: "axis", x1: box.left, x2: box.left, y1: box.top, y2: height - box.bottom }));
      const cut = (text) => { const room = Math.floor(width / 8); text = String(text); return text.length > room ? text.slice(0, room - 1) + "…" : text; };
      svg.append(make("text", { class: "label", x: (box.left + width - box.right) / 2, y: height - 6, "text-anchor": "middle" }, cut(spec.x.label)));
      svg.append(make("text", { class: "label", transform: `translate(14 ${(box.top + height - box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, cut(spec.y.label)));
      if (spec.diagonal) { const a = Math.max(sx.low, sy.low), b = Math.min(sx.high, sy.high); if (b > a) svg.append(make("line", { class: "guide", x1: sx(a), y1: sy(a), x2: sx(b), y2: sy(b) })); }
      if (spec.zero && sy.low < 0 && sy.high > 0) svg.append(make("line", { class: "guide", x1: box.left, x2: width - box.right, y1: sy(0), y2: sy(0) }));
      const tip = document.createElement("div"); tip.className = "tip"; tip.hidden = true;
      const place = (px, py, text) => { tip.textContent = text; tip.hidden = false; const room = holder.clientWidth; tip.style.left = Math.max(0, Math.min(px + 10, room - tip.offsetWidth - 2)) + "px"; tip.style.top = Math.max(0, py - tip.offsetHeight - 10) + "px"; };
      const spots = [];
      for (const s of spec.series) {
        const ok = s.x.map((v, i) => v !== null && s.y[i] !== null && Number.isFinite(v) && Number.isFinite(s.y[i]) && (!spec.x.log || v > 0) && (!spec.y.log || s.y[i] > 0));
        if (s.kind === "line" || s.kind === "step") {
          let path = "", open = false, last = null;
          s.x.forEach((v, i) => {
            if (!ok[i]) { open = false; return; }
            const px = sx(v), py = Math.max(-1e4, Math.min(1e4, sy(s.y[i])));
            path += open ? (s.kind === "step" ? `H${px.toFixed(1)}V${py.toFixed(1)}` : `L${px.toFixed(1)} ${py.toFixed(1)}`) : `M${px.toFixed(1)} ${py.toFixed(1)}`;
            open = true; last = [px, py];
          });
          svg.append(make("path", { class: s.className || "curve", d: path }));
          if (last && s.kind === "step") svg.append(make("circle", { class: "dot", cx: last[0], cy: last[1], r: 4 }));
          continue;
        }
        s.x.forEach((v, i) => {
          if (!ok[i]) return;
          const px = sx(v), py = sy(s.y[i]), title = s.titles ? s.titles(i) : `${spec.x.label}: ${show(v)}\n${spec.y.label}: ${show(s.y[i])}`;
          if (!s.onPick) { svg.append(make("circle", { class: s.className || "dot", cx: px.toFixed(1), cy: py.toFixed(1), r: s.radius || 3.5 })); spots.push([px, py, title]); return; }
          const dot = make("circle", { class: "member" + (s.picked === i ? " on" : ""), cx: px, cy: py, r: s.picked === i ? 9 : 7, tabindex: 0, role: "button", "data-k": i, "aria-label": title.replace(/\n/g, ", "), "aria-pressed": s.picked === i });
          const hit = make("circle", { class: "hit", cx: px, cy: py, r: 14 });
          const pick = () => s.onPick(i);
          for (const node of [dot, hit]) { node.addEventListener("click", pick); node.addEventListener("pointerenter", () => place(px, py, title)); node.addEventListener("pointerleave", () => { tip.hidden = true; }); }
          dot.addEventListener("keydown", (event) => {
            if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(); }
            if (event.key === "ArrowRight" && i + 1 < s.x.length) { event.preventDefault(); s.onPick(i + 1, true); }
            if (event.key === "ArrowLeft" && i > 0) { event.preventDefault(); s.onPick(i - 1, true); }
          });
          svg.append(hit, dot);
        });
      }
      if (spots.length) {
        svg.addEventListener("pointermove", (event) => {
          const rect = svg.getBoundingClientRect(), k = width / rect.width, mx = (event.clientX - rect.left) * k, my = (event.clientY - rect.top) * k;
          let best = null, distance = 18 ** 2;
          for (const spot of spots) { const d = (spot[0] - mx) ** 2 + (spot[1] - my) ** 2; if (d < distance) { distance = d; best = spot; } }
          if (best) place(best[0] / k, best[1] / k, best[2]); else tip.hidden = true;
        });
        svg.addEventListener("pointerleave", () => { tip.hidden = true; });
      }
      holder.append(svg, tip);
      if (focused !== null) { const node = svg.querySelector(`[data-k="${spec.focus !== undefined ? spec.focus : focused}"]`); if (node) node.focus(); }
    };
    holder.redraw = render;
    if (!holder.watched) { holder.watched = true; let width = 0; new ResizeObserver(() => { if (holder.clientWidth !== width) { width = holder.clientWidth; holder.redraw(); } }).observe(holder); }
    render();
  }

  /* The front: loss against complexity, one clickable point per formula. A loss of 0 sits at the bottom. */
  function front(holder, members, picked, onPick, focus) {
    const positive = members.map((m) => m.loss).filter((v) => v > 0), floor = positive.length ? Math.min(...positive) / 10 : 1e-16;
    const x = members.map((m) => m.complexity), y = members.map((m) => (m.loss > 0 ? m.loss : m.loss === 0 ? floor : null));
    draw(holder, {
      label: "Front of formulas: loss against complexity", height: 330, focus, x: { label: "complexity" }, y: { label: "loss (RMSE), log scale", log: true },
      series: [
        { kind: "step", className: "frontline", x, y },
        { kind: "points", x, y, picked, onPick, titles: (i) => `${members[i].text}\ncomplexity ${members[i].complexity}, loss ${show(members[i].loss)}` },
      ],
    });
  }

  return { draw, front, show };
})();

/* Theme and copy buttons, the same on every page. */
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  if (button) button.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    button.setAttribute("aria-pressed", String(!dark));
  });
})();
async function copyText(text, button) {
  try { await navigator.clipboard.writeText(text); } catch (error) {
    const area = document.createElement("textarea"); area.value = text; area.className = "visually-hidden"; document.body.append(area); area.select(); document.execCommand("copy"); area.remove();
  }
  const before = button.dataset.name || button.textContent; button.dataset.name = before; button.textContent = "Copied"; button.classList.add("copied");
  setTimeout(() => { button.textContent = before; button.classList.remove("copied"); }, 1200);
}
