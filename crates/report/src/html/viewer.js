// The page: shows the current position, and handles keys and buttons.

const view = { trace: null, lanes: null, overview: null, source: null, values: null, position: 0, looked: null, found: [] };

/** Shows an execution, at its end. */
function openExecution(number, position) {
  view.lanes?.dispose();
  view.trace = new Trace(page.executions[number]);
  view.source = new SourcePane(view.trace);
  view.values = new ValuesPane(view.trace);
  view.lanes = new Lanes(view.trace, go, look);
  view.overview = new Overview(view.lanes, go);
  view.lanes.onView = () => view.overview.draw();
  showHead(number);
  fit();
  search(byId("search").value);
  go(position ?? view.trace.length);
}

/** Goes to a position. */
function go(position) {
  const { trace, lanes } = view;
  view.position = Math.max(0, Math.min(trace.length, position));
  view.looked = null;
  lanes.reveal(view.position);
  refresh();
  remember();
}

/** Previews a position without going there; null ends the preview. */
function look(position) {
  if (view.looked === position) return;
  view.looked = position;
  refresh();
}

function refresh() {
  const { trace, position, looked } = view;
  const shown = looked ?? position;
  view.lanes.show(position, looked);
  view.source.show(shown);
  view.values.show(shown);
  showStep(trace, shown);
  byId("position").textContent = `${position.toLocaleString("en-US")} / ${trace.length.toLocaleString("en-US")}`;
  byId("back").disabled = byId("first").disabled = position === 0;
  byId("forward").disabled = byId("last").disabled = position === trace.length;
  tellFound();
}

/** The verdict, and what it is about. */
function showHead(number) {
  const execution = page.executions[number];
  const verdict = execution?.kind ?? page.check?.verdict ?? "ok";
  byId("badge").textContent = verdict;
  byId("badge").className = `badge ${execution?.kind ? "bad" : verdict === "ok" ? "good" : "alert"}`;
  byId("subject").textContent = page.subject;
  const none = page.check ? (verdict === "ok" ? "No error" : "No error so far") : "The execution does not fail";
  byId("headline").textContent = execution?.headline ?? none;
  byId("guarantee").textContent = page.check?.guarantee ?? page.replayed ?? "";
  byId("replay").hidden = !execution?.command;
  byId("command").textContent = execution?.command ?? "";
}

/** Short traces leave room for the coverage; long ones fill the window. */
function fit() {
  const room = window.innerHeight - byId("work").offsetTop - (page.check ? 76 : 20);
  const wanted = Math.max(600, view.lanes.height + 96);
  byId("work").style.setProperty("--height", `${Math.max(420, Math.min(room, wanted))}px`);
}

// Search

function search(text) {
  view.found = view.trace.find(text);
  view.lanes.matches = new Set(view.found);
  view.lanes.draw();
  tellFound();
}

function tellFound() {
  const { found, position } = view;
  const wanted = byId("search").value.trim() !== "";
  const at = found.indexOf(position - 1);
  const all = found.length.toLocaleString("en-US");
  byId("found").textContent = !wanted ? "" : found.length === 0 ? "nothing found" : at < 0 ? `${all} found` : `${at + 1} of ${all}`;
}

/** Goes to the next or previous of some steps, and wraps around. */
function hop(steps, direction) {
  if (steps.length === 0) return;
  const here = view.position - 1;
  const next = direction > 0 ? steps.find((at) => at > here) : steps.findLast((at) => at < here);
  go((next ?? (direction > 0 ? steps[0] : steps[steps.length - 1])) + 1);
}

// Light and dark

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("preempt-theme", theme);
  } catch {
    // A page opened from a file may have no storage.
  }
  view.lanes?.draw();
}

function savedTheme() {
  try {
    return localStorage.getItem("preempt-theme");
  } catch {
    return null;
  }
}

// The URL contains the position, so that it can be shared: #step=7

let remembering;
function remember() {
  clearTimeout(remembering);
  remembering = setTimeout(() => {
    const number = Number(byId("execution").value || 0);
    const error = number > 0 ? `error=${number + 1}&` : "";
    history.replaceState(null, "", `#${error}step=${view.position}`);
  }, 300);
}

const address = new URLSearchParams(location.hash.slice(1));

// Keys

const KEYS = {
  ArrowDown: () => go(view.position + 1),
  ArrowRight: () => go(view.position + 1),
  j: () => go(view.position + 1),
  ArrowUp: () => go(view.position - 1),
  ArrowLeft: () => go(view.position - 1),
  k: () => go(view.position - 1),
  PageDown: () => go(view.position + 10),
  PageUp: () => go(view.position - 10),
  Home: () => go(0),
  End: () => go(view.trace.length),
  n: () => hop(view.trace.preemptions, 1),
  p: () => hop(view.trace.preemptions, -1),
  "/": () => byId("search").focus(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
  const typing = event.target.closest("input, select");
  if (event.key === "t" && !typing) setTheme(isDark() ? "light" : "dark");
  else if (event.key === "?" && !typing) byId("keys").showModal();
  else if (view.trace && !typing && KEYS[event.key]) KEYS[event.key]();
  else return;
  event.preventDefault();
});

byId("search").addEventListener("input", (event) => search(event.target.value));
byId("search").addEventListener("keydown", (event) => {
  if (event.key === "Enter") hop(view.found, event.shiftKey ? -1 : 1);
  if (event.key === "Escape") {
    event.target.value = "";
    search("");
    byId("scroller").focus();
  }
});

// Buttons

byId("first").onclick = () => go(0);
byId("back").onclick = () => go(view.position - 1);
byId("forward").onclick = () => go(view.position + 1);
byId("last").onclick = () => go(view.trace.length);
byId("theme").onclick = () => setTheme(isDark() ? "light" : "dark");
byId("help").onclick = () => byId("keys").showModal();
byId("copy").onclick = async () => {
  try {
    await navigator.clipboard.writeText(byId("command").textContent);
    byId("copy").textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(byId("command"));
  }
};
byId("execution").onchange = (event) => openExecution(Number(event.target.value));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view.lanes?.draw());
window.addEventListener("resize", () => view.lanes && fit());

// The beginning

const theme = address.get("theme") ?? savedTheme();
if (theme) document.documentElement.dataset.theme = theme;
showCoverage();
if (page.executions.length > 1) {
  byId("execution").hidden = false;
  byId("execution").append(...page.executions.map((execution, at) => {
    const option = element("option", "", `Error ${at + 1} of ${page.executions.length}: ${execution.kind}`);
    option.value = at;
    return option;
  }));
}
if (page.executions.length > 0) {
  const wanted = Number(address.get("error") ?? 1) - 1;
  const number = wanted in page.executions ? wanted : 0;
  byId("execution").value = number;
  openExecution(number, address.has("step") ? Number(address.get("step")) || 0 : undefined);
  byId("scroller").focus({ preventScroll: true });
} else {
  byId("work").hidden = true;
  showHead(0);
}
