"use strict";
(() => {
  const at = (id) => document.getElementById(id), base = "/equations/" + encodeURIComponent(document.body.dataset.run), POLL = 700;
  const LOOKS = { motion: "Looking for the equations that move these columns.", field: "Looking for the law that moves these fields.", solution: "Looking for a closed form, and its proof.", classes: "Looking for formulas of the chances of these classes." };
  const fail = (message) => { at("error").textContent = message; at("error").hidden = !message; };
  function show(run) {
    const over = run.state === "done" || run.state === "stopped" || run.state === "failed";
    at("state").textContent = run.stopping ? "stopping" : run.state === "queued" ? "waiting for the run before it" : run.state + (run.state === "stopped" && run.reason ? ": " + run.reason : "");
    at("state").className = "state " + run.state;
    at("stop").hidden = over; at("stop").disabled = run.stopping;
    at("bar").hidden = over; at("bar").value = Math.min(1, run.elapsed / run.max_time);
    at("figures").textContent = over ? "" : run.stopping ? "What was found is being written." : `${LOOKS[run.kind] || ""} ${run.state === "running" ? `${run.elapsed.toFixed(0)} of at most ${run.max_time} s.` : ""} The report opens here when it is done.`;
    at("said").textContent = run.said;
    at("model").hidden = !run.model; at("page").hidden = !run.report;
    if (run.report && at("report").hidden) { at("report").src = base + "/report"; at("report").hidden = false; }
    fail(run.state === "failed" ? run.reason : "");
    return over;
  }
  async function watch() {
    try { if (show(await (await fetch(base + "/state")).json())) return; } catch (error) { fail("The server does not answer; this page goes on when it is back."); }
    setTimeout(watch, POLL);
  }
  at("stop").addEventListener("click", async () => {
    at("stop").disabled = true;
    const response = await fetch(base + "/stop", { method: "POST", body: "{}", headers: { "Content-Type": "application/json" } });
    if (!response.ok) fail((await response.json()).error);
  });
  followReport(at("report"));
  watch();
})();
