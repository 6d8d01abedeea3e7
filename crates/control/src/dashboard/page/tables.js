// Stick tables, their entries, and the keys with the highest values.

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

// The keys with the highest values of a column.
class TopKeys {
  constructor(name) {
    Object.assign(this, { name, by: "", known: "" });
    this.list = h("ol", { class: "top-keys" });
    this.choice = h("div", { class: "segments", role: "group", "aria-label": "Column" });
    this.note = h("p", { class: "quiet" });
    this.node = panel("Top keys", h("div", {}, this.list, this.note), this.choice);
    this.node.hidden = true;
  }

  // `names`: the columns of the table's entries.
  async refresh(names) {
    const columns = names.map((name) => name.replace(/\(.*$/, "")).filter((name) => !["server_id", "server_key"].includes(name));
    if (!columns.length || this.lacking) return;
    if (!columns.includes(this.by)) this.by = columns.find((name) => name.includes("rate")) || columns[0];
    if (columns.join() !== this.known) {
      this.known = columns.join();
      this.choice.replaceChildren(...columns.map((name) => h("button", { type: "button", "aria-pressed": String(name === this.by), onclick: () => { this.by = name; this.known = ""; this.refresh(names).catch(() => {}); } }, name)));
    }
    try { this.show(await fetchJson(`tables/${encodeURIComponent(this.name)}/top`, { by: this.by, limit: 10 })); } catch (error) {
      if (error.status === 404) this.lacking = true; else throw error;
    }
  }

  show(answer) {
    this.node.hidden = false;
    const value = (entry) => { const found = Object.entries(entry.data).find(([name]) => name.replace(/\(.*$/, "") === this.by); return found && KNOWN(found[1]) ? found[1] : 0; };
    const most = Math.max(1, ...answer.entries.map(value));
    this.list.replaceChildren(...answer.entries.map((entry) => {
      const bar = h("i", {});
      bar.style.width = (100 * value(entry)) / most + "%";
      return h("li", {}, h("span", { class: "key-name", title: entry.key }, entry.key), h("span", { class: "gauge", "aria-hidden": "true" }, bar), h("b", {}, format.whole(value(entry))));
    }));
    put(this.note, answer.entries.length ? (answer.complete ? "" : `of the first ${format.whole(answer.scanned)} of ${format.whole(answer.used)} entries`) : "No entry has a value in this column.");
    this.note.hidden = !this.note.textContent;
  }
}

async function oneTable(root, name) {
  const head = h("tr", {}), body = h("tbody", {}), note = h("span", { class: "note" }), top = new TopKeys(name);
  this.refresh = async () => {
    const answer = await fetchJson("tables/" + encodeURIComponent(name), { limit: 500, key: this.filter });
    const names = answer.entries.length ? Object.keys(answer.entries[0].data) : [];
    head.replaceChildren(h("th", {}, "Key"), ...names.map((one) => h("th", { class: "number" }, one)), h("th", { class: "number" }, "Expires"));
    body.replaceChildren(...answer.entries.map((entry) => h("tr", {}, h("td", { class: "name" }, entry.key),
      ...names.map((one) => h("td", { class: "number" }, KNOWN(entry.data[one]) ? format.whole(entry.data[one]) : entry.data[one])),
      h("td", { class: "number" }, KNOWN(entry.expires_ms) ? format.duration(entry.expires_ms / 1000) : "never"))));
    if (names.length) top.refresh(names).catch(() => {});
    put(note, answer.complete ? `${answer.entries.length} of ${answer.size} entries` : `the first ${answer.entries.length} of ${answer.used} entries`);
  };
  root.replaceChildren(h("nav", { class: "crumbs", "aria-label": "Way back" }, h("a", { href: "#/tables" }, "Stick tables"), " / table"),
    h("div", { class: "head" }, h("h2", {}, name), note, filterField("Filter by key", (value) => { this.filter = value; this.refresh().catch(() => {}); })),
    top.node, panel("Entries", h("div", { class: "scroll" }, h("table", {}, h("thead", {}, head), body))));
  return this.refresh();
}
