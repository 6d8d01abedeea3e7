// Charts over time, as SVG. A chart knows its series and nothing of where they come from.

const WINDOW = 300;
let charts = 0;

function niceTop(value) {
  if (!(value > 0)) return 1;
  const power = Math.pow(10, Math.floor(Math.log10(value)));
  for (const step of [1, 1.5, 2, 3, 4, 5, 6, 8, 10]) if (value <= step * power * 1.0001) return step * power;
  return 10 * power;
}

class Chart {
  // series: [{ name, color, get: () => array of numbers or null }]
  constructor({ title, unit, series, stacked, height, top }) {
    Object.assign(this, { title, unit, series, stacked: !!stacked, height: height || 190, top });
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
    this.ticks = [0, 1, 2, 3].map(() => ({ line: s("line", {}), text: s("text", { class: "tick" }) }));
    this.times = [0, 1, 2, 3, 4].map(() => s("text", { class: "tick mid" }));
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
    const at = Math.round(((x - left) / width) * (WINDOW - 1)) - (WINDOW - this.length);
    this.cursor = at >= 0 && at < this.length ? at : null;
    this.draw();
  }

  draw() {
    const width = this.svg.clientWidth;
    if (width < 40) return;
    const height = this.height, left = 52, right = 8, above = 8, below = 20;
    const inner = { width: width - left - right, height: height - above - below };
    this.box = { left, width: inner.width };
    attr(this.svg, "viewBox", `0 0 ${width} ${height}`);
    attr(this.svg, "height", height);
    const data = this.series.map((one) => one.get());
    this.length = Math.max(0, ...data.map((values) => values.length));
    const base = new Array(this.length).fill(0);
    const stacks = data.map((values, at) => {
      if (this.hidden.has(at)) return null;
      if (!this.stacked) return { low: null, high: values };
      const low = base.slice();
      values.forEach((value, place) => { base[place] += value || 0; });
      return { low, high: base.slice() };
    });
    let most = 0;
    for (const stack of stacks) if (stack) for (const value of stack.high) if (value > most) most = value;
    const top = this.top || niceTop(most);
    const x = (at) => left + ((at + WINDOW - this.length) / (WINDOW - 1)) * inner.width;
    const y = (value) => above + inner.height * (1 - Math.min(value, top) / top);
    stacks.forEach((stack, at) => this.shape(this.paths[at], stack, x, y));
    this.ticks.forEach((tick, at) => {
      const value = (top * at) / 3, place = y(value);
      for (const [name, where] of [["x1", left], ["x2", width - right], ["y1", place], ["y2", place]]) attr(tick.line, name, where);
      attr(tick.text, "x", left - 8);
      attr(tick.text, "y", place + 4);
      put(tick.text, this.unit(value));
    });
    this.times.forEach((text, at) => {
      const back = (WINDOW - 1) * (1 - at / 4);
      attr(text, "x", at === 0 ? left + 12 : left + (at / 4) * inner.width - (at === 4 ? 10 : 0));
      attr(text, "y", height - 4);
      put(text, back < 1 ? "now" : "-" + (back >= 60 ? (back / 60).toFixed(back % 60 > 1 && back % 60 < 58 ? 1 : 0) + "m" : Math.round(back) + "s"));
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
    const values = this.get().slice(-90), most = Math.max(0, ...values.filter(KNOWN)) || 1;
    let line = "", first = null, last = 0;
    values.forEach((value, at) => {
      if (!KNOWN(value)) return;
      const x = 120 * (at + 90 - values.length) / 89;
      line += (first === null ? "M" : "L") + `${x.toFixed(1)} ${(30 - 27 * value / most).toFixed(1)}`;
      if (first === null) first = x;
      last = x;
    });
    attr(this.path, "d", line);
    attr(this.fillPath, "d", line && last > first ? `${line}L${last.toFixed(1)} 32L${first.toFixed(1)} 32Z` : "");
  }
}
