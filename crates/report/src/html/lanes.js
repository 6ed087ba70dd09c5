// The execution as lanes: a column for each thread, with time running downwards. Only the visible part
// is in the document, so that a trace of thousands of steps scrolls smoothly.

const GUTTER = 46;
const LANE_MARGIN = 17;
const LEAST_LANE = 176;
const ROW = { plain: 34, told: 50, gap: 6, rule: 30, top: 10 };
/** How many pixels beyond the visible part are drawn. */
const OVERSCAN = 500;

class Lanes {
  constructor(trace, go, preview) {
    this.trace = trace;
    this.scroller = byId("scroller");
    this.canvas = byId("canvas");
    this.names = byId("names");
    this.svg = byId("arrows");
    this.rows = new Map();
    this.position = 0;
    this.looked = null;
    this.matches = new Set();
    this.canvas.replaceChildren(this.svg);
    this.measure();
    this.head();
    this.listen(go, preview);
    this.resize();
  }

  /** Where each step is, from the top. */
  measure() {
    const { steps, execution, waiting } = this.trace;
    this.tops = [];
    this.heights = [];
    let y = ROW.top;
    steps.forEach((step, at) => {
      y += this.rules(at).length * ROW.rule;
      const height = step.effects.length > 0 ? ROW.told : ROW.plain;
      this.tops.push(y);
      this.heights.push(height);
      y += height + ROW.gap;
    });
    this.end = y;
    if (waiting.length > 0) y += ROW.told + ROW.gap;
    if (execution.headline) y += 60;
    this.height = y + 10;
  }

  /** The lines above a step, each with its class and its words: where the cycle begins, and a preemption. */
  rules(at) {
    const { execution, threads, length } = this.trace;
    const rules = [];
    if (execution.cycle === at + 1) {
      rules.push(["cycle", at + 1 === length ? `cycle: step ${length} repeats forever` : `cycle: steps ${at + 1} to ${length} repeat forever`]);
    }
    const preempted = execution.preempts[at];
    if (preempted !== null) rules.push(["", `preemption: ${threads[preempted]} could have continued`]);
    return rules;
  }

  head() {
    const { slots, threads } = this.trace;
    const names = slots.map((slot) => {
      const name = element("div", "name");
      name.style.setProperty("--thread", hue(this.trace, slot));
      name.append(element("span", "", threads[slot]));
      name.title = threads[slot];
      return name;
    });
    this.names.replaceChildren(...names);
    this.canvas.append(...slots.map((slot) => {
      const line = element("div", "line");
      line.style.setProperty("--thread", hue(this.trace, slot));
      return line;
    }));
    this.lines = [...this.canvas.querySelectorAll(".line")];
    const end = element("div", "end");
    end.style.top = `${this.end}px`;
    this.waiting = this.trace.waiting.map((told) => [told.slot, this.box(told, "box waits")]);
    for (const [, box] of this.waiting) {
      box.querySelector(".did").prepend(element("span", "waits-word", "waits: "));
      end.append(box);
    }
    if (this.trace.execution.headline) {
      const failure = element("div", "failure", this.trace.execution.headline);
      failure.title = this.trace.execution.headline;
      if (this.trace.waiting.length > 0) failure.style.top = `${ROW.told + ROW.gap}px`;
      end.append(failure);
    }
    this.canvas.append(end);
  }

  listen(go, preview) {
    const stepAt = (event) => event.target.closest("[data-step]");
    this.canvas.onclick = (event) => {
      const box = stepAt(event);
      if (box) go(Number(box.dataset.step) + 1);
    };
    // Scrolling moves rows under a resting pointer; that is not hovering.
    this.scroller.onmousemove = (event) => {
      const box = stepAt(event);
      preview(box ? Number(box.dataset.step) + 1 : null);
    };
    this.scroller.onmouseleave = () => preview(null);
    this.scroller.onscroll = () => this.draw();
    this.observer?.disconnect();
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.scroller);
  }

  /** Another execution replaces this one: cancels pending drawing. */
  dispose() {
    this.observer.disconnect();
    if (this.drawing) cancelAnimationFrame(this.drawing);
  }

  resize() {
    const lanes = Math.max(1, this.trace.slots.length);
    this.lane = Math.max(LEAST_LANE, (this.scroller.clientWidth - GUTTER - 12) / lanes);
    this.width = GUTTER + this.lane * lanes;
    this.canvas.style.width = this.names.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.canvas.style.setProperty("--lane", `${this.lane}px`);
    this.canvas.style.setProperty("--view", `${this.scroller.clientWidth}px`);
    this.names.style.setProperty("--lane", `${this.lane}px`);
    this.lines.forEach((line, lane) => (line.style.left = `${GUTTER + this.lane * (lane + 0.5)}px`));
    for (const [slot, box] of this.waiting) box.style.left = `${this.left(slot)}px`;
    this.rows.forEach((row) => row.remove());
    this.rows.clear();
    this.draw();
  }

  /** Where the box of a thread begins. */
  left(slot) {
    return GUTTER + this.lane * this.trace.lane.get(slot) + LANE_MARGIN;
  }

  /** The first step whose row ends below y. */
  at(y) {
    let [low, high] = [0, this.trace.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tops[middle] + this.heights[middle] < y) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The steps that are drawn: from the first up to before the second. */
  visible() {
    const top = this.scroller.scrollTop;
    return [this.at(top - OVERSCAN), Math.min(this.trace.length, this.at(top + this.scroller.clientHeight + OVERSCAN) + 1)];
  }

  draw() {
    if (this.drawing) return;
    this.drawing = requestAnimationFrame(() => {
      this.drawing = undefined;
      this.drawNow();
    });
  }

  drawNow() {
    const [from, to] = this.visible();
    for (const [at, row] of this.rows) {
      if (at < from || at >= to) {
        row.remove();
        this.rows.delete(at);
      }
    }
    for (let at = from; at < to; at++) {
      if (!this.rows.has(at)) {
        const row = this.row(at);
        this.rows.set(at, row);
        this.canvas.append(row);
      }
      this.paint(at, this.rows.get(at));
    }
    this.drawArrows(from, to);
    this.onView?.();
  }

  row(at) {
    const step = this.trace.steps[at];
    const row = element("div", "row");
    row.style.top = `${this.tops[at]}px`;
    row.append(element("span", "number", String(at + 1)));
    const rules = this.rules(at);
    rules.forEach(([className, words], nth) => {
      const rule = element("div", `rule ${className}`);
      rule.style.top = `${4 - (rules.length - nth) * ROW.rule}px`;
      rule.append(element("span", "", words));
      row.append(rule);
    });
    const box = this.box(step, "box");
    box.dataset.step = at;
    box.id = `step-${at + 1}`;
    box.setAttribute("role", "option");
    box.style.height = `${this.heights[at]}px`;
    row.append(box);
    return row;
  }

  box(told, className) {
    const box = element("div", className);
    box.style.setProperty("--thread", hue(this.trace, told.slot));
    box.style.left = `${this.lane ? this.left(told.slot) : 0}px`;
    const effects = told.effects.join(", ");
    box.append(element("code", "did", told.source));
    if (effects) box.append(element("code", "saw", effects));
    const place = told.file ? `${told.file}:${told.line}\n` : "";
    box.title = `${place}${told.source}${effects ? `\n${effects}` : ""}`;
    return box;
  }

  /** Sets the classes of a box, which depend on the current position. */
  paint(at, row) {
    const failed = this.trace.failing && at === this.trace.length - 1;
    const box = row.querySelector(".box");
    row.classList.toggle("future", at >= this.position);
    box.classList.toggle("current", at === this.position - 1);
    box.setAttribute("aria-selected", String(at === this.position - 1));
    box.classList.toggle("looked", this.looked !== null && at === this.looked - 1);
    box.classList.toggle("match", this.matches.has(at));
    box.classList.toggle("failed", failed);
    box.classList.toggle("preempting", this.trace.execution.preempts[at] !== null);
  }

  drawArrows(from, to) {
    const top = Math.max(0, this.scroller.scrollTop - OVERSCAN);
    const height = this.scroller.clientHeight + 2 * OVERSCAN;
    this.svg.style.top = `${top}px`;
    this.svg.setAttribute("width", this.width);
    this.svg.setAttribute("height", Math.min(height, Math.max(0, this.height - top)));
    const active = (this.looked ?? this.position) - 1;
    const [plain, strong] = [[], []];
    for (const arrow of this.trace.arrows) {
      if (arrow.to < from || arrow.from >= to) continue;
      const into = arrow.to === active;
      const out = arrow.from === active;
      const kind = into ? "into" : out ? "out" : arrow.to >= this.position ? "future" : "";
      (into || out ? strong : plain).push(this.arrow(arrow, top, kind));
    }
    for (const arrow of this.trace.memoryArrows) {
      if (Math.max(arrow.from, arrow.to) < from || Math.min(arrow.from, arrow.to) >= to) continue;
      strong.push(this.arrow(arrow, top, `memory ${arrow.kind}`));
    }
    this.svg.replaceChildren(...plain, ...strong);
  }

  /** From the side of one box to the side of the other, with a head. */
  arrow({ from, to }, top, kind) {
    const { steps, lane } = this.trace;
    const rightwards = lane.get(steps[from].slot) < lane.get(steps[to].slot);
    const side = (at, right) => this.left(steps[at].slot) + (right ? this.lane - 2 * LANE_MARGIN : 0);
    const middle = (at) => this.tops[at] + this.heights[at] / 2 - top;
    // Within a lane, which occurs for reads-from and modification order, the arrow passes on the left.
    const inLane = steps[from].slot === steps[to].slot;
    const sign = rightwards || inLane ? 1 : -1;
    const [x1, y1] = [side(from, rightwards), middle(from)];
    const [x2, y2] = [side(to, !rightwards && !inLane) - sign * 2, middle(to)];
    const bend = Math.min(30, 12 + Math.abs(y2 - y1) / 6) * (inLane ? -1 : 1);
    const group = drawn("g", { class: `arrow ${kind}` });
    group.append(
      drawn("path", { d: `M${x1} ${y1} C${x1 + sign * bend} ${y1} ${x2 - sign * (Math.abs(bend) + 5)} ${y2} ${x2 - sign * 5} ${y2}` }),
      drawn("polygon", { points: `${x2},${y2} ${x2 - sign * 7},${y2 - 3.5} ${x2 - sign * 7},${y2 + 3.5}` }),
    );
    return group;
  }

  /** Goes to a position and scrolls it into view. */
  show(position, looked) {
    [this.position, this.looked] = [position, looked];
    if (position > 0) this.scroller.setAttribute("aria-activedescendant", `step-${position}`);
    this.draw();
  }

  /** Scrolls so that the step before a position is not at the very edge. */
  reveal(position) {
    const at = Math.max(0, position - 1);
    const view = this.scroller.clientHeight - this.names.offsetHeight;
    const top = position === 0 ? 0 : this.tops[at];
    const bottom = position === this.trace.length ? this.height : top + (this.heights[at] ?? 0);
    const margin = Math.min(90, view / 4);
    if (top - margin < this.scroller.scrollTop) this.scroller.scrollTop = top - margin;
    else if (bottom + margin > this.scroller.scrollTop + view) {
      this.scroller.scrollTop = Math.min(top - margin, bottom + margin - view);
    }
    if (position === 0) return;
    const left = this.left(this.trace.steps[at].slot) - LANE_MARGIN;
    if (left - GUTTER < this.scroller.scrollLeft) this.scroller.scrollLeft = left - GUTTER;
    else if (left + this.lane > this.scroller.scrollLeft + this.scroller.clientWidth) {
      this.scroller.scrollLeft = left + this.lane - this.scroller.clientWidth;
    }
  }
}
