// The whole execution in a strip: which thread moved when, preemptions, search matches, and the visible part.

class Overview {
  constructor(lanes, go) {
    this.lanes = lanes;
    this.canvas = byId("overview");
    const jump = (event) => {
      const y = (event.offsetY / this.canvas.clientHeight) * lanes.height;
      go(Math.min(lanes.trace.length, lanes.at(y) + 1));
    };
    this.canvas.onmousedown = jump;
    this.canvas.onmousemove = (event) => event.buttons === 1 && jump(event);
  }

  draw() {
    const { lanes, canvas } = this;
    // An execution that nearly fits the window needs no overview.
    canvas.hidden = lanes.height <= 2 * lanes.scroller.clientHeight;
    const [width, height, scale] = [canvas.clientWidth, canvas.clientHeight, window.devicePixelRatio || 1];
    if (canvas.hidden || height === 0) return;
    this.steps(width, height, scale);
    const pen = canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(this.drawn, 0, 0);
    pen.scale(scale, scale);
    pen.fillStyle = this.accent;
    if (lanes.position > 0) pen.fillRect(0, this.y(lanes.position - 1, height) - 1, width, 3);
    pen.globalAlpha = 0.13;
    pen.fillStyle = this.ink;
    pen.fillRect(0, (lanes.scroller.scrollTop / lanes.height) * height, width, (lanes.scroller.clientHeight / lanes.height) * height);
    pen.globalAlpha = 1;
  }

  /** Where a step is in the strip. */
  y(at, height) {
    return (this.lanes.tops[at] / this.lanes.height) * height;
  }

  /** Draws all steps, unless they are drawn already: there may be thousands, and the view moves all the time. */
  steps(width, height, scale) {
    const { lanes, canvas } = this;
    const { trace, matches } = lanes;
    const now = [width, height, scale, isDark(), matches];
    if (this.of?.every((what, at) => what === now[at])) return;
    this.of = now;
    [canvas.width, canvas.height] = [width * scale, height * scale];
    this.drawn = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
    // The value of a CSS colour depends on the theme, so it is read from an element.
    const colour = (name) => {
      canvas.style.color = `var(${name})`;
      return getComputedStyle(canvas).color;
    };
    [this.accent, this.ink] = [colour("--accent"), colour("--text")];
    const pen = this.drawn.getContext("2d");
    pen.scale(scale, scale);
    const thick = Math.max(1, (ROW.plain / lanes.height) * height);
    const part = (width - 4) / Math.max(1, trace.slots.length);
    pen.globalAlpha = 0.6;
    trace.slots.forEach((slot, lane) => {
      pen.fillStyle = colour(`--thread-${lane % 8}`);
      for (const at of trace.ofSlot.get(slot)) pen.fillRect(2 + lane * part, this.y(at, height), Math.max(1, part - 1), thick);
    });
    pen.globalAlpha = 1;
    pen.fillStyle = colour("--alert");
    for (const at of trace.preemptions) pen.fillRect(0, this.y(at, height) - 1.5, width, 1.5);
    pen.fillStyle = colour("--found");
    for (const at of matches) pen.fillRect(0, this.y(at, height), 4, Math.max(2, thick));
  }
}
