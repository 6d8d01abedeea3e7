// Elements, text and numbers. Must never make markup of text: everything goes through textContent and attributes.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(node.dataset, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

// Encodes the parts of an address within the page.
const link = (...parts) => "#/" + parts.map(encodeURIComponent).join("/");

const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

function put(node, text) {
  text = String(text);
  if (node.textContent !== text) node.textContent = text;
}

function attr(node, name, value) {
  value = String(value);
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

const KNOWN = (value) => typeof value === "number" && Number.isFinite(value);

const format = {
  count(value) {
    if (!KNOWN(value)) return "–";
    const size = Math.abs(value);
    if (size >= 1e9) return (value / 1e9).toFixed(2) + " G";
    if (size >= 1e6) return (value / 1e6).toFixed(2) + " M";
    if (size >= 1e4) return (value / 1e3).toFixed(1) + " k";
    if (size >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
    return value.toFixed(size >= 10 ? 1 : 2);
  },
  whole(value) {
    return KNOWN(value) ? (value >= 1e4 ? format.count(value) : Math.round(value).toLocaleString("en")) : "–";
  },
  bytes(value) {
    if (!KNOWN(value)) return "–";
    const units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let unit = 0;
    while (value >= 1000 && unit < units.length - 1) { value /= 1000; unit += 1; }
    return (unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)) + " " + units[unit];
  },
  rate(value) { return KNOWN(value) ? format.bytes(value) + "/s" : "–"; },
  // A time on an axis.
  mark(value) {
    if (!value) return "0";
    const [size, unit] = value >= 1000 ? [value / 1000, " s"] : [value, " ms"];
    return Number(size.toPrecision(3)) + unit;
  },
  // A number on an axis.
  plain(value) {
    const [size, unit] = value >= 1e6 ? [value / 1e6, " M"] : value >= 1e4 ? [value / 1e3, " k"] : [value, ""];
    return Number(size.toPrecision(3)) + unit;
  },
  // Bytes on an axis.
  size(value) {
    const [size, unit] = value >= 1e9 ? [value / 1e9, " GB"] : value >= 1e6 ? [value / 1e6, " MB"] : value >= 1e3 ? [value / 1e3, " kB"] : [value, " B"];
    return Number(size.toPrecision(3)) + unit;
  },
  time(value) {
    if (!KNOWN(value)) return "–";
    if (value >= 10000) return (value / 1000).toFixed(1) + " s";
    if (value >= 1000) return (value / 1000).toFixed(2) + " s";
    if (value >= 100) return Math.round(value) + " ms";
    if (value >= 10) return value.toFixed(1) + " ms";
    if (value >= 1) return value.toFixed(2) + " ms";
    // An event-loop iteration reads the clock once: what begins and ends in one has no time of its own.
    return value < 0.1 ? "< 0.1 ms" : value.toFixed(2) + " ms";
  },
  percent(value) { return KNOWN(value) ? (value >= 10 || value === 0 ? Math.round(value) : value.toFixed(value >= 0.1 ? 1 : 2)) + " %" : "–"; },
  duration(seconds) {
    if (!KNOWN(seconds)) return "–";
    const days = Math.floor(seconds / 86400), hours = Math.floor(seconds / 3600) % 24;
    const minutes = Math.floor(seconds / 60) % 60;
    if (days) return `${days}d ${hours}h`;
    if (hours) return `${hours}h ${minutes}m`;
    if (minutes) return `${minutes}m ${Math.floor(seconds) % 60}s`;
    return `${Math.floor(seconds)}s`;
  },
  clock(seconds) {
    return new Date(seconds * 1000).toLocaleTimeString("en", { hour12: false });
  },
  day(seconds) {
    return new Date(seconds * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });
  },
  // A point in time: the clock alone if it is today's.
  moment(seconds) {
    if (format.day(seconds) === format.day(Date.now() / 1000)) return format.clock(seconds);
    const date = new Date(seconds * 1000);
    return `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })}, ${date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })}`;
  },
  plural(count, one, several) { return `${format.whole(count)} ${count === 1 ? one : several || one + "s"}`; },
};

const keep = {
  get(name) { try { return localStorage.getItem("weir." + name); } catch (_) { return null; } },
  set(name, value) { try { localStorage.setItem("weir." + name, value); } catch (_) { /* no storage */ } },
};

function toast(text, kind) {
  const node = h("div", { class: "toast " + (kind || "") }, text);
  document.getElementById("toasts").append(node);
  setTimeout(() => node.classList.add("leaving"), 4500);
  setTimeout(() => node.remove(), 5000);
}

// Asks before something is done. Resolves to whether it is to be done.
function ask(title, text, button, kind) {
  const dialog = document.getElementById("ask");
  return new Promise((resolve) => {
    const close = (result) => { dialog.close(); resolve(result); };
    const yes = h("button", { class: "button strong " + (kind || ""), id: "ask-yes", onclick: () => close(true) }, button);
    dialog.replaceChildren(
      h("h2", {}, title), h("p", {}, text),
      h("div", { class: "buttons" }, h("button", { class: "button", onclick: () => close(false) }, "Cancel"), yes));
    dialog.oncancel = () => resolve(false);
    dialog.showModal();
    yes.focus();
  });
}
