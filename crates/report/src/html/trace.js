"use strict";

// The data and values derived from them.
//
// An execution has steps 0 … n-1. A *position* k is between two steps: k steps have been taken. So position 0 is the
// beginning, and the step that led to position k is step k-1. The page numbers steps from 1, like positions.

const page = JSON.parse(document.getElementById("data").textContent);

/** The distance between positions whose values are stored completely; others are computed from these. */
const SNAPSHOT = 64;

class Trace {
  constructor(execution) {
    this.execution = execution;
    this.steps = execution.steps;
    this.length = this.steps.length;
    this.threads = execution.threads;
    this.waiting = execution.waiting;
    // For other failures, no single step is the failing one.
    this.failing = Boolean(execution.kind) && !["deadlock", "livelock", "leak"].includes(execution.kind);
    // The place of the failure, which may be lines below the beginning of the step that fails.
    const [, file, line] = (this.failing && execution.site?.match(/^(.*):(\d+)$/s)) || [];
    this.site = file === undefined ? null : { file, line: Number(line) };

    const slots = new Set([...this.steps, ...this.waiting].map((told) => told.slot));
    this.slots = [...slots].sort((a, b) => a - b);
    this.lane = new Map(this.slots.map((slot, lane) => [slot, lane]));
    this.ofSlot = new Map(this.slots.map((slot) => [slot, []]));
    this.steps.forEach((step, at) => this.ofSlot.get(step.slot).push(at));

    // The order within a thread is its lane; arrows are between threads.
    this.arrows = [];
    execution.arrows.forEach((from, to) => {
      for (const before of from) {
        if (this.steps[before].slot !== this.steps[to].slot) this.arrows.push({ from: before, to });
      }
    });
    // Under weak memory: from the store that a stale read sees to the read, from the read to the newest store that it
    // does not see, and from a stale write to the store before which it comes in modification order.
    this.memoryArrows = [];
    this.steps.forEach(({ stale }, at) => {
      if (!stale) return;
      const arrow = (from, to, kind) => from && to && this.memoryArrows.push({ from: from - 1, to: to - 1, kind });
      if (stale.access === "write") return arrow(at + 1, stale.next, "modification");
      arrow(stale.store, at + 1, "reads");
      arrow(at + 1, stale.newest, "unseen");
    });
    this.preemptions = [];
    execution.preempts.forEach((slot, at) => slot !== null && this.preemptions.push(at));

    this.snapshots = [];
    let now = new Array(execution.variables.length).fill(null);
    execution.changes.forEach((changes, position) => {
      now = now.slice();
      for (const [variable, value] of changes) now[variable] = value;
      if (position % SNAPSHOT === 0) this.snapshots.push(now);
    });
  }

  /** The values of all variables at a position; null for those that do not exist there. */
  values(position) {
    const values = this.snapshots[Math.floor(position / SNAPSHOT)].slice();
    for (let at = position - (position % SNAPSHOT) + 1; at <= position; at++) {
      for (const [variable, value] of this.execution.changes[at]) values[variable] = value;
    }
    return values;
  }

  /** The next step of a thread at a position, or undefined. */
  next(slot, position) {
    const own = this.ofSlot.get(slot);
    let [low, high] = [0, own.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (own[middle] < position) low = middle + 1;
      else high = middle;
    }
    return own[low];
  }

  /** The position of a thread: its next step, or what it waits for at the end. */
  stands(slot, position) {
    const next = this.next(slot, position);
    return next === undefined ? this.waiting.find((told) => told.slot === slot) : this.steps[next];
  }

  /** The steps in which a text occurs: in the statement, the thread or the line. */
  find(text) {
    const wanted = text.trim().toLowerCase();
    if (wanted === "") return [];
    this.texts ??= this.steps.map((step) =>
      [step.thread, step.source, ...step.effects, step.file ? `${baseName(step.file)}:${step.line}` : ""].join("\n").toLowerCase(),
    );
    const found = [];
    this.texts.forEach((text, at) => text.includes(wanted) && found.push(at));
    return found;
  }
}

/** There are eight distinguishable colours; more threads share them. */
const hue = (trace, slot) => `var(--thread-${trace.lane.get(slot) % 8})`;

/** An element with a class and a text. Texts of the program go through here and never become HTML. */
function element(name, className = "", text = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== "") made.textContent = text;
  return made;
}

/** An element of a drawing. */
function drawn(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const byId = (id) => document.getElementById(id);
const baseName = (file) => file.split(/[/\\]/).pop();
const counted = (n, what) => `${n.toLocaleString("en-US")} ${what}${n === 1 ? "" : "s"}`;
