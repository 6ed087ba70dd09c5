// What the search has covered: the sentences of the report, a table by bound, and how the numbers grow with the bound.

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
  // What was covered stands at the top of the page.
  for (const [label, text] of page.summary.filter(([label]) => label !== "covered")) byId("summary").append(element("dt", "", label), element("dd", "", text));
  const { bounds } = page.check;
  if (bounds.length === 0) return;
  const known = MEASURES.filter(({ all }) => bounds.some((bound) => bound[all] !== null));
  showBounds(bounds, known);
  if (bounds.length > 1) byId("plots").append(...known.map((measure) => plot(bounds, measure)));
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
function plot(bounds, { name, all }) {
  const [width, height, left, right, top, bottom] = [270, 150, 14, 14, 30, 24];
  const most = Math.max(1, ...bounds.map((bound) => bound[all] ?? 0));
  const x = (at) => left + ((width - left - right) * at) / (bounds.length - 1);
  const y = (value) => height - bottom - ((height - top - bottom) * value) / most;
  const points = bounds.map((bound, at) => [x(at), y(bound[all] ?? 0)]);
  const path = points.map(([px, py], at) => `${at === 0 ? "M" : "L"}${px} ${py}`).join(" ");
  const svg = drawn("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", "data-measure": name });
  const label = (text, attributes) => {
    const made = drawn("text", attributes);
    made.textContent = text;
    return made;
  };
  svg.append(
    label(`${name} within the bound`, { x: left, y: 14, class: "plot-title" }),
    drawn("path", { d: `${path} L${x(bounds.length - 1)} ${y(0)} L${x(0)} ${y(0)} Z`, class: "plot-area" }),
    drawn("line", { x1: left, y1: y(0), x2: width - right, y2: y(0), class: "plot-axis" }),
    drawn("path", { d: path, class: "plot-line" }),
  );
  const every = Math.ceil(bounds.length / 12);
  points.forEach(([px, py], at) => {
    const { bound, [all]: value } = bounds[at];
    const dot = drawn("circle", { cx: px, cy: py, r: 3, class: "plot-dot" });
    const title = drawn("title", {});
    title.textContent = `bound ${bound}: ${counted(value ?? 0, name.slice(0, -1))}`;
    dot.append(title);
    svg.append(dot);
    if (at % every === 0) svg.append(label(String(bound), { x: px, y: height - 7, class: "plot-tick" }));
  });
  const [lastX, lastY] = points[points.length - 1];
  svg.append(label(most.toLocaleString("en-US"), { x: lastX, y: lastY - 8, class: "plot-value" }));
  return svg;
}
