// The page: sends changes, asks how the solve is going, shows the plans.

import { changesOf, joinSliders, signed } from "./form.js";
import { showProgress } from "./progress.js";

const BUSY_MS = 400, IDLE_MS = 2000;
const at = (id) => document.getElementById(id);
const form = at("changes");
let shown = null, newest = 0, timer = 0, ended = "";

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(path, options);
  return { ok: response.ok, answer: await response.json() };
}

function refuse(issues) {
  const place = at("refused");
  const list = document.createElement("ul");
  for (const issue of issues) {
    const item = document.createElement("li");
    item.textContent = issue.text;
    list.append(item);
  }
  const title = document.createElement("b");
  title.textContent = "This cannot be planned";
  place.replaceChildren(title, list);
  place.hidden = issues.length === 0;
}

function cell(row, text, kind) {
  const made = row.insertCell();
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function listPlans(plans) {
  const first = plans.find((plan) => plan.usd !== null);
  const rows = plans.map((plan) => {
    const row = document.createElement("tr");
    row.classList.toggle("shown", plan.number === shown);
    cell(row, plan.number);
    cell(row, plan.title, "what");
    cell(row, plan.tco, "num");
    const more = first && plan !== first && plan.usd !== null ? 100 * (plan.usd / first.usd - 1) : null;
    cell(row, more === null ? "" : `${signed(Number(more.toFixed(1)))} %`, "num");
    cell(row, plan.gap, "num");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = plan.number === shown ? "shown" : "Show";
    button.setAttribute("aria-label", `show plan ${plan.number}`);
    button.disabled = plan.number === shown;
    button.addEventListener("click", () => { showPlan(plan.number); listPlans(plans); });
    row.insertCell().append(button);
    return row;
  });
  at("made").replaceChildren(...rows);
  at("plans").hidden = plans.length === 0;
}

function showPlan(number) {
  shown = number;
  const frame = at("report");
  frame.hidden = false;
  frame.src = `plans/${number}/report.html`;
}

function fitFrame() {
  const frame = at("report"), inside = frame.contentDocument;
  if (inside?.documentElement) frame.style.height = `${inside.documentElement.scrollHeight + 8}px`;
}

function show(state) {
  at("solving").hidden = state.solving === null;
  if (state.solving) showProgress(state.solving);
  const last = state.plans.at(-1)?.number ?? 0;
  const end = JSON.stringify([last, state.issues, state.reason]);
  if (state.solving === null && end !== ended) {
    ended = end;
    refuse([...state.issues, ...(state.reason ? [{ text: state.reason }] : [])]);
  }
  if (last > newest) {
    newest = last;
    showPlan(last);
    listPlans(state.plans);
  } else if (at("made").rows.length !== state.plans.length) {
    listPlans(state.plans);
  }
  const button = form?.querySelector("button.main");
  if (button) button.disabled = state.solving !== null;
}

async function poll() {
  clearTimeout(timer);
  let wait = IDLE_MS;
  try {
    const { answer } = await ask("state");
    show(answer);
    if (answer.solving) wait = BUSY_MS;
  } catch {
    refuse([{ text: "The server does not answer: plan serve has ended, or the connection is lost." }]);
  }
  timer = setTimeout(poll, wait);
}

async function send(path, body) {
  const { ok, answer } = await ask(path, body);
  if (ok) refuse([]);
  else refuse(answer.issues ?? [{ text: "the request was refused" }]);
  await poll();
}

function sayChanged() {
  const { said } = changesOf(form);
  at("changed").textContent = said.length ? said.join(", ") : "Nothing is changed.";
}

if (form) {
  joinSliders(form);
  form.addEventListener("input", sayChanged);
  form.addEventListener("reset", () => setTimeout(sayChanged));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send("solve", { changes: changesOf(form).changes, begin: shown });
  });
}
at("keep").addEventListener("click", () => send("stop", { keep: true }));
at("cancel").addEventListener("click", () => send("stop", { keep: false }));
at("report").addEventListener("load", fitFrame);
addEventListener("resize", fitFrame);
poll();
