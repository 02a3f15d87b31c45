// Changes of the user: read from the form, and shown next to its buttons.

export function joinSliders(form) {
  for (const row of form.querySelectorAll("[data-kind]")) {
    const range = row.querySelector("input[type=range]");
    const number = row.querySelector("input[type=number]");
    if (!range) continue;
    const say = () => range.setAttribute("aria-valuetext", `${signed(Number(number.value))} %`);
    range.addEventListener("input", () => { number.value = range.value; say(); });
    number.addEventListener("input", () => { range.value = number.value; say(); });
    say();
  }
}

export function changesOf(form) {
  const changes = { scenario: form.dataset.scenario || null, demand: {}, prices: {}, numbers: [], off: [], other: [] };
  const said = [];
  for (const row of form.querySelectorAll("[data-kind]")) {
    const number = row.querySelector("input[type=number]");
    const changed = number !== null && Number(number.value || 0) !== 0;
    row.classList.toggle("changed", changed);
    if (!changed) continue;
    changes[row.dataset.kind][row.dataset.name] = 1 + Number(number.value) / 100;
    const what = row.dataset.kind === "demand" ? "demand" : "price";
    said.push(`${what} of ${row.dataset.label} ${signed(Number(number.value))} %`);
  }
  for (const number of form.querySelectorAll("[data-path]")) {
    const changed = number.value !== number.defaultValue && number.value !== "";
    number.classList.toggle("changed", changed);
    if (!changed) continue;
    changes.numbers.push([JSON.parse(number.dataset.path), Number(number.value)]);
    said.push(`${number.dataset.label} ${number.value}`);
  }
  for (const box of form.querySelectorAll("[data-hardware]")) {
    box.closest("label").classList.toggle("changed", !box.checked);
    if (box.checked) continue;
    changes.off.push(box.dataset.hardware);
    said.push(`without ${box.dataset.hardware}`);
  }
  changes.other = form.querySelector("#other").value.split("\n").map((each) => each.trim()).filter(Boolean);
  said.push(...changes.other);
  return { changes, said };
}

export function signed(percent) {
  return percent > 0 ? `+${percent}` : `${percent}`.replace("-", "−");
}
