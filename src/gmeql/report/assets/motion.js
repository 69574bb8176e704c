"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent), at = (id) => document.getElementById(id);
  const points = (list) => list.map((s) => ({ kind: "points", ...s })), curves = (list) => list.map((s) => ({ kind: "line", ...s }));
  const legend = data.legend || [["measured", "measured"], ["simulated", "simulated"]];
  for (const course of data.courses) {
    const plot = document.createElement("div"); plot.className = "plot"; at("courses").append(plot);
    Charts.draw(plot, { label: `${course.name} over ${data.time}: ${legend.map(([, text]) => text).join(" and ")}`, height: 260, legend: course.points.length ? legend : legend.slice(1), x: { label: data.time }, y: { label: course.name }, series: [...curves(course.curves), ...points(course.points)] });
  }
  if (data.phase) {
    const [first, second] = data.phase.names;
    Charts.draw(at("phase"), { label: `Phase portrait of ${first} and ${second}`, height: 420, legend: data.phase.points.length ? legend : legend.slice(1), x: { label: first }, y: { label: second }, series: [{ kind: "field", ...data.phase.field }, ...curves(data.phase.curves), ...points(data.phase.points)] });
  }
  for (const node of document.querySelectorAll(".formula")) breakSum(node);
  for (const node of document.querySelectorAll(".frame > *")) hintScroll(node);
  for (const row of document.querySelectorAll(".scroll tr[aria-selected=true]")) revealRow(row);
  for (const button of document.querySelectorAll("button[data-copy]")) button.addEventListener("click", () => copyText(at(button.dataset.copy).textContent, button));
})();
