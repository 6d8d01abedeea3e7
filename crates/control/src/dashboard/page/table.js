// Tables of frontends, backends and servers whose rows stay and change their text.

class Rows {
  constructor(columns, empty) {
    this.columns = columns;
    this.rows = new Map();
    this.sort = null;
    this.heads = columns.map((column, at) => h("th", { scope: "col", class: (column.number ? "number " : "") + (column.class || "") },
      column.sort ? h("button", { type: "button", class: "sorter", onclick: () => this.order(at) }, column.title) : column.title));
    this.body = h("tbody", {});
    this.empty = h("p", { class: "empty" }, empty || "Nothing to show.");
    this.node = h("div", { class: "scroll" }, h("table", { class: "objects" }, h("thead", {}, h("tr", {}, ...this.heads)), this.body), this.empty);
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

// How urgent an object is: what is down comes first in a list.
function urgency({ row }) {
  return { down: 0, going: 1, nolb: 2, drain: 3, maint: 4 }[healthOf(row)] ?? 5;
}

const byUrgency = (objects) => objects.map((object, at) => [urgency(object), at, object]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map((one) => one[2]);

// The address of the kept log lines of an object's errors; `error`: 4 or 5 for the class of the answer, or nothing.
function errorsOf(row, error) {
  const words = { errors: 1, proxy: row ? row.proxy : "", server: row && row.kind === "server" ? row.name : "", class: error };
  return "#/log?" + Object.entries(words).filter(([, value]) => value).map(([name, value]) => name + "=" + encodeURIComponent(value)).join("&");
}

// A number that leads to the log lines that it counts.
const errorCell = (title, measure, error) => ({
  title, number: true, class: "errors", sort: (object) => object.live.mean(measure) || 0,
  make: (cell, object, state) => { state[measure] = h("a", { class: "count", href: errorsOf(object.row, error), title: "Log lines" }); cell.append(state[measure]); },
  update: (cell, object, state) => {
    const value = object.live.mean(measure);
    put(state[measure], format.count(value));
    cell.classList.toggle("bad", value > 0);
  },
});

const reasonCell = {
  title: "Reason", class: "wide reason", sort: (object) => object.row.reason || "",
  make: (cell, object, state) => { state.words = h("span", {}); state.code = h("code", {}); cell.append(state.words, " ", state.code); },
  update: (cell, { row }, state) => {
    const { words, code } = reasonOf(row), fine = isUsable(row);
    put(state.words, fine ? "" : sentence(words));
    put(state.code, code);
    attr(cell, "title", [sentence(words), code].filter(Boolean).join(" · "));
  },
};

const sinceCell = { title: "Since", number: true, sort: (object) => secondsSince(object.row) || 0, text: (object) => sinceText(object.row) };

const shareCell = {
  title: "Servers", class: "servers", sort: (object) => { const counts = serverCounts(object.row); return counts.total ? counts.usable / counts.total : 2; },
  make: (cell, object, state) => { state.share = new Share(); cell.append(state.share.node); },
  update: (_, object, state) => state.share.show(serverCounts(object.row)),
};

function objectColumns(kind) {
  const name = (object) => (kind === "server" ? `${object.row.proxy}/${object.row.name}` : object.row.proxy);
  const number = (title, get, show, name) => ({ title, number: true, class: name, sort: (object) => get(object) || 0, text: (object) => show(get(object)) });
  const columns = [
    { title: "Name", class: "name", sort: name, make: (cell, object) => cell.append(h("a", { href: linkOf(object.row) }, name(object))) },
    { title: "Status", class: "status", sort: (object) => object.row.status || "", make: (cell, object, state) => { state.pill = pill(object.row); cell.append(state.pill); },
      update: (_, object, state) => setPill(state.pill, object.row) },
  ];
  if (kind === "backend") columns.push(shareCell);
  if (kind === "server") columns.push(sinceCell, reasonCell);
  columns.push(number("Requests/s", (object) => object.now.requests, format.count));
  columns.push({ title: "Last 5 min", class: "spark-cell", make: (cell, object, state) => {
    state.spark = new Spark(store.spark(object.key, "requests"), "var(--c-blue)");
    cell.append(state.spark.node);
  }, update: (_, __, state) => state.spark.draw() });
  columns.push(errorCell("Errors/s", "failed", ""));
  columns.push(number("p50", (object) => object.row.p50, format.time), number("p99", (object) => object.row.p99, format.time));
  columns.push(number("Sessions", (object) => object.row.scur, format.whole));
  if (kind !== "frontend") columns.push(number("Queue", (object) => object.row.qcur, format.whole, "minor"));
  columns.push(number("Out", (object) => object.now.sent, format.rate));
  if (kind === "server") {
    columns.push(number("Weight", (object) => object.row.weight, format.whole, "minor"));
    if (store.admin) columns.push({ title: "", class: "menu-cell", make: (cell, object) => cell.append(menuButton(object.row)) });
  }
  return columns;
}

const panel = (title, node, ...more) => h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h3", {}, title), ...more), node);
