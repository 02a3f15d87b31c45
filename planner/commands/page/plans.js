// The plans: a table, the displayed plan, and actions on it.

import { signed } from "./form.js";

const at = (id) => document.getElementById(id);
const view = { shown: null, beside: null, plans: [] };

export const shownPlan = () => view.shown;

export function updatePlans(plans) {
  const isNew = plans.length && plans.at(-1).number > (view.plans.at(-1)?.number ?? 0);
  const isOther = isNew || plans.length !== view.plans.length;
  view.plans = plans;
  if (isNew) showPlan(plans.at(-1).number);
  else if (isOther) list();
}

function showPlan(number) {
  view.shown = number;
  view.beside = null;
  load(`plans/${number}/report.html`, "report of the plan");
  list();
}

function compareWith(number) {
  view.beside = number;
  load(`plans/${number}/beside/${view.shown}`, "two plans side by side");
  list();
  at("which").scrollIntoView({ block: "start" });
  at("which").focus({ preventScroll: true });
}

function load(address, title) {
  const frame = at("report");
  frame.hidden = true;
  at("drawing").hidden = false;
  frame.title = title;
  frame.src = address;
}

export function fitFrame() {
  const frame = at("report"), inside = frame.contentDocument;
  if (frame.src === "" || !inside?.body) return;
  at("drawing").hidden = true;
  frame.hidden = false;
  // The window scrolls instead of the frame; expanded sections lengthen the frame.
  inside.documentElement.style.overflow = "hidden";
  new ResizeObserver(() => { frame.style.height = `${inside.body.scrollHeight + 8}px`; }).observe(inside.body);
}

function list() {
  const { plans, shown, beside } = view;
  const first = plans.find((plan) => plan.usd !== null);
  const focused = document.activeElement?.dataset?.button;
  at("made").replaceChildren(...plans.map((plan) => {
    const row = document.createElement("tr");
    row.classList.toggle("shown", plan.number === shown || plan.number === beside);
    cell(row, plan.number);
    cell(row, plan.title + (plan.unserved ? " (some demand is not served)" : ""), "what");
    cell(row, plan.tco, "num");
    const more = first && plan !== first && plan.usd !== null ? 100 * (plan.usd / first.usd - 1) : null;
    cell(row, more === null ? "" : `${signed(Number(more.toFixed(1)))} %`, "num");
    cell(row, plan.gap, "num gap");
    cell(row, plan.first_s === null ? "" : `${plan.first_s.toFixed(1)} s`, "num first");
    const buttons = cell(row, "", "buttons");
    if (plan.number === shown && beside === null) buttons.append("shown");
    else buttons.append(button("Show", `show plan ${plan.number}`, () => showPlan(plan.number)));
    if (plan.number !== shown) buttons.append(" ", button("Compare", `compare plan ${plan.number} with plan ${shown}`, () => compareWith(plan.number)));
    return row;
  }));
  if (focused) document.querySelector(`[data-button="${CSS.escape(focused)}"]`)?.focus();
  at("against").textContent = first ? `against plan ${first.number}` : "";
  const plan = plans.find((each) => each.number === shown);
  at("plans").hidden = plans.length === 0;
  at("taking").hidden = !plan;
  if (!plan) return;
  at("which").textContent = beside === null ? `Plan ${shown}: ${plan.title}` : `Plan ${beside} beside plan ${shown}`;
  for (const name of document.querySelectorAll("[data-plan]")) name.textContent = `plan ${shown}`;
  at("save").hidden = !plan.changed;
  at("command").textContent = plan.command;
}

function button(text, label, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.dataset.button = label;
  made.setAttribute("aria-label", label);
  made.addEventListener("click", act);
  return made;
}

function cell(row, text, kind = "") {
  const made = row.insertCell();
  made.textContent = text;
  made.className = kind;
  return made;
}
