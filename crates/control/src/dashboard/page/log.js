// Log lines: all of them as they come, or those of errors that the process keeps. Must never show a line as markup.

const CAUSES = {
  C: "the client left", S: "the server ended the connection, or refused it", P: "ended by the proxy", L: "answered by the proxy", R: "a resource is exhausted",
  I: "an internal error", D: "killed: the server went down", U: "killed: the active server is up again", K: "killed by an administrator",
  c: "the client was too slow", s: "the server was too slow",
};
const PHASES = { R: "before the request was complete", Q: "in the queue", C: "while connecting", H: "before the head of the answer", D: "within the answer", L: "at the end of the answer", T: "in a tarpit" };

// The first two characters of the termination state, in words (configuration manual, section 8.5).
function terminationWords(state) {
  const [cause, phase] = state || "";
  if (cause === "L" || (cause === "P" && phase === "R")) return cause === "L" ? "answered by the proxy" : "refused by the proxy";
  return [CAUSES[cause], PHASES[phase]].filter(Boolean).join(" ");
}

const ERROR_PARTS = [["proxy", "proxy"], ["server", "server"], ["class", "class"], ["status", "status"], ["termination", "state"]];

const logView = {
  title: "Log",
  async mount(root, _, query) {
    const errors = [...query.keys()].length > 0;
    const segments = h("div", { class: "segments", role: "group", "aria-label": "Lines" },
      h("a", { href: "#/log", "aria-current": errors ? null : "true" }, "Live"), h("a", { href: "#/log?errors=1", "aria-current": errors ? "true" : null }, "Errors"));
    this.part = errors ? new KeptErrors(query) : new LiveLog();
    root.replaceChildren(h("div", { class: "head" }, h("h2", {}, "Log"), segments, ...this.part.head), ...this.part.body);
    this.part.start();
  },
  unmount() { if (this.part) this.part.stop(); },
  update(what) { if (this.part) this.part.update(what); },
};

// A text, or a regular expression between slashes.
function lineFilter(text) {
  const match = /^\/(.+)\/$/.exec(text);
  if (match) try { const expression = new RegExp(match[1], "i"); return (line) => expression.test(line); } catch (_) { /* not yet complete */ }
  return (line) => line.toLowerCase().includes(text.toLowerCase());
}

class LiveLog {
  constructor() {
    this.fits = lineFilter("");
    this.paused = false;
    this.list = h("ol", { class: "log", tabindex: 0, "aria-label": "Log lines" });
    this.note = h("span", { class: "note" });
    const pause = h("button", { class: "button", type: "button", "aria-pressed": "false", onclick: () => {
      this.paused = !this.paused;
      attr(pause, "aria-pressed", this.paused);
      put(pause, this.paused ? "Continue" : "Pause");
      this.update("log");
    } }, "Pause");
    const clear = h("button", { class: "button", type: "button", onclick: () => { store.lines.length = 0; this.update("log"); } }, "Clear");
    this.head = [this.note, filterField("Filter lines; /…/ is a regular expression", (text) => { this.fits = lineFilter(text); this.update("log"); }), pause, clear];
    this.body = [h("section", { class: "panel flush" }, this.list)];
  }

  start() {
    store.openLog();
    this.update("log");
  }

  stop() { store.closeLog(); }

  update(what) {
    if (this.paused || what !== "log") return;
    const fits = store.lines.filter((line) => this.fits(line.proxy + " " + line.line)).slice(-400);
    put(this.note, store.lines.length ? `${fits.length} of ${format.plural(store.lines.length, "line")}` : "lines of frontends with a log target appear here");
    const atEnd = this.list.scrollTop + this.list.clientHeight >= this.list.scrollHeight - 40;
    this.list.replaceChildren(...fits.map((line) => {
      const code = /(?:^|\s)([1-5]\d\d)(?:\s)/.exec(line.line);
      return h("li", { class: code ? "code" + code[1][0] : "" }, h("time", {}, format.clock(line.time)), h("b", {}, line.proxy), h("span", {}, line.line));
    }));
    if (atEnd) this.list.scrollTop = this.list.scrollHeight;
  }
}

// The last lines of requests that failed, with a summary by status and termination state.
class KeptErrors {
  constructor(query) {
    this.chosen = Object.fromEntries(ERROR_PARTS.map(([name]) => [name, query.get(name) || ""]));
    this.fits = lineFilter("");
    this.lines = [];
    this.last = 0;
    this.note = h("span", { class: "note" });
    this.list = h("ol", { class: "errors-list" });
    this.empty = h("p", { class: "empty" }, "Reading…");
    this.groups = h("div", { class: "groups", role: "group", "aria-label": "Errors by status and state" });
    this.head = [this.note, filterField("Filter lines; /…/ is a regular expression", (text) => { this.fits = lineFilter(text); this.show(); })];
    this.body = [this.chips(), this.groups, h("section", { class: "panel flush" }, this.list, this.empty)].filter(Boolean);
  }

  // The address with another choice.
  address(changes) {
    const all = { errors: 1, ...this.chosen, ...changes };
    return "#/log?" + Object.entries(all).filter(([, value]) => value).map(([name, value]) => name + "=" + encodeURIComponent(value)).join("&");
  }

  chips() {
    const shown = ERROR_PARTS.filter(([name]) => this.chosen[name]);
    if (!shown.length) return null;
    const value = (name) => (name === "class" && /^\d$/.test(this.chosen.class) ? this.chosen.class + "xx" : this.chosen[name]);
    return h("div", { class: "chips", role: "group", "aria-label": "Filters" }, ...shown.map(([name, title]) =>
      h("a", { class: "chip", href: this.address({ [name]: "" }), title: "Remove this filter" }, h("span", {}, title), value(name), h("i", { "aria-hidden": "true" }, "×"))));
  }

  start() {
    this.asked = 0;
    this.update();
  }

  stop() { this.stopped = true; }

  async update() {
    if (this.busy || Date.now() - this.asked < 2000) return;
    this.busy = true;
    this.asked = Date.now();
    try {
      const answer = await fetchJson("errors", { ...this.chosen, since: this.last || "", limit: 500 });
      if (this.stopped) return;
      this.lines = this.lines.concat(answer.lines).slice(-500);
      const changed = answer.lines.length || !this.last;
      this.last = answer.last || this.last;
      if (changed) this.show();
    } catch (error) {
      put(this.empty, error.status === 404 ? "This process keeps no error lines." : error.message);
    } finally { this.busy = false; }
  }

  show() {
    const fits = this.lines.filter((one) => this.fits(one.line));
    put(this.note, format.plural(fits.length, "line"));
    this.empty.hidden = fits.length > 0;
    if (!fits.length) put(this.empty, "No error is kept that fits. Lines are kept of proxies that have a log line.");
    this.list.replaceChildren(...fits.slice(-300).reverse().map((one) => this.line(one)));
    const groups = new Map();
    for (const one of fits) {
      const key = `${one.status || ""}/${(one.termination || "").slice(0, 2)}`;
      groups.set(key, (groups.get(key) || 0) + 1);
    }
    const sorted = [...groups].sort((a, b) => b[1] - a[1]).slice(0, 8);
    this.groups.replaceChildren(...sorted.map(([key, count]) => {
      const [status, state] = key.split("/");
      const on = this.chosen.status === status && this.chosen.termination === state;
      return h("a", { class: "group code" + (status[0] || "0"), href: this.address(on ? { status: "", termination: "" } : { status, termination: state }), "aria-current": on ? "true" : null },
        h("b", {}, format.whole(count)), h("strong", {}, `${status || "–"} ${state}`), h("span", {}, terminationWords(state) || "the server's own answer"));
    }));
    this.groups.hidden = !sorted.length;
  }

  line(one) {
    const place = one.server ? h("a", { href: link("server", one.backend || one.frontend, one.server) }, `${one.backend || one.frontend}/${one.server}`)
      : one.backend && one.backend !== one.frontend ? h("a", { href: link("backend", one.backend) }, one.backend) : null;
    return h("li", { class: "code" + String(one.status || 0)[0] },
      h("time", {}, format.moment(one.time)), h("b", { class: "code-badge" }, one.status || "–"), h("code", { title: terminationWords(one.termination) }, one.termination || ""),
      h("span", { class: "route" }, h("a", { href: link("frontend", one.frontend) }, one.frontend), place ? " → " : "", place), h("span", { class: "text" }, one.line));
  }
}
