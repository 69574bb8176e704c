"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  let table = null;
  const fail = (message) => { at("error").textContent = message; at("error").hidden = !message; };
  const answer = async (response) => {
    let content = null;
    const text = await response.text();
    try { content = JSON.parse(text); } catch (error) { content = { error: text.trim() || response.statusText }; }
    if (!response.ok) throw new Error(content.error || response.statusText);
    return content;
  };
  const cell = (kind, text, className) => { const node = document.createElement(kind); node.textContent = text; if (className) node.className = className; return node; };

  async function upload(file) {
    fail(""); at("about").textContent = "Reading " + file.name; at("form").hidden = true;
    try {
      show(await answer(await fetch("/tables?name=" + encodeURIComponent(file.name), { method: "POST", body: file, headers: { "Content-Type": "application/octet-stream" } })));
      history.replaceState(null, "", "/?table=" + table.table);
    } catch (error) { fail(error instanceof TypeError ? "The table could not be sent; is it too large, or has the server ended?" : error.message); }
  }
  function show(content) {
    table = content; at("form").hidden = false;
    at("about").textContent = `${content.source}: ${content.rows.toLocaleString("en")} rows, ${content.columns.length} columns`;
    at("notes").replaceChildren(...content.notes.map((note) => cell("li", note)));
    const head = document.createElement("tr"); content.columns.forEach((column) => head.append(cell("th", column.name)));
    const rows = content.preview.map((row) => { const line = document.createElement("tr"); row.forEach((value) => line.append(cell("td", value))); return line; });
    at("preview").replaceChildren(head, ...rows);
    const usable = content.columns.filter((column) => column.kind === "number" || column.kind === "broken");
    at("target").replaceChildren(...usable.map((column) => { const option = cell("option", `${column.name} (${column.summary})`); option.value = column.name; return option; }));
    const usual = usable.find((column) => /^(y|target|output)$/i.test(column.name)) || usable[usable.length - 1];
    if (usual) at("target").value = usual.name;
    const labelled = content.columns.filter((column) => column.classes >= 2 && column.classes <= content.most_classes), words = labelled.filter((column) => column.kind === "text");
    at("label").replaceChildren(...labelled.map((column) => { const option = cell("option", `${column.name} (${column.classes} classes)`); option.value = column.name; return option; }));
    const classes = words[words.length - 1] || labelled[labelled.length - 1];
    if (classes) at("label").value = classes.name;
    at("classes").disabled = !classes;
    if (!classes && at("classes").checked) at("formula").checked = true;
    for (const [id, some] of [["groups", content.columns], ["weights", usable]]) at(id).replaceChildren(at(id).firstElementChild, ...some.map((column) => cell("option", column.name)));
    at("time").replaceChildren(...usable.map((column) => { const option = cell("option", column.name); option.value = column.name; return option; }));
    const clock = usable.find((column) => /^(t|time|year|date|day|hour|minute|second)s?$/i.test(column.name)) || usable[0];
    if (clock) at("time").value = clock.name;
    kinds();
  }
  const boxes = (id, some, isChecked) => at(id).replaceChildren(...some.map((column) => {
    const label = document.createElement("label"), box = document.createElement("input"); box.type = "checkbox"; box.value = column.name; box.checked = isChecked(column);
    label.append(box, document.createTextNode(column.name)); label.title = column.summary; return label;
  }));
  const varies = (column) => !column.summary.startsWith("constant");
  const columns = () => boxes("columns", table.columns.filter((column) => column.name !== at(kind() === "classes" ? "label" : "target").value && column.explains), varies);
  /* A time series or a field: columns move by differential equations instead of one being explained by the others. */
  const kind = () => document.querySelector("input[name=kind]:checked").value;
  function kinds() {
    for (const node of document.querySelectorAll("[data-kind]")) node.hidden = !node.dataset.kind.split(" ").includes(kind());
    const others = (table ? table.columns : []).filter((column) => column.kind === "number" && column.name !== at("time").value), isSpace = (column) => /^[xyz]$/i.test(column.name);
    boxes("states", others, varies);
    boxes("space", others, isSpace);
    boxes("fields", others, (column) => !isSpace(column) && varies(column));
    columns();
  }
  for (const node of document.querySelectorAll("input[name=kind], #time")) node.addEventListener("change", kinds);
  const checked = (id) => [...at(id).querySelectorAll("input")].filter((box) => box.checked).map((box) => box.value);
  const post = async (path, body) => answer(await fetch(path, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }));
  const openEquations = async (path, body) => { location.href = "/equations/" + encodeURIComponent((await post(path, body)).equations); };
  for (const id of ["target", "label"]) at(id).addEventListener("change", columns);
  at("file").addEventListener("change", () => { if (at("file").files[0]) upload(at("file").files[0]); });
  for (const kind of ["dragover", "dragleave", "drop"]) at("drop").addEventListener(kind, (event) => {
    event.preventDefault(); at("drop").classList.toggle("over", kind === "dragover");
    if (kind === "drop" && event.dataTransfer.files[0]) upload(event.dataTransfer.files[0]);
  });
  at("form").addEventListener("submit", async (event) => {
    event.preventDefault(); fail(""); at("start").disabled = true;
    const budget = { table: table.table, max_time: Number(at("seconds").value), seed: Number(at("seed").value) };
    if (kind() === "classes") {
      const chosen = checked("columns"), some = chosen.length < at("columns").querySelectorAll("input").length ? { columns: chosen } : {};
      try {
        if (!chosen.length) throw new Error("Choose at least one column.");
        await openEquations("/classes", { ...budget, target: at("label").value, ...some });
      } catch (error) { fail(error.message); at("start").disabled = false; }
      return;
    }
    if (kind() !== "table") {
      const chosen = { time: at("time").value, ...(kind() === "series" ? { states: checked("states"), order: Number(at("order").value) } : { space: checked("space"), fields: checked("fields") }) };
      try { await openEquations(kind() === "series" ? "/motions" : "/fields", { ...budget, ...chosen }); } catch (error) { fail(error.message); at("start").disabled = false; }
      return;
    }
    const all = at("functions").querySelectorAll("input").length, functions = checked("functions"), apart = [at("groups").value, at("weights").value], chosen = checked("columns").filter((name) => !apart.includes(name)), offered = at("columns").querySelectorAll("input").length;
    const body = { ...budget, target: at("target").value, loss: at("loss").value, selection: at("selection").value };
    if (functions.length < all) body.functions = functions;
    if (chosen.length < offered) body.columns = chosen;
    for (const id of ["units", "constant_units", "template", "constants", "groups", "weights", "y_error", "x_error"]) if (at(id).value.trim()) body[id] = at(id).value.trim();
    if (body.units) body.unit_check = at("unit_check").value;
    if (body.loss === "quantile" && at("quantile").value) body.loss = "quantile:" + at("quantile").value;
    for (const id of ["guess", "constraint"]) body[id] = at(id).value.split("\n").map((line) => line.trim()).filter(Boolean);
    try {
      if (!functions.length) throw new Error("Choose at least one function.");
      if (offered && !chosen.length) throw new Error("Choose at least one column."); // where none is offered, the server says why
      location.href = "/runs/" + encodeURIComponent((await post("/runs", body)).run);
    } catch (error) { fail(error.message); at("start").disabled = false; }
  });
  at("solve-form").addEventListener("submit", async (event) => {
    event.preventDefault(); at("solve-error").hidden = true; at("solve-start").disabled = true;
    const body = { max_time: Number(at("solve-seconds").value) };
    for (const id of ["equation", "ics", "domain", "parameters"]) body[id] = at(id).value.trim();
    try { await openEquations("/solutions", body); } catch (error) { at("solve-error").textContent = error.message; at("solve-error").hidden = false; at("solve-start").disabled = false; }
  });
  async function runs() {
    try {
      const list = await answer(await fetch("/runs"));
      at("none").hidden = list.length > 0; at("heads").hidden = !list.length;
      at("runs").replaceChildren(...list.map((run) => {
        const row = document.createElement("tr"), state = cell("span", run.position > 0 ? `waiting, no. ${run.position}` : run.state, "state " + run.state), link = cell("a", run.source ? `${run.title} in ${run.source}` : run.title);
        link.href = run.link;
        const first = document.createElement("td"), second = document.createElement("td"); first.append(state); second.append(link);
        row.append(first, second, cell("td", run.state === "failed" ? run.reason : run.formula || "", "code"), cell("td", Charts.show(run.loss), "number"), cell("td", new Date(run.created).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }), "when"));
        return row;
      }));
    } catch (error) { at("none").hidden = false; at("none").textContent = "The server does not answer. Start it again with: gmeql ui"; }
  }
  runs(); setInterval(runs, 2500);
  const earlier = new URLSearchParams(location.search).get("table");
  if (earlier) fetch("/tables/" + encodeURIComponent(earlier)).then(answer).then(show).catch(() => history.replaceState(null, "", "/"));
})();
