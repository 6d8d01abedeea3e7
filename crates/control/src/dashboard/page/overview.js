// The overview: what needs a look, what happened, and how much flows.

const overviewView = {
  title: "Overview",
  async mount(root) {
    Object.assign(this, { root, charts: null, ticks: 0 });
    root.replaceChildren(h("p", { class: "empty" }, "Waiting for the first sample…"));
    await Promise.all(["frontend", "backend"].map((kind) => store.recordSparks(kind)));
    this.update();
  },

  build() {
    const frame = store.frames(null);
    this.tiles = tiles(null, frame);
    this.problems = new Problems();
    this.recent = new Recent(null, 20);
    this.charts = chartsOf(null, frame);
    this.fronts = new Rows(objectColumns("frontend"));
    this.backs = new Rows(objectColumns("backend"));
    this.root.replaceChildren(this.tiles.node,
      h("div", { class: "halves" }, this.problems.node, panel("Latest events", this.recent.node, h("a", { class: "more", href: "#/events" }, "All events"))),
      h("div", { class: "charts-head" }, h("h3", {}, "All traffic"), rangeSwitch()),
      h("div", { class: "charts" }, ...this.charts.map((chart) => chart.node)),
      panel("Frontends", this.fronts.node), panel("Backends", this.backs.node));
  },

  update() {
    if (!store.samples) return;
    if (!this.charts) this.build();
    store.record(null);
    this.tiles.update();
    this.problems.update();
    this.recent.update();
    for (const chart of this.charts) chart.draw();
    this.fronts.show(store.all("frontend"));
    this.backs.show(byUrgency(store.all("backend").filter(hasPart)));
  },
};
