"use strict";
(() => {
  const at = (id) => document.getElementById(id), name = document.body.dataset.run, base = "/runs/" + encodeURIComponent(name);
  let picked = null, revealed = null, best = 0, members = [], source = null, shownReport = false;
  const EXACT = 1e-10; /* of the simplest formula's loss: below, a loss is rounding */
  const fail = (message) => { at("error").textContent = message; at("error").hidden = !message; };
  const post = async (path, body) => {
    const response = await fetch(base + path, { method: "POST", body: JSON.stringify(body || {}), headers: { "Content-Type": "application/json" } });
    const content = await response.json().catch(() => ({ error: response.statusText }));
    if (!response.ok) throw new Error(content.error);
    return content;
  };
  const typeset = (mathml, text) => {
    const holder = at("best"); holder.replaceChildren();
    const parsed = mathml ? new DOMParser().parseFromString(mathml, "application/xml") : null;
    if (parsed && !parsed.querySelector("parsererror")) { holder.append(document.importNode(parsed.documentElement, true)); breakSum(holder); } else holder.textContent = text || "";
  };

  /* The formula that was picked keeps its mark while the front changes around it; when it is beaten, the best is shown again. */
  const shown = () => { const i = members.findIndex((member) => member.text === picked); return i >= 0 ? i : best; };
  function draw() {
    if (!members.length) return;
    if (picked !== null && members[shown()].text !== picked) { picked = null; at("best-title").textContent = "Best so far"; }
    const index = shown(), list = at("formulas"), focused = [...list.children].indexOf(document.activeElement), known = members.some((member) => member.outlook);
    at("unseen-title").hidden = !known; /* it is computed when a search ends */
    Charts.front(at("front-plot"), members, { picked: index, chosen: best, onPick: pick, preferred: members.some((member) => member.outlook) ? "chosen" : "best so far", exact: EXACT * Math.max(...members.map((member) => member.loss)) });
    list.replaceChildren(...members.map((member, i) => {
      const row = document.createElement("tr"); row.className = "pick"; row.tabIndex = 0; row.setAttribute("role", "row"); row.setAttribute("aria-selected", String(i === index));
      for (const [text, kind] of [[member.complexity, "number"], [Charts.show(member.loss), "number"], ...(known ? [[Charts.unseenText(member), "number"]] : []), [member.text, "code"]]) { const cell = document.createElement("td"); cell.textContent = text; cell.className = kind; cell.setAttribute("role", "cell"); row.append(cell); }
      row.addEventListener("click", () => pick(i)); row.addEventListener("keydown", (event) => { if (event.key === "Enter") pick(i); });
      return row;
    }));
    if (focused >= 0 && list.children[focused]) list.children[focused].focus({ preventScroll: true });
    const row = list.children[index], formula = members[index].text; if (formula !== revealed) { revealed = formula; revealRow(row); }
  }
  function pick(i) { picked = members[i].text; draw(); typeset(members[i].mathml, members[i].text); at("best-title").textContent = "Formula of complexity " + members[i].complexity; }

  function show(run) {
    const progress = run.progress, over = run.state === "done" || run.state === "stopped" || run.state === "failed";
    at("state").textContent = run.stopping && !over ? "stopping" : run.position > 0 ? `waiting, no. ${run.position} in the queue` : run.state + (run.reason && run.reason !== run.state ? ": " + run.reason : "");
    at("state").className = "state " + run.state;
    at("stop").hidden = over; at("stop").disabled = run.stopping;
    at("resume").hidden = at("more").hidden = !over;
    at("bar").hidden = over;
    if (progress) {
      const left = run.max_time ? Math.max(0, run.max_time - progress.elapsed) : null;
      at("bar").value = run.max_time ? Math.min(1, progress.elapsed / run.max_time) : 0;
      at("figures").textContent = progress.note && !over ? `${progress.note}; a first look until then` : `${progress.elapsed.toFixed(1)} s, ${progress.candidates.toLocaleString("en")} candidates, ${Math.round(progress.rate).toLocaleString("en")} a second, ${progress.islands} islands` + (left !== null && !over ? `, ${left.toFixed(0)} s left` : "");
      if (progress.front) members = progress.front.map((member) => ({ text: member.formula, complexity: member.complexity, loss: member.loss, outlook: member.outlook, mathml: member.mathml }));
      const chosen = run.chosen || progress.best;
      if (chosen) {
        best = members.findIndex((member) => member.text === chosen.formula);
        if (best < 0) best = Math.max(0, members.findIndex((member) => member.complexity === chosen.complexity));
      }
      draw();
      if (picked === null && members[best]) typeset(members[best].mathml, members[best].text);
    } else at("figures").textContent = run.state === "running" ? "Getting ready: the first run on a machine compiles for a few seconds." : "";
    for (const id of ["model", "csv", "page", "predict"]) at(id).hidden = !run.report;
    at("live").hidden = at("watch").hidden = over && run.report;
    const frame = at("report");
    if (over && run.report && !shownReport) { shownReport = true; frame.src = base + "/report"; frame.hidden = false; }
    if (!over && shownReport) { shownReport = false; frame.hidden = true; frame.removeAttribute("src"); }
    if (over && source) { source.close(); source = null; }
    if (run.state === "failed") fail(run.reason);
  }
  function watch() {
    if (source) source.close();
    source = new EventSource(base + "/events");
    source.addEventListener("state", (event) => { fail(""); show(JSON.parse(event.data)); });
    source.onerror = () => { if (source) fail("The server does not answer; this page goes on when it is back."); };
  }
  at("stop").addEventListener("click", async () => { at("stop").disabled = true; try { await post("/stop"); } catch (error) { fail(error.message); } });
  at("resume").addEventListener("click", async () => {
    try { picked = null; at("best-title").textContent = "Best so far"; await post("/resume", { max_time: Number(at("seconds").value) }); watch(); } catch (error) { fail(error.message); }
  });
  at("steer-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const forbid = [...at("forbid").querySelectorAll("input")].filter((box) => box.checked).map((box) => box.value), part = at("forbid-part").value.trim(), pin = at("pin").value.trim(), refine = at("refine").value.trim();
    if (part) forbid.push(part);
    try { location.href = "/runs/" + encodeURIComponent((await post("/steer", { forbid, pin: pin ? [pin] : [], guess: refine ? [refine] : [], max_time: Number(at("steer-seconds").value) })).run); } catch (error) { fail(error.message); }
  });
  at("predict-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const file = at("predict-file").files[0], refuse = (message) => { at("predict-error").textContent = message; at("predict-error").hidden = !message; };
    refuse(""); at("predict-start").disabled = true; at("predicted").hidden = true;
    try {
      const sent = await fetch("/tables?name=" + encodeURIComponent(file.name), { method: "POST", body: file, headers: { "Content-Type": "application/octet-stream" } });
      const table = await sent.json().catch(() => ({ error: sent.statusText }));
      if (!sent.ok) throw new Error(table.error);
      const found = await post("/predict", { table: table.table, average: at("average").checked });
      const cells = (values, kind) => values.map((text) => { const cell = document.createElement(kind), value = Number(text); cell.textContent = kind === "td" && text !== "" && Number.isFinite(value) ? Charts.show(value) : text; cell.className = "number"; return cell; });
      at("predict-head").replaceChildren(...cells(found.columns, "th"));
      at("predict-rows").replaceChildren(...found.rows.map((values) => { const row = document.createElement("tr"); row.append(...cells(values, "td")); return row; }));
      const more = found.n_rows > found.rows.length ? `The first ${found.rows.length} of ${found.n_rows.toLocaleString("en")} rows.` : "";
      at("predict-notes").textContent = [...found.notes.map((note) => note.replace(/\.?$/, ".")), more].filter(Boolean).join(" "); at("predicted").hidden = false;
    } catch (error) { refuse(error.message); }
    at("predict-start").disabled = false;
  });
  hintScroll(at("best"));
  followReport(at("report"));
  watch();
})();
