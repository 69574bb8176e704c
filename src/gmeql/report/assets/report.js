"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const members = data.members, at = (id) => document.getElementById(id);
  let current = data.selected;

  const perMember = () => {
    for (const node of document.querySelectorAll("[data-member]")) node.hidden = Number(node.dataset.member) !== current;
    for (const row of document.querySelectorAll("tr.pick")) { const on = Number(row.dataset.pick) === current; row.setAttribute("aria-selected", String(on)); if (on) revealRow(row); }
  };
  /* A constant and its row in the table: pointing at one, or focusing its button, marks the other; a click keeps the mark. */
  const constants = () => {
    for (const part of document.querySelectorAll("[data-constant]")) {
      const twins = part.closest("[data-member]").querySelectorAll(`[data-constant="${part.getAttribute("data-constant")}"]`);
      const mark = (name, on) => { for (const twin of twins) twin.classList.toggle(name, on); };
      const keep = () => { const on = !part.classList.contains("kept"); mark("kept", on); for (const twin of twins) for (const button of twin.querySelectorAll("button")) button.setAttribute("aria-pressed", String(on)); };
      for (const name of ["pointerenter", "focusin"]) part.addEventListener(name, () => mark("marked", true));
      for (const name of ["pointerleave", "focusout"]) part.addEventListener(name, () => mark("marked", false));
      part.addEventListener("click", keep);
    }
  };
  const wiring = () => {
    for (const node of document.querySelectorAll("#network [data-users]")) node.classList.toggle("lit", node.dataset.users.split(" ").includes(String(current)));
    const net = document.querySelector("#network svg"); for (const wire of net.querySelectorAll(".wire.lit")) wire.parentNode.append(wire); /* lit wires over the others, */
    for (const kind of [".unit", ".weight.lit"]) for (const part of net.querySelectorAll(kind)) part.parentNode.append(part); /* nodes over the wires, numbers over the nodes */
  };
  const exportsOf = () => {
    const member = members[current], holder = at("copies"), codes = at("codes");
    holder.replaceChildren(); codes.replaceChildren();
    for (const [name, text] of Object.entries(member.exports)) {
      const button = document.createElement("button"); button.type = "button"; button.textContent = name; button.setAttribute("aria-label", "Copy as " + name);
      button.addEventListener("click", () => copyText(text, button)); holder.append(button);
      const title = document.createElement("p"), pre = document.createElement("pre"); title.className = "soft"; title.textContent = name; pre.textContent = text; codes.append(title, pre);
    }
  };
  const plots = (focus) => {
    const member = members[current], target = data.target;
    Charts.front(at("front-plot"), members, { picked: current, chosen: data.selected, onPick: select, focus, exact: data.exact, measure: data.measure });
    Charts.draw(at("parity"), { label: "Predicted against measured", height: 320, diagonal: true, x: { label: data.axes[0] }, y: { label: data.axes[1] }, series: [{ kind: "points", x: data.y, y: member.predicted }] });
    Charts.draw(at("residuals"), { label: "Errors against predicted value", height: 320, zero: true, x: { label: data.axes[1] }, y: { label: "measured − predicted" }, series: [{ kind: "points", x: member.predicted, y: member.residuals }] });
    const holder = at("responses"); holder.replaceChildren();
    for (const response of member.responses) {
      const plot = document.createElement("div"); plot.className = "plot"; holder.append(plot);
      const points = { kind: "points", className: "dot small", y: response.points }, curve = { kind: "line" };
      if (response.kinds) { /* rows of a kind side by side, around a bar at its value */
        points.x = response.own.map((k, i) => k + 0.5 * (((i * 0.618) % 1) - 0.5)); points.titles = (i) => `${response.name}: ${response.kinds[response.own[i]]}\n${target}: ${Charts.show(response.points[i])}`;
        curve.x = response.kinds.flatMap((_, k) => [k - 0.35, k + 0.35, null]); curve.y = response.y.flatMap((v) => [v, v, null]);
      } else { points.x = data.x[response.column]; curve.x = response.x; curve.y = response.y; }
      Charts.draw(plot, { label: target + " against " + response.name, height: 260, x: { label: response.name, names: response.kinds }, y: { label: target }, series: [points, curve] });
    }
    at("no-responses").hidden = member.responses.length > 0;
  };
  function select(index, focus) {
    current = index; perMember(); wiring(); exportsOf(); plots(focus ? index : undefined);
    at("announce").textContent = "Showing " + members[index].text;
    try { history.replaceState(null, "", "#formula-" + index); } catch (error) { /* a page opened from a file may refuse */ }
  }

  for (const row of document.querySelectorAll("tr.pick")) {
    row.addEventListener("click", () => select(Number(row.dataset.pick)));
    row.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); select(Number(row.dataset.pick)); }
      if (step) { const next = document.querySelector(`tr.pick[data-pick="${Number(row.dataset.pick) + step}"]`); if (next) { event.preventDefault(); next.focus(); select(Number(next.dataset.pick)); } }
    });
  }
  for (const button of document.querySelectorAll("button[data-copy]")) button.addEventListener("click", () => copyText(at(button.dataset.copy).textContent, button));
  if (data.history.elapsed.length > 1) Charts.draw(at("training"), { label: "Loss of the leading formula during the search", height: 300, x: { label: "seconds" }, y: { label: `leader’s ${data.measure}, log scale`, log: true, exact: data.exact }, series: [{ kind: "step", end: true, x: data.history.elapsed, y: data.history.loss }] });
  const wanted = /^#formula-(\d+)$/.exec(location.hash);
  if (wanted && members[Number(wanted[1])]) current = Number(wanted[1]);
  perMember(); constants(); wiring(); exportsOf(); plots();
  for (const node of document.querySelectorAll(".formula")) breakSum(node);
  for (const node of document.querySelectorAll(".frame > *")) hintScroll(node);
})();
