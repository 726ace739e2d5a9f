"use strict";
// The charts of the page: each function turns a part of the data into one Plotly chart.

// Plotly reads some HTML tags, entities and TeX in texts, so names have to be escaped.
function plain(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\$/g, "&#36;");
}

function shortened(name, most) {
  const letters = Array.from(String(name).replace(/\s+/g, " "));
  if (letters.length <= most) return letters.join("");
  const head = Math.ceil((most - 1) / 2);
  return letters.slice(0, head).join("") + "…" + letters.slice(letters.length - (most - 1 - head)).join("");
}

function threeDigits(value) {
  if (value === 0) return "0";
  return value < 0.01 || value >= 1000 ? value.toPrecision(2) : value < 10 ? value.toFixed(2) : value.toFixed(1);
}

function range(line) {
  return Number(line.low.toPrecision(3)) + " to " + Number(line.high.toPrecision(3));
}

// The colours of the page as they are now, light or dark.
function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue("--" + name).trim();
  const stops = of("scale").split(" ");
  return {
    ink: of("ink"), quiet: of("quiet"), rule: of("rule"), accent: of("accent"), warm: of("warm"), card: of("card"),
    scale: stops.map((colour, i) => [i / (stops.length - 1), colour]),
  };
}

function layoutFor(theme, more) {
  return Object.assign({
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: false, showlegend: false,
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: theme.ink },
    margin: { l: 8, r: 8, t: 8, b: 8 },
    hoverlabel: { bgcolor: theme.card, bordercolor: theme.rule, font: { color: theme.ink, size: 13, family: getComputedStyle(document.body).fontFamily }, align: "left" },
  }, more);
}

const CONFIG = { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: false, showTips: false };

function axis(theme, more) {
  return Object.assign({
    fixedrange: true, zeroline: false, showgrid: false, showline: false, automargin: true, ticks: "",
    tickfont: { color: theme.ink }, title: { font: { color: theme.quiet, size: 12 }, standoff: 10 },
  }, more);
}

function frame(theme, row, column, width) {
  return {
    type: "rect", x0: column - 0.5, x1: column + 0.5, y0: row - 0.5, y1: row + 0.5,
    line: { color: theme.warm, width: width }, fillcolor: "rgba(0,0,0,0)",
  };
}

// How wide a text is, in pixels, in the font of the page.
const measuring = document.createElement("canvas").getContext("2d");
function widthOf(text, size) {
  measuring.font = size + "px " + getComputedStyle(document.body).fontFamily;
  return measuring.measureText(text).width;
}
function widest(texts, size) {
  return Math.max(0, ...texts.map((text) => widthOf(text, size)));
}

// Square cells, with numbers if they are large enough to read; of too many names only some are written.
function heatMap(target, theme, spec) {
  const wide = target.clientWidth || 320;
  const most = wide < 420 ? 13 : 24;
  const [rows, columns] = [spec.rows, spec.columns].map((names) => names.map((name) => shortened(name, most)));
  const right = 58; // the scale and its numbers
  const largestCell = Math.max(54, Math.min(120, 380 / rows.length)); // a few large cells fill the card
  const cellFor = (beside) => Math.max(4, Math.min((wide - beside - right) / columns.length, largestCell));
  let left = widest(rows, 12) + 14 + (spec.yTitle ? 24 : 0);
  const slanted = widest(columns, 12) > cellFor(left) - 6;
  if (slanted) { // names that start left of the first cell need room there
    const reach = columns.map((name, j) => 0.75 * widthOf(name, 12) + 6 - (j + 0.5) * cellFor(left));
    left = Math.max(left, ...reach);
  }
  const cell = cellFor(left);
  const below = (slanted ? 0.67 * widest(columns, 12) + 20 : 24) + (spec.xTitle ? 26 : 0);
  const flat = spec.values.flat().filter((value) => value !== null);
  const largest = (flat.length ? Math.max(...flat) : 1) || 1;
  const trace = {
    type: "heatmap", z: spec.values, text: spec.hover, hovertemplate: "%{text}<extra></extra>", hoverongaps: false,
    colorscale: theme.scale, zmin: 0, zmax: largest, xgap: cell > 8 ? 2 : 0, ygap: cell > 8 ? 2 : 0,
    colorbar: {
      thickness: 10, outlinewidth: 0, len: 1, lenmode: "fraction", x: 1, xpad: 8, ypad: 1, nticks: 6,
      tickfont: { color: theme.quiet, size: 11 },
    },
  };
  const numbers = cell >= 30 && rows.length <= 20;
  const written = !numbers ? [] : spec.values.flatMap((row, i) => row.map((value, j) => value === null ? null : {
    x: j, y: i, text: threeDigits(value), showarrow: false,
    font: { size: cell > 40 ? 12 : 10.5, color: readable(theme, value / largest) },
  })).filter(Boolean);
  const ticks = (names) => {
    const step = Math.max(1, Math.ceil(14 / cell));
    const shown = names.map((name, i) => i).filter((i) => i % step === 0);
    return { tickmode: "array", tickvals: shown, ticktext: shown.map((i) => plain(names[i]) + " "), automargin: false };
  };
  const titled = (name, length) => ({
    text: name === undefined ? "" : plain("class of " + shortened(name, Math.max(5, Math.floor(length / 7) - 9))), font: { color: theme.quiet, size: 12 }, standoff: 10,
  });
  return Plotly.react(target, [trace], layoutFor(theme, {
    width: left + right + cell * columns.length, height: 6 + below + cell * rows.length,
    margin: { l: left, r: right, t: 6, b: below }, annotations: written, shapes: spec.frames,
    xaxis: axis(theme, Object.assign(ticks(columns), {
      tickangle: slanted ? -42 : 0, range: [-0.5, columns.length - 0.5], title: titled(spec.xTitle, cell * columns.length),
    })),
    yaxis: axis(theme, Object.assign(ticks(rows), { range: [rows.length - 0.5, -0.5], title: titled(spec.yTitle, cell * rows.length) })),
  }), CONFIG);
}

// Dark or white text, whichever is easier to read on a cell this far along the scale.
function readable(theme, share) {
  const position = Math.min(0.9999, Math.max(0, share)) * (theme.scale.length - 1);
  const [low, high] = [theme.scale[Math.floor(position)][1], theme.scale[Math.floor(position) + 1][1]];
  const parts = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
  const mixed = parts(low).map((value, i) => value + (parts(high)[i] - value) * (position % 1));
  const linear = mixed.map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return light > 0.19 ? "#14202c" : "#ffffff";
}

// An axis shows its unit if there is room; the summary has it too.
function unitTitle(target, what, unit) {
  return (target.clientWidth || 320) < 420 ? what : what + ", " + unit;
}

// A dot and its interval for every line, nearest at the top.
function rankChart(target, theme, lines, unit) {
  const most = (target.clientWidth || 320) < 420 ? 20 : 48;
  const called = (line) => line.names.map((name) => shortened(name, Math.floor(most / line.names.length))).join(" – ");
  const known = lines.every((line) => line.low !== null);
  const trace = {
    type: "scatter", mode: "markers", x: lines.map((line) => line.value), y: lines.map((line, i) => i),
    marker: {
      size: 9, color: lines.map((line) => (line.tied ? theme.card : theme.accent)), line: { width: 2, color: theme.accent },
    },
    error_x: !known ? undefined : {
      type: "data", symmetric: false, array: lines.map((line) => line.high - line.value),
      arrayminus: lines.map((line) => line.value - line.low), color: theme.accent, thickness: 1.6, width: 4,
    },
    text: lines.map((line) => "<b>" + plain(line.names.join(" – ")) + "</b><br>" + line.text +
      (line.low === null ? "" : "<br>95 %: " + range(line)) +
      "<br>rank " + line.rank + (line.tied ? ", tied" : "")),
    hovertemplate: "%{text}<extra></extra>", cliponaxis: false,
  };
  const far = Math.max(...lines.map((line) => (line.high === null ? line.value : line.high)), 1e-12);
  return Plotly.react(target, [trace], layoutFor(theme, {
    height: 30 * lines.length + 70, hovermode: "closest",
    xaxis: axis(theme, {
      range: [0, far * 1.04], showgrid: true, gridcolor: theme.rule, tickfont: { color: theme.quiet }, nticks: 5, tickangle: 0,
      title: { text: unitTitle(target, "distance", unit), font: { color: theme.quiet, size: 12 }, standoff: 8 },
    }),
    yaxis: axis(theme, {
      range: [lines.length - 0.5, -0.5], tickmode: "array", tickvals: lines.map((line, i) => i),
      ticktext: lines.map((line) => plain(called(line)) + "  "),
    }),
  }), CONFIG);
}

// Names go to the side of their point that has room.
function textPlaces(at, names, width) {
  const taken = at.map(([x, y]) => [x - 6, y - 6, x + 6, y + 6]);
  const overlap = (a, b) => Math.max(0, Math.min(a[2], b[2]) - Math.max(a[0], b[0])) *
    Math.max(0, Math.min(a[3], b[3]) - Math.max(a[1], b[1]));
  return at.map(([x, y], i) => {
    const long = widthOf(names[i], 12);
    const across = { right: [x + 8, x + 8 + long], left: [x - 8 - long, x - 8], center: [x - long / 2, x + long / 2] };
    const along = { middle: [y - 8, y + 8], top: [y - 24, y - 8], bottom: [y + 8, y + 24] };
    const choices = ["middle right", "middle left", "top center", "bottom center", "top right", "bottom right", "top left", "bottom left"];
    const box = (choice) => {
      const [v, h] = choice.split(" ");
      return [across[h][0], along[v][0], across[h][1], along[v][1]];
    };
    const cost = (choice) => taken.reduce((sum, other) => sum + overlap(box(choice), other), 0) +
      16 * (Math.max(0, -box(choice)[0]) + Math.max(0, box(choice)[2] - width));
    const best = choices.reduce((a, b) => (cost(b) < cost(a) ? b : a));
    taken.push(box(best));
    return best;
  });
}

function mapChart(target, theme, data) {
  const width = target.clientWidth || 320;
  const names = data.names.map((name) => shortened(name, width < 420 ? 12 : 22));
  const points = data.map.points;
  const reach = (column) => {
    const values = points.map((point) => point[column]);
    return [Math.min(...values), Math.max(...values)];
  };
  const [xs, ys] = [reach(0), reach(1)];
  const pad = (width < 420 ? 0.3 : 0.2) * Math.max(xs[1] - xs[0], ys[1] - ys[0], 1e-9);
  const span = [xs[1] - xs[0] + 2 * pad, ys[1] - ys[0] + 2 * pad];
  const inner = width - 60; // beside the numbers of the axis
  const height = Math.round(Math.min(460, Math.max(260, inner * span[1] / span[0] + 50)));
  const scale = Math.min(inner / span[0], (height - 50) / span[1]);
  const at = points.map(([x, y]) => [inner / 2 + (x - (xs[0] + xs[1]) / 2) * scale, -y * scale]);
  const trace = {
    type: "scatter", mode: "markers+text", x: points.map((p) => p[0]), y: points.map((p) => p[1]),
    text: names.map(plain), textposition: textPlaces(at, names, inner),
    textfont: { color: theme.ink, size: names.length > 25 ? 10 : 12 },
    marker: { color: theme.accent, size: 10, line: { color: theme.card, width: 1.5 } }, cliponaxis: false,
    customdata: data.names.map(plain), hovertemplate: "<b>%{customdata}</b><extra></extra>",
  };
  return Plotly.react(target, [trace], layoutFor(theme, {
    height: height, hovermode: "closest",
    xaxis: axis(theme, {
      range: [xs[0] - pad, xs[1] + pad], showgrid: true, gridcolor: theme.rule, tickfont: { color: theme.quiet }, nticks: 6,
      title: { text: data.unit, font: { color: theme.quiet, size: 12 }, standoff: 8 },
    }),
    yaxis: axis(theme, {
      range: [ys[0] - pad, ys[1] + pad], showgrid: true, gridcolor: theme.rule, tickfont: { color: theme.quiet }, nticks: 6,
      scaleanchor: "x",
    }),
  }), CONFIG);
}

function treeChart(target, theme, data) {
  const most = (target.clientWidth || 320) < 420 ? 14 : 26;
  const count = data.order.length;
  const x = [];
  const y = [];
  data.branches.forEach(([along, height]) => { x.push(...height, null); y.push(...along, null); });
  const joins = {
    type: "scatter", mode: "markers", x: data.branches.map(([, h]) => h[1]), y: data.branches.map(([a]) => (a[1] + a[2]) / 2),
    marker: { color: theme.accent, size: 7 }, hovertemplate: "join at %{x:.3~g}<extra></extra>",
  };
  const lines = { type: "scatter", mode: "lines", x: x, y: y, line: { color: theme.accent, width: 2 }, hoverinfo: "skip" };
  return Plotly.react(target, [lines, joins], layoutFor(theme, {
    height: Math.max(30 * count + 70, 200), hovermode: "closest",
    xaxis: axis(theme, {
      rangemode: "tozero", showgrid: true, gridcolor: theme.rule, tickfont: { color: theme.quiet }, nticks: 6,
      title: { text: unitTitle(target, "average distance", data.unit), font: { color: theme.quiet, size: 12 }, standoff: 8 },
    }),
    yaxis: axis(theme, {
      range: [count - 0.5, -0.5], tickmode: "array", tickvals: data.order.map((_, i) => i),
      ticktext: data.order.map((i) => plain(shortened(data.names[i], most)) + "  "),
    }),
  }), CONFIG);
}
