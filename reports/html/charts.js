"use strict";
// Draws the page's charts out of the JSON in #data. Formats and colours are shared with timeline.js as `report`.
const report = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue("--" + name).trim();
  const font = getComputedStyle(document.body).fontFamily;
  // White on a bar of this colour (#rrggbb) where it can be read, else near black. Contrast as in WCAG 2.2.
  const ink = (hex) => {
    const [r, g, b] = [1, 3, 5].map((at) => {
      const c = parseInt(hex.slice(at, at + 2), 16) / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 1.05 / (0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05) >= 3.2 ? "#ffffff" : "#10161c";
  };

  const digits = (x) => String(Number(x.toPrecision(3)));
  // The largest unit that leaves at least one: {size, name}.
  const unitOf = (units, x) => units.find((unit) => Math.abs(x) >= unit.size * 0.9995) || units[units.length - 1];
  const timeUnits = [["s", 1], ["ms", 1e-3], ["us", 1e-6], ["ns", 1e-9], ["ps", 1e-12]].map(([name, size]) => ({name, size}));
  const byteUnits = ["TiB", "GiB", "MiB", "KiB", "B"].map((name, i) => ({name, size: 1024 ** (4 - i)}));
  const quantity = (units) => (x) => {
    if (!x) return "0 " + units[Math.min(1, units.length - 1)].name;
    const unit = unitOf(units, x);
    return digits(x / unit.size) + " " + unit.name;
  };
  const seconds = quantity(timeUnits);
  const bytes = quantity(byteUnits);
  const percent = (x) => (100 * x).toFixed(1) + " %";

  const entities = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"};
  const escape = (text) => String(text).replace(/[&<>"']/g, (c) => entities[c]);
  const tip = (title, rows) => "<b>" + escape(title) + "</b>" + rows.map((row) => "<br>" + escape(row)).join("");

  const base = () => ({
    animation: false,
    textStyle: {fontFamily: font, color: colour("text")},
    tooltip: {
      confine: true, backgroundColor: colour("panel"), borderColor: colour("line"), padding: [7, 11],
      textStyle: {color: colour("text"), fontSize: 13, fontFamily: font},
    },
  });
  const axis = (unit, extra) => ({
    type: "value", splitLine: {lineStyle: {color: colour("line")}}, axisLine: {show: false}, axisTick: {show: false},
    axisLabel: {
      color: colour("muted"), hideOverlap: true, alignMinLabel: "left", alignMaxLabel: "right",
      formatter: (x) => digits(x) + " " + unit.name,
    },
    ...extra,
  });
  // A dashed line at `at` on the value axis `key` that says what a chip has.
  const capacityLine = (key, at, unit) => ({
    silent: true, symbol: "none", animation: false,
    lineStyle: {color: colour("bad"), type: "dashed", width: 1.5},
    label: {
      formatter: "capacity " + bytes(at), color: colour("bad"), fontSize: 12,
      ...(key === "xAxis" ? {position: "end", align: "right"} : {position: "insideEndTop"}),
    },
    data: [{[key]: at / unit.size}],
  });

  // One horizontal bar, stacked from `parts` [{key, name, value, share}].
  const stacked = (wide, parts, unit, show, max, top, last) => ({
    ...base(),
    grid: {left: 0, right: 1, top, bottom: 26, outerBoundsMode: "none"},
    xAxis: axis(unit, {min: 0, max, splitNumber: Math.max(2, Math.min(8, Math.floor(wide / 90)))}),
    yAxis: {type: "category", data: [""], axisLine: {show: false}, axisTick: {show: false}},
    series: parts.filter((part) => part.value > 0).map((part, i) => ({
      name: part.name, type: "bar", stack: "all", barWidth: "100%",
      itemStyle: {color: colour(part.key), borderColor: colour("panel"), borderWidth: 1},
      label: {
        show: part.value / unit.size / max * wide >= 52, color: ink(colour(part.key)), fontSize: 12.5,
        formatter: (part.value / unit.size / max * wide >= 70 + 7 * part.name.length ? part.name + "  " : "") + percent(part.share),
      },
      tooltip: {formatter: () => tip(part.name, [show(part.value) + ", " + percent(part.share)])},
      data: [part.value / unit.size],
      ...(i === 0 && last ? {markLine: last} : {}),
    })),
  });

  const options = {
    "chart-step": (wide) => {
      const unit = unitOf(timeUnits, data.step.time);
      return stacked(wide, data.step.parts, unit, seconds, data.step.time / unit.size, 4, null);
    },
    "chart-memory": (wide) => {
      const {capacity, peak, parts} = data.memory;
      const unit = unitOf(byteUnits, Math.max(capacity, peak));
      const option = stacked(wide, parts, unit, bytes, 1.04 * Math.max(capacity, peak) / unit.size, 24,
                     capacity > 0 ? capacityLine("xAxis", capacity, unit) : null);
      option.xAxis.axisLabel.showMaxLabel = false;  // the axis ends a little beyond, at no round number
      return option;
    },
    "chart-memory-time": (wide) => {
      const {time, bytes: held} = data.timeline.memory;
      const {quantum_s: quantum, window} = data.timeline;
      const {capacity, peak} = data.memory;
      const unit = unitOf(byteUnits, Math.max(capacity, peak));
      const clock = unitOf(timeUnits, window * quantum);
      const points = time.map((t, i) => [t * quantum / clock.size, held[i] / unit.size]);
      if (points.length) points.push([window * quantum / clock.size, points[points.length - 1][1]]);
      const option = base();
      option.tooltip = {...option.tooltip, trigger: "axis", formatter: (items) =>
        tip(bytes(items[0].value[1] * unit.size), ["at " + seconds(items[0].value[0] * clock.size)])};
      return {
        ...option,
        grid: {left: 58, right: 8, top: 14, bottom: 28, outerBoundsMode: "none"},
        xAxis: axis(clock, {min: 0, max: window * quantum / clock.size, splitLine: {show: false}, splitNumber: wide < 400 ? 3 : 5}),
        yAxis: axis(unit, {min: 0, max: 1.08 * Math.max(capacity, ...held) / unit.size, splitNumber: 4,
          axisLabel: {color: colour("muted"), showMaxLabel: false, formatter: (x) => digits(x) + " " + unit.name}}),
        series: [{
          type: "line", step: "end", symbol: "none", data: points, sampling: "max",
          lineStyle: {color: colour("compute"), width: 1.5}, areaStyle: {color: colour("compute"), opacity: 0.18},
          markLine: capacity > 0 ? capacityLine("yAxis", capacity, unit) : undefined,
        }],
      };
    },
    "chart-communication": (wide) => {
      const rows = [...data.communication].sort((a, b) => b.busy - a.busy).slice(0, 16);
      const unit = unitOf(timeUnits, Math.max(...rows.map((row) => row.busy)));
      const narrow = wide < 560;
      const option = base();
      option.tooltip = {...option.tooltip, trigger: "axis", axisPointer: {type: "shadow"}, formatter: (items) => {
        const row = rows[items[0].dataIndex];
        return tip(row.name, ["busy " + seconds(row.busy), "exposed " + seconds(row.exposed), "hidden " + seconds(Math.max(row.busy - row.exposed, 0))]);
      }};
      const series = (name, key, value) => ({
        name, type: "bar", stack: "all", barMaxWidth: 18, itemStyle: {color: colour(key)}, data: rows.map((row) => value(row) / unit.size),
      });
      return {
        ...option,
        grid: {left: narrow ? 118 : 230, right: 8, top: 4, bottom: 28, outerBoundsMode: "none"},
        xAxis: axis(unit, {min: 0, splitNumber: narrow ? 2 : 6}),
        yAxis: {
          type: "category", inverse: true, data: rows.map((row) => row.name), axisLine: {show: false}, axisTick: {show: false},
          axisLabel: {color: colour("text"), width: narrow ? 108 : 220, overflow: "truncate", interval: 0},
        },
        series: [series("exposed", "communication", (row) => row.exposed), series("hidden", "hidden", (row) => Math.max(row.busy - row.exposed, 0))],
      };
    },
  };

  const box = document.getElementById("chart-communication");
  if (box) box.style.height = 36 + 30 * Math.min(16, data.communication.length) + "px";

  const charts = [];
  for (const id of Object.keys(options)) {
    const element = document.getElementById(id);
    if (element) charts.push({chart: echarts.init(element, null, {renderer: "canvas"}), option: options[id]});
  }
  const draw = () => charts.forEach(({chart, option}) => chart.setOption(option(chart.getWidth()), true));
  draw();
  const listeners = [draw];
  new ResizeObserver(() => requestAnimationFrame(() => charts.forEach(({chart, option}) => {
    chart.resize();
    chart.setOption(option(chart.getWidth()), true);
  }))).observe(document.querySelector("main"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => listeners.forEach((listener) => listener()));
  return {data, colour, ink, font, seconds, digits, timeUnits, unitOf, onTheme: (listener) => listeners.push(listener)};
})();
