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

  /* Figures as `report/numbers.py` writes them: four digits, no power of ten between these sizes. */
  const PLAIN = [1e-4, 1e6], powerOf = (value) => Number(value.toExponential().split("e")[1]);
  const tenTo = (power) => `e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  const show = (value) => {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    const rounded = Number(value.toPrecision(4)), size = Math.abs(rounded);
    if (size === 0 || (size >= PLAIN[0] && size < PLAIN[1])) return String(rounded);
    const [digits, power] = rounded.toExponential().split("e");
    return digits + tenTo(Number(power));
  };

  /* Ticks stand at 1, 2 or 5 times a power of ten, and a label says its value exactly: it has the digits that the step needs. */
  const labelled = (values, step) => {
    const power = Number(step.toExponential().split("e")[1]), largest = Math.max(...values.map(Math.abs)), plain = largest < 1e6 && power >= -4;
    return values.map((v) => {
      if (v === 0) return [v, "0"];
      const digits = plain ? -power : Number(v.toExponential().split("e")[1]) - power, kept = Math.max(0, Math.min(15, digits));
      const text = plain ? v.toFixed(kept) : v.toExponential(kept).replace(/\.?0+e/, "e").replace("e+", "e");
      return [v, text.replace("-", "−").replace("e-", "e−")];
    });
  };

  const linearTicks = (low, high, count, whole) => {
    const raw = (high - low) / Math.max(1, count), power = Math.floor(Math.log10(raw));
    const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10].map((m) => Number(m + "e" + power)).filter((s) => !whole || s >= 1);
    if (!steps.length) steps.push(1);
    let k = steps.findIndex((s) => s >= raw * (1 - 1e-9)), values = [];
    for (; k >= 0 && values.length < 2; k -= 1) { /* one label alone gives no measure: then a smaller step */
      const first = Math.ceil(low / steps[k] - 1e-9), last = Math.min(first + 100, Math.floor(high / steps[k] + 1e-9));
      values = Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => Number(((first + i) * steps[k]).toPrecision(14)) || 0);
    }
    return values.length ? labelled(values, steps[k + 1]) : [];
  };

  const logTicks = (low, high, count) => {
    const from = Math.floor(Math.log10(low)), to = Math.ceil(Math.log10(high)), most = Math.max(2, count);
    const at = (mantissas, stride) => {
      const found = [];
      for (let p = Math.ceil(from / stride) * stride; p <= to; p += stride) for (const m of mantissas) { const v = Number(m + "e" + p); if (v >= low && v <= high) found.push([v, p >= -4 && p <= 5 ? String(v) : m + "e" + String(p).replace("-", "−")]); }
      return found;
    };
    const close = at([1, 2, 5], 1);
    if (close.length < 3) return linearTicks(low, high, count).filter(([v]) => v > 0);
    if (close.length <= most + 1 || at([1], 1).length < 2) return close;
    for (let stride = 1; ; stride += 1) { const ticks = at([1], stride); if (ticks.length <= most) return ticks; }
  };

  /* As many ticks as stand side by side without touching. */
  const fittingTicks = (axis, map, most) => {
    if (axis.names) { const room = Math.max(2, Math.floor((map(1) - map(0) - 6) / 7.7)); return axis.names.map((text, k) => [k, text.length > room ? text.slice(0, room - 1) + "…" : text]); }
    let ticks = [];
    for (let count = Math.max(1, Math.floor(most)); count >= 1; count -= 1) {
      ticks = axis.log ? logTicks(map.low, map.high, count) : linearTicks(map.low, map.high, count, axis.whole);
      if (ticks.every(([v, text], i) => !i || map(v) - map(ticks[i - 1][0]) >= (textWidth(text) + textWidth(ticks[i - 1][1])) / 2 + 10)) return ticks;
    }
    return ticks.slice(0, 1);
  };
  const textWidth = (text) => 7.7 * text.length;

  const extent = (series, key, log) => {
    let low = Infinity, high = -Infinity;
    for (const s of series) for (const values of key === "y" ? [s.y, s.low || [], s.high || []] : [s[key]]) for (const v of values) if (v !== null && Number.isFinite(v) && (!log || v > 0)) { low = Math.min(low, v); high = Math.max(high, v); }
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

  /* Losses that are rounding and nothing else say how the computer rounds: all of them go to one line below the others. */
  const withFloor = (series, exact) => {
    const is = (v) => v !== null && v <= exact, above = extent(series.map((s) => ({ y: s.y.map((v) => (is(v) ? null : v)) })), "y", true);
    if (!series.some((s) => s.y.some(is))) return { series, floor: null, above };
    const floor = above ? above[0] / Math.max(3, (above[1] / above[0]) ** 0.15) : 1;
    const lift = (values) => values && values.map((v) => (is(v) ? floor : v));
    return { series: series.map((s) => ({ ...s, y: lift(s.y), low: lift(s.low), high: lift(s.high) })), floor, above };
  };

  const axes = (svg, spec, { width, height, box, sx, sy, xt, yt, floor }) => {
    const bottom = height - box.bottom, right = width - box.right, cut = (text, room) => { const most = Math.floor(room / 7); text = String(text); return text.length > most ? text.slice(0, most - 1) + "…" : text; };
    for (const [v, text] of xt) { const at = sx(v); svg.append(make("line", { class: "gridline", x1: at, x2: at, y1: box.top, y2: bottom }), make("text", { class: "tick", x: at, y: bottom + 16, "text-anchor": "middle" }, text)); }
    for (const [v, text] of yt) { const at = sy(v); svg.append(make("line", { class: "gridline", y1: at, y2: at, x1: box.left, x2: right }), make("text", { class: "tick", x: box.left - 7, y: at + 4, "text-anchor": "end" }, text)); }
    svg.append(make("line", { class: "axis", x1: box.left, x2: right, y1: bottom, y2: bottom }), make("line", { class: "axis", x1: box.left, x2: box.left, y1: box.top, y2: bottom }));
    if (floor !== null) { const at = sy(floor); svg.append(make("line", { class: "guide floor", x1: box.left, x2: right, y1: at, y2: at }), make("text", { class: "label", x: box.left - 7, y: at + 4, "text-anchor": "end" }, EXACT)); }
    svg.append(make("text", { class: "label", x: (box.left + right) / 2, y: height - 6, "text-anchor": "middle" }, cut(spec.x.label, right - box.left)));
    svg.append(make("text", { class: "label", transform: `translate(13 ${(box.top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, cut(spec.y.label, bottom - box.top)));
    if (spec.diagonal) { const a = Math.max(sx.low, sy.low), b = Math.min(sx.high, sy.high); if (b > a) svg.append(make("line", { class: "guide", x1: sx(a), y1: sy(a), x2: sx(b), y2: sy(b) })); }
    if (spec.zero && sy.low < 0 && sy.high > 0) svg.append(make("line", { class: "guide", x1: box.left, x2: right, y1: sy(0), y2: sy(0) }));
  };
  const EXACT = "exact";

  const line = (svg, s, ok, sx, sy) => {
    let path = "", open = false, last = null;
    s.x.forEach((v, i) => {
      if (!ok[i]) { open = false; return; }
      const px = sx(v), py = Math.max(-1e4, Math.min(1e4, sy(s.y[i])));
      path += open ? (s.kind === "step" ? `H${px.toFixed(1)}V${py.toFixed(1)}` : `L${px.toFixed(1)} ${py.toFixed(1)}`) : `M${px.toFixed(1)} ${py.toFixed(1)}`;
      open = true; last = [px, py];
    });
    svg.append(make("path", { class: s.className || "curve", d: path }));
    if (last && s.end) svg.append(make("circle", { class: "dot", cx: last[0], cy: last[1], r: 4 }));
  };

  /* A value with its standard error; what lies beyond the plot is an arrow at its edge. */
  const whiskers = (svg, s, ok, sx, sy) => s.x.forEach((v, i) => {
    if (!ok[i]) return;
    const px = sx(v) + BESIDE, py = sy(s.y[i]);
    if (s.beyond[i]) { svg.append(make("path", { class: "unseen", d: `M${px - 5} ${py + 5}L${px} ${py - 4}L${px + 5} ${py + 5}Z` })); return; }
    svg.append(make("path", { class: "whisker", d: `M${px} ${sy(s.low[i])}V${sy(s.high[i])}` }), make("rect", { class: "unseen", x: px - 3.5, y: py - 3.5, width: 7, height: 7, transform: `rotate(45 ${px} ${py})` }));
  });

  /* Where a system leads: a line from each place of a grid, with a dot where it starts. */
  const field = (svg, s, ok, sx, sy) => s.x.forEach((v, i) => {
    if (!ok[i] || s.x2[i] === null || s.y2[i] === null) return;
    const px = sx(v).toFixed(1), py = sy(s.y[i]).toFixed(1);
    svg.append(make("circle", { class: "start", cx: px, cy: py, r: 1.5 }), make("path", { class: "flow", d: `M${px} ${py}L${sx(s.x2[i]).toFixed(1)} ${sy(s.y2[i]).toFixed(1)}` }));
  });

  const BESIDE = 16; /* to the right of the loss of the same formula, which is often almost the same */

  const pickable = (svg, s, i, px, py, title, place, tip) => {
    const on = s.picked === i, words = title.replace(/\n/g, ", ") + (s.chosen === i ? ", the one chosen" : "");
    if (s.chosen === i) svg.append(make("circle", { class: "chosen", cx: px, cy: py, r: 13 }));
    const dot = make("circle", { class: "member" + (on ? " on" : ""), cx: px, cy: py, r: on ? 9 : 7, tabindex: 0, role: "button", "data-k": i, "aria-label": words, "aria-pressed": on });
    const hit = make("circle", { class: "hit", cx: px, cy: py, r: 14 }), pick = () => s.onPick(i);
    for (const node of [dot, hit]) { node.addEventListener("click", pick); node.addEventListener("pointerenter", () => place(px, py, title + (s.chosen === i ? "\nthe one chosen" : ""))); node.addEventListener("pointerleave", () => { tip.hidden = true; }); }
    dot.addEventListener("focus", () => { if (dot.matches(":focus-visible")) place(px, py, title); }); dot.addEventListener("blur", () => { tip.hidden = true; });
    dot.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(); }
      if (event.key === "ArrowRight" && i + 1 < s.x.length) { event.preventDefault(); s.onPick(i + 1, true); }
      if (event.key === "ArrowLeft" && i > 0) { event.preventDefault(); s.onPick(i - 1, true); }
    });
    svg.append(hit, dot);
  };

  const followPointer = (svg, width, spots, place, tip) => {
    svg.addEventListener("pointermove", (event) => {
      const rect = svg.getBoundingClientRect(), k = width / rect.width, mx = (event.clientX - rect.left) * k, my = (event.clientY - rect.top) * k;
      let best = null, distance = 18 ** 2;
      for (const spot of spots) { const d = (spot[0] - mx) ** 2 + (spot[1] - my) ** 2; if (d < distance) { distance = d; best = spot; } }
      if (best) place(best[0] / k, best[1] / k, best[2]); else tip.hidden = true;
    });
    svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  };

  const legend = (entries) => {
    const list = document.createElement("ul"); list.className = "legend";
    for (const [mark, text] of entries) { const item = document.createElement("li"), key = document.createElement("span"); key.className = "key " + mark; item.append(key, text); list.append(item); }
    return list;
  };

  /* spec: {label, height, x: {label, log, whole, names}, y: {label, log, exact}, series: [{kind, x, y, className, titles, onPick, picked, chosen}], diagonal, zero, legend};
     x.names: of what stands at 0, 1, 2, ...; y.exact: losses up to it are drawn on one line named so. */
  function draw(holder, spec) {
    const render = () => {
      const width = Math.max(240, holder.clientWidth || 480), height = spec.height || 300, log = spec.y.log;
      const { series, floor, above } = spec.y.exact === undefined ? { series: spec.series, floor: null, above: null } : withFloor(spec.series, spec.y.exact);
      const xr = extent(series, "x", spec.x.log), yr = extent(series, "y", log);
      const focused = holder.contains(document.activeElement) ? document.activeElement.getAttribute("data-k") : null;
      holder.replaceChildren();
      if (!xr || !yr) { const p = document.createElement("p"); p.className = "soft"; p.textContent = spec.empty || "nothing to show yet"; holder.append(p); return; }
      const box = { left: 0, right: 14, top: 10, bottom: 44 }, sy = scale(yr, log, height - box.bottom, box.top);
      const most = height / 55, yt = floor !== null && !above ? [] : (log ? logTicks(floor === null ? sy.low : above[0] * 0.9, sy.high, most) : linearTicks(sy.low, sy.high, most));
      box.left = Math.min(0.45 * width, 30 + Math.max(textWidth("000"), ...yt.map(([, text]) => textWidth(text)), floor === null ? 0 : textWidth(EXACT)));
      const sx = scale(xr, spec.x.log, box.left, width - box.right), xt = fittingTicks(spec.x, sx, width / 60);
      const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": spec.label });
      axes(svg, spec, { width, height, box, sx, sy, xt, yt, floor });
      const tip = document.createElement("div"), spots = []; tip.className = "tip"; tip.hidden = true;
      const place = (px, py, text) => { tip.textContent = text; tip.hidden = false; const room = holder.clientWidth; tip.style.left = Math.max(0, Math.min(px + 10, room - tip.offsetWidth - 2)) + "px"; tip.style.top = Math.max(0, svg.getBoundingClientRect().top - holder.getBoundingClientRect().top + py - tip.offsetHeight - 10) + "px"; };
      for (const s of series) {
        const ok = s.x.map((v, i) => v !== null && s.y[i] !== null && Number.isFinite(v) && Number.isFinite(s.y[i]) && (!spec.x.log || v > 0) && (!log || s.y[i] > 0));
        if (s.kind === "line" || s.kind === "step") { line(svg, s, ok, sx, sy); continue; }
        if (s.kind === "field") { field(svg, s, ok, sx, sy); continue; }
        if (s.kind === "whiskers") { whiskers(svg, s, ok, sx, sy); continue; }
        const order = s.x.map((_, i) => i); if (s.picked !== undefined) order.sort((i, j) => (i === s.picked) - (j === s.picked)); /* the one shown over its neighbours */
        for (const i of order) {
          if (!ok[i]) continue;
          const px = sx(s.x[i]), py = sy(s.y[i]), title = s.titles ? s.titles(i) : `${spec.x.label}: ${show(s.x[i])}\n${spec.y.label}: ${show(s.y[i])}`;
          if (s.onPick) { pickable(svg, s, i, px, py, title, place, tip); continue; }
          svg.append(make("circle", { class: s.className || "dot", cx: px.toFixed(1), cy: py.toFixed(1), r: s.radius || 3.5 })); spots.push([px, py, title]);
        }
      }
      if (spots.length) followPointer(svg, width, spots, place, tip);
      if (spec.legend) holder.append(legend(spec.legend));
      holder.append(svg, tip);
      if (focused !== null) { const node = svg.querySelector(`[data-k="${spec.focus !== undefined ? spec.focus : focused}"]`); if (node) node.focus(); }
    };
    holder.redraw = render;
    if (!holder.watched) { holder.watched = true; let width = 0; new ResizeObserver(() => { if (holder.clientWidth !== width) { width = holder.clientWidth; holder.redraw(); } }).observe(holder); }
    render();
  }

  const MOST_DIGITS = 7;
  const BEYOND = 3; /* errors on unseen rows above this many times the largest loss leave the plot */
  /* Error and standard error with the digits that the standard error justifies, two of its own. */
  const unseenText = ({ outlook }) => {
    if (!outlook) return "–";
    const { error, standard_error: spread } = outlook;
    if (error === null) return "no bound";
    if (!spread || spread <= error / 10 ** MOST_DIGITS) return show(Number(error.toPrecision(3)));
    const power = powerOf(Math.max(error, spread)), last = Math.max(powerOf(spread) - 1, power - MOST_DIGITS + 1);
    if (Math.max(error, spread) < PLAIN[0] || Math.max(error, spread) >= PLAIN[1]) return [error, spread].map((v) => (v / 10 ** power).toFixed(power - last) + tenTo(power)).join(" ± ");
    return [error, spread].map((v) => (last > 0 ? Math.round(v / 10 ** last) * 10 ** last : v).toFixed(Math.max(0, -last))).join(" ± ");
  };
  const unseenSeries = (members) => {
    const top = BEYOND * Math.max(...members.map((m) => m.loss).filter((v) => v !== null)), known = members.filter((m) => m.outlook);
    const error = known.map((m) => m.outlook.error ?? Infinity), spread = known.map((m) => m.outlook.standard_error ?? 0);
    const y = error.map((v) => Math.min(v, top)), low = y.map((v, i) => Math.max(v - spread[i], v / BEYOND)), high = y.map((v, i) => Math.min(v + spread[i], top));
    return { kind: "whiskers", x: known.map((m) => m.complexity), y, low, high, beyond: error.map((v) => v > top) };
  };

  /* The front: loss against complexity, one clickable point per formula. `chosen` keeps its ring whichever is `picked`. */
  function front(holder, members, { picked, chosen, onPick, focus, exact, measure = "RMSE", preferred = "chosen" }) {
    const x = members.map((m) => m.complexity), y = members.map((m) => m.loss), unseen = unseenSeries(members);
    const some = unseen.x.length > 0;
    draw(holder, {
      label: "Front of formulas: loss against complexity", height: 330, focus, x: { label: "complexity", whole: true }, y: { label: `${measure === "RMSE" ? "error (RMSE)" : measure}, log scale`, log: true, exact },
      legend: [["train", "training rows"], ...(some ? [["unseen", "unseen rows ± standard error"]] : []), ...(chosen === undefined ? [] : [["chosen", preferred]])],
      series: [
        { kind: "step", className: "frontline", x, y },
        ...(some ? [unseen] : []),
        { kind: "points", x, y, picked, chosen, onPick, titles: (i) => `${members[i].text}\ncomplexity ${members[i].complexity}, loss ${show(members[i].loss)}` + (members[i].outlook ? `, on unseen rows ${unseenText(members[i])}` : "") },
      ],
    });
  }

  return { draw, front, show, unseenText, linearTicks, logTicks };
})();

/* A sum that is wider than its place goes on in the next line, before a sign: browsers break no formula, so each term becomes one of its own. */
function breakSum(node) {
  const whole = node.querySelector("math:not(.left-side)"), isSign = (part) => part.localName === "mo" && "+-\u2212".includes(part.textContent);
  const rows = whole ? [...whole.querySelectorAll(":scope > mrow, :scope > mrow > mrow")] : [], row = rows.find((each) => [...each.children].slice(1).some(isSign));
  if (!row || row.firstElementChild.localName === "mo" && !isSign(row.firstElementChild)) return; /* a sum in brackets */
  let term = null;
  [...row.children].forEach((part, i) => {
    if (i && isSign(part)) part.setAttribute("form", "infix");
    if (!i || isSign(part)) { const one = whole.cloneNode(false); term = one.appendChild(document.createElementNS(whole.namespaceURI, "mrow")); node.append(one); }
    term.append(part);
  });
  if (row.parentElement === whole) whole.remove(); else row.remove(); /* what is left of an equation: its left side */
}
/* A part that is wider than its place says so at the edge that hides more. */
function hintScroll(node) {
  const frame = node.parentElement, look = () => {
    const hidden = node.scrollWidth - node.clientWidth;
    frame.classList.toggle("more-left", hidden > 2 && node.scrollLeft > 2); frame.classList.toggle("more-right", hidden > 2 && node.scrollLeft < hidden - 2);
  };
  node.addEventListener("scroll", look, { passive: true }); new ResizeObserver(look).observe(node); new MutationObserver(look).observe(node, { childList: true, subtree: true }); look();
}
/* A list that hides rows says so at the edge that hides them. */
function hintRows(list) {
  const look = () => {
    const hidden = list.scrollHeight - list.clientHeight;
    list.classList.toggle("more-above", hidden > 2 && list.scrollTop > 2); list.classList.toggle("more-below", hidden > 2 && list.scrollTop < hidden - 2);
  };
  list.addEventListener("scroll", look, { passive: true }); new ResizeObserver(look).observe(list); new MutationObserver(look).observe(list, { childList: true, subtree: true }); look();
}
/* The shown row of a list, brought to the middle of the list's own view, its head first where it is taller; the page stays where it is. */
function revealRow(row) {
  const list = row.closest(".scroll"), head = list.querySelector("thead").offsetHeight, top = row.offsetTop - head, bottom = row.offsetTop + row.offsetHeight;
  if (bottom - top > list.clientHeight) list.scrollTop = top; else if (top < list.scrollTop || bottom > list.scrollTop + list.clientHeight) list.scrollTop = top - (list.clientHeight - bottom + top) / 2;
}

/* Theme and copy buttons, the same on every page. */
(() => {
  const root = document.documentElement;
  for (const list of document.querySelectorAll(".scroll")) hintRows(list);
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
/* A report inside the live page: the page around it has a heading. */
if (window.self !== window.top) { document.documentElement.classList.add("embedded"); document.querySelector("header.top").hidden = true; }
