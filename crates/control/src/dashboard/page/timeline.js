// Events: what happened to servers and to the process, and who did it. Must never invent an event.

const LEVEL_RANK = { info: 0, good: 1, warn: 2, bad: 3 };
// Kinds of events: level, mark, words after the name.
const EVENT_KINDS = {
  server_down: ["bad", "down", "is down"], server_up: ["good", "up", "is up"], server_ready: ["good", "up", "is ready"],
  server_stopping: ["warn", "nolb", "is stopping"], server_maint: ["warn", "maint", "is in maintenance"], server_drain: ["warn", "drain", "is draining"],
  server_ejected: ["warn", "nolb", "was ejected"], server_weight: ["info", "plain", "has another weight"], server_added: ["info", "plain", "was added"],
  server_removed: ["info", "plain", "was removed"], backend_down: ["bad", "down", "has no usable server"], backend_up: ["good", "up", "has a usable server again"],
  start: ["info", "process", "The process has started"], reload: ["info", "process", "The configuration was loaded again"],
  stop: ["info", "process", "The process stops"], certificate: ["info", "process", "The certificate was changed"],
};
const WHO = {
  check: "health check", agent: "agent", traffic: "traffic", cli: "runtime API", dashboard: "dashboard", page: "statistics page", script: "script",
  leader: "tracked server", resolver: "resolver", "state-file": "state file", acme: "ACME", process: "process",
};

const kindOf = (entry) => EVENT_KINDS[entry.kind] || ["info", "plain", entry.kind.replace(/_/g, " ")];
const eventLevel = (entry) => kindOf(entry)[0];
const eventMark = (entry) => kindOf(entry)[1];

function eventSubject(entry) {
  if (entry.server) return `${entry.proxy}/${entry.server}`;
  return entry.proxy || "";
}

// Why it happened: words and the code.
function eventReason(entry) {
  const { words, code } = reasonOf({ reason: entry.reason, detail: entry.detail });
  return { words: entry.kind === "server_up" && !entry.detail ? "" : words, code };
}

function eventTitle(entry) {
  const subject = eventSubject(entry), words = kindOf(entry)[2], why = eventReason(entry).words;
  const name = entry.name ? ` (${entry.name})` : "";
  return (subject ? `${subject} ${words}` : words + name) + (why ? `: ${why}` : "");
}

function eventNode(entry, withDay) {
  const subject = eventSubject(entry), { words, code } = eventReason(entry);
  const href = entry.server ? link("server", entry.proxy, entry.server) : entry.proxy ? link("backend", entry.proxy) : null;
  const name = entry.name ? ` (${entry.name})` : "";
  return h("li", { class: "happening " + eventLevel(entry) },
    h("time", { datetime: new Date(entry.time * 1000).toISOString() }, withDay ? format.moment(entry.time) : format.clock(entry.time)),
    h("i", { class: "mark " + eventMark(entry), "aria-hidden": "true" }),
    h("span", { class: "what" }, subject ? h("a", { href }, subject) : null, subject ? " " : "", kindOf(entry)[2] + (subject ? "" : name),
      words ? h("span", { class: "because" }, sentence(words)) : null, code ? h("code", {}, code) : null),
    h("span", { class: "who" }, WHO[entry.who] || entry.who || ""));
}

// The newest events of an object, of everything without one.
class Recent {
  constructor(row, most) {
    Object.assign(this, { row, most: most || 8, known: "" });
    this.list = h("ol", { class: "happenings" });
    this.empty = h("p", { class: "quiet" }, "Nothing has happened yet.");
    this.node = h("div", { class: "recent", tabindex: 0, role: "region", "aria-label": "Latest events" }, this.list, this.empty);
  }

  update() {
    const entries = store.eventsOf(this.row, 0).slice(-this.most).reverse();
    const known = entries.map((entry) => `${entry.id}/${entry.time}`).join();
    this.empty.hidden = entries.length > 0;
    if (store.hasTimeline === false) put(this.empty, "This process keeps no events.");
    if (known === this.known) return;
    this.known = known;
    this.list.replaceChildren(...entries.map((entry) => eventNode(entry, true)));
  }
}

// What needs a look: see `problems`. `fits` selects among them; `quiet`: nothing is shown where there is nothing.
class Problems {
  constructor(fits, quiet) {
    Object.assign(this, { fits, quiet, known: "" });
    this.list = h("ul", { class: "problems" });
    this.fine = h("p", { class: "quiet fine" }, h("i", { class: "mark up", "aria-hidden": "true" }), h("span", {}));
    this.count = h("span", { class: "badge" });
    this.node = panel("Needs attention", h("div", { class: "recent", tabindex: 0, role: "region", "aria-label": "Needs attention" }, this.list, this.fine), this.count);
  }

  update() {
    const found = problems().filter((one) => !this.fits || this.fits(one));
    if (this.quiet) this.node.hidden = !found.length;
    this.fine.hidden = found.length > 0;
    this.count.hidden = !found.length;
    put(this.count, found.length);
    attr(this.count, "class", "badge " + (found.length ? found[0].level : ""));
    const sum = serverSummary();
    const servers = sum.total ? ` ${sum.usable === 1 ? "The server is" : `All ${format.whole(sum.usable)} servers are`} usable.` : "";
    const next = (store.certificates || []).find((one) => !one.authority);
    put(this.fine.lastChild, `Nothing.${servers}${next ? ` The next certificate ${expiryWords(next)}.` : ""}`);
    const known = found.map((one) => `${one.key} ${one.status} ${one.words} ${one.code}`).join("\n");
    if (known !== this.known) {
      this.known = known;
      this.rows = found.map((one) => this.row(one));
      this.list.replaceChildren(...this.rows.map((row) => row.node));
    }
    found.forEach((one, at) => put(this.rows[at].since, one.since));
  }

  row(one) {
    const since = h("span", { class: "since" });
    const node = h("li", { class: one.level }, h("a", { href: one.href },
      h("span", { class: "pill " + one.pill }, one.status), h("strong", {}, one.name),
      h("span", { class: "because" }, one.words, one.code ? h("code", {}, one.code) : null), since));
    return { node, since };
  }
}

const EVENT_FILTERS = [["", "All"], ["servers", "Servers"], ["administration", "Administration"], ["process", "Process"]];

function fitsFilter(entry, name) {
  const isProcess = ["start", "reload", "stop", "certificate"].includes(entry.kind);
  if (name === "process") return isProcess;
  if (name === "administration") return ["cli", "dashboard", "page", "script", "state-file"].includes(entry.who);
  return name !== "servers" || !isProcess;
}

const eventsView = {
  title: "Events",
  async mount(root, _, query) {
    Object.assign(this, { choice: "", text: query.get("proxy") || "", known: null });
    const buttons = EVENT_FILTERS.map(([name, title]) => h("button", { type: "button", "aria-pressed": String(name === this.choice), dataset: { choice: name }, onclick: () => {
      this.choice = name;
      for (const button of buttons) attr(button, "aria-pressed", String(button.dataset.choice === name));
      this.update();
    } }, title));
    this.note = h("span", { class: "note" });
    this.body = h("div", { class: "days" });
    root.replaceChildren(h("div", { class: "head" }, h("h2", {}, "Events"), this.note, h("div", { class: "segments", role: "group", "aria-label": "Kinds of events" }, ...buttons),
      filterField("Filter by name or text", (text) => { this.text = text; this.update(); }, this.text)), this.body);
    this.update();
  },

  update() {
    const text = this.text.toLowerCase();
    const entries = store.timeline.filter((entry) => fitsFilter(entry, this.choice) && `${eventTitle(entry)} ${entry.text || ""}`.toLowerCase().includes(text));
    const known = `${entries.length}/${store.timeline.length}/${this.choice}/${text}`;
    if (known === this.known) return;
    this.known = known;
    put(this.note, entries.length === store.timeline.length ? format.plural(entries.length, "event") : `${entries.length} of ${format.plural(store.timeline.length, "event")}`);
    const days = new Map();
    for (const entry of entries.slice().reverse()) {
      const day = format.day(entry.time);
      if (!days.has(day)) days.set(day, []);
      days.get(day).push(entry);
    }
    const today = format.day(Date.now() / 1000);
    this.body.replaceChildren(...[...days].map(([day, list]) => panel(day === today ? "Today" : day, h("ol", { class: "happenings long" }, ...list.map((entry) => eventNode(entry, false))))));
    if (!entries.length) this.body.replaceChildren(h("p", { class: "empty" }, store.hasTimeline === false ? "This process keeps no events." : "No event fits."));
  },
};
