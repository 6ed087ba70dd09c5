// The coverage of the search: the lines of the report, a table by bound, and curves by bound and by
// executions.

const MEASURES = [
  { name: "executions", all: "executions", added: "new_executions" },
  { name: "traces", all: "traces", added: "new_traces" },
  { name: "states", all: "states", added: "new_states" },
];

function showCoverage() {
  const section = byId("coverage");
  if (!page.check) {
    section.hidden = true;
    return;
  }
  // The coverage statement is at the top of the page.
  for (const [label, text] of page.summary.filter(([label]) => label !== "covered")) byId("summary").append(element("dt", "", label), element("dd", "", text));
  const { bounds } = page.check;
  const known = MEASURES.filter(({ all }) => bounds.some((bound) => bound[all] !== null));
  if (bounds.length > 0) showBounds(bounds, known);
  if (bounds.length > 1) byId("plots").append(...known.map((measure) => withinBounds(bounds, measure)));
  const samples = page.growth ?? [];
  if (samples.length < 3) return;
  for (const name of ["traces", "states"].filter((name) => samples.some((sample) => sample[name] !== null))) byId("plots").append(overExecutions(samples, name));
}

function showBounds(bounds, known) {
  const table = byId("bounds");
  const head = element("tr");
  const over = element("tr");
  over.append(element("th"));
  head.append(element("th", "", "bound"));
  for (const { name } of known) {
    const wide = element("th", "", name);
    wide.colSpan = 2;
    over.append(wide);
    head.append(element("th", "", "all"), element("th", "", "new"));
  }
  over.append(element("th"));
  head.append(element("th", "", "pruned"));
  const heads = element("thead");
  heads.append(over, head);
  const number = (value) => element("td", "", value === null ? "–" : value.toLocaleString("en-US"));
  const body = element("tbody");
  for (const bound of bounds) {
    const row = element("tr");
    row.append(element("th", "", String(bound.bound)));
    for (const { all, added } of known) row.append(number(bound[all]), number(bound[added]));
    row.append(number(bound.pruned));
    body.append(row);
  }
  table.replaceChildren(heads, body);
}

/** How one number grows with the bound. */
function withinBounds(bounds, { name, all }) {
  const every = Math.ceil(bounds.length / 12);
  const points = bounds.map(({ bound, [all]: value }, at) => ({
    at: at / (bounds.length - 1),
    value: value ?? 0,
    hint: `bound ${bound}: ${counted(value ?? 0, name.slice(0, -1))}`,
    tick: at % every === 0 ? String(bound) : null,
  }));
  return plot(name, `${name} within the bound`, points);
}

/** How one number grows with the executions, on a scale of powers of ten. */
function overExecutions(samples, name) {
  const most = Math.log10(Math.max(10, samples[samples.length - 1].executions));
  const points = samples.map(({ executions, [name]: value }) => ({
    at: Math.log10(executions) / most,
    value: value ?? 0,
    hint: `${counted(executions, "execution")}: ${counted(value ?? 0, name.slice(0, -1))}`,
    tick: /^10*$/.test(String(executions)) ? executions.toLocaleString("en-US") : null,
  }));
  return plot(`${name} by executions`, `${name} by number of executions`, points);
}

/** A curve through points, from the left to the right. */
function plot(measure, heading, curve) {
  const [width, height, left, right, top, bottom] = [270, 150, 14, 14, 30, 24];
  const most = Math.max(1, ...curve.map(({ value }) => value));
  const x = (at) => left + (width - left - right) * at;
  const y = (value) => height - bottom - ((height - top - bottom) * value) / most;
  const points = curve.map(({ at, value }) => [x(at), y(value)]);
  const path = points.map(([px, py], at) => `${at === 0 ? "M" : "L"}${px} ${py}`).join(" ");
  const svg = drawn("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", "data-measure": measure });
  const label = (text, attributes) => {
    const made = drawn("text", attributes);
    made.textContent = text;
    return made;
  };
  svg.append(
    label(heading, { x: left, y: 14, class: "plot-title" }),
    drawn("path", { d: `${path} L${points[points.length - 1][0]} ${y(0)} L${points[0][0]} ${y(0)} Z`, class: "plot-area" }),
    drawn("line", { x1: left, y1: y(0), x2: width - right, y2: y(0), class: "plot-axis" }),
    drawn("path", { d: path, class: "plot-line" }),
  );
  points.forEach(([px, py], at) => {
    const { hint, tick } = curve[at];
    const dot = drawn("circle", { cx: px, cy: py, r: 3, class: "plot-dot" });
    const title = drawn("title", {});
    title.textContent = hint;
    dot.append(title);
    svg.append(dot);
    if (tick !== null) svg.append(label(tick, { x: px, y: height - 7, class: "plot-tick" }));
  });
  const [lastX, lastY] = points[points.length - 1];
  svg.append(label(most.toLocaleString("en-US"), { x: lastX, y: lastY - 8, class: "plot-value" }));
  return svg;
}
