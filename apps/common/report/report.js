// Draws the charts of a report from the JSON beside each, and sorts tables. No network, no storage.
(() => {
  "use strict";

  // ---- numbers as text, the same as the C++ side writes them ----

  const trim = (v, digits) => String(+v.toPrecision(digits));
  const scaled = (v, base, names, limit) => {
    let i = 0, size = Math.abs(v);
    for (; size >= limit && i + 1 < names.length; i++) size /= base;
    return (v < 0 ? "-" : "") + trim(size, 3) + names[i];
  };
  const number = v => {
    const size = Math.abs(v);
    return size !== 0 && (size < 1e-3 || size >= 1e7) ? v.toExponential().replace(/(\.\d{3})\d+/, "$1") : trim(v, 5);
  };
  const duration = v => {
    if (v < 1) return v === 0 ? "0 s" : v < 1e-3 ? trim(v * 1e6, 3) + " us" : trim(v * 1e3, 3) + " ms";
    if (v < 60) return trim(v, 3) + " s";
    const minutes = Math.floor(v / 60);
    return minutes < 60 ? minutes + " min " + Math.round(v % 60) + " s"
                        : Math.floor(minutes / 60) + " h " + (minutes % 60) + " min";
  };
  const units = {
    number, seconds: duration,
    count: v => scaled(v, 1000, ["", " k", " M", " G", " T"], 1000),
    bytes: v => scaled(v, 1024, [" B", " KiB", " MiB", " GiB", " TiB"], 1024),
    percent: v => trim(100 * v, 4) + " %",
  };

  // ---- data ----

  // Moving average that weights the last points: as if `weight` of each value came from the average before.
  const smoothed = (values, weight) => {
    let sum = 0, norm = 0;
    return values.map(v => {
      if (v == null) return v;
      sum = sum * weight + v * (1 - weight);
      norm = norm * weight + (1 - weight);
      return sum / norm;
    });
  };
  // About a fiftieth of the points, at most 200.
  const smoothing = points => 1 - 1 / Math.min(Math.max(points / 50, 2), 200);

  // Running totals from the first series up; `hidden(i)` series count nothing.
  const stack = (data, hidden) => {
    const total = data[0].map(() => 0), out = [data[0]], bands = [];
    for (let i = 1; i < data.length; i++)
      out.push(hidden(i) ? data[i] : data[i].map((v, k) => (total[k] += v ?? 0)));
    for (let i = 1; i < data.length; i++) {
      const above = data.findIndex((_, k) => k > i && !hidden(k));
      if (!hidden(i) && above > 0) bands.push({series: [above, i]});
    }
    return {data: out, bands};
  };

  // ---- one chart ----

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const withAlpha = (hex, alpha) => hex + Math.round(alpha * 255).toString(16).padStart(2, "0");

  class Chart {
    constructor(element, spec) {
      this.element = element;
      this.spec = spec;
      this.log = spec.log;
      this.smooth = spec.smooth;
      this.width = 0;
      const values = spec.series.flatMap(s => s.y).filter(v => v != null);
      const positive = values.length > 0 && values.every(v => v > 0);
      this.log = this.log && positive;
      const tools = element.closest("figure").querySelector(".tools");
      if (positive && !spec.stacked) this.addButton(tools, "log", "logarithmic axis");
      if (spec.smooth) this.addButton(tools, "smooth", "moving average over the faint original");
      new ResizeObserver(() => this.fit()).observe(element);
      dark.addEventListener("change", () => this.draw());
      // Browsers may throttle observers in a background tab; draw at once.
      this.fit();
    }

    addButton(tools, name, title) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.title = title;
      button.setAttribute("aria-pressed", this[name]);
      button.addEventListener("click", () => {
        this[name] = !this[name];
        button.setAttribute("aria-pressed", this[name]);
        this.draw();
      });
      tools.append(button);
    }

    fit() {
      const width = Math.floor(this.element.clientWidth);
      if (width === 0 || width === this.width) return;
      this.width = width;
      if (this.plot) this.plot.setSize({width, height: this.height()});
      else this.draw();
    }
    height() { return Math.round(Math.min(Math.max(this.width * 0.48, 200), 320)); }

    // [x, y...] on one x axis, and what each y shows.
    prepare() {
      const series = [];
      for (const [i, s] of this.spec.series.entries()) {
        const stroke = colour("--series-" + (i % 8 + 1));
        const many = s.x.length > 20;
        const faint = this.smooth && many && !this.spec.stacked;
        series.push({name: s.name, x: s.x, y: s.y, stroke: faint ? withAlpha(stroke, 0.28) : stroke, faint});
        if (faint)
          series.push({name: s.name, x: s.x, y: smoothed(s.y, smoothing(s.x.length)), stroke, average: true});
      }
      return {series, data: uPlot.join(series.map(s => [s.x, s.y]))};
    }

    draw() {
      if (this.width === 0) return;
      const {series, data} = this.prepare();
      const value = units[this.spec.unit];
      let shown = {data, bands: []};
      if (this.spec.stacked) shown = stack(data, () => false);
      const options = {
        width: this.width, height: this.height(),
        cursor: {sync: {key: this.spec.x}, drag: {x: true, y: false}, focus: {prox: 24}},
        focus: {alpha: 1},
        scales: {x: {time: false}, y: this.yScale()},
        axes: this.axes(value),
        bands: shown.bands,
        series: [{label: this.spec.x, value: (u, v) => v == null ? "" : number(v)}].concat(
          series.map((s, i) => this.line(s, i, data, value))),
        hooks: this.spec.stacked ? {setSeries: [u => this.restack(u, data)]} : {},
        legend: {markers: {width: 0, fill: (u, i) => series[i - 1]?.stroke}},
      };
      this.plot?.destroy();
      this.plot = new uPlot(options, shown.data, this.element);
      // The faint originals need no legend entry of their own: the average has one.
      const rows = this.element.querySelectorAll(".u-series");
      series.forEach((s, i) => { if (s.faint) rows[i + 1].style.display = "none"; });
    }

    yScale() {
      if (this.log) return {distr: 3};
      if (this.spec.stacked || this.spec.unit === "bytes")
        return {range: (u, low, high) => [0, high > 0 ? high * 1.06 : 1]};
      return {};
    }

    line(s, i, data, value) {
      const stacked = this.spec.stacked;
      return {
        label: s.name, stroke: s.stroke, width: s.faint ? 1 : stacked ? 1 : 1.75,
        fill: stacked ? withAlpha(s.stroke, 0.55) : undefined,
        points: {show: s.x.length < 30 && !stacked, size: 5, fill: s.stroke},
        value: (u, v, index, at) => {
          const own = at == null ? null : data[i + 1][at];
          return own == null ? "" : value(own);
        },
      };
    }

    restack(u, data) {
      const next = stack(data, i => !u.series[i].show);
      u.delBand(null);
      next.bands.forEach(b => u.addBand(b));
      u.setData(next.data);
    }

    axes(value) {
      const font = "12px " + getComputedStyle(document.body).fontFamily;
      const common = {stroke: colour("--muted"), font, grid: {stroke: colour("--grid"), width: 1},
                      ticks: {stroke: colour("--line"), width: 1, size: 4}};
      return [
        {...common, label: this.spec.x, labelFont: font, labelSize: 18, labelGap: 0, size: 28, space: 70,
         incrs: this.wholeSteps(), values: (u, ticks) => ticks.map(v => v == null ? "" : number(v))},
        {...common, incrs: this.spec.unit === "bytes" ? Array.from({length: 50}, (_, i) => 2 ** i) : undefined,
         values: (u, ticks) => ticks.map(v => v == null ? "" : value(v)),
         size: (u, texts) => 14 + Math.ceil(Math.max(24, ...(texts ?? []).map(t => this.textWidth(t ?? "", font))))},
      ];
    }

    // Steps have no fractions; neither do their ticks.
    wholeSteps() {
      if (!this.spec.series.every(s => s.x.every(Number.isInteger))) return undefined;
      return [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7];
    }

    textWidth(text, font) {
      Chart.canvas ??= document.createElement("canvas").getContext("2d");
      Chart.canvas.font = font;
      return Chart.canvas.measureText(text).width;
    }
  }

  for (const element of document.querySelectorAll(".plot")) {
    const spec = JSON.parse(document.getElementById(element.dataset.chart).textContent);
    if (spec.series.some(s => s.y.some(v => v != null))) new Chart(element, spec);
  }

  // ---- tables: a click on a heading sorts ----

  const prefixes = {k: 1e3, M: 1e6, G: 1e9, T: 1e12, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40,
                    us: 1e-6, ms: 1e-3, min: 60, h: 3600};
  const sortKey = text => {
    const match = text.match(/^([-+]?[\d.]+(?:e[-+]?\d+)?)\s*([A-Za-z]*)/);
    return match ? parseFloat(match[1]) * (prefixes[match[2]] ?? 1) : -Infinity;
  };
  for (const heading of document.querySelectorAll(".sortable th")) {
    heading.addEventListener("click", () => {
      const column = heading.cellIndex, table = heading.closest("table"), body = table.tBodies[0];
      const descending = heading.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("th").forEach(th => th.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const text = row => row.cells[column].textContent;
      const order = heading.classList.contains("n") ? (a, b) => sortKey(text(a)) - sortKey(text(b))
                                                    : (a, b) => text(a).localeCompare(text(b));
      const rows = [...body.rows].sort(order);
      body.append(...(descending ? rows.reverse() : rows));
    });
  }
})();
