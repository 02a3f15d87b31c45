// The page: sends changes, polls the solve, and shows the plans.

import { changesOf, joinSliders } from "./form.js";
import { printReports } from "./paper.js";
import { fitFrame, shownPlan, updatePlans } from "./plans.js";
import { showProgress } from "./progress.js";

const BUSY_MS = 400, IDLE_MS = 2000;
const at = (id) => document.getElementById(id);
const form = at("changes");
let timer = 0, ended = "";

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(path, options);
  return { ok: response.ok, answer: await response.json() };
}

function refuse(issues, why = "Planning failed") {
  const place = at("refused");
  const list = document.createElement("ul");
  for (const issue of issues) {
    const item = document.createElement("li");
    item.textContent = issue.text;
    list.append(item);
  }
  const title = document.createElement("b");
  title.textContent = why;
  place.replaceChildren(title, list);
  place.hidden = issues.length === 0;
}

function show(state) {
  const isLost = at("solving").contains(document.activeElement) && state.solving === null;
  at("solving").hidden = state.solving === null;
  if (isLost) at("answer").focus({ preventScroll: true });
  if (state.solving) {
    showProgress(state.solving);
    at("note").textContent = "";
  }
  const last = state.plans.at(-1)?.number ?? 0;
  const end = JSON.stringify([last, state.issues, state.reason]);
  if (state.solving === null && end !== ended) {
    ended = end;
    const isCancelled = state.reason === "cancelled";
    refuse([...state.issues, ...(state.reason && !isCancelled ? [{ text: state.reason }] : [])], "There is no plan");
    at("note").textContent = isCancelled ? "Cancelled." : "";
  }
  updatePlans(state.plans);
  const button = form?.querySelector("button.main");
  if (button) button.ariaDisabled = `${state.solving !== null}`;
}

async function poll() {
  clearTimeout(timer);
  let wait = IDLE_MS;
  try {
    const { answer } = await ask("state");
    show(answer);
    if (answer.solving) wait = BUSY_MS;
  } catch {
    refuse([{ text: "plan serve has ended, or the connection is lost." }], "The server does not answer");
    ended = "";
  }
  timer = setTimeout(poll, wait);
}

async function send(path, body) {
  const { ok, answer } = await ask(path, body);
  if (!ok) {
    // No solve has started: do not repeat the end of the last one instead of this.
    refuse(answer.issues ?? [{ text: "the request was refused" }]);
    return;
  }
  ended = "";
  refuse([]);
  await poll();
}

function sayChanged() {
  const { said } = changesOf(form);
  at("changed").textContent = said.length ? said.join(", ") : "No changes.";
}

if (form) {
  joinSliders(form);
  form.addEventListener("input", sayChanged);
  form.addEventListener("reset", () => setTimeout(sayChanged));
  // A browser cannot show the error of a number in a collapsed section.
  form.addEventListener("invalid", (event) => { event.target.closest("details").open = true; }, true);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (form.querySelector("button.main").ariaDisabled === "true") return;
    send("solve", { changes: changesOf(form).changes, begin: shownPlan() });
  });
}
at("save").addEventListener("submit", async (event) => {
  event.preventDefault();
  const name = new FormData(at("save")).get("name");
  const { ok, answer } = await ask(`plans/${shownPlan()}/scenario`, { name });
  refuse(ok ? [] : answer.issues, "The scenario was not saved");
  at("done").textContent = ok ? `Saved as scenario ${answer.saved} in ${answer.file}.` : "";
});
at("export").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = new FormData(at("export")).get("form");
  const response = await fetch(`plans/${shownPlan()}/files/${form}`);
  refuse(response.ok ? [] : (await response.json()).issues, "The export failed");
  if (!response.ok) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = response.headers.get("content-disposition").split('"')[1];
  link.click();
  URL.revokeObjectURL(link.href);
  at("done").textContent = `Downloaded ${link.download}.`;
});
for (const id of ["keep", "cancel"]) {
  at(id).addEventListener("click", (event) => {
    if (event.target.ariaDisabled !== "true") send("stop", { keep: id === "keep" });
  });
}
at("report").addEventListener("load", fitFrame);
addEventListener("resize", fitFrame);
printReports();
poll();
