// Health of servers and backends: which of them are usable, why not, and since when. Must never show a state by
// colour alone.

// The class of a status, which gives it its colour and its shape.
function health(status) {
  status = status || "";
  if (status.startsWith("MAINT")) return "maint";
  if (status.startsWith("DRAIN")) return "drain";
  if (status.startsWith("NOLB") || status === "EJECTED") return "nolb";
  if (status.startsWith("no check")) return "plain";
  if (status === "OPEN") return "up";
  if (status.startsWith("DOWN")) return "down";
  if (status.includes("/")) return "going";
  if (status.startsWith("UP")) return "up";
  if (status === "WAITING" || status === "PAUSED" || status === "FULL") return "going";
  return "down";
}

const isUsable = (row) => /^(UP|no check)/.test(row.status || "") && row.weight !== 0;

// How many of the servers of a backend there are, and how many are usable.
function serverCounts(row) {
  if (row.servers && KNOWN(row.servers.total)) return row.servers;
  const counts = { total: 0, usable: 0, down: 0, maint: 0, drain: 0 };
  for (const server of store.servers(row.proxy)) addServer(counts, server.row);
  return counts;
}

function addServer(counts, row) {
  counts.total += 1;
  if (isUsable(row)) counts.usable += 1;
  else if (health(row.status) === "maint") counts.maint += 1;
  else if (["drain", "up", "plain", "going"].includes(health(row.status)) || /^NOLB/.test(row.status)) counts.drain += 1;
  else counts.down += 1;
}

// The level of a group of servers: good, or some are missing, or none is usable. `null`: there are no servers.
function levelOf(counts) {
  if (!counts || !counts.total) return null;
  if (!counts.usable) return "bad";
  return counts.usable < counts.total ? "warn" : "good";
}

// The sum over all backends, and the worst level of one of them.
function serverSummary() {
  const sum = { total: 0, usable: 0, down: 0, maint: 0, drain: 0, level: null };
  const rank = { good: 1, warn: 2, bad: 3 };
  for (const { row } of store.all("backend")) {
    const counts = serverCounts(row), level = levelOf(counts);
    for (const name of ["total", "usable", "down", "maint", "drain"]) sum[name] += counts[name] || 0;
    if (level && rank[level] > (rank[sum.level] || 0)) sum.level = level;
  }
  return sum;
}

// The class of an object's pill: that of a backend counts its servers.
function healthOf(row) {
  const level = row.kind === "backend" ? levelOf(serverCounts(row)) : null;
  if (level === "warn") return "going";
  if (level === "bad") return "down";
  return row.kind === "server" && row.weight === 0 && /^UP/.test(row.status || "") ? "drain" : health(row.status);
}

const pill = (row) => h("span", { class: "pill " + healthOf(row) }, row.status || "–");

function setPill(node, row) {
  put(node, row.status || "–");
  attr(node, "class", "pill " + healthOf(row));
}

// Results of checks (management manual, section 9.1, `check_status`).
const CHECK_WORDS = {
  UNK: "no check has ended yet", INI: "the first check runs", SOCKERR: "socket error", L4OK: "connection established",
  L4TOUT: "connecting timed out", L4CON: "connection failed", L6OK: "TLS handshake completed",
  L6TOUT: "the TLS handshake timed out", L6RSP: "the TLS handshake failed", L7OK: "the answer was valid",
  L7OKC: "not to be used for new sessions", L7TOUT: "no answer in time", L7RSP: "the answer was invalid",
  L7STS: "unexpected status", PROCERR: "the check's process failed", PROCTOUT: "the check's process timed out",
  PROCOK: "the check's process succeeded", HANA: "too many errors in traffic",
};
const REASON_WORDS = {
  administrator: "by an administrator", configuration: "by the configuration", resolution: "its name does not resolve",
  "eject-outliers": "ejected: more errors than its peers", "weight 0": "its weight is 0", command: "by a command",
};

// Why a server is in its state: words for a person, and the code for a search. Nothing for a server without one.
function reasonOf(row) {
  const reason = row.reason || (health(row.status) === "down" && row.check_status) || "";
  const code = reason.split("/")[0].replace(/^\* /, "");
  const status = code in CHECK_WORDS && reason.includes("/") ? reason.slice(reason.indexOf("/") + 1) : "";
  if (code in CHECK_WORDS) {
    const words = code === "L7STS" && status ? `status ${status}` : CHECK_WORDS[code];
    return { words: plainDetail(row.detail) || words, code: reason };
  }
  if (reason.startsWith("via ")) return { words: `follows ${reason.slice(4)}`, code: "" };
  return { words: row.detail || REASON_WORDS[reason] || reason, code: "" };
}

// The text of a check without the name that the system has for its error.
const plainDetail = (detail) => (detail || "").replace(/^E[A-Z0-9]+ returned by OS \((.*)\)$/, "$1");

function sentence(text) { return text ? text[0].toUpperCase() + text.slice(1) : ""; }

// Seconds since an object is in its state; `null`: unknown.
function secondsSince(row) {
  if (KNOWN(row.since) && store.last) return Math.max(0, store.last - row.since);
  return KNOWN(row.lastchg) ? row.lastchg : null;
}

const sinceText = (row) => { const seconds = secondsSince(row); return KNOWN(seconds) ? format.duration(seconds) : "–"; };

// A bar of the servers by state, and the number of usable ones.
class Share {
  constructor() {
    this.text = h("span", {});
    this.parts = ["usable", "drain", "maint", "down"].map((name) => [name, h("i", { class: name })]);
    this.node = h("span", { class: "share" }, h("span", { class: "share-bar", "aria-hidden": "true" }, ...this.parts.map(([, part]) => part)), this.text);
  }

  show(counts) {
    const level = levelOf(counts);
    attr(this.node, "class", "share " + (level || "none"));
    put(this.text, level ? `${counts.usable}/${counts.total}` : "–");
    attr(this.node, "title", level ? countWords(counts) : "no servers");
    showParts(this.parts, counts);
  }
}

// Sets the widths of the parts of a bar.
function showParts(parts, counts) {
  for (const [name, part] of parts) {
    part.style.flexGrow = counts[name] || 0;
    part.hidden = !counts[name];
  }
}

// The servers that are not usable, in words.
function countWords(counts) {
  const missing = [["down", "down"], ["maint", "in maintenance"], ["drain", "draining"]];
  const words = missing.filter(([name]) => counts[name]).map(([name, text]) => `${counts[name]} ${text}`);
  return words.length ? words.join(", ") : counts.total === 1 ? "the server is usable" : "all usable";
}

// What needs a look: backends without a usable server first, then servers that are missing, then certificates.
function problems() {
  const found = [];
  for (const { row } of store.all("backend")) {
    const counts = serverCounts(row), level = levelOf(counts);
    if (level === "good" || !level) continue;
    const servers = store.servers(row.proxy).filter((one) => !isUsable(one.row));
    if (level === "bad" || !servers.length) {
      found.push({ key: row.proxy, level, href: linkOf(row), name: row.proxy, pill: level === "bad" ? "down" : "going",
        status: `${counts.usable}/${counts.total}`, words: level === "bad" ? "No server is usable" : sentence(countWords(counts)), since: level === "bad" ? sinceText(row) : "" });
    }
    for (const { key, row: server } of servers) {
      const reason = reasonOf(server);
      found.push({ key, level, href: linkOf(server), name: `${server.proxy}/${server.name}`, pill: healthOf(server),
        status: server.status, words: sentence(reason.words), code: reason.code, since: sinceText(server) });
    }
  }
  for (const one of store.certificates || []) {
    const level = certificateLevel(one);
    if (level === "good") continue;
    found.push({ key: "certificate/" + one.name + one.serial, level, href: "#/certificates", name: shortName(one), pill: level === "bad" ? "down" : "going",
      status: daysWords(one), words: `Certificate ${expiryWords(one)}`, since: "" });
  }
  const rank = { bad: 0, warn: 1 };
  return found.sort((a, b) => rank[a.level] - rank[b.level]);
}
