// A running solve: its figures, and the best plan and bound over time.

const WIDTH = 600, HEIGHT = 140, LEFT = 8, RIGHT = 8, TOP = 22, BOTTOM = 22;

export function showProgress(solving) {
  const show = (id, text) => { const place = document.getElementById(id); if (place.textContent !== text) place.textContent = text; };
  show("asked", solving.title);
  const doing = solving.stopping ? (solving.cancelled ? "cancelling" : "stopping at the best plan") : solving.doing;
  show("doing", solving.stage && !solving.stopping ? `${doing}: minimising ${solving.stage}` : doing);
  show("best", solving.plan ?? "none yet");
  show("bound", solving.bound ?? "none yet");
  show("gap", solving.gap ?? "–");
  show("elapsed", `${solving.elapsed_s.toFixed(0)} s`);
  // A disabled button would lose the focus, which keyboard users need.
  document.getElementById("keep").ariaDisabled = `${solving.stopping || solving.plan === null}`;
  document.getElementById("cancel").ariaDisabled = `${solving.cancelled}`;
  draw(document.getElementById("chart"), solving);
}

function draw(svg, solving) {
  const until = Math.max(solving.elapsed_s, 1);
  const plans = solving.steps.filter((step) => step[1] !== null);
  const known = [...plans.map((step) => step[1]), ...solving.steps.map((step) => step[2]).filter((usd) => usd !== null)];
  svg.replaceChildren();
  if (known.length < 2) return;
  const most = Math.max(...known);
  // The first bounds are loose; the axis begins slightly below the best bound.
  const best = Math.max(...solving.steps.map((step) => step[2] ?? -Infinity));
  const least = Math.min(best, most) - 0.25 * Math.max(most - best, 1e-3 * most);
  const x = (seconds) => LEFT + (WIDTH - LEFT - RIGHT) * seconds / until;
  const y = (usd) => TOP + (HEIGHT - TOP - BOTTOM) * (most - Math.max(usd, least)) / Math.max(most - least, 1);
  for (const [column, name] of [[1, "best plan"], [2, "lower bound"]]) {
    const steps = solving.steps.filter((step) => step[column] !== null);
    if (!steps.length) continue;
    const points = [];
    for (const step of steps) {
      if (points.length) points.push([x(step[0]), points.at(-1)[1]]);
      points.push([x(step[0]), y(step[column])]);
    }
    points.push([x(until), points.at(-1)[1]]);
    const line = element("polyline", { points: points.map((point) => point.join(",")).join(" "), class: column === 1 ? "plan" : "bound" });
    const [, height] = points.at(-1);
    const text = element("text", { x: WIDTH - RIGHT, y: column === 1 ? height - 4 : height + 14, class: column === 1 ? "plan" : "bound" });
    text.textContent = name;
    svg.append(line, text);
  }
  const end = element("text", { x: WIDTH - RIGHT, y: HEIGHT - 4, class: "axis" });
  end.textContent = `${until.toFixed(0)} s`;
  const start = element("text", { x: LEFT, y: HEIGHT - 4, class: "axis start" });
  start.textContent = "0 s";
  svg.append(start, end);
}

function element(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
