// The charts and tiles of an object, or of everything.

const COLORS = {
  ok: "var(--c-green)", e4: "var(--c-amber)", e5: "var(--c-red)", p50: "var(--c-teal)", p95: "var(--c-blue)", p99: "var(--c-violet)",
};
const PALETTE = ["var(--c-blue)", "var(--c-green)", "var(--c-violet)", "var(--c-amber)", "var(--c-teal)", "var(--c-red)", "var(--c-pink)", "var(--c-grey)"];

// Series of the measures of a frame.
const line = (name, measure, color, href) => ({ name, color, href, of: (frame) => frame.values(measure) });

// `row`: the object; `null`: everything.
function chartsOf(row, frame) {
  const lines = (error) => errorsOf(row, error);
  const made = [
    new Chart({ title: "Requests per second", unit: format.count, tick: format.plain, frame, stacked: true, series: [
      line("answered", "ok", COLORS.ok), line("4xx", "e4", COLORS.e4, lines("4")), line("5xx", "e5", COLORS.e5, lines("5"))] }),
    new Chart({ title: "Time to the answer", unit: format.time, tick: format.mark, frame, least: 1, series: [
      line("p50", "p50", COLORS.p50), line("p95", "p95", COLORS.p95), line("p99", "p99", COLORS.p99)] }),
    new Chart({ title: "Errors per second", unit: format.count, tick: format.plain, frame, least: 1,
      more: h("a", { class: "more", href: lines("") }, "Log lines"), series: [
        line("5xx", "e5", COLORS.e5, lines("5")), line("connection errors", "errors", "var(--c-pink)", lines(""))] }),
    new Chart({ title: "Sessions and queue", unit: format.whole, tick: format.plain, frame, whole: true, series: [
      line("sessions", "current", "var(--c-blue)"), line("queued", "queued", "var(--c-amber)")] }),
    new Chart({ title: "Traffic per second", unit: format.bytes, tick: format.size, frame, series: [
      line("to clients", "sent", "var(--c-green)"), line("from clients", "received", "var(--c-violet)")] }),
  ];
  const byProtocol = !row || row.kind === "frontend" ? [protocolChart(frame)] : [];
  return made.concat(lastChart(row, frame), byProtocol);
}

function lastChart(row, frame) {
  if (!row) return threadChart();
  if (row.kind === "frontend") {
    return new Chart({ title: "New connections per second", unit: format.count, tick: format.plain, frame, series: [line("connections", "connections", "var(--c-teal)")] });
  }
  if (row.kind === "backend" && serverCounts(row).total) {
    return new Chart({ title: "Servers", unit: format.whole, tick: format.plain, frame, whole: true, series: [
      line("usable", "usable", "var(--c-green)"), line("down", "down", "var(--c-red)")] });
  }
  return new Chart({ title: "Where the time goes, on average", unit: format.time, tick: format.mark, frame, stacked: true, least: 1, series: [
    line("queue", "queue", "var(--c-amber)"), line("connect", "connect", "var(--c-violet)"), line("server", "response", "var(--c-blue)")] });
}

function threadChart() {
  const frame = () => {
    const { times, values } = store.cpu, from = store.last - store.span;
    const places = times.flatMap((time, at) => (time >= from ? [at] : []));
    const pick = (list) => places.map((at) => list[at]);
    const lists = Object.values(values).map(pick);
    return { now: store.last, span: store.span, times: pick(times), lists, events: store.eventsOf(null, from) };
  };
  const fold = (with_) => (made) => made.times.map((_, at) => { const now = made.lists.map((list) => list[at]).filter(KNOWN); return now.length ? with_(now) : null; });
  const series = store.threads.length > PALETTE.length
    ? [{ name: "busiest", color: "var(--c-red)", of: fold((now) => Math.max(...now)) },
       { name: "mean", color: "var(--c-blue)", of: fold((now) => now.reduce((sum, one) => sum + one, 0) / now.length) },
       { name: "idlest", color: "var(--c-green)", of: fold((now) => Math.min(...now)) }]
    : store.threads.map((_, number) => ({ name: `thread ${number + 1}`, color: PALETTE[number], of: (made) => made.lists[number] || [] }));
  return new Chart({ title: "Processor time per thread", more: h("span", { class: "note" }, "since this page was opened"), unit: (value) => (KNOWN(value) ? Math.round(value) + " %" : "–"), series, frame, top: 100, tick: (value) => value + " %" });
}

// One figure with its line over the last minutes.
function tile({ title, value, note, spark, color, href, level }) {
  const big = h("b", {}), small = h("small", {}), line = spark ? new Spark(spark, color) : null;
  const parts = [h("span", {}, title), big, small, line && line.node];
  const node = href ? h("a", { class: "tile", href }, ...parts) : h("div", { class: "tile" }, ...parts);
  return { node, update() {
    put(big, value());
    put(small, note());
    if (level) attr(node, "class", "tile " + level());
    if (line) line.draw();
  } };
}

function tiles(row, frame) {
  const object = () => (row ? store.objects.get(keyOf(row.kind, row.proxy, row.name)) : store.total);
  const last = (name) => (object() ? object().now[name] : null);
  const mean = (name) => (object() ? object().live.mean(name) : null);
  const spark = (name) => () => { const made = frame(); return { ...made, values: made.values(name) }; };
  const share = () => { const all = mean("requests"); return KNOWN(all) && all > 0 ? (100 * (mean("failed") || 0)) / all : KNOWN(all) ? 0 : null; };
  const made = [
    tile({ title: "Requests", value: () => format.count(last("requests")), note: () => "per second", spark: spark("requests"), color: "var(--c-blue)" }),
    tile({ title: "Median time", value: () => format.time(last("p50")), note: () => `p99 ${format.time(last("p99"))}`, spark: spark("p50"), color: "var(--c-teal)" }),
    tile({ title: "Errors", value: () => format.percent(share()), note: () => `${format.count(mean("failed"))} per second`, spark: spark("failed"), color: "var(--c-red)",
      href: errorsOf(row, ""), level: () => (share() >= 1 ? "bad" : share() > 0 ? "warn" : "") }),
    tile({ title: "Sessions", value: () => format.whole(last("current")), note: () => `${format.whole(last("queued") || 0)} queued`, spark: spark("current"), color: "var(--c-violet)" }),
    tile({ title: "Traffic", value: () => format.rate(last("sent")), note: () => `${format.rate(last("received"))} in`, spark: spark("sent"), color: "var(--c-green)" }),
  ];
  if (!row) {
    made.unshift(serverTile(serverSummary, "#/servers"));
    made.push(threadTile());
  } else if (row.kind === "backend" && serverCounts(row).total) {
    made.unshift(serverTile(() => {
      const counts = serverCounts((store.get("backend", row.proxy) || { row }).row);
      return { ...counts, level: levelOf(counts) };
    }));
  }
  const node = h("div", { class: "tiles" }, ...made.map((one) => one.node));
  return { node, update() { for (const one of made) one.update(); } };
}

// How many servers are usable: amber where some of a backend are missing, red where none of one is usable.
function serverTile(counts, href) {
  const big = h("b", {}), small = h("small", {}), mark = h("i", { class: "mark" });
  const parts = ["usable", "drain", "maint", "down"].map((name) => [name, h("i", { class: name })]);
  const bar = h("span", { class: "tile-bar", "aria-hidden": "true" }, ...parts.map(([, part]) => part));
  const inner = [h("span", { class: "tile-title" }, "Servers usable", mark), big, small, bar];
  const node = href ? h("a", { class: "tile health", href }, ...inner) : h("div", { class: "tile health" }, ...inner);
  return { node, update() {
    const now = counts();
    attr(node, "class", "tile health " + (now.level || "none"));
    attr(mark, "class", "mark " + ({ good: "up", warn: "going", bad: "down" }[now.level] || "plain"));
    big.replaceChildren(now.total ? format.whole(now.usable) : "–", now.total ? h("span", { class: "of" }, ` of ${format.whole(now.total)}`) : "");
    put(small, now.total ? sentence(countWords(now)) : "no servers");
    showParts(parts, now);
  } };
}

function threadTile() {
  const big = h("b", {}), bars = h("span", { class: "bars", "aria-hidden": "true" }), small = h("small", {});
  return { node: h("div", { class: "tile" }, h("span", {}, "Processor"), big, small, bars), update() {
    const now = store.busy || [];
    put(big, now.length ? format.percent(now.reduce((sum, value) => sum + value, 0) / now.length) : "–");
    put(small, format.plural(store.threads.length, "thread"));
    while (bars.children.length < Math.min(store.threads.length, 64)) bars.append(h("i", {}));
    [...bars.children].forEach((bar, at) => { bar.style.setProperty("--busy", Math.max(3, now[at] || 0)); });
  } };
}
