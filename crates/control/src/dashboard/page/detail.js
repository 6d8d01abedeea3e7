// One frontend, backend or server: its charts, its servers, its values. Changes a server only after a question.

const COLORS = {
  s1: "var(--c-grey)", s2: "var(--c-green)", s3: "var(--c-blue)", s4: "var(--c-amber)", s5: "var(--c-red)",
  p50: "var(--c-teal)", p95: "var(--c-blue)", p99: "var(--c-violet)",
};

function chartsOf(get, extra) {
  const made = [
    new Chart({ title: "Requests per second", unit: format.count, tick: format.plain, stacked: true, series: [
      { name: "2xx", color: COLORS.s2, get: get("s2") }, { name: "3xx", color: COLORS.s3, get: get("s3") },
      { name: "4xx", color: COLORS.s4, get: get("s4") }, { name: "5xx", color: COLORS.s5, get: get("s5") }] }),
    new Chart({ title: "Time to the answer", unit: format.time, tick: format.mark, series: [
      { name: "p50", color: COLORS.p50, get: get("p50") }, { name: "p95", color: COLORS.p95, get: get("p95") },
      { name: "p99", color: COLORS.p99, get: get("p99") }] }),
    new Chart({ title: "Errors per second", unit: format.count, tick: format.plain, series: [
      { name: "errors", color: COLORS.s5, get: get("errors") }] }),
    new Chart({ title: "Sessions and queue", unit: format.whole, tick: format.plain, whole: true, series: [
      { name: "sessions", color: "var(--c-blue)", get: get("current") }, { name: "queued", color: "var(--c-amber)", get: get("queued") }] }),
    new Chart({ title: "Traffic per second", unit: format.bytes, tick: format.size, series: [
      { name: "to clients", color: "var(--c-green)", get: get("sent") }, { name: "from clients", color: "var(--c-violet)", get: get("received") }] }),
  ];
  return made.concat(extra || []);
}

function lastChart(kind, get) {
  if (kind === "frontend") {
    return new Chart({ title: "New connections per second", unit: format.count, tick: format.plain, series: [
      { name: "connections", color: "var(--c-teal)", get: get("connections") }] });
  }
  return new Chart({ title: "Where the time goes, on average", unit: format.time, tick: format.mark, stacked: true, series: [
    { name: "queue", color: "var(--c-amber)", get: get("queue") }, { name: "connect", color: "var(--c-violet)", get: get("connect") },
    { name: "server", color: "var(--c-blue)", get: get("response") }] });
}

// How many of the servers of a backend are up.
function share(backend) {
  const servers = store.servers(backend);
  if (!servers.length) return "–";
  return `${servers.filter(({ row }) => /^(UP|no check)/.test(row.status)).length}/${servers.length}`;
}

async function order(backend, server, form, words) {
  const title = `${words} ${backend}/${server}?`;
  const text = {
    drain: "The server gets no new requests, except of clients that are bound to it. Those under way go on.",
    maint: "The server gets no new requests at all, and its checks are paused. Requests under way go on.",
    ready: "The server gets requests again as soon as its checks allow it.",
  }[form.state] || "Requests are spread by the new weight at once.";
  if (!(await ask(title, text, words, form.state))) return;
  try {
    const row = await change(backend, server, form);
    toast(`${backend}/${server} is ${row.status} with weight ${row.uweight}`, "good");
    const known = store.get("server", backend, server);
    if (known) Object.assign(known.row, { status: row.status, weight: row.weight });
    store.notify("sample");
  } catch (error) {
    toast(`${backend}/${server}: ${error.message}`, "bad");
  }
}

function actions(row) {
  if (!store.admin) return null;
  const act = (state, words, key) => h("button", {
    class: "button small", dataset: { action: state }, title: `${words} ${row.proxy}/${row.name}`, type: "button",
    onclick: (event) => { event.stopPropagation(); order(row.proxy, row.name, { state }, words); },
  }, key);
  return h("span", { class: "actions" }, act("ready", "Ready", "Ready"), act("drain", "Drain", "Drain"), act("maint", "Maintenance", "Maint"),
    h("button", { class: "button small", type: "button", dataset: { action: "weight" }, title: "Change the weight", onclick: (event) => {
      event.stopPropagation();
      askWeight(row);
    } }, "Weight"));
}

// A state that a server is in cannot be asked for once more.
function mark(node, row) {
  const state = row.status.startsWith("DRAIN") ? "drain" : row.status.startsWith("MAINT") ? "maint" : "ready";
  for (const button of node.querySelectorAll("[data-action]")) button.disabled = button.dataset.action === state;
}

function askWeight(row) {
  const dialog = document.getElementById("ask");
  const field = h("input", { type: "text", inputmode: "numeric", value: row.weight, id: "ask-weight", "aria-label": "Weight from 0 to 256, or percents" });
  const close = () => dialog.close();
  const send = async (event) => {
    event.preventDefault();
    close();
    try {
      const answer = await change(row.proxy, row.name, { weight: field.value });
      toast(`${row.proxy}/${row.name} has weight ${answer.uweight}`, "good");
    } catch (error) { toast(`${row.proxy}/${row.name}: ${error.message}`, "bad"); }
  };
  dialog.replaceChildren(h("form", { onsubmit: send }, h("h2", {}, `Weight of ${row.proxy}/${row.name}`),
    h("p", {}, "A number from 0 to 256, or percents of the configured weight, such as 50%."), field,
    h("div", { class: "buttons" }, h("button", { class: "button", type: "button", onclick: close }, "Cancel"), h("button", { class: "button strong", type: "submit" }, "Set weight"))));
  dialog.oncancel = null;
  dialog.showModal();
  field.select();
}

// A table of objects whose rows stay and change their text.
class Rows {
  constructor(columns, empty) {
    this.columns = columns;
    this.rows = new Map();
    this.sort = null;
    this.heads = columns.map((column, at) => h("th", { scope: "col", class: column.number ? "number" : "" },
      column.sort ? h("button", { type: "button", class: "sorter", onclick: () => this.order(at) }, column.title) : column.title));
    this.body = h("tbody", {});
    this.empty = h("p", { class: "empty" }, empty || "Nothing to show.");
    this.node = h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...this.heads)), this.body), this.empty);
  }

  order(at) {
    this.sort = this.sort && this.sort.at === at ? { at, down: !this.sort.down } : { at, down: !!this.columns[at].number };
    this.heads.forEach((head, place) => { if (place === at) attr(head, "aria-sort", this.sort.down ? "descending" : "ascending"); else head.removeAttribute("aria-sort"); });
    this.show(this.objects);
  }

  show(objects) {
    this.objects = objects;
    if (this.sort) {
      const { sort } = this.columns[this.sort.at], way = this.sort.down ? -1 : 1;
      objects = objects.slice().sort((a, b) => { const one = sort(a), two = sort(b); return (one < two ? -1 : one > two ? 1 : 0) * way; });
    }
    const seen = new Set();
    const nodes = objects.map((object) => {
      seen.add(object.key);
      let row = this.rows.get(object.key);
      if (!row) {
        const cells = this.columns.map((column) => h("td", { class: (column.number ? "number " : "") + (column.class || ""), "data-title": column.title }));
        row = { cells, node: h("tr", {}, ...cells), state: {} };
        this.columns.forEach((column, at) => { if (column.make) column.make(cells[at], object, row.state); });
        this.rows.set(object.key, row);
      }
      this.columns.forEach((column, at) => {
        if (column.text) put(row.cells[at], column.text(object));
        if (column.update) column.update(row.cells[at], object, row.state);
      });
      return row.node;
    });
    for (const key of [...this.rows.keys()]) if (!seen.has(key)) this.rows.delete(key);
    if (this.body.children.length !== nodes.length || nodes.some((node, at) => this.body.children[at] !== node)) this.body.replaceChildren(...nodes);
    this.empty.hidden = nodes.length > 0;
  }
}

function objectColumns(kind) {
  const name = (object) => (kind === "server" ? `${object.row.proxy}/${object.row.name}` : object.row.proxy);
  const columns = [
    { title: "Name", class: "name", sort: name, make: (cell, object) => cell.append(h("a", { href: linkOf(object.row) }, name(object))) },
    { title: "Status", sort: (object) => object.row.status || "", make: (cell, object, state) => { state.pill = pill(object.row.status); cell.append(state.pill); },
      update: (_, object, state) => setPill(state.pill, object.row.status) },
    { title: "Requests/s", number: true, sort: (object) => object.now.requests || 0, text: (object) => format.count(object.now.requests) },
    { title: "Last 90 s", class: "spark-cell", make: (cell, object, state) => {
      state.spark = new Spark(() => { const now = store.objects.get(object.key); return now ? now.history.requests : []; }, "var(--c-blue)");
      cell.append(state.spark.node);
    }, update: (_, __, state) => state.spark.draw() },
    { title: "Errors/s", number: true, class: "errors", sort: (object) => object.now.errors || 0, update: (cell, object) => {
      put(cell, format.count(object.now.errors));
      cell.classList.toggle("bad", object.now.errors > 0);
    } },
    { title: "p50", number: true, sort: (object) => object.row.p50 || 0, text: (object) => format.time(object.row.p50) },
    { title: "p99", number: true, sort: (object) => object.row.p99 || 0, text: (object) => format.time(object.row.p99) },
    { title: "Sessions", number: true, sort: (object) => object.row.scur || 0, text: (object) => format.whole(object.row.scur) },
  ];
  if (kind === "backend") columns.splice(2, 0, { title: "Servers up", number: true, text: (object) => share(object.row.proxy) });
  if (kind !== "frontend") columns.push({ title: "Queue", number: true, sort: (object) => object.row.qcur || 0, text: (object) => format.whole(object.row.qcur) });
  columns.push({ title: "Out", number: true, sort: (object) => object.now.sent || 0, text: (object) => format.rate(object.now.sent) });
  if (kind === "server") {
    columns.push({ title: "Weight", number: true, sort: (object) => object.row.weight || 0, text: (object) => format.whole(object.row.weight) });
    if (store.admin) columns.push({ title: "Actions", make: (cell, object) => cell.append(actions(object.row)), update: (cell, object) => mark(cell, object.row) });
  }
  return columns;
}

const objectView = (kind) => ({
  async mount(root, [proxy, name]) {
    Object.assign(this, { proxy, name, root, charts: null, rows: null });
    this.title = kind === "server" ? `${proxy}/${name}` : proxy;
    this.values = h("dl", { class: "values" });
    root.replaceChildren(h("p", { class: "empty" }, "Waiting for the first sample…"));
    this.update();
  },

  build(object) {
    this.charts = chartsOf(store.of(object), [lastChart(kind, store.of(object))]);
    this.pill = pill(object.row.status);
    const up = kind === "server" ? h("a", { href: linkOf({ kind: "backend", proxy: this.proxy }) }, this.proxy) : h("a", { href: "#/" }, "Overview");
    const parts = [
      h("nav", { class: "crumbs", "aria-label": "Way back" }, up, " / ", kind),
      h("div", { class: "head" }, h("h2", {}, kind === "server" ? this.name : this.proxy), this.pill, this.actions = kind === "server" ? actions(object.row) : null),
      this.tiles = tiles(store.of(object), object),
      h("div", { class: "charts" }, ...this.charts.map((chart) => chart.node)),
    ];
    if (kind === "backend") {
      this.rows = new Rows(objectColumns("server"), "This backend has no servers, or too many to show them all at once.");
      parts.push(h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h3", {}, "Servers")), this.rows.node));
    }
    parts.push(h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h3", {}, "All values")), this.values));
    this.root.replaceChildren(...parts.map((part) => part.node || part));
    this.load();
  },

  async load() {
    const path = kind === "server" ? "servers" : "proxies";
    const filter = kind === "server" ? { backend: this.proxy } : { proxy: this.proxy };
    const found = (await fetchJson(path, filter))[path].find((row) => row.kind === kind && (kind !== "server" || row.name === this.name));
    if (!found) return;
    this.values.replaceChildren(...Object.entries(found).filter(([, value]) => value !== "").map(([key, value]) =>
      h("div", {}, h("dt", {}, key), h("dd", {}, KNOWN(value) && key.match(/^b(in|out)$/) ? format.bytes(value) : value))));
  },

  update() {
    const object = store.get(kind, this.proxy, this.name);
    if (!object) {
      if (store.times.length > 1 && !this.charts) this.root.replaceChildren(h("p", { class: "empty" }, `There is no ${kind} of this name here.`));
      return;
    }
    if (!this.charts) this.build(object);
    setPill(this.pill, object.row.status);
    if (this.actions) mark(this.actions, object.row);
    this.tiles.update();
    for (const chart of this.charts) chart.draw();
    if (this.rows) this.rows.show(store.servers(this.proxy));
  },
});
