// Charts over time, as SVG. A chart knows its series and nothing of where they come from.

const WINDOW = 300;
let charts = 0;

// The marks of an axis from 0 on: three to five steps that are round numbers.
function marks(most, whole) {
  if (!(most > 0)) return whole ? [0, 1, 2] : [0, 0.5, 1];
  const rough = most / 3.4, power = Math.pow(10, Math.floor(Math.log10(rough)));
  let step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
  if (whole) step = Math.max(1, Math.ceil(step));
  const found = [0];
  while (found[found.length - 1] < most * 0.9999) found.push(found.length * step);
  return found;
}

// Seconds that are shown: as few as hold what is known.
const SPANS = [[60, 4], [120, 4], [WINDOW, 5]];

function spanName(seconds) {
  if (seconds < 1) return "now";
  return seconds % 60 === 0 ? `-${seconds / 60} min` : `-${seconds} s`;
}

class Chart {
  // series: [{ name, color, get: () => array of numbers or null }]
  constructor({ title, unit, tick, series, stacked, height, top, whole }) {
    Object.assign(this, { title, unit, tick: tick || unit, series, stacked: !!stacked, height: height || 190, top, whole });
    this.id = "chart" + (charts += 1);
    this.hidden = new Set();
    this.cursor = null;
    this.svg = s("svg", { class: "chart", role: "img", tabindex: 0, "aria-label": title });
    this.grid = s("g", { class: "grid" });
    this.area = s("g", {});
    this.line = s("line", { class: "cursor" });
    this.dots = s("g", {});
    this.svg.append(this.grid, this.area, this.line, this.dots);
    this.tip = h("div", { class: "tip", hidden: true });
    this.legend = h("div", { class: "legend" });
    this.now = h("span", { class: "now" });
    this.node = h("section", { class: "panel" },
      h("div", { class: "panel-head" }, h("h3", {}, title), this.now), h("div", { class: "plot" }, this.svg, this.tip), this.legend);
    this.svg.addEventListener("pointermove", (event) => this.point(event.offsetX));
    this.svg.addEventListener("pointerleave", () => { this.cursor = null; this.draw(); });
    this.svg.addEventListener("blur", () => { this.cursor = null; this.draw(); });
    this.svg.addEventListener("keydown", (event) => this.key(event));
    this.prepare();
  }

  prepare() {
    this.paths = this.series.map((one) => {
      const fillPath = s("path", { class: "fill", fill: one.color, "fill-opacity": this.stacked ? 0.55 : 0.12 });
      const path = s("path", { class: "line", stroke: one.color });
      return { fill: fillPath, line: path, dot: s("circle", { r: 3.5, fill: one.color, class: "dot" }) };
    });
    for (const path of this.paths) this.area.append(path.fill);
    for (const path of this.paths) { this.area.append(path.line); this.dots.append(path.dot); }
    this.labels = this.series.map((one, at) => {
      const value = h("b", {}, "–");
      const swatch = h("i", {});
      swatch.style.background = one.color;
      const button = h("button", { type: "button", class: "key", "aria-pressed": "true", onclick: () => this.toggle(at) }, swatch, one.name, value);
      return { value, button };
    });
    this.legend.replaceChildren(...this.labels.map((label) => label.button));
    this.ticks = [0, 1, 2, 3, 4, 5].map(() => ({ line: s("line", {}), text: s("text", { class: "tick" }) }));
    this.times = [0, 1, 2, 3, 4, 5].map(() => s("text", { class: "tick mid" }));
    for (const tick of this.ticks) this.grid.append(tick.line, tick.text);
    this.grid.append(...this.times);
  }

  toggle(at) {
    if (this.hidden.has(at)) this.hidden.delete(at); else this.hidden.add(at);
    this.labels[at].button.setAttribute("aria-pressed", String(!this.hidden.has(at)));
    this.draw();
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const length = this.length || 0;
    this.cursor = Math.max(0, Math.min(length - 1, (this.cursor === null ? length - 1 : this.cursor) + step));
    this.draw();
  }

  point(x) {
    const { left, width } = this.box;
    const at = Math.round(((x - left) / width) * (this.span - 1)) - (this.span - this.length);
    this.cursor = at >= 0 && at < this.length ? at : null;
    this.draw();
  }

  draw() {
    const width = this.svg.clientWidth;
    if (width < 40) return;
    const height = this.height, left = 56, right = 10, above = 10, below = 20;
    const inner = { width: width - left - right, height: height - above - below };
    this.box = { left, width: inner.width };
    attr(this.svg, "viewBox", `0 0 ${width} ${height}`);
    attr(this.svg, "height", height);
    const data = this.series.map((one) => one.get());
    this.length = Math.max(0, ...data.map((values) => values.length));
    const [span, parts] = SPANS.find(([seconds]) => seconds >= this.length) || SPANS[SPANS.length - 1];
    this.span = span;
    const base = new Array(this.length).fill(0);
    const stacks = data.map((values, at) => {
      if (this.hidden.has(at)) return null;
      if (!this.stacked) return { low: null, high: values };
      // What is nothing leaves no line on top of the others.
      const low = base.slice();
      const high = values.map((value, place) => (value > 0 ? (base[place] += value) : null));
      return { low, high };
    });
    let most = 0;
    for (const stack of stacks) if (stack) for (const value of stack.high) if (value > most) most = value;
    const scale = marks(this.top || most, this.whole), top = scale[scale.length - 1];
    const x = (at) => left + ((at + span - this.length) / (span - 1)) * inner.width;
    const y = (value) => above + inner.height * (1 - Math.min(value, top) / top);
    stacks.forEach((stack, at) => this.shape(this.paths[at], stack, x, y));
    this.ticks.forEach((tick, at) => {
      const value = scale[at], place = value === undefined ? 0 : y(value);
      attr(tick.line, "visibility", value === undefined ? "hidden" : "visible");
      put(tick.text, value === undefined ? "" : this.tick(value));
      for (const [name, where] of [["x1", left], ["x2", width - right], ["y1", place], ["y2", place]]) attr(tick.line, name, where);
      attr(tick.text, "x", left - 8);
      attr(tick.text, "y", place + 4);
    });
    this.times.forEach((text, at) => {
      put(text, at > parts ? "" : spanName(span - (span / parts) * at));
      attr(text, "x", at === 0 ? left + 16 : left + (at / parts) * inner.width - (at === parts ? 11 : 0));
      attr(text, "y", height - 4);
    });
    this.values(data, stacks, x, y, above + inner.height, above, width);
  }

  shape(path, stack, x, y) {
    if (!stack) { attr(path.line, "d", ""); attr(path.fill, "d", ""); return; }
    let line = "", area = "", open = null;
    const close = (end) => {
      if (open === null || end - open < 1) { open = null; return; }
      let back = "";
      if (stack.low) for (let at = end; at >= open; at -= 1) back += `L${x(at).toFixed(1)} ${y(stack.low[at]).toFixed(1)}`;
      else back = `L${x(end).toFixed(1)} ${y(0).toFixed(1)}L${x(open).toFixed(1)} ${y(0).toFixed(1)}`;
      area += back + "Z";
      open = null;
    };
    stack.high.forEach((value, at) => {
      if (!KNOWN(value)) { if (open !== null) close(at - 1); return; }
      const place = `${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
      if (open === null) { open = at; line += "M" + place; area += "M" + place; } else { line += "L" + place; area += "L" + place; }
    });
    if (open !== null) close(stack.high.length - 1);
    attr(path.line, "d", line);
    attr(path.fill, "d", area.endsWith("Z") ? area : "");
  }

  values(data, stacks, x, y, bottom, above, width) {
    const at = this.cursor === null ? this.length - 1 : this.cursor;
    const shown = this.cursor !== null;
    attr(this.line, "visibility", shown ? "visible" : "hidden");
    if (shown) for (const [name, where] of [["x1", x(at)], ["x2", x(at)], ["y1", above], ["y2", bottom]]) attr(this.line, name, where);
    const words = [];
    data.forEach((values, one) => {
      const value = values[at];
      put(this.labels[one].value, this.unit(value));
      words.push(`${this.series[one].name} ${this.unit(value)}`);
      const stack = stacks[one], place = stack ? stack.high[at] : null;
      const dot = this.paths[one].dot;
      attr(dot, "visibility", stack && KNOWN(place) && (shown || !this.stacked) ? "visible" : "hidden");
      if (stack && KNOWN(place)) { attr(dot, "cx", x(at)); attr(dot, "cy", y(place)); }
    });
    attr(this.svg, "aria-label", `${this.title}: ${words.join(", ")}`);
    this.tip.hidden = !shown;
    if (!shown) return;
    const time = store.times[store.times.length - this.length + at];
    this.tip.replaceChildren(h("time", {}, format.clock(time || 0)), ...data.map((values, one) => {
      if (this.hidden.has(one)) return null;
      const swatch = h("i", {});
      swatch.style.background = this.series[one].color;
      return h("div", {}, swatch, h("span", {}, this.series[one].name), h("b", {}, this.unit(values[at])));
    }).filter(Boolean));
    const place = x(at);
    this.tip.style.left = (place > width / 2 ? place - this.tip.offsetWidth - 12 : place + 12) + "px";
  }
}

// A small line without axes.
class Spark {
  constructor(get, color, label) {
    this.get = get;
    this.fillPath = s("path", { class: "fill", fill: color, "fill-opacity": 0.14 });
    this.path = s("path", { class: "line", stroke: color });
    this.node = s("svg", { class: "spark", viewBox: "0 0 120 32", preserveAspectRatio: "none", "aria-hidden": "true" }, this.fillPath, this.path);
    if (label) this.node.setAttribute("data-label", label);
  }

  draw() {
    const all = this.get(), span = Math.max(30, Math.min(90, all.length)), values = all.slice(-span), most = Math.max(0, ...values.filter(KNOWN)) || 1;
    let line = "", first = null, last = 0;
    values.forEach((value, at) => {
      if (!KNOWN(value)) return;
      const x = 120 * (at + span - values.length) / (span - 1);
      line += (first === null ? "M" : "L") + `${x.toFixed(1)} ${(30 - 27 * value / most).toFixed(1)}`;
      if (first === null) first = x;
      last = x;
    });
    attr(this.path, "d", line);
    attr(this.fillPath, "d", line && last > first ? `${line}L${last.toFixed(1)} 32L${first.toFixed(1)} 32Z` : "");
  }
}
