"use strict";
// Draws the page's charts out of the JSON in #data. Formats and colours are shared with timeline.js as `report`.
const report = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue("--" + name).trim();
  const font = getComputedStyle(document.body).fontFamily;

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
    axisLabel: {color: colour("muted"), hideOverlap: true, formatter: (x) => digits(x) + " " + unit.name}, ...extra,
  });
  // A dashed line at `at` on the value axis `key` that says what a chip has.
  const capacityLine = (key, at, unit) => ({
    silent: true, symbol: "none", animation: false,
    lineStyle: {color: colour("bad"), type: "dashed", width: 1.5},
    label: {
      formatter: "capacity " + bytes(at), color: colour("bad"), fontSize: 12,
      position: key === "xAxis" ? "end" : "insideEndTop",
    },
    data: [{[key]: at / unit.size}],
  });

  // One horizontal bar, stacked from `parts` [{key, name, value, share}].
  const stacked = (parts, unit, show, max, top, last) => ({
    ...base(),
    grid: {left: 2, right: 26, top, bottom: 26},
    xAxis: axis(unit, {min: 0, max, splitNumber: innerWidth < 600 ? 3 : 8}),
    yAxis: {type: "category", data: [""], axisLine: {show: false}, axisTick: {show: false}},
    series: parts.filter((part) => part.value > 0).map((part, i) => ({
      name: part.name, type: "bar", stack: "all", barWidth: "100%",
      itemStyle: {color: colour(part.key), borderColor: colour("panel"), borderWidth: 1},
      label: {
        show: part.value / unit.size / max >= (innerWidth < 600 ? 0.17 : 0.09), color: colour("on-bar"), fontSize: 12.5,
        formatter: percent(part.share), overflow: "truncate",
      },
      tooltip: {formatter: () => tip(part.name, [show(part.value) + ", " + percent(part.share)])},
      data: [part.value / unit.size],
      ...(i === 0 && last ? {markLine: last} : {}),
    })),
  });

  const options = {
    "chart-step": () => {
      const unit = unitOf(timeUnits, data.step.time);
      return stacked(data.step.parts, unit, seconds, data.step.time / unit.size, 4, null);
    },
    "chart-memory": () => {
      const {capacity, peak, parts} = data.memory;
      const unit = unitOf(byteUnits, Math.max(capacity, peak));
      return stacked(parts, unit, bytes, 1.04 * Math.max(capacity, peak) / unit.size, 24,
                     capacity > 0 ? capacityLine("xAxis", capacity, unit) : null);
    },
    "chart-memory-time": () => {
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
        grid: {left: 62, right: 24, top: 14, bottom: 28},
        xAxis: axis(clock, {min: 0, max: window * quantum / clock.size, splitLine: {show: false}, splitNumber: innerWidth < 600 ? 3 : 5}),
        yAxis: axis(unit, {min: 0, max: 1.08 * Math.max(capacity, ...held) / unit.size, splitNumber: 4,
          axisLabel: {color: colour("muted"), showMaxLabel: false, formatter: (x) => digits(x) + " " + unit.name}}),
        series: [{
          type: "line", step: "end", symbol: "none", data: points, sampling: "max",
          lineStyle: {color: colour("compute"), width: 1.5}, areaStyle: {color: colour("compute"), opacity: 0.18},
          markLine: capacity > 0 ? capacityLine("yAxis", capacity, unit) : undefined,
        }],
      };
    },
    "chart-communication": () => {
      const rows = [...data.communication].sort((a, b) => b.busy - a.busy).slice(0, 16);
      const unit = unitOf(timeUnits, Math.max(...rows.map((row) => row.busy)));
      const narrow = innerWidth < 600;
      const option = base();
      option.tooltip = {...option.tooltip, trigger: "axis", axisPointer: {type: "shadow"}, formatter: (items) => {
        const row = rows[items[0].dataIndex];
        return tip(row.name, ["busy " + seconds(row.busy), "exposed " + seconds(row.exposed), "hidden " + seconds(row.busy - row.exposed)]);
      }};
      const series = (name, key, value) => ({
        name, type: "bar", stack: "all", barMaxWidth: 18, itemStyle: {color: colour(key)}, data: rows.map((row) => value(row) / unit.size),
      });
      return {
        ...option,
        grid: {left: narrow ? 118 : 230, right: 26, top: 4, bottom: 28},
        xAxis: axis(unit, {min: 0, splitNumber: narrow ? 2 : 6}),
        yAxis: {
          type: "category", inverse: true, data: rows.map((row) => row.name), axisLine: {show: false}, axisTick: {show: false},
          axisLabel: {color: colour("text"), width: narrow ? 108 : 220, overflow: "truncate", interval: 0},
        },
        series: [series("exposed", "communication", (row) => row.exposed), series("hidden", "hidden", (row) => row.busy - row.exposed)],
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
  const draw = () => charts.forEach(({chart, option}) => chart.setOption(option(), true));
  draw();
  const listeners = [draw];
  new ResizeObserver(() => requestAnimationFrame(() => charts.forEach(({chart, option}) => {
    chart.resize();
    chart.setOption(option(), true);
  }))).observe(document.querySelector("main"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => listeners.forEach((listener) => listener()));
  return {data, colour, font, seconds, digits, timeUnits, unitOf, onTheme: (listener) => listeners.push(listener)};
})();
