// The whole execution in a strip: who moved when, where the preemptions are, what was found, and what is in view.

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
    const { trace } = lanes;
    canvas.hidden = lanes.height <= lanes.scroller.clientHeight;
    const [width, height, scale] = [canvas.clientWidth, canvas.clientHeight, window.devicePixelRatio || 1];
    if (height === 0) return;
    [canvas.width, canvas.height] = [width * scale, height * scale];
    // Only an element knows what a colour is in light and in dark.
    const colour = (name) => {
      canvas.style.color = `var(${name})`;
      return getComputedStyle(canvas).color;
    };
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const y = (at) => ((lanes.tops[at] ?? 0) / lanes.height) * height;
    const thick = Math.max(1, (ROW.plain / lanes.height) * height);
    const count = Math.max(1, trace.slots.length);
    const part = (width - 4) / count;
    pen.globalAlpha = 0.6;
    trace.slots.forEach((slot, lane) => {
      pen.fillStyle = colour(`--thread-${lane % 8}`);
      for (const at of trace.ofSlot.get(slot)) pen.fillRect(2 + lane * part, y(at), Math.max(1, part - 1), thick);
    });
    pen.globalAlpha = 1;
    pen.fillStyle = colour("--alert");
    for (const at of trace.preemptions) pen.fillRect(0, y(at) - 1.5, width, 1.5);
    pen.fillStyle = colour("--found");
    for (const at of lanes.matches) pen.fillRect(0, y(at), 4, Math.max(2, thick));
    pen.fillStyle = colour("--accent");
    if (lanes.position > 0) pen.fillRect(0, y(lanes.position - 1) - 1, width, 3);
    const top = (lanes.scroller.scrollTop / lanes.height) * height;
    const seen = Math.min(height - 1, (lanes.scroller.clientHeight / lanes.height) * height);
    pen.globalAlpha = 0.13;
    pen.fillStyle = colour("--text");
    pen.fillRect(0, top, width, seen);
  }
}
