// The panes for one position: the step that led there, its source line, and the values of all variables.

/** The highlighted tokens of a source text. Models and Rust share most of them. */
const TOKENS = new RegExp(
  [
    /(?<comment>\/\/.*$|\/\*.*?(?:\*\/|$))/,
    /(?<string>"(?:[^"\\]|\\.)*"?)/,
    /(?<keyword>\b(?:as|assert|assume|async|atomic|await|barrier|break|channel|choose|condvar|const|continue|else|end|enum|event|false|fn|for|if|impl|in|invariant|join|let|loop|match|mod|move|mut|mutex|new|null|pub|record|ref|return|rwlock|self|semaphore|skip|spawn|static|struct|thread|trait|true|type|unsafe|use|var|where|while|yield)\b)/,
    /(?<number>(?<![.\w])\d\w*)/,
  ].map((part) => part.source).join("|"),
  "g",
);

/** A line of source as spans. */
function highlighted(line) {
  const code = element("code");
  let end = 0;
  for (const match of line.matchAll(TOKENS)) {
    const [kind] = Object.entries(match.groups).find(([, text]) => text !== undefined);
    code.append(line.slice(end, match.index), element("span", `token-${kind}`, match[0]));
    end = match.index + match[0].length;
  }
  code.append(line.slice(end));
  return code;
}

class SourcePane {
  constructor(trace) {
    this.trace = trace;
    this.pane = byId("text");
    this.texts = new Map(page.sources.map(({ file, text }) => [file, text]));
    this.file = undefined;
    this.marks = [];
  }

  show(position) {
    const step = this.trace.steps[position - 1] ?? this.trace.steps[0];
    const file = step?.file ?? this.file ?? page.sources[0]?.file ?? null;
    if (file !== this.file) this.open(file);
    this.current?.classList.remove("current");
    this.current = position > 0 && step?.file === file ? this.lines[step.line - 1] : undefined;
    this.current?.classList.add("current");
    this.current?.style.setProperty("--thread", hue(this.trace, step.slot));
    this.failed?.classList.remove("fails");
    const { site } = this.trace;
    this.failed = position === this.trace.length && site?.file === file ? this.lines[site.line - 1] : undefined;
    this.failed?.classList.add("fails");
    this.mark(position, file);
    this.reveal(this.current);
  }

  open(file) {
    this.file = file;
    byId("file").textContent = file === null ? "Source" : baseName(file);
    byId("file").title = file ?? "";
    const text = this.texts.get(file);
    if (text === undefined) {
      this.lines = [];
      this.pane.replaceChildren(element("p", "missing", "The source text is not part of this page."));
      return;
    }
    this.lines = text.replace(/\n$/, "").split("\n").map((line, at) => {
      const row = element("div", "source-line");
      row.dataset.line = at + 1;
      row.append(element("span", "stand"), element("span", "line-number", String(at + 1)), highlighted(line));
      return row;
    });
    this.pane.replaceChildren(...this.lines);
    this.pane.scrollTop = 0;
  }

  /** A dot for each thread beside the line of its next statement. */
  mark(position, file) {
    this.marks.forEach((mark) => mark.remove());
    this.marks = [];
    for (const slot of this.trace.slots) {
      const stands = this.trace.stands(slot, position);
      const line = stands?.file === file ? this.lines[stands.line - 1] : undefined;
      if (!line) continue;
      const mark = element("i");
      mark.style.setProperty("--thread", hue(this.trace, slot));
      mark.title = `${this.trace.threads[slot]} continues here`;
      line.firstChild.append(mark);
      this.marks.push(mark);
    }
  }

  reveal(line) {
    if (!line) return;
    const [top, height] = [line.offsetTop - this.pane.offsetTop, this.pane.clientHeight];
    const from = this.pane.scrollTop + height * 0.15;
    const to = this.pane.scrollTop + height * 0.8;
    // Whole lines, so that none is cut at the upper edge.
    if (top < from || top > to) this.pane.scrollTop = Math.round((top - height / 2) / line.offsetHeight) * line.offsetHeight;
  }
}

/** A value and the previous one. Of an array or a record, only the changed parts are highlighted. */
function compared(before, now) {
  if (before === now) return [element("span", "value", now)];
  if (before === null) return [element("span", "value new", now)];
  const [old, parts] = [before.split(", "), now.split(", ")];
  const whole = old.length !== parts.length;
  const changes = whole ? [[before, now]] : parts.map((part, at) => [old[at], part]);
  return changes.flatMap(([from, to], at) => {
    const comma = at > 0 ? [", "] : [];
    if (from === to) return [...comma, element("span", "value", to)];
    return [...comma, element("span", "old", from), element("span", "to", " → "), element("span", "value new", to)];
  });
}

class ValuesPane {
  constructor(trace) {
    this.trace = trace;
    const { variables } = trace.execution;
    this.rows = variables.map(({ name }) => {
      const row = element("tr");
      row.dataset.variable = name;
      row.append(element("th", "", name), element("td"));
      row.firstChild.title = name;
      return row;
    });
    const of = (slot) => this.rows.filter((_, at) => variables[at].slot === slot);
    const groups = [[null, of(null)], ...trace.threads.map((_, slot) => [slot, of(slot)])];
    this.bodies = groups.filter(([, rows]) => rows.length > 0).map(([slot, rows]) => {
      const body = element("tbody");
      if (slot !== null) {
        const head = element("tr", "group");
        const name = element("th", "", trace.threads[slot]);
        name.colSpan = 2;
        if (trace.lane.has(slot)) head.style.setProperty("--thread", hue(trace, slot));
        head.append(name);
        body.append(head);
      }
      body.append(...rows);
      return { body, rows };
    });
    byId("values").replaceChildren(...this.bodies.map(({ body }) => body));
  }

  show(position) {
    const now = this.trace.values(position);
    const before = position > 0 ? this.trace.values(position - 1) : now;
    this.rows.forEach((row, at) => {
      row.hidden = now[at] === null;
      if (row.hidden) return;
      row.classList.toggle("changed", now[at] !== before[at]);
      row.lastChild.replaceChildren(...compared(before[at], now[at]));
      row.lastChild.title = now[at];
    });
    for (const { body, rows } of this.bodies) body.hidden = rows.every((row) => row.hidden);
    byId("when").textContent = position === 0 ? "at the beginning" : `after step ${position.toLocaleString("en-US")}`;
  }
}

/** The step that led to a position, in full. */
function showStep(trace, position) {
  const step = trace.steps[position - 1];
  const [who, where] = [byId("who"), byId("where")];
  byId("what").textContent = step ? step.source : "Nothing has happened yet.";
  byId("effects").textContent = step ? step.effects.join(", ") : "↓ takes the first step, ? lists the keys";
  who.textContent = step ? step.thread : "The beginning";
  who.className = step ? "chip" : "chip none";
  if (step) who.style.setProperty("--thread", hue(trace, step.slot));
  where.textContent = step?.file ? `${baseName(step.file)}:${step.line}` : "";
}
