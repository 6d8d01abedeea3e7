// Charts over time, as SVG. A chart knows its series and nothing of where they come from.

// Seconds that charts can show, with the number of parts of their time axis.
const SPANS = [[300, 5, "5 min"], [900, 3, "15 min"], [3600, 4, "1 h"]];
// Points that are further apart than this number of seconds are not joined.
const GAP = 25;
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

function spanName(seconds) {
  if (seconds < 1) return "now";
  return seconds % 60 === 0 ? `-${seconds / 60} min` : `-${seconds} s`;
}

class Chart {
  // frame: () => { now, span, times, values, events }; series: [{ name, color, of: (frame) => array, href }]
  constructor({ title, unit, tick, frame, series, stacked, height, top, least, whole, more }) {
    Object.assign(this, { title, unit, tick: tick || unit, frame, series, stacked: !!stacked, height: height || 190, top, least, whole });
    this.id = "chart" + (charts += 1);
    this.hidden = new Set();
    this.cursor = null;
    this.svg = s("svg", { class: "chart", role: "img", tabindex: 0, "aria-label": title, "aria-describedby": this.id });
    this.grid = s("g", { class: "grid" });
    this.area = s("g", {});
    this.flags = s("g", {});
    this.line = s("line", { class: "cursor" });
    this.dots = s("g", {});
    this.svg.append(this.grid, this.area, this.flags, this.line, this.dots);
    this.tip = h("div", { class: "tip", id: this.id, role: "status", hidden: true });
    this.legend = h("div", { class: "legend" });
    this.node = h("section", { class: "panel" },
      h("div", { class: "panel-head" }, h("h3", {}, title), more), h("div", { class: "plot" }, this.svg, this.tip), this.legend);
    this.svg.addEventListener("pointermove", (event) => this.point(event.clientX - this.svg.getBoundingClientRect().left));
    for (const leave of ["pointerleave", "blur"]) this.svg.addEventListener(leave, () => { this.cursor = null; this.draw(); });
    this.svg.addEventListener("keydown", (event) => this.key(event));
    this.prepare();
  }

  prepare() {
    this.paths = this.series.map((one) => {
      const fillPath = s("path", { class: "fill", fill: one.color, "fill-opacity": this.stacked ? 0.5 : 0.1 });
      const path = s("path", { class: "line", stroke: one.color });
      return { fill: fillPath, line: path, dot: s("circle", { r: 3.5, fill: one.color, class: "dot" }) };
    });
    for (const path of this.paths) this.area.append(path.fill);
    for (const path of this.paths) { this.area.append(path.line); this.dots.append(path.dot); }
    this.labels = this.series.map((one, at) => {
      const swatch = h("i", {});
      swatch.style.background = one.color;
      const value = one.href ? h("a", { class: "count", href: one.href, title: `Log lines: ${one.name}` }, "–") : h("b", {}, "–");
      const button = h("button", { type: "button", class: "key", "aria-pressed": "true", title: `Show or hide ${one.name}`, onclick: () => this.toggle(at) }, swatch, one.name);
      return { value, button, node: h("span", { class: "entry" }, button, value) };
    });
    this.legend.replaceChildren(...this.labels.map((label) => label.node));
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

  // Arrow keys go from point to point, page keys from event to event.
  key(event) {
    const { times } = this.last || { times: [] };
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key], page = { PageUp: -1, PageDown: 1 }[event.key];
    if (event.key === "Escape") this.cursor = null;
    else if (event.key === "Home" || event.key === "End") this.cursor = times[event.key === "Home" ? 0 : times.length - 1] || null;
    else if (page) this.cursor = this.nextEvent(page);
    else if (step) {
      const at = this.cursor === null ? times.length - 1 : nearest(times, this.cursor);
      this.cursor = times[Math.max(0, Math.min(times.length - 1, at + step))] ?? null;
    } else return;
    event.preventDefault();
    this.draw();
  }

  nextEvent(way) {
    const places = (this.last ? this.last.events : []).map((group) => group.time);
    const from = this.cursor === null ? Infinity : this.cursor;
    const found = way < 0 ? places.filter((time) => time < from - 0.001).pop() : places.find((time) => time > from + 0.001);
    return found === undefined ? this.cursor : found;
  }

  point(x) {
    if (!this.last) return;
    const { left, width } = this.box, { now, span, times, events } = this.last;
    const time = now - span + ((x - left) / width) * span, reach = (6 / width) * span;
    const event = events.find((group) => Math.abs(group.time - time) <= reach);
    const at = nearest(times, time);
    const near = at >= 0 && Math.abs(times[at] - time) <= Math.max(GAP, reach);
    this.cursor = event ? event.time : near ? times[at] : null;
    this.draw();
  }

  draw() {
    const width = this.svg.clientWidth;
    if (width < 40) return;
    const height = this.height, left = 58, right = 10, above = 14, below = 20;
    const inner = { width: width - left - right, height: height - above - below };
    this.box = { left, width: inner.width };
    attr(this.svg, "viewBox", `0 0 ${width} ${height}`);
    attr(this.svg, "height", height);
    const frame = this.frame(), { now, span, times } = frame;
    this.last = { now, span, times, events: grouped(frame.events, span / inner.width * 7) };
    const data = this.series.map((one) => one.of(frame));
    const stacks = this.stack(data, times.length);
    let most = this.least || 0;
    for (const stack of stacks) if (stack) for (const value of stack.high) if (value > most) most = value;
    const scale = marks(this.top || most, this.whole), top = scale[scale.length - 1];
    const x = (time) => left + Math.max(0, (time - now + span) / span) * inner.width;
    const y = (value) => above + inner.height * (1 - Math.min(value, top) / top);
    stacks.forEach((stack, at) => this.shape(this.paths[at], stack, times, x, y));
    this.axes(scale, span, { left, right, width, height, inner }, y);
    this.mark(x, above, above + inner.height);
    this.values(data, stacks, x, y, { bottom: above + inner.height, above, width });
  }

  stack(data, length) {
    const base = new Array(length).fill(0);
    return data.map((values, at) => {
      if (this.hidden.has(at)) return null;
      if (!this.stacked) return { low: null, high: values };
      // A value of nothing leaves no line on top of the others.
      const low = base.slice();
      const high = values.map((value, place) => (value > 0 ? (base[place] += value) : null));
      return { low, high };
    });
  }

  axes(scale, span, { left, right, width, height, inner }, y) {
    this.ticks.forEach((tick, at) => {
      const value = scale[at], place = value === undefined ? 0 : y(value);
      attr(tick.line, "visibility", value === undefined ? "hidden" : "visible");
      put(tick.text, value === undefined ? "" : this.tick(value));
      for (const [name, where] of [["x1", left], ["x2", width - right], ["y1", place], ["y2", place]]) attr(tick.line, name, where);
      attr(tick.text, "x", left - 8);
      attr(tick.text, "y", place + 4);
    });
    const parts = (SPANS.find(([seconds]) => seconds === span) || SPANS[0])[1];
    this.times.forEach((text, at) => {
      put(text, at > parts ? "" : spanName(span - (span / parts) * at));
      attr(text, "x", at === 0 ? left + 16 : left + (at / parts) * inner.width - (at === parts ? 11 : 0));
      attr(text, "y", height - 4);
    });
  }

  shape(path, stack, times, x, y) {
    if (!stack) { attr(path.line, "d", ""); attr(path.fill, "d", ""); return; }
    let line = "", area = "", part = "", open = null;
    // An area needs two points; a single one is a part of the line alone.
    const close = (end) => {
      if (open !== null && end > open) {
        let back = "";
        if (stack.low) for (let at = end; at >= open; at -= 1) back += `L${x(times[at]).toFixed(1)} ${y(stack.low[at]).toFixed(1)}`;
        else back = `L${x(times[end]).toFixed(1)} ${y(0).toFixed(1)}L${x(times[open]).toFixed(1)} ${y(0).toFixed(1)}`;
        area += part + back + "Z";
      }
      [open, part] = [null, ""];
    };
    stack.high.forEach((value, at) => {
      if (open !== null && (!KNOWN(value) || times[at] - times[at - 1] > GAP)) close(at - 1);
      if (!KNOWN(value)) return;
      const place = `${open === null ? "M" : "L"}${x(times[at]).toFixed(1)} ${y(value).toFixed(1)}`;
      if (open === null) open = at;
      line += place;
      part += place;
    });
    close(stack.high.length - 1);
    attr(path.line, "d", line);
    attr(path.fill, "d", area);
  }

  // Events are lines with a sign at their top.
  mark(x, above, bottom) {
    const { events } = this.last;
    while (this.flags.children.length > events.length) this.flags.lastChild.remove();
    while (this.flags.children.length < events.length) this.flags.append(s("path", {}));
    events.forEach((group, at) => {
      const place = x(group.time).toFixed(1), node = this.flags.children[at];
      attr(node, "class", "flag " + group.level);
      attr(node, "d", `M${place} ${bottom}V${above}m-4 -10h8l-4 7z`);
    });
  }

  values(data, stacks, x, y, { bottom, above, width }) {
    const { times, events } = this.last;
    const shown = this.cursor !== null, at = shown ? nearest(times, this.cursor) : times.length - 1;
    const where = x(shown ? this.cursor : times[at]);
    attr(this.line, "visibility", shown ? "visible" : "hidden");
    if (shown) for (const [name, place] of [["x1", where], ["x2", where], ["y1", above], ["y2", bottom]]) attr(this.line, name, place);
    const words = [];
    data.forEach((values, one) => {
      const value = values[at];
      put(this.labels[one].value, this.unit(value));
      words.push(`${this.series[one].name} ${this.unit(value)}`);
      const stack = stacks[one], place = stack ? stack.high[at] : null;
      const dot = this.paths[one].dot;
      attr(dot, "visibility", stack && KNOWN(place) && (shown || !this.stacked) ? "visible" : "hidden");
      if (stack && KNOWN(place)) { attr(dot, "cx", x(times[at])); attr(dot, "cy", y(place)); }
    });
    attr(this.svg, "aria-label", `${this.title}: ${words.join(", ")}`);
    this.tip.hidden = !shown;
    if (!shown) return;
    const group = events.find((one) => Math.abs(one.time - this.cursor) < 0.001);
    const rows = data.map((values, one) => {
      if (this.hidden.has(one)) return null;
      const swatch = h("i", {});
      swatch.style.background = this.series[one].color;
      return h("div", {}, swatch, h("span", {}, this.series[one].name), h("b", {}, this.unit(values[at])));
    });
    this.tip.replaceChildren(h("time", {}, format.clock(this.cursor)), ...rows.filter(Boolean), ...(group ? eventLines(group) : []));
    this.tip.style.left = (where > width / 2 ? Math.max(4, where - this.tip.offsetWidth - 12) : where + 12) + "px";
  }
}

// The events of a point in time, for a chart's tip.
function eventLines(group) {
  const lines = group.entries.slice(-4).map((entry) => h("p", { class: "event " + eventLevel(entry) }, h("i", { class: "mark " + eventMark(entry) }), eventTitle(entry)));
  if (group.entries.length > 4) lines.push(h("p", { class: "event" }, `and ${group.entries.length - 4} more`));
  return lines;
}

// Joins events that are too close to be told apart.
function grouped(events, reach) {
  const found = [];
  for (const entry of events || []) {
    const last = found[found.length - 1];
    if (last && entry.time - last.time <= reach) {
      last.entries.push(entry);
      if (LEVEL_RANK[eventLevel(entry)] > LEVEL_RANK[last.level]) last.level = eventLevel(entry);
    } else found.push({ time: entry.time, entries: [entry], level: eventLevel(entry) });
  }
  return found;
}

// The place of the value in ascending `values` that is nearest to `value`; -1: there are none.
function nearest(values, value) {
  let low = 0, high = values.length - 1;
  if (high < 0) return -1;
  while (high - low > 1) { const middle = (low + high) >> 1; if (values[middle] < value) low = middle; else high = middle; }
  return Math.abs(values[low] - value) <= Math.abs(values[high] - value) ? low : high;
}

// A small line without axes.
class Spark {
  constructor(get, color) {
    this.get = get;
    this.fillPath = s("path", { class: "fill", fill: color, "fill-opacity": 0.14 });
    this.path = s("path", { class: "line", stroke: color });
    this.node = s("svg", { class: "spark", viewBox: "0 0 120 32", preserveAspectRatio: "none", "aria-hidden": "true" }, this.fillPath, this.path);
  }

  draw() {
    const { now, span, times, values } = this.get();
    const most = values.reduce((all, value) => (value > all ? value : all), 0) || 1;
    let line = "", first = null, last = 0;
    values.forEach((value, at) => {
      if (!KNOWN(value) || times[at] < now - span) return;
      const x = 120 * (times[at] - now + span) / span;
      line += (first === null ? "M" : "L") + `${x.toFixed(1)} ${(30 - 27 * value / most).toFixed(1)}`;
      if (first === null) first = x;
      last = x;
    });
    attr(this.path, "d", line);
    attr(this.fillPath, "d", line && last > first ? `${line}L${last.toFixed(1)} 32L${first.toFixed(1)} 32Z` : "");
  }
}

// Chooses the seconds that all charts show.
function rangeSwitch() {
  const buttons = SPANS.map(([seconds, , title]) => h("button", { type: "button", "aria-pressed": String(store.span === seconds), dataset: { span: seconds }, onclick: () => {
    store.setSpan(seconds);
    for (const button of buttons) attr(button, "aria-pressed", String(button.dataset.span === String(seconds)));
  } }, title));
  return h("div", { class: "segments", role: "group", "aria-label": "Time shown by the charts" }, ...buttons);
}
