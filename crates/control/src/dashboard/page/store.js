// What the server tells, and what it told in the last minutes. Must never ask another host.

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
  if (!answer.ok) throw new Error(body.error || answer.statusText);
  return body;
}

async function change(backend, server, form) {
  const path = `servers/${encodeURIComponent(backend)}/${encodeURIComponent(server)}`;
  const answer = await fetch(address(path), { method: "POST", credentials: "same-origin", body: new URLSearchParams(form) });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error || answer.statusText);
  return body;
}

const MEASURES = ["requests", "errors", "s1", "s2", "s3", "s4", "s5", "received", "sent", "current", "queued", "p50", "p95", "p99", "connections", "queue", "connect", "response"];

function history() {
  const made = {};
  for (const name of MEASURES) made[name] = [];
  return made;
}

function push(values, value) {
  values.push(KNOWN(value) ? value : null);
  if (values.length > WINDOW) values.shift();
}

const keyOf = (kind, proxy, name) => `${kind}/${proxy}/${kind === "server" ? name : ""}`;

const store = {
  overview: null, topology: null, process: {}, latency: {}, threads: [], times: [],
  objects: new Map(), total: history(), cpu: [], lines: [], lost: 0, live: false, watchers: new Set(), source: null, log: null,

  get admin() { return !!(this.overview && this.overview.admin); },
  all(kind) { return [...this.objects.values()].filter((object) => object.row.kind === kind); },
  get(kind, proxy, name) { return this.objects.get(keyOf(kind, proxy, name)); },
  servers(backend) { return this.all("server").filter((object) => object.row.proxy === backend); },

  take(sample) {
    const before = this.last;
    const elapsed = before ? sample.time - before : null;
    this.last = sample.time;
    push(this.times, sample.time);
    this.process = sample.process;
    this.latency = sample.latency;
    const totals = {};
    for (const row of sample.objects) this.object(row, elapsed, totals);
    for (const [key, object] of this.objects) if (object.seen !== sample.time) this.objects.delete(key);
    for (const name of MEASURES) push(this.total[name], name in totals ? totals[name] : null);
    for (const name of ["p50", "p95", "p99"]) this.total[name][this.total[name].length - 1] = KNOWN(sample.latency[name]) ? sample.latency[name] : null;
    sample.threads.forEach((thread, at) => {
      if (!this.cpu[at]) this.cpu[at] = new Array(Math.max(0, this.times.length - 1)).fill(null);
      const old = this.threads[at];
      push(this.cpu[at], old && elapsed ? Math.min(100, ((thread.cpu_ms - old.cpu_ms) / (elapsed * 1000)) * 100) : null);
    });
    this.threads = sample.threads;
  },

  object(row, elapsed, totals) {
    const key = keyOf(row.kind, row.proxy, row.name);
    let object = this.objects.get(key);
    if (!object) {
      object = { key, row: null, history: history() };
      this.objects.set(key, object);
    }
    const old = object.row;
    const rate = (name) => (old && elapsed && KNOWN(row[name]) && KNOWN(old[name]) ? Math.max(0, (row[name] - old[name]) / elapsed) : null);
    const sum = (...names) => names.map(rate).reduce((total, value) => (value === null ? total : (total || 0) + value), null);
    const now = {
      requests: rate("req_tot") === null ? rate("stot") : rate("req_tot"),
      errors: row.kind === "frontend" ? sum("hrsp_5xx", "ereq") : sum("hrsp_5xx", "econ", "eresp"),
      s1: rate("hrsp_1xx"), s2: rate("hrsp_2xx"), s3: rate("hrsp_3xx"), s4: rate("hrsp_4xx"), s5: rate("hrsp_5xx"),
      received: rate("bin"), sent: rate("bout"), current: row.scur, queued: row.qcur,
      p50: row.p50, p95: row.p95, p99: row.p99, connections: rate("conn_tot"), queue: row.qtime, connect: row.ctime, response: row.rtime,
    };
    object.row = row;
    object.now = now;
    object.seen = this.last;
    for (const name of MEASURES) {
      push(object.history[name], now[name]);
      const counted = row.kind === "frontend" ? name !== "queued" : row.kind === "backend" && name === "queued";
      if (counted && KNOWN(now[name])) totals[name] = (totals[name] || 0) + now[name];
    }
  },

  // Lists the charts of: everything, or one object.
  of(object) { return (name) => () => (object ? object.history[name] : this.total[name]); },

  open(parameters) {
    if (this.source) this.source.close();
    this.source = new EventSource(address("events", parameters));
    this.source.addEventListener("sample", (event) => {
      this.live = true;
      this.take(JSON.parse(event.data));
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
