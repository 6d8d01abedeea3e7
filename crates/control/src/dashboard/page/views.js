// The overview, and the lists behind it: servers, sessions, stick tables, log, configuration.

function tiles(get, object) {
  const last = (name) => { const values = get(name)(); return values[values.length - 1]; };
  const share = () => { const all = last("requests"); return KNOWN(all) && all > 0 ? (100 * (last("errors") || 0)) / all : KNOWN(all) ? 0 : null; };
  const wanted = [
    ["Requests", () => format.count(last("requests")), "per second", "requests", "var(--c-blue)"],
    ["Median time", () => format.time(last("p50")), () => `p99 ${format.time(last("p99"))}`, "p50", "var(--c-teal)"],
    ["Errors", () => format.percent(share()), () => `${format.count(last("errors"))} per second`, "errors", "var(--c-red)"],
    ["Sessions", () => format.whole(last("current")), () => `${format.whole(last("queued") || 0)} queued`, "current", "var(--c-violet)"],
    ["Traffic", () => format.rate(last("sent")), () => `${format.rate(last("received"))} in`, "sent", "var(--c-green)"],
  ];
  const made = wanted.map(([title, value, note, measure, color]) => {
    const big = h("b", {}), small = h("small", {}), spark = new Spark(get(measure), color);
    return { node: h("div", { class: "tile" }, h("span", {}, title), big, small, spark.node), update() {
      put(big, value());
      put(small, typeof note === "string" ? note : note());
      spark.draw();
    } };
  });
  if (!object) made.push(threadTile());
  const node = h("div", { class: "tiles" }, ...made.map((tile) => tile.node));
  return { node, update() { for (const tile of made) tile.update(); } };
}

function threadTile() {
  const big = h("b", {}), bars = h("span", { class: "bars", "aria-hidden": "true" }), small = h("small", {});
  return { node: h("div", { class: "tile" }, h("span", {}, "Processor"), big, small, bars), update() {
    const now = store.cpu.map((values) => values[values.length - 1]).filter(KNOWN);
    put(big, now.length ? format.percent(now.reduce((sum, value) => sum + value, 0) / now.length) : "–");
    put(small, `${store.threads.length} ${store.threads.length === 1 ? "thread" : "threads"}`);
    while (bars.children.length < Math.min(store.threads.length, 64)) bars.append(h("i", {}));
    [...bars.children].forEach((bar, at) => { bar.style.setProperty("--busy", Math.max(3, now[at] || 0)); });
  } };
}

const PALETTE = ["var(--c-blue)", "var(--c-green)", "var(--c-violet)", "var(--c-amber)", "var(--c-teal)", "var(--c-red)", "var(--c-pink)", "var(--c-grey)"];

function threadChart() {
  const many = store.threads.length > PALETTE.length;
  const at = (values, place) => values.map((one) => one[place]).filter(KNOWN);
  const fold = (fold) => () => store.times.map((_, place) => { const now = at(store.cpu, place); return now.length ? fold(now) : null; });
  const series = many
    ? [{ name: "busiest", color: "var(--c-red)", get: fold((now) => Math.max(...now)) },
       { name: "mean", color: "var(--c-blue)", get: fold((now) => now.reduce((sum, one) => sum + one, 0) / now.length) },
       { name: "idlest", color: "var(--c-green)", get: fold((now) => Math.min(...now)) }]
    : store.threads.map((_, number) => ({ name: `thread ${number + 1}`, color: PALETTE[number], get: () => store.cpu[number] || [] }));
  return new Chart({ title: "Processor time per thread", unit: (value) => (KNOWN(value) ? Math.round(value) + " %" : "–"), series, top: 100, tick: (value) => value + " %" });
}

const overviewView = {
  title: "Overview",
  async mount(root) {
    Object.assign(this, { root, charts: null });
    root.replaceChildren(h("p", { class: "empty" }, "Waiting for the first sample…"));
    this.update();
  },

  build() {
    const get = store.of(null);
    this.tiles = tiles(get, null);
    this.charts = chartsOf(get, [threadChart()]);
    this.fronts = new Rows(objectColumns("frontend"));
    this.backs = new Rows(objectColumns("backend"));
    const list = (title, rows) => h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h3", {}, title)), rows.node);
    this.root.replaceChildren(this.tiles.node, h("div", { class: "charts" }, ...this.charts.map((chart) => chart.node)),
      list("Frontends", this.fronts), list("Backends", this.backs));
  },

  update() {
    if (!store.times.length) return;
    if (!this.charts) this.build();
    this.tiles.update();
    for (const chart of this.charts) chart.draw();
    this.fronts.show(store.all("frontend"));
    this.backs.show(store.all("backend").filter(hasPart));
  },
};

function filterField(label, change, value) {
  return h("input", { type: "search", class: "filter", placeholder: label, "aria-label": label, value: value || "", oninput: (event) => change(event.target.value) });
}

const serversView = {
  title: "Servers",
  async mount(root) {
    this.filter = "";
    this.rows = new Rows(objectColumns("server"), "No server fits. Where there are very many, open a backend to see its servers.");
    root.replaceChildren(h("div", { class: "head" }, h("h2", {}, "Servers"), statusLegend(), filterField("Filter by name or status", (text) => { this.filter = text.toLowerCase(); this.update(); })),
      h("section", { class: "panel" }, this.rows.node));
    this.update();
  },
  update() {
    const fits = ({ row }) => `${row.proxy}/${row.name} ${row.status}`.toLowerCase().includes(this.filter);
    this.rows.show(store.all("server").filter(fits));
  },
};

// A list that is asked for every few seconds.
const polled = (title, ask) => ({
  title,
  async mount(root, parameters) {
    this.root = root;
    this.parameters = parameters;
    this.ticks = 0;
    this.filter = "";
    await ask.call(this, root, parameters);
  },
  update() {
    this.ticks += 1;
    if (this.refresh && this.ticks % 2 === 0 && !this.busy) {
      this.busy = true;
      this.refresh().catch(() => {}).finally(() => { this.busy = false; });
    }
  },
});

const sessionsView = polled("Sessions", async function (root) {
  const text = (name) => (object) => object[name] || "–";
  const rows = new Rows([
    { title: "Client", class: "name", sort: text("client"), text: text("client") },
    { title: "Frontend", sort: text("frontend"), text: text("frontend") },
    { title: "Backend", sort: text("backend"), text: text("backend") },
    { title: "Server", sort: text("server"), text: text("server") },
    { title: "Request", class: "wide", text: (one) => (one.uri ? `${one.method} ${one.uri}` : "–") },
    { title: "Age", number: true, sort: (one) => one.age_ms, text: (one) => format.time(one.age_ms) },
    { title: "In", number: true, sort: (one) => one.bytes_in, text: (one) => format.bytes(one.bytes_in) },
    { title: "Out", number: true, sort: (one) => one.bytes_out, text: (one) => format.bytes(one.bytes_out) },
    { title: "Thread", number: true, sort: (one) => one.thread, text: (one) => one.thread },
  ], "No session runs, or none fits.");
  const note = h("span", { class: "note" });
  const show = () => rows.show((this.found || []).filter((one) => JSON.stringify(one).toLowerCase().includes(this.filter)));
  this.refresh = async () => {
    const answer = await fetchJson("sessions", { limit: 500 });
    this.found = answer.sessions.map((one) => ({ key: one.id, ...one }));
    put(note, answer.complete ? `${this.found.length} sessions` : `the first ${this.found.length} sessions`);
    show();
  };
  root.replaceChildren(h("div", { class: "head" }, h("h2", {}, "Sessions"), note, filterField("Filter sessions", (value) => { this.filter = value.toLowerCase(); show(); })),
    h("section", { class: "panel" }, rows.node));
  await this.refresh();
});

const tablesView = polled("Stick tables", async function (root, [name]) {
  if (name) return oneTable.call(this, root, name);
  const rows = new Rows([
    { title: "Table", class: "name", sort: (one) => one.name, make: (cell, one) => cell.append(h("a", { href: "#/tables/" + encodeURIComponent(one.name) }, one.name)) },
    { title: "Key", text: (one) => one.type },
    { title: "Entries", number: true, sort: (one) => one.used, text: (one) => format.whole(one.used) },
    { title: "Size", number: true, sort: (one) => one.size, text: (one) => format.whole(one.size) },
    { title: "Used", class: "wide", make: (cell, one, state) => { state.bar = h("i", {}); cell.append(h("span", { class: "gauge" }, state.bar)); },
      update: (_, one, state) => { state.bar.style.width = Math.min(100, (100 * one.used) / (one.size || 1)) + "%"; } },
  ], "There are no stick tables.");
  this.refresh = async () => rows.show((await fetchJson("tables")).tables.map((one) => ({ key: one.name, ...one })));
  root.replaceChildren(h("div", { class: "head" }, h("h2", {}, "Stick tables")), h("section", { class: "panel" }, rows.node));
  return this.refresh();
});

async function oneTable(root, name) {
  const head = h("tr", {}), body = h("tbody", {}), note = h("span", { class: "note" });
  this.refresh = async () => {
    const answer = await fetchJson("tables/" + encodeURIComponent(name), { limit: 500, key: this.filter });
    const names = answer.entries.length ? Object.keys(answer.entries[0].data) : [];
    head.replaceChildren(h("th", {}, "Key"), ...names.map((one) => h("th", { class: "number" }, one)), h("th", { class: "number" }, "Expires"));
    body.replaceChildren(...answer.entries.map((entry) => h("tr", {}, h("td", { class: "name" }, entry.key),
      ...names.map((one) => h("td", { class: "number" }, KNOWN(entry.data[one]) ? format.whole(entry.data[one]) : entry.data[one])),
      h("td", { class: "number" }, KNOWN(entry.expires_ms) ? format.duration(entry.expires_ms / 1000) : "never"))));
    put(note, answer.complete ? `${answer.entries.length} of ${answer.size} entries` : `the first ${answer.entries.length} of ${answer.used} entries`);
  };
  root.replaceChildren(h("nav", { class: "crumbs", "aria-label": "Way back" }, h("a", { href: "#/tables" }, "Stick tables"), " / table"),
    h("div", { class: "head" }, h("h2", {}, name), note, filterField("Filter by key", (value) => { this.filter = value; this.refresh().catch(() => {}); })),
    h("section", { class: "panel" }, h("div", { class: "scroll" }, h("table", {}, h("thead", {}, head), body))));
  return this.refresh();
}

const logView = {
  title: "Log",
  async mount(root) {
    this.filter = "";
    this.paused = false;
    this.drawn = 0;
    this.list = h("ol", { class: "log", tabindex: 0, "aria-label": "Log lines" });
    this.note = h("span", { class: "note" });
    const pause = h("button", { class: "button", type: "button", onclick: () => { this.paused = !this.paused; put(pause, this.paused ? "Continue" : "Pause"); this.update(); } }, "Pause");
    const clear = h("button", { class: "button", type: "button", onclick: () => { store.lines.length = 0; this.update(); } }, "Clear");
    root.replaceChildren(h("div", { class: "head" }, h("h2", {}, "Log"), this.note, filterField("Filter lines; /…/ is a regular expression", (text) => this.choose(text)), pause, clear),
      h("section", { class: "panel flush" }, this.list));
    store.openLog();
    this.update();
  },
  unmount() { store.closeLog(); },
  choose(text) {
    this.filter = text;
    const match = /^\/(.+)\/$/.exec(text);
    try { this.expression = match ? new RegExp(match[1], "i") : null; } catch (_) { this.expression = null; }
    this.update();
  },
  fits(line) {
    const text = line.proxy + " " + line.line;
    return this.expression ? this.expression.test(text) : text.toLowerCase().includes(this.filter.toLowerCase());
  },
  update() {
    if (this.paused) return;
    const fits = store.lines.filter((line) => this.fits(line)).slice(-400);
    put(this.note, store.lines.length ? `${fits.length} of ${store.lines.length} lines` : "lines of frontends with a log target appear here");
    const atEnd = this.list.scrollTop + this.list.clientHeight >= this.list.scrollHeight - 40;
    this.list.replaceChildren(...fits.map((line) => {
      const code = /(?:^|\s)([1-5]\d\d)(?:\s)/.exec(line.line);
      return h("li", { class: code ? "code" + code[1][0] : "" }, h("time", {}, format.clock(line.time)), h("b", {}, line.proxy), h("span", {}, line.line));
    }));
    if (atEnd) this.list.scrollTop = this.list.scrollHeight;
  },
};

const configView = {
  title: "Configuration",
  async mount(root) {
    this.filter = "";
    this.body = h("div", {});
    root.replaceChildren(h("div", { class: "head" }, h("h2", {}, "Configuration"), filterField("Find in the configuration", (text) => { this.filter = text.toLowerCase(); this.show(); })), this.body);
    try { this.found = await fetchJson("config"); } catch (error) {
      this.body.replaceChildren(h("p", { class: "empty" }, error.message));
      return;
    }
    this.show();
  },
  show() {
    const { files, diagnostics } = this.found;
    const section = /^\s*(global|defaults|frontend|backend|listen|peers|resolvers|userlist|mailers|cache|program|http-errors|ring|log-forward|fcgi-app|crt-store|acme|traces|log-profile)\b/;
    const line = (text, at) => {
      const found = this.filter && text.toLowerCase().includes(this.filter);
      const hash = text.indexOf("#"), code = hash >= 0 ? text.slice(0, hash) : text;
      const word = /^(\s*)(\S+)(.*)$/.exec(code);
      const parts = word ? [word[1], h("b", { class: section.test(code) ? "section" : "" }, word[2]), word[3]] : [code];
      return h("li", { class: found ? "found" : "", value: at + 1 }, ...parts, hash >= 0 ? h("i", {}, text.slice(hash)) : "");
    };
    this.body.replaceChildren(
      ...(diagnostics.length ? [h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h3", {}, "Said at the start")), h("pre", { class: "diagnostics" }, diagnostics.join("\n")))] : []),
      ...files.map((file) => h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h3", {}, file.name)), h("ol", { class: "code" }, ...file.lines.map(line)))));
    const first = this.filter && this.body.querySelector(".found");
    if (first) first.scrollIntoView({ block: "center" });
  },
  update() {},
};
