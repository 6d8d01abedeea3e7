// One frontend, backend or server: its state and why, its charts, its servers, its values.

// The state of a server: what it is, since when, why, and what the checks say.
class StateCard {
  constructor() {
    this.title = h("strong", {});
    this.words = h("span", { class: "why" });
    this.code = h("code", {});
    this.facts = h("dl", { class: "facts" });
    this.node = h("section", { class: "state-card", "aria-label": "State" }, h("div", { class: "state-words" }, this.title, h("p", {}, this.words, " ", this.code)), this.facts);
  }

  show(row) {
    const seconds = secondsSince(row), { words, code } = reasonOf(row), fine = isUsable(row);
    attr(this.node, "class", "state-card " + healthOf(row));
    const title = row.state === "ejected" ? "Ejected" : { up: "Up", going: "Up, checks fail", plain: "Not checked", drain: "Draining", maint: "In maintenance", nolb: "Stopping", down: "Down" }[healthOf(row)] || row.status;
    put(this.title, KNOWN(seconds) ? `${title} for ${format.duration(seconds)}` : title);
    put(this.words, sentence(words) || (fine ? "" : "No reason is known"));
    put(this.code, code);
    const facts = [
      ["Since", KNOWN(seconds) && store.last ? format.moment(store.last - seconds) : "–"],
      ["Last check", row.check_status ? row.check_status.replace(/^\* /, "") + (KNOWN(row.check_code) ? `/${row.check_code}` : "") + (KNOWN(row.check_duration) ? ` in ${row.check_duration} ms` : "") : "none"],
      ["Went down", KNOWN(row.chkdown) ? format.plural(row.chkdown, "time") : "–"],
      ["Down in total", KNOWN(row.downtime) ? format.duration(row.downtime) : "–"],
      ["Weight", KNOWN(row.weight) ? (KNOWN(row.uweight) && row.uweight !== row.weight ? `${row.weight} of ${row.uweight}` : format.whole(row.weight)) : "–"],
    ];
    if (this.facts.children.length !== facts.length) this.facts.replaceChildren(...facts.map(([name]) => h("div", {}, h("dt", {}, name), h("dd", {}))));
    facts.forEach(([, value], at) => put(this.facts.children[at].lastChild, value));
  }
}

const ERROR_COLUMNS = { hrsp_4xx: "4", hrsp_5xx: "5", ereq: "", econ: "", eresp: "" };

const objectView = (kind) => ({
  async mount(root, [proxy, name]) {
    Object.assign(this, { proxy, name, root, charts: null, rows: null, extra: {}, ticks: 0, shownNames: "" });
    this.title = kind === "server" ? `${proxy}/${name}` : proxy;
    root.replaceChildren(h("p", { class: "empty" }, "Waiting for the first sample…"));
    this.update();
  },

  build(object) {
    const { row } = object, frame = store.frames(object.key);
    this.charts = chartsOf(row, frame);
    this.pill = pill(row);
    this.tiles = tiles(row, frame);
    this.values = h("dl", { class: "values" });
    this.card = kind === "server" ? new StateCard() : null;
    this.trouble = kind === "backend" ? new Problems((one) => one.key === this.proxy || one.key.startsWith(`server/${this.proxy}/`), true) : null;
    this.actions = kind === "server" ? actions(row) : null;
    this.protocols = kind === "server" ? null : new Protocols();
    this.recent = new Recent(row);
    const up = kind === "server" ? h("a", { href: linkOf({ kind: "backend", proxy: this.proxy }) }, this.proxy) : h("a", { href: "#/" }, "Overview");
    const parts = [
      h("nav", { class: "crumbs", "aria-label": "Way back" }, up, " / ", kind),
      h("div", { class: "head" }, h("h2", {}, kind === "server" ? this.name : this.proxy), this.pill, this.actions),
      this.card, this.trouble, this.tiles,
      h("div", { class: "charts-head" }, h("h3", {}, "Over time"), kind === "server" ? h("span", { class: "note" }, "since this page was opened") : null, rangeSwitch()),
      h("div", { class: "charts" }, ...this.charts.map((chart) => chart.node)),
    ];
    if (kind === "backend") {
      this.rows = new Rows(objectColumns("server"), "This backend has no servers, or too many to show them all at once.");
      parts.push(panel("Servers", this.rows.node));
    }
    if (this.protocols) parts.push(this.protocols);
    parts.push(panel("Events", this.recent.node, h("a", { class: "more", href: "#/events?proxy=" + encodeURIComponent(this.proxy) }, "All events")), panel("All values", this.values));
    this.root.replaceChildren(...parts.filter(Boolean).map((part) => part.node || part));
    this.load().catch(() => {});
  },

  // Reads all values of the object.
  async load() {
    const path = kind === "server" ? "servers" : "proxies";
    const filter = kind === "server" ? { backend: this.proxy } : { proxy: this.proxy };
    const found = (await fetchJson(path, filter))[path].find((row) => row.kind === kind && (kind !== "server" || row.name === this.name));
    if (!found) return;
    this.extra = found;
    if (this.protocols) this.protocols.show(found);
    const shown = Object.entries(found).filter(([, value]) => value !== "" && typeof value !== "object");
    const names = shown.map(([name]) => name).join();
    if (names !== this.shownNames) {
      this.shownNames = names;
      this.valueNodes = new Map(shown.map(([name]) => [name, name in ERROR_COLUMNS ? h("a", { class: "count", href: errorsOf(found, ERROR_COLUMNS[name]), title: "Log lines" }) : h("span", {})]));
      this.values.replaceChildren(...[...this.valueNodes].map(([name, node]) => h("div", {}, h("dt", {}, name), h("dd", {}, node))));
    }
    for (const [name, value] of shown) {
      const text = KNOWN(value) && /^b(in|out)$/.test(name) ? format.bytes(value) : name === "since" ? format.moment(value) : value;
      put(this.valueNodes.get(name), text);
      if (typeof value === "string") attr(this.valueNodes.get(name), "title", value);
    }
    this.showState();
  },

  showState() {
    const object = store.get(kind, this.proxy, this.name);
    if (!object) return;
    const row = { ...this.extra, ...object.row };
    setPill(this.pill, row);
    if (this.card) this.card.show(row);
    if (this.actions) markActions(this.actions, row);
  },

  update() {
    const object = store.get(kind, this.proxy, this.name);
    if (!object) {
      if (store.samples > 1 && !this.charts) this.root.replaceChildren(h("p", { class: "empty" }, `There is no ${kind} of this name here.`));
      return;
    }
    if (!this.charts) this.build(object);
    store.record(object.row);
    this.ticks += 1;
    if (this.ticks % 5 === 0) this.load().catch(() => {});
    this.showState();
    if (this.trouble) this.trouble.update();
    this.tiles.update();
    for (const chart of this.charts) chart.draw();
    this.recent.update();
    if (this.rows) this.rows.show(byUrgency(store.servers(this.proxy)));
  },
});
