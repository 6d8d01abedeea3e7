// The state of the process: samples of every second, the recorded history, events. Must never ask another host.

const here = location.pathname + location.search;
const BASE = here.slice(0, here.lastIndexOf("dashboard")) + "api/v1/";

function address(path, parameters) {
  const query = Object.entries(parameters || {}).filter(([, value]) => value !== undefined && value !== "");
  const words = query.map(([name, value]) => name + "=" + encodeURIComponent(value)).join("&");
  return BASE + path + (words ? (BASE.includes("?") ? "&" : "?") + words : "");
}

async function fetchJson(path, parameters) {
  const answer = await fetch(address(path, parameters), { cache: "no-store", credentials: "same-origin" });
  const body = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(body.error || answer.statusText), { status: answer.status });
  return body;
}

async function change(backend, server, form) {
  const path = `servers/${encodeURIComponent(backend)}/${encodeURIComponent(server)}`;
  const answer = await fetch(address(path), { method: "POST", credentials: "same-origin", body: new URLSearchParams(form) });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error || answer.statusText);
  return body;
}

// Values of a frontend, a backend or a server over time. Counts are rates per second.
const MEASURES = ["requests", "ok", "e4", "e5", "errors", "failed", "received", "sent", "current", "queued", "p50", "p95", "p99",
  "connections", "usable", "down", "queue", "connect", "response", "h1", "h2", "h3"];
// Number of samples that are kept for each object.
const WINDOW = 300;
// Members of recorded intervals: [member, measure, whether it is a count].
const RECORDED = [["requests", "requests", true], ["errors_4xx", "e4", true], ["errors_5xx", "e5", true], ["errors", "errors", true],
  ["bytes_in", "received", true], ["bytes_out", "sent", true], ["connections", "connections", true], ["sessions", "current", false],
  ["queue", "queued", false], ["p50", "p50", false], ["p95", "p95", false], ["p99", "p99", false],
  ["servers_usable", "usable", false], ["servers_down", "down", false],
  ["queue_ms", "queue", false], ["connect_ms", "connect", false], ["response_ms", "response", false]];
const TOTAL = "process//";

// Values over time: `times`, and a list of the same length for each measure.
class Series {
  constructor(most) {
    this.most = most;
    this.clear();
  }

  clear() {
    this.times = [];
    this.values = {};
  }

  push(time, values) {
    for (const [name, value] of Object.entries(values)) {
      if (!this.values[name]) this.values[name] = new Array(this.times.length).fill(null);
      this.values[name].push(KNOWN(value) ? value : null);
    }
    this.times.push(time);
    for (const list of Object.values(this.values)) if (list.length < this.times.length) list.push(null);
    if (this.times.length > this.most) for (const list of [this.times, ...Object.values(this.values)]) list.shift();
  }

  // The mean of the last ten values: what happens rarely does not flicker.
  mean(name) {
    const known = (this.values[name] || []).slice(-10).filter(KNOWN);
    return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
  }

  get lastTime() { return this.times.length ? this.times[this.times.length - 1] : 0; }
}

const keyOf = (kind, proxy, name) => `${kind}/${proxy}/${kind === "server" ? name : ""}`;

const rest = (all, ...parts) => (KNOWN(all) ? Math.max(0, parts.reduce((left, part) => left - (part || 0), all)) : null);

// Adds the values that follow from others. Failed requests have an answer with 5xx; in TCP mode there are errors alone.
function complete(now) {
  now.ok = rest(now.requests, now.e4, now.e5);
  now.failed = KNOWN(now.e5) ? now.e5 : now.errors;
}

// Adds the intervals of an answer of `history` to a series.
function addRecorded(series, answer, one) {
  answer.times.forEach((time, at) => {
    if (time <= series.lastTime || at < one.first) return;
    const now = {};
    for (const [member, measure, counted] of RECORDED) {
      const list = one.columns[member];
      const value = list ? list[at - one.first] : null;
      now[measure] = counted && KNOWN(value) ? value / (answer.seconds[at] || answer.interval_s) : value;
    }
    complete(now);
    series.push(time, now);
  });
}

const store = {
  overview: null, topology: null, process: {}, latency: {}, threads: [], samples: 0, last: 0, counts: null,
  objects: new Map(), total: { live: new Series(WINDOW), now: {} }, recorded: new Map(), sparks: new Map(), cpu: new Series(WINDOW),
  lines: [], live: false, watchers: new Set(), source: null, log: null, span: 900, timeline: [], timelineId: 0, certificates: null,

  get admin() { return !!(this.overview && this.overview.admin); },
  all(kind) { return [...this.objects.values()].filter((object) => object.row.kind === kind); },
  get(kind, proxy, name) { return this.objects.get(keyOf(kind, proxy, name)); },
  servers(backend) { return this.byBackend.get(backend) || []; },
  byBackend: new Map(),

  setSpan(seconds) {
    this.span = seconds;
    keep.set("span", seconds);
    this.notify("sample");
  },

  take(sample) {
    const elapsed = this.samples ? sample.time - this.last : null;
    // After a gap the recorded history shows it.
    const gap = elapsed !== null && elapsed > 5;
    this.last = sample.time;
    this.samples += 1;
    this.process = sample.process;
    this.latency = sample.latency;
    this.counts = sample.server_counts || null;
    const totals = {};
    this.byBackend = new Map();
    for (const row of sample.objects) this.object(row, gap ? null : elapsed, totals);
    for (const [key, object] of this.objects) if (object.seen !== sample.time) this.objects.delete(key);
    this.pushObjects(gap ? null : elapsed);
    for (const name of ["p50", "p95", "p99"]) totals[name] = sample.latency[name];
    complete(totals);
    const summary = serverSummary();
    Object.assign(totals, { usable: summary.usable, down: summary.down });
    this.total.now = totals;
    if (gap) this.total.live.clear();
    if (elapsed !== null && !gap) this.total.live.push(sample.time, totals);
    this.takeThreads(sample, gap ? null : elapsed);
  },

  pushObjects(elapsed) {
    for (const object of this.objects.values()) {
      const { row, now } = object;
      if (row.kind === "backend") {
        const counts = serverCounts(row);
        Object.assign(now, { usable: counts.usable, down: counts.down });
      }
      if (elapsed) object.live.push(this.last, now); else object.live.clear();
    }
  },

  takeThreads(sample, elapsed) {
    const busy = sample.threads.map((thread, at) => {
      const old = this.threads[at];
      return old && elapsed ? Math.min(100, ((thread.cpu_ms - old.cpu_ms) / (elapsed * 1000)) * 100) : null;
    });
    this.threads = sample.threads;
    if (elapsed) this.cpu.push(sample.time, Object.fromEntries(busy.map((value, at) => [at, value])));
    this.busy = busy.filter(KNOWN);
  },

  object(row, elapsed, totals) {
    const key = keyOf(row.kind, row.proxy, row.name);
    let object = this.objects.get(key);
    if (!object) {
      object = { key, row: null, live: new Series(WINDOW) };
      this.objects.set(key, object);
    }
    const old = object.row;
    const rate = (name) => (old && elapsed && KNOWN(row[name]) ? Math.max(0, (row[name] - (old[name] || 0)) / elapsed) : null);
    const sum = (...names) => names.map(rate).reduce((total, value) => (value === null ? total : (total || 0) + value), null);
    // Connections without a byte, such as those that a browser opens in advance, are counted as requests and as errors of clients.
    const unused = rate("unused_connections");
    const all = rate("req_tot") === null ? rate("stot") : rate("req_tot");
    const now = {
      requests: rest(all, unused), e4: rest(rate("hrsp_4xx"), unused), e5: rate("hrsp_5xx"),
      errors: rest(sum("ereq", "econ", "eresp"), unused),
      received: rate("bin"), sent: rate("bout"), current: row.scur, queued: row.qcur,
      p50: row.p50, p95: row.p95, p99: row.p99, connections: rate("conn_tot"), queue: row.qtime, connect: row.ctime, response: row.rtime,
      h1: rate("h1req"), h2: rate("h2req"), h3: rate("h3req"),
    };
    complete(now);
    object.row = row;
    object.now = now;
    object.seen = this.last;
    if (row.kind === "server") {
      if (!this.byBackend.has(row.proxy)) this.byBackend.set(row.proxy, []);
      this.byBackend.get(row.proxy).push(object);
    }
    for (const name of MEASURES) {
      const counted = row.kind === "frontend" ? name !== "queued" : row.kind === "backend" && (name === "queued" || name === "errors");
      if (counted && KNOWN(now[name])) totals[name] = (totals[name] || 0) + now[name];
    }
  },

  // Asks for the recorded history of an object, of the process without one: everything at first, then what is new.
  async record(row) {
    // The history has no servers.
    if (row && row.kind === "server") return;
    const key = row ? keyOf(row.kind, row.proxy, row.name) : TOTAL;
    let entry = this.recorded.get(key);
    if (!entry) this.recorded.set(key, entry = { series: new Series(400), asked: 0, time: 0 });
    if (Date.now() - entry.asked < 10000) return;
    entry.asked = Date.now();
    try {
      const of = row ? { kind: row.kind, proxy: row.proxy } : { kind: "process" };
      const answer = await fetchJson("history", { ...of, since: entry.time || "" });
      entry.time = answer.time || entry.time;
      if (answer.series[0]) addRecorded(entry.series, answer, answer.series[0]);
      this.notify("sample");
    } catch (_) { /* it is asked for again later */ }
  },

  // Asks for the last minutes of all objects of a kind, for the small lines in lists.
  async recordSparks(kind) {
    try {
      const answer = await fetchJson("history", { kind, fields: "requests", since: Date.now() / 1000 - 300 });
      for (const one of answer.series) {
        const series = new Series(40);
        addRecorded(series, answer, one);
        this.sparks.set(keyOf(one.kind, one.proxy, one.name), series);
      }
    } catch (_) { /* it is asked for again later */ }
  },

  // The values of an object within the shown time, of everything without one: recorded ones, then samples.
  frame(object, recorded, span) {
    span = span || this.span;
    const live = (object || this.total).live, now = this.last, from = now - span;
    const past = recorded ? recorded.times : [];
    const first = live.times.length ? live.times[0] : Infinity;
    const end = span > WINDOW && past.length ? past[past.length - 1] : first - 0.5;
    const pick = (times, test) => times.flatMap((time, at) => (time >= from && test(time) ? [at] : []));
    const old = pick(past, (time) => time <= end), fresh = pick(live.times, (time) => time > end);
    const times = [...old.map((at) => past[at]), ...fresh.map((at) => live.times[at])];
    const lists = new Map();
    const values = (name) => {
      if (!lists.has(name)) {
        const [one, two] = [recorded && recorded.values[name], live.values[name]];
        lists.set(name, [...old.map((at) => (one ? one[at] : null)), ...fresh.map((at) => (two ? two[at] : null))]);
      }
      return lists.get(name);
    };
    return { now, span, times, values, events: this.eventsOf(object && object.row, from) };
  },

  // Returns a function that makes the frame of an object once for each draw.
  frames(key) {
    let made = null;
    return () => {
      const mark = `${this.samples}/${this.span}/${this.timeline.length}`;
      const entry = this.recorded.get(key || TOTAL);
      const recorded = entry ? entry.series : null;
      if (!made || made.mark !== mark || made.recorded !== (recorded && recorded.lastTime)) {
        made = { mark, recorded: recorded && recorded.lastTime, frame: this.frame(key ? this.objects.get(key) : null, recorded) };
      }
      return made.frame;
    };
  },

  spark(key, name) {
    return () => {
      const object = this.objects.get(key);
      if (!object) return { now: 0, span: 300, times: [], values: [] };
      const frame = this.frame(object, this.sparks.get(key), 300);
      return { ...frame, values: frame.values(name) };
    };
  },

  // Events since a time that concern an object; those of the process concern all.
  eventsOf(row, from) {
    const concerns = (entry) => !row || !entry.proxy || (entry.proxy === row.proxy && (row.kind !== "server" || !entry.server || entry.server === row.name));
    return this.timeline.filter((entry) => entry.time >= from && concerns(entry));
  },

  async loadTimeline() {
    this.hasTimeline = false;
    try {
      const answer = await fetchJson("timeline", { limit: 500 });
      for (const entry of answer.entries) this.addEvent(entry);
      this.timelineId = answer.last;
      this.hasTimeline = true;
    } catch (_) { /* no events are shown */ }
  },

  addEvent(entry) {
    if (this.timeline.some((known) => known.id === entry.id && known.time === entry.time)) return;
    this.timeline.push(entry);
    if (this.timeline.length > 2000) this.timeline.shift();
  },

  async loadCertificates() {
    try { this.certificates = (await fetchJson("certificates")).certificates; } catch (_) { this.certificates = null; }
  },

  async open() {
    await this.loadTimeline();
    this.loadCertificates();
    setInterval(() => { if (!document.hidden) this.loadCertificates(); }, 60000);
    this.source = new EventSource(address("events", this.hasTimeline ? { timeline: this.timelineId } : {}));
    this.source.addEventListener("sample", (event) => {
      this.live = true;
      this.take(JSON.parse(event.data));
      this.notify("sample");
    });
    this.source.addEventListener("timeline", (event) => {
      this.addEvent(JSON.parse(event.data));
      this.notify("sample");
    });
    this.source.onerror = () => { this.live = false; this.notify("state"); };
  },

  openLog() {
    if (this.log) return;
    this.log = new EventSource(address("events", { samples: 0, log: 1 }));
    this.log.addEventListener("log", (event) => {
      this.lines.push(JSON.parse(event.data));
      if (this.lines.length > 2000) this.lines.splice(0, this.lines.length - 2000);
      this.notify("log");
    });
  },

  closeLog() {
    if (this.log) this.log.close();
    this.log = null;
  },

  notify(what) { for (const watcher of this.watchers) watcher(what); },
};
