// Which frontend leads to which backend and server, with their health. Must never place what it does not show.

const MANY = 12;

const topologyView = {
  title: "Topology",
  async mount(root) {
    this.root = root;
    this.lines = s("svg", { class: "edges", "aria-hidden": "true" });
    this.columns = [h("div", { class: "column" }), h("div", { class: "column" }), h("div", { class: "column" })];
    this.graph = h("div", { class: "graph" }, this.lines,
      ...["Frontends", "Backends", "Servers"].map((title, at) => h("section", {}, h("h3", {}, title), this.columns[at])));
    root.replaceChildren(
      h("div", { class: "head" }, h("h2", {}, "Topology"), statusLegend()),
      h("div", { class: "scroll" }, this.graph));
    this.known = "";
    this.nodes = new Map();
    store.topology = await fetchJson("topology");
    this.update();
  },

  node(kind, object, extra) {
    const { row } = object;
    const name = kind === "server" ? row.name : row.proxy;
    const rate = h("span", { class: "rate" });
    const link = h("a", { class: "node", href: linkOf(row) }, h("strong", {}, name), h("span", { class: "line" }, pill(row), rate), extra);
    this.nodes.set(object.key, { link, rate, object, pill: link.querySelector(".pill") });
    return link;
  },

  build() {
    this.nodes.clear();
    this.edges = [];
    const backends = store.all("backend").filter(hasPart);
    const order = [];
    for (const front of store.topology.frontends) for (const one of front.backends) if (!order.includes(one.name)) order.push(one.name);
    backends.sort((a, b) => (order.indexOf(a.row.proxy) + 1 || 1e6) - (order.indexOf(b.row.proxy) + 1 || 1e6));
    const fronts = store.topology.frontends.map((front) => store.get("frontend", front.name)).filter(Boolean);
    this.columns[0].replaceChildren(...fronts.map((object) => this.node("frontend", object)));
    this.columns[1].replaceChildren(...backends.map((object) => this.node("backend", object)));
    this.columns[2].replaceChildren(...backends.map((object) => this.cluster(object)).filter(Boolean));
    for (const front of store.topology.frontends) {
      for (const one of front.backends) this.edges.push([keyOf("frontend", front.name), keyOf("backend", one.name), one.how]);
    }
    this.lines.replaceChildren();
    this.paths = this.edges.map((edge) => {
      const path = s("path", { class: "edge " + edge[2] });
      this.lines.append(path);
      return path;
    });
  },

  cluster(backend) {
    const servers = store.servers(backend.row.proxy);
    if (!servers.length) return null;
    const many = servers.length > MANY;
    const group = h("div", { class: "cluster" + (many ? " many" : ""), "aria-label": "Servers of " + backend.row.proxy });
    if (many) group.append(h("span", { class: "caption" }, `${backend.row.proxy}: ${servers.length} servers`));
    for (const server of servers) {
      if (many) {
        const link = h("a", { class: "cell", href: linkOf(server.row) });
        this.nodes.set(server.key, { link, object: server, cell: true });
        group.append(link);
      } else group.append(this.node("server", server));
    }
    this.nodes.set("cluster/" + backend.key, { link: group, object: null });
    this.edges.push([backend.key, "cluster/" + backend.key, "own"]);
    return group;
  },

  update() {
    if (!store.topology || !store.objects.size) return;
    const known = [...store.objects.keys()].join();
    if (known !== this.known) { this.known = known; this.build(); }
    for (const { link, rate, object, pill: status, cell } of this.nodes.values()) {
      if (!object) continue;
      const now = store.objects.get(object.key);
      if (!now) continue;
      const { row } = now;
      if (cell) {
        attr(link, "class", "cell " + healthOf(row));
        attr(link, "title", `${row.name}: ${row.status}, ${format.count(now.now.requests)} requests/s`);
        attr(link, "aria-label", `${row.name}: ${row.status}`);
      } else {
        attr(link, "class", "node " + healthOf(row));
        setPill(status, row);
        const counts = row.kind === "backend" ? serverCounts(row) : null;
        const up = counts && counts.total ? `${counts.usable}/${counts.total} usable, ` : "";
        put(rate, up + format.count(now.now.requests) + " req/s");
      }
    }
    this.route();
  },

  route() {
    const box = this.graph.getBoundingClientRect();
    attr(this.lines, "viewBox", `0 0 ${box.width} ${box.height}`);
    this.edges.forEach(([from, to, how], at) => {
      const begin = this.nodes.get(from), end = this.nodes.get(to);
      if (!begin || !end) return;
      const a = begin.link.getBoundingClientRect(), b = end.link.getBoundingClientRect();
      const x1 = a.right - box.left, y1 = a.top + a.height / 2 - box.top, x2 = b.left - box.left, y2 = b.top + b.height / 2 - box.top;
      const middle = (x1 + x2) / 2;
      attr(this.paths[at], "d", `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`);
      const target = store.objects.get(how === "own" ? from : to), source = store.objects.get(from);
      const flow = target && source ? Math.min(target.now.requests || 0, source.now.requests || 0) : 0;
      attr(this.paths[at], "class", `edge ${how}${flow > 0 ? " flows" : ""}${target && healthOf(target.row) === "down" ? " down" : ""}`);
      attr(this.paths[at], "stroke-width", (1.5 + Math.min(4, Math.log10(1 + flow))).toFixed(1));
    });
  },
};

// A section that answers by itself, such as one for statistics, has a backend that nothing goes to.
function hasPart({ row }) {
  return store.servers(row.proxy).length > 0 || row.stot > 0 || !store.get("frontend", row.proxy);
}

function linkOf(row) {
  const part = encodeURIComponent;
  return row.kind === "server" ? `#/server/${part(row.proxy)}/${part(row.name)}` : `#/${row.kind}/${part(row.proxy)}`;
}

function statusLegend() {
  const words = [["up", "up"], ["going", "changing"], ["drain", "drain"], ["nolb", "no load"], ["maint", "maintenance"], ["down", "down"], ["plain", "not checked"]];
  return h("p", { class: "statuses" }, ...words.map(([name, text]) => h("span", {}, h("i", { class: "mark " + name }), text)));
}
