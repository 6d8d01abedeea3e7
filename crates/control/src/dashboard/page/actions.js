// Changes of servers. Must never change one without a question.

async function order(backend, server, form, words) {
  const title = `${words} ${backend}/${server}?`;
  const text = {
    drain: "The server gets no new requests, except of clients that are bound to it. Those under way go on.",
    maint: "The server gets no new requests at all, and its checks are paused. Requests under way go on.",
    ready: "The server gets requests again as soon as its checks allow it.",
  }[form.state] || "Requests are spread by the new weight at once.";
  if (!(await ask(title, text, words, form.state))) return;
  try {
    const row = await change(backend, server, form);
    toast(`${backend}/${server} is ${row.status} with weight ${row.uweight}`, "good");
    const known = store.get("server", backend, server);
    if (known) for (const name of ["status", "weight", "state", "reason", "detail", "since"]) if (name in row) known.row[name] = row[name];
    store.notify("sample");
  } catch (error) {
    toast(`${backend}/${server}: ${error.message}`, "bad");
  }
}

const ACTIONS = [["ready", "Ready", "Ready"], ["drain", "Drain", "Drain"], ["maint", "Maintenance", "Maintenance"]];

// The state that a server is in cannot be asked for once more.
function stateNow(row) {
  return row.status.startsWith("DRAIN") ? "drain" : row.status.startsWith("MAINT") ? "maint" : "ready";
}

// Buttons for the page of a server.
function actions(row) {
  if (!store.admin) return null;
  const act = ([state, words, title]) => h("button", { class: "button", dataset: { action: state }, type: "button", onclick: () => order(row.proxy, row.name, { state }, words) }, title);
  return h("span", { class: "actions" }, ...ACTIONS.map(act),
    h("button", { class: "button", type: "button", dataset: { action: "weight" }, onclick: () => askWeight(row) }, "Weight…"));
}

function markActions(node, row) {
  for (const button of node.querySelectorAll("[data-action]")) button.disabled = button.dataset.action === stateNow(row);
}

// A button that opens the menu of a server in a list.
function menuButton(row) {
  const title = `Change ${row.proxy}/${row.name}`;
  const button = h("button", { class: "menu-button", type: "button", "aria-haspopup": "menu", "aria-expanded": "false", "aria-label": title, title, onclick: () => openMenu(button, row) },
    s("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, ...[3, 8, 13].map((x) => s("circle", { cx: x, cy: 8, r: 1.4 }))));
  return button;
}

function openMenu(button, row) {
  const menu = document.getElementById("menu");
  const known = store.get("server", row.proxy, row.name) || { row };
  const pick = (run) => () => { menu.hidePopover(); run(); };
  const item = (name, title, run, disabled) => h("button", { type: "button", role: "menuitem", tabindex: -1, dataset: { action: name }, disabled, onclick: pick(run) }, title);
  menu.replaceChildren(
    ...ACTIONS.map(([state, words, title]) => item(state, title, () => order(row.proxy, row.name, { state }, words), stateNow(known.row) === state)),
    item("weight", "Weight…", () => askWeight(known.row)));
  menu.onkeydown = (event) => {
    const items = [...menu.querySelectorAll("button:not(:disabled)")], at = items.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    items[(next + items.length) % items.length].focus();
  };
  menu.ontoggle = (event) => {
    attr(button, "aria-expanded", event.newState === "open");
    if (event.newState === "closed" && menu.contains(document.activeElement)) button.focus();
  };
  menu.showPopover();
  const box = button.getBoundingClientRect(), size = menu.getBoundingClientRect();
  menu.style.left = Math.max(8, Math.min(box.right - size.width, innerWidth - size.width - 8)) + "px";
  menu.style.top = (box.bottom + 4 + size.height > innerHeight ? box.top - size.height - 4 : box.bottom + 4) + "px";
  const first = menu.querySelector("button:not(:disabled)");
  if (first) first.focus();
}

function askWeight(row) {
  const dialog = document.getElementById("ask");
  const field = h("input", { type: "text", inputmode: "numeric", value: row.weight, id: "ask-weight", "aria-label": "Weight from 0 to 256, or percents" });
  const close = () => dialog.close();
  const send = async (event) => {
    event.preventDefault();
    close();
    try {
      const answer = await change(row.proxy, row.name, { weight: field.value });
      toast(`${row.proxy}/${row.name} has weight ${answer.uweight}`, "good");
    } catch (error) { toast(`${row.proxy}/${row.name}: ${error.message}`, "bad"); }
  };
  dialog.replaceChildren(h("form", { onsubmit: send }, h("h2", {}, `Weight of ${row.proxy}/${row.name}`),
    h("p", {}, "A number from 0 to 256, or percents of the configured weight, such as 50%."), field,
    h("div", { class: "buttons" }, h("button", { class: "button", type: "button", onclick: close }, "Cancel"), h("button", { class: "button strong", type: "submit" }, "Set weight"))));
  dialog.oncancel = null;
  dialog.showModal();
  field.select();
}
