// Certificates and the days that they are valid. Must never show a key.

// The level of a certificate: less than 30 days left need a look, less than 7 are urgent.
function certificateLevel(one) {
  if (one.status === "expired" || one.days_left < 7) return "bad";
  return one.days_left < 30 || one.status === "early" ? "warn" : "good";
}

const shortName = (one) => (one.names && one.names.length && !one.authority ? one.names[0] : one.name.split("/").pop());

function expiryWords(one) {
  const days = Math.floor(Math.abs(one.days_left));
  if (one.status === "expired" || one.days_left < 0) return `expired ${days ? format.plural(days, "day") + " ago" : "today"}`;
  if (one.status === "early") return "is not valid yet";
  return days ? `expires in ${format.plural(days, "day")}` : "expires today";
}

// The text of a certificate's pill.
function daysWords(one) {
  if (one.status === "expired" || one.days_left < 0) return "expired";
  return one.status === "early" ? "not yet" : format.plural(Math.floor(one.days_left), "day");
}

const USED = { bind: "frontend", server: "server", ca: "trust", crt_list: "list" };

function usedBy(one) {
  return (one.used || []).map((use) => (use.kind === "server" ? `${use.proxy}/${use.name}` : use.kind === "bind" ? `${use.proxy} ${use.name || ""}`.trim() : `${USED[use.kind] || use.kind} of ${use.proxy || use.name || "global"}`));
}

const certificatesView = {
  title: "Certificates",
  async mount(root) {
    this.filter = "";
    const note = h("span", { class: "note" });
    const text = (get) => ({ sort: get, text: get });
    this.rows = new Rows([
      { title: "Name", class: "name", sort: shortName, make: (cell, one) => cell.append(h("strong", {}, shortName(one)), one.authority ? h("span", { class: "tag" }, "CA") : ""), update: (cell, one) => attr(cell, "title", one.name) },
      { title: "Left", class: "status", sort: (one) => one.days_left, make: (cell, one, state) => { state.pill = h("span", { class: "pill" }); cell.append(state.pill); },
        update: (_, one, state) => {
          const level = certificateLevel(one);
          attr(state.pill, "class", "pill " + { good: "up", warn: "going", bad: "down" }[level]);
          put(state.pill, daysWords(one));
        } },
      { title: "Valid until", number: true, sort: (one) => one.not_after, text: (one) => format.day(one.not_after) },
      { title: "Valid from", number: true, sort: (one) => one.not_before, text: (one) => format.day(one.not_before) },
      { title: "Names", class: "wide", ...text((one) => (one.names || []).join(", ") || one.subject || "–") },
      { title: "Issuer", class: "wide", ...text((one) => (one.issuer || "–").replace(/^.*\/CN=/, "")) },
      { title: "Used by", class: "wide", ...text((one) => usedBy(one).join(", ") || "–") },
      { title: "File", class: "wide", ...text((one) => one.name) },
    ], "No certificate is loaded.");
    root.replaceChildren(h("div", { class: "head" }, h("h2", {}, "Certificates"), note, filterField("Filter by name", (value) => { this.filter = value.toLowerCase(); this.show(); })),
      h("section", { class: "panel" }, this.rows.node));
    this.show = () => {
      const all = (this.found || []).map((one, at) => ({ ...one, key: `${one.name}/${one.serial}/${at}` }));
      put(note, format.plural(all.length, "certificate"));
      this.rows.show(all.filter((one) => `${one.name} ${(one.names || []).join(" ")} ${one.subject} ${one.issuer}`.toLowerCase().includes(this.filter)));
    };
    const answer = await fetchJson("certificates");
    this.found = store.certificates = answer.certificates;
    this.show();
  },
  update() {},
};
