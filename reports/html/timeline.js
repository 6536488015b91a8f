"use strict";
// The timeline: lanes of spans on one canvas, drawn only where they are visible, so that twenty thousand spans pan and
// zoom without delay. Times are in the data's quanta.
(() => {
  const host = document.getElementById("timeline-view");
  const data = report.data.timeline;
  if (!host || !data) return;
  const {colour, seconds} = report;
  const kinds = ["compute", "communication", "wait", "input", "other"];
  const phases = ["", "forward", "backward", "update"];
  const AXIS = 26, HEAD = 24, LANE = 20, PAD = 8;

  // Rows from top to bottom: a heading for each class, then a lane for each of its streams.
  const rows = [];
  let height = 0;
  data.classes.forEach((group, index) => {
    const chips = group.devices === 1 ? "1 chip" : group.devices.toLocaleString("en-US") + " chips";
    rows.push({y: height, h: HEAD, title: group.name + " · " + chips});
    height += HEAD;
    for (const stream of group.streams) {
      const n = stream.gap.length;
      const start = new Float64Array(n), end = new Float64Array(n);
      for (let i = 0, t = 0; i < n; i++) {
        start[i] = t + stream.gap[i];
        t = end[i] = start[i] + stream.length[i];
      }
      rows.push({y: height, h: LANE, stream, start, end, group, index});
      height += LANE;
    }
    height += PAD;
  });

  const element = (tag, name, parent) => {
    const node = document.createElement(tag);
    if (name) node.className = name;
    parent.appendChild(node);
    return node;
  };
  const axisCanvas = element("canvas", "", host);
  const lanes = element("div", "lanes", host);
  const canvas = element("canvas", "", lanes);
  const spacer = element("div", "", lanes);
  const overview = element("canvas", "overview", host);
  const tip = element("div", "tip", host);
  tip.hidden = true;

  const visible = Math.min(height, Math.max(320, Math.min(760, Math.round(0.75 * innerHeight))));
  const overviewHeight = 40;
  lanes.style.height = visible + "px";
  spacer.style.height = Math.max(0, height - visible) + "px";
  let width = 0, gutter = 0, from = 0, to = data.window;

  const toX = (t) => gutter + (t - from) / (to - from) * (width - gutter);
  const toTime = (x) => from + (x - gutter) / (width - gutter) * (to - from);
  const size = (c, h) => {
    const scale = devicePixelRatio || 1;
    c.width = Math.round(width * scale);
    c.height = Math.round(h * scale);
    c.style.width = width + "px";
    c.style.height = h + "px";
    const g = c.getContext("2d");
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.textBaseline = "middle";
    g.clearRect(0, 0, width, h);
    return g;
  };
  const fit = (g, text, room) => {
    if (g.measureText(text).width <= room) return text;
    while (text.length > 1 && g.measureText(text + "…").width > room) text = text.slice(0, -1);
    return text.length > 3 ? text + "…" : "";  // two letters say nothing
  };

  let paint = {};
  const readColours = () => {
    paint = {text: colour("text"), muted: colour("muted"), line: colour("line"), panel: colour("panel"), page: colour("page"),
      accent: colour("accent"), codes: []};
    for (let kind = 0; kind < kinds.length; kind++)
      for (let phase = 0; phase < phases.length; phase++)
        paint.codes.push(colour(kind === 0 ? phases[phase] || "plain" : kinds[kind] === "other" ? "plain" : kinds[kind]));
    paint.ink = paint.codes.map(report.ink);
  };

  // What a bar is called: its instruction, or what its joined instructions have in common.
  const nameOf = (stream, i) => {
    const label = data.labels[stream.label[i]] || "";
    if (!stream.joined || stream.joined[i] === 1) return label;
    const layer = stream.layer[i], microbatch = stream.microbatch[i];
    const common = (layer >= 0 ? "layer " + layer : "") + (layer < 0 && microbatch >= 0 ? "microbatch " + microbatch : "");
    return [common, phases[stream.code[i] & 3]].filter(Boolean).join(" ") || label;
  };

  // The first span of a row that ends after t.
  const firstAfter = (row, t) => {
    let low = 0, high = row.end.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row.end[middle] > t) high = middle; else low = middle + 1;
    }
    return low;
  };

  const drawAxis = () => {
    const g = size(axisCanvas, AXIS);
    g.font = "12px " + report.font;
    const span = (to - from) * data.quantum_s;
    const rough = span / Math.max(2, (width - gutter) / 110);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((k) => k * power >= rough * 0.999);
    const unit = report.unitOf(report.timeUnits, Math.max(step, to * data.quantum_s));
    const decimals = Math.max(0, Math.ceil(-Math.log10(step / unit.size) - 1e-9));
    g.fillStyle = paint.muted;
    g.strokeStyle = paint.line;
    const ticks = [];
    for (let k = Math.ceil(from * data.quantum_s / step - 1e-9); k * step <= to * data.quantum_s * (1 + 1e-12); k++) {
      const x = toX(k * step / data.quantum_s);
      ticks.push(x);
      const text = (k * step / unit.size).toFixed(decimals) + " " + unit.name;
      const room = g.measureText(text).width;
      if (x + 4 + room <= width) g.fillText(text, x + 4, AXIS / 2);
      g.beginPath();
      g.moveTo(Math.round(x) + 0.5, 4);
      g.lineTo(Math.round(x) + 0.5, AXIS);
      g.stroke();
    }
    return ticks;
  };

  const drawRow = (g, row, y) => {
    const {stream, start, end} = row;
    let drawn = -1;
    for (let i = firstAfter(row, from); i < start.length && start[i] < to; i++) {
      const left = Math.max(toX(start[i]), gutter), right = Math.min(toX(end[i]), width);
      const w = Math.max(right - left, 0.7);
      if (left + w < drawn + 0.7) continue;
      drawn = left + w;
      g.fillStyle = paint.codes[stream.code[i]];
      // A hairline between neighbours once there is room for it.
      const wide = w > 3 ? w - 0.75 : w;
      const busy = stream.joined && end[i] > start[i] ? Math.min(1, stream.busy[i] / (end[i] - start[i])) : 1;
      if (busy < 0.995) {
        g.globalAlpha = 0.35;
        g.fillRect(left, y + 2, wide, LANE - 4);
        g.globalAlpha = 1;
      }
      g.fillRect(left, y + 2 + (LANE - 4) * (1 - busy), wide, (LANE - 4) * busy);
      if (w > 34) {
        g.fillStyle = busy > 0.75 ? paint.ink[stream.code[i]] : paint.text;
        let text = fit(g, nameOf(stream, i), w - 10);
        const joined = stream.joined && stream.joined[i] > 1;
        if (joined && text.endsWith("…")) text = fit(g, String(Math.max(stream.layer[i], stream.microbatch[i])), w - 10);
        if (text) g.fillText(text, left + 5, y + LANE / 2 + 0.5);
      }
    }
  };

  const drawLanes = (ticks) => {
    const g = size(canvas, visible);
    const top = lanes.scrollTop;
    g.strokeStyle = paint.line;
    g.lineWidth = 1;
    for (const x of ticks) {
      if (x < gutter) continue;
      g.beginPath();
      g.moveTo(Math.round(x) + 0.5, 0);
      g.lineTo(Math.round(x) + 0.5, visible);
      g.stroke();
    }
    for (const row of rows) {
      const y = row.y - top;
      if (y + row.h < 0 || y > visible) continue;
      if (row.title) {
        g.fillStyle = paint.page;
        g.fillRect(0, y, width, HEAD - 2);
        g.fillStyle = paint.text;
        g.font = "600 12.5px " + report.font;
        g.fillText(fit(g, row.title, width - 20), 10, y + HEAD / 2 - 0.5);
        continue;
      }
      g.font = "12px " + report.font;
      g.fillStyle = paint.muted;
      g.fillText(fit(g, row.stream.name, gutter - 18), 10, y + LANE / 2 + 0.5);
      g.font = "11px " + report.font;
      drawRow(g, row, y);
    }
  };

  // The whole step in small: one stripe for each class from its first stream, and the part that is shown above.
  const drawOverview = () => {
    const g = size(overview, overviewHeight);
    const x = (t) => gutter + t / data.window * (width - gutter);
    g.font = "12px " + report.font;
    g.fillStyle = paint.muted;
    g.fillText(fit(g, "whole step", gutter - 18), 10, overviewHeight / 2);
    const first = data.classes.map((_, index) => rows.find((row) => row.stream && row.index === index)).filter(Boolean).slice(0, 16);
    const stripe = (overviewHeight - 12) / Math.max(1, first.length);
    first.forEach((row, k) => {
      let drawn = -1;
      for (let i = 0; i < row.start.length; i++) {
        const left = x(row.start[i]), w = Math.max(x(row.end[i]) - left, 0.6);
        if (left + w < drawn + 0.6) continue;
        drawn = left + w;
        g.fillStyle = paint.codes[row.stream.code[i]];
        g.fillRect(left, 6 + k * stripe, w, Math.max(1, stripe - (stripe > 3 ? 1 : 0)));
      }
    });
    if (from > 0 || to < data.window) {
      g.globalAlpha = 0.66;
      g.fillStyle = paint.panel;
      g.fillRect(gutter, 0, x(from) - gutter, overviewHeight);
      g.fillRect(x(to), 0, width - x(to), overviewHeight);
      g.globalAlpha = 1;
    }
    g.strokeStyle = paint.accent;
    g.lineWidth = 1.5;
    g.strokeRect(x(from) + 0.75, 2, Math.max(3, x(to) - x(from) - 1.5), overviewHeight - 4);
  };

  let asked = false;
  const draw = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      width = host.clientWidth;
      gutter = width < 600 ? 84 : 136;
      if (width <= gutter) return;
      drawLanes(drawAxis());
      drawOverview();
    });
  };

  const show = (a, b) => {
    const length = Math.min(data.window, Math.max(b - a, Math.min(data.window, 20)));
    from = Math.min(Math.max(0, a), data.window - length);
    to = from + length;
    tip.hidden = true;
    draw();
  };
  const zoom = (factor, at = (from + to) / 2) => show(at - (at - from) * factor, at + (to - at) * factor);
  const move = (share) => show(from + share * (to - from), to + share * (to - from));

  const explain = (event) => {
    const box = lanes.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top + lanes.scrollTop;
    const row = rows.find((r) => r.stream && y >= r.y && y < r.y + r.h);
    const i = row && x >= gutter ? firstAfter(row, toTime(x - 1)) : -1;
    if (i < 0 || i >= row.start.length || toX(row.start[i]) > x + 1) {
      tip.hidden = true;
      return;
    }
    const {stream} = row, code = stream.code[i], length = seconds(stream.length[i] * data.quantum_s);
    const lines = [kinds[code >> 2] + (phases[code & 3] ? ", " + phases[code & 3] : "") + " · " + length];
    const place = [];
    if (stream.layer[i] >= 0) place.push("layer " + stream.layer[i]);
    if (stream.microbatch[i] >= 0) place.push("microbatch " + stream.microbatch[i]);
    if (place.length) lines.push(place.join(", "));
    if (stream.joined && stream.joined[i] > 1)
      lines.push(stream.joined[i].toLocaleString("en-US") + " instructions, busy " + seconds(stream.busy[i] * data.quantum_s));
    lines.push("starts at " + seconds(row.start[i] * data.quantum_s), stream.name + " of " + row.group.name);
    tip.replaceChildren();
    element("b", "", tip).textContent = nameOf(stream, i);
    for (const line of lines) element("span", "", tip).textContent = line;
    tip.hidden = false;
    const px = event.clientX - host.getBoundingClientRect().left, py = event.clientY - host.getBoundingClientRect().top;
    tip.style.left = Math.max(4, Math.min(px + 14, host.clientWidth - tip.offsetWidth - 6)) + "px";
    tip.style.top = Math.max(4, py + 18 + tip.offsetHeight > host.clientHeight ? py - tip.offsetHeight - 12 : py + 18) + "px";
  };

  // One pointer moves, two pinch.
  const held = new Map();
  lanes.addEventListener("pointerdown", (event) => {
    held.set(event.pointerId, event.clientX);
    if (event.pointerType === "mouse") lanes.setPointerCapture(event.pointerId);
    lanes.classList.add("moving");
    if (event.pointerType !== "mouse") explain(event);
  });
  lanes.addEventListener("pointermove", (event) => {
    const before = held.get(event.pointerId);
    if (before === undefined) {
      explain(event);
      return;
    }
    const scale = (to - from) / (width - gutter);
    if (held.size === 1) {
      const dx = event.clientX - before;
      if (dx !== 0) show(from - dx * scale, to - dx * scale);
      if (event.pointerType === "mouse") lanes.scrollTop -= event.movementY;
    } else {
      const other = [...held].find(([id]) => id !== event.pointerId)[1];
      const factor = Math.max(8, Math.abs(before - other)) / Math.max(8, Math.abs(event.clientX - other));
      zoom(factor, toTime((event.clientX + other) / 2 - lanes.getBoundingClientRect().left));
    }
    held.set(event.pointerId, event.clientX);
  });
  for (const name of ["pointerup", "pointercancel"])
    lanes.addEventListener(name, (event) => {
      held.delete(event.pointerId);
      if (!held.size) lanes.classList.remove("moving");
    });
  lanes.addEventListener("pointerleave", () => { if (!held.size) tip.hidden = true; });
  lanes.addEventListener("dblclick", (event) => zoom(0.4, toTime(event.clientX - lanes.getBoundingClientRect().left)));
  lanes.addEventListener("scroll", draw);
  lanes.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 200))), toTime(event.clientX - lanes.getBoundingClientRect().left));
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
      event.preventDefault();
      move((event.deltaX || event.deltaY) / (width - gutter));
    }
  }, {passive: false});

  let dragging = false;
  const centre = (event) => {
    const t = (event.clientX - overview.getBoundingClientRect().left - gutter) / (width - gutter) * data.window;
    show(t - (to - from) / 2, t + (to - from) / 2);
  };
  overview.addEventListener("pointerdown", (event) => {
    dragging = true;
    overview.setPointerCapture(event.pointerId);
    centre(event);
  });
  overview.addEventListener("pointermove", (event) => { if (dragging) centre(event); });
  for (const name of ["pointerup", "pointercancel"]) overview.addEventListener(name, () => { dragging = false; });

  host.addEventListener("keydown", (event) => {
    const actions = {ArrowLeft: () => move(-0.15), ArrowRight: () => move(0.15), "+": () => zoom(0.6), "=": () => zoom(0.6),
      "-": () => zoom(1 / 0.6), "0": () => show(0, data.window), Home: () => show(0, data.window)};
    if (!actions[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    actions[event.key]();
  });
  for (const button of document.querySelectorAll("[data-zoom]"))
    button.addEventListener("click", () => ({in: () => zoom(0.5), out: () => zoom(2), all: () => show(0, data.window)})[button.dataset.zoom]());

  new ResizeObserver(draw).observe(host);
  readColours();
  report.onTheme(() => { readColours(); draw(); });
  draw();
})();
