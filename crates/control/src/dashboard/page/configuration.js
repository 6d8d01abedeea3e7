// The text of the configuration.

const configView = {
  title: "Configuration",
  async mount(root) {
    this.filter = "";
    this.body = h("div", {});
    root.replaceChildren(h("div", { class: "head" }, h("h2", {}, "Configuration"), filterField("Find in the configuration", (text) => { this.filter = text.toLowerCase(); this.show(); })), this.body);
    try { this.found = await fetchJson("config"); } catch (error) {
      this.body.replaceChildren(h("p", { class: "empty" }, error.message));
      return;
    }
    this.show();
  },
  show() {
    const { files, diagnostics } = this.found;
    const section = /^\s*(global|defaults|frontend|backend|listen|peers|resolvers|userlist|mailers|cache|program|http-errors|ring|log-forward|fcgi-app|crt-store|acme|bgp|traces|log-profile)\b/;
    const line = (text, at) => {
      const found = this.filter && text.toLowerCase().includes(this.filter);
      const hash = text.indexOf("#"), code = hash >= 0 ? text.slice(0, hash) : text;
      const word = /^(\s*)(\S+)(.*)$/.exec(code);
      const parts = word ? [word[1], h("b", { class: section.test(code) ? "section" : "" }, word[2]), word[3]] : [code];
      return h("li", { class: found ? "found" : "", value: at + 1 }, ...parts, hash >= 0 ? h("i", {}, text.slice(hash)) : "");
    };
    this.body.replaceChildren(
      ...(diagnostics.length ? [h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h3", {}, "Said at the start")), h("pre", { class: "diagnostics" }, diagnostics.join("\n")))] : []),
      ...files.map((file) => h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h3", {}, file.name)), h("ol", { class: "code" }, ...file.lines.map(line)))));
    const first = this.filter && this.body.querySelector(".found");
    if (first) first.scrollIntoView({ block: "center" });
  },
  update() {},
};
