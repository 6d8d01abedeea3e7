// Lists: servers, sessions.

function filterField(label, change, value) {
  return h("input", { type: "search", class: "filter", placeholder: label, "aria-label": label, value: value || "", oninput: (event) => change(event.target.value) });
}

const serversView = {
  title: "Servers",
  async mount(root) {
    this.filter = "";
    this.rows = new Rows(objectColumns("server"), "No server fits. Where there are very many, open a backend to see its servers.");
    root.replaceChildren(h("div", { class: "head" }, h("h2", {}, "Servers"), statusLegend(), filterField("Filter by name, status or reason", (text) => { this.filter = text.toLowerCase(); this.update(); })),
      h("section", { class: "panel" }, this.rows.node));
    this.update();
  },
  update() {
    const fits = ({ row }) => `${row.proxy}/${row.name} ${row.status} ${row.reason || ""} ${row.detail || ""}`.toLowerCase().includes(this.filter);
    this.rows.show(byUrgency(store.all("server").filter(fits)));
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
