// The frame: which view is shown, the theme, the keyboard.

const VIEWS = { "": overviewView, servers: serversView, topology: topologyView, events: eventsView, log: logView, sessions: sessionsView, tables: tablesView,
  certificates: certificatesView, config: configView, frontend: objectView("frontend"), backend: objectView("backend"), server: objectView("server") };
const TABS = [["", "Overview"], ["servers", "Servers"], ["topology", "Topology"], ["events", "Events"], ["log", "Log"], ["sessions", "Sessions"], ["tables", "Tables"],
  ["certificates", "Certificates"], ["config", "Configuration"]];
const THEMES = ["auto", "light", "dark"];
const main = document.getElementById("main");
let view = null;
let shown = 0;

function theme(name) {
  document.documentElement.dataset.theme = name;
  keep.set("theme", name);
  put(document.getElementById("theme"), { auto: "Auto", light: "Light", dark: "Dark" }[name]);
}

function nextTheme() {
  theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]);
}

function frame() {
  const state = h("span", { id: "state", class: "state" }, h("i", {}), h("span", {}, "connecting"));
  const logo = s("svg", { viewBox: "0 0 32 32", class: "logo", "aria-hidden": "true" },
    s("path", { d: "M2 10c5 0 5-4 10-4s5 4 10 4 4-2 8-3", class: "wave" }), s("path", { d: "M2 18c5 0 5-4 10-4s5 4 10 4 4-2 8-3", class: "wave two" }),
    s("path", { d: "M2 26c5 0 5-4 10-4s5 4 10 4 4-2 8-3", class: "wave three" }));
  document.getElementById("top").replaceChildren(
    h("div", { class: "bar" }, h("a", { class: "brand", href: "#/" }, logo, h("strong", {}, "Weir"), h("span", { id: "node" })), state,
      h("span", { class: "spacer" }), h("span", { id: "level", class: "level" }),
      h("button", { class: "button theme", type: "button", title: "Theme (t)", "aria-label": "Theme", onclick: nextTheme }, h("span", { id: "theme" }, "Auto"))),
    h("nav", { class: "tabs", "aria-label": "Views" }, ...TABS.map(([name, title], at) => h("a", { href: "#/" + name, title: `${title} (${at + 1})`, dataset: { view: name } }, title))));
  theme(THEMES.includes(keep.get("theme")) ? keep.get("theme") : "auto");
}

async function go() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").map(decodeURIComponent);
  const name = VIEWS[parts[0]] ? parts[0] : "";
  if (view && view.unmount) view.unmount();
  view = VIEWS[name];
  const mine = (shown += 1);
  for (const tab of document.querySelectorAll(".tabs a")) {
    const current = tab.dataset.view === name || (["frontend", "backend"].includes(name) && tab.dataset.view === "") || (name === "server" && tab.dataset.view === "servers");
    if (current) tab.setAttribute("aria-current", "page"); else tab.removeAttribute("aria-current");
    if (current) tab.parentNode.scrollLeft = tab.offsetLeft - (tab.parentNode.clientWidth - tab.offsetWidth) / 2;
  }
  const root = h("div", { class: "view", dataset: { view: name } });
  main.replaceChildren(root);
  try { await view.mount(root, parts.slice(1), new URLSearchParams(query || "")); } catch (error) {
    if (mine === shown) root.replaceChildren(h("p", { class: "empty" }, error.message));
  }
  title();
  window.scrollTo(0, 0);
}

// The title of the window has the number of things that need attention.
function title() {
  const count = store.samples ? problems().length : 0;
  const text = `${count ? `(${count}) ` : ""}${view ? view.title : "Dashboard"} – Weir`;
  if (document.title !== text) document.title = text;
}

function state() {
  const node = document.getElementById("state");
  const stopping = store.process.Stopping;
  attr(node, "class", "state " + (!store.live ? "off" : stopping ? "stopping" : "on"));
  put(node.lastChild, !store.live ? "connecting again" : stopping ? "stopping" : `live, up ${format.duration(store.process.Uptime_sec)}`);
}

let drawing = false;
store.watchers.add((what) => {
  state();
  if (drawing || document.hidden) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    title();
    if (view && (what !== "log" || view === logView)) view.update(what);
  });
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || document.querySelector("dialog[open]")) return;
  const tab = TABS[Number(event.key) - 1];
  if (tab) location.hash = "#/" + tab[0];
  else if (event.key === "t") nextTheme();
  else if (event.key === "/") { const field = document.querySelector(".filter"); if (field) { event.preventDefault(); field.focus(); } }
});

addEventListener("hashchange", go);
addEventListener("resize", () => { if (view) view.update(); });
addEventListener("visibilitychange", () => { if (!document.hidden && view) view.update(); });

(async () => {
  frame();
  try {
    store.overview = await fetchJson("overview");
    put(document.getElementById("node"), store.overview.process.node || "");
    put(document.getElementById("level"), store.admin ? "admin" : "read only");
  } catch (error) { toast(error.message, "bad"); }
  const span = Number(keep.get("span"));
  if (SPANS.some(([seconds]) => seconds === span)) store.span = span;
  await store.open();
  go();
})();
