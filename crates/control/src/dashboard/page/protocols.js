// Requests by protocol, what QUIC does below HTTP/3, and flows of datagrams.

// Each with its name, its measure, its colour, and the columns of its requests and connections.
const PROTOCOLS = [
  ["HTTP/1", "h1", "var(--c-blue)", "h1req", "h1sess"],
  ["HTTP/2", "h2", "var(--c-green)", "h2req", "h2sess"],
  ["HTTP/3", "h3", "var(--c-violet)", "h3req", "h3sess"],
];

// What an operator looks for if clients or servers have trouble with QUIC.
const QUIC_COUNTS = [
  ["QUIC handshakes in progress", "quic_half_open_conn"],
  ["QUIC handshakes failed", "quic_hdshk_fail"],
  ["QUIC packets lost", "quic_lost_pkt", "quic_sent_pkt"],
  ["QUIC Retry packets sent", "quic_retry_sent"],
  ["QUIC datagrams dropped", "quic_dropped_pkt"],
  ["QUIC address changes", "quic_conn_migration_done"],
];

function protocolChart(frame) {
  return new Chart({ title: "Requests per second by protocol", more: h("span", { class: "note" }, "since this page was opened"), unit: format.count, tick: format.plain,
    frame, stacked: true, series: PROTOCOLS.map(([name, measure, color]) => ({ name, color, of: (made) => made.values(measure) })) });
}

// The protocols that clients of a frontend have used, with their shares of the requests.
function protocolFacts(row) {
  const all = PROTOCOLS.reduce((sum, [, , , requests]) => sum + (row[requests] || 0), 0);
  return PROTOCOLS.filter(([, , , requests, sessions]) => row[requests] || row[sessions]).map(([name, , , requests, sessions]) =>
    [name, `${format.plural(row[requests] || 0, "request")}${all ? ` (${format.percent((100 * (row[requests] || 0)) / all)})` : ""}, ${format.plural(row[sessions] || 0, "connection")}`]);
}

// The figures of QUIC; none if nothing was counted.
function quicFacts(row) {
  if (![...QUIC_COUNTS.map(([, column]) => column), "quic_sent_pkt"].some((column) => row[column])) return [];
  const shown = QUIC_COUNTS.filter(([, column]) => row[column] || row.kind === "frontend" || !/retry|dropped|migration/.test(column));
  return shown.map(([name, column, whole]) =>
    [name, format.whole(row[column] || 0) + (whole && row[whole] ? ` of ${format.whole(row[whole])} (${format.percent((100 * (row[column] || 0)) / row[whole])})` : "")]);
}

// Flows of a `udp-lb` section and what was lost; other objects do not have these members.
const FLOW_COUNTS = [
  ["Flows evicted", "flows_evicted"],
  ["Flows rejected by servers", "flows_rejected"],
  ["Datagrams refused", "datagrams_refused"],
  ["Datagrams oversized", "datagrams_oversized"],
  ["Datagrams unsent", "datagrams_unsent"],
  ["Datagrams held for a ClientHello", "datagrams_held"],
  ["QUIC connections without a name", "connections_nameless"],
];

function flowFacts(row) {
  if (!KNOWN(row.flows_evicted)) return [];
  const now = format.whole(row.scur || 0) + (row.slim ? ` of ${format.whole(row.slim)}` : "");
  return [["Flows", now], ["Flows in total", format.whole(row.stot || 0)], ...FLOW_COUNTS.map(([name, member]) => [name, format.whole(row[member] || 0)])];
}

class Protocols {
  constructor() {
    this.list = h("dl", { class: "values" });
    this.node = panel("Protocols", this.list);
    this.node.hidden = true;
    this.shown = "";
  }

  show(row) {
    const facts = [...protocolFacts(row), ...quicFacts(row), ...flowFacts(row)], names = facts.map(([name]) => name).join();
    this.node.hidden = !facts.length;
    if (names !== this.shown) {
      this.shown = names;
      this.list.replaceChildren(...facts.map(([name]) => h("div", {}, h("dt", {}, name), h("dd", {}))));
    }
    facts.forEach(([, value], at) => put(this.list.children[at].lastChild, value));
  }
}
