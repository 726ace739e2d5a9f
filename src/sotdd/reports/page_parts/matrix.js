"use strict";
// What the page does: the reader chooses two datasets, by cell, key or list, and the rest follows from that.
(function () {
  document.documentElement.classList.add("scripted");
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const key = (i, j) => Math.min(i, j) + "," + Math.max(i, j);
  const count = data.names.length;
  // The row and column of the heat map where the keyboard is, and the pair that is compared.
  const state = { row: 0, column: Math.min(1, count - 1), pair: null };
  const MOST_LINES = 30;

  function spoken(i, j) {
    return i === j ? data.names[i] + " and itself: 0" : data.names[i] + " and " + data.names[j] + ": " + data.pairs[key(i, j)].text;
  }

  // ------------------------------------------------------------------ charts

  function drawHeat() {
    const theme = colours();
    const cell = (i, j) => (i === j ? null : data.pairs[key(i, j)].value);
    const frames = [];
    if (state.pair) {
      const [a, b] = state.pair.map((i) => data.order.indexOf(i));
      frames.push(frame(theme, a, b, 2), frame(theme, b, a, 2));
    }
    if (find("heat").matches(":focus-visible")) frames.push(frame(theme, state.row, state.column, 4));
    heatMap(find("heat"), theme, {
      rows: data.order.map((i) => data.names[i]), columns: data.order.map((i) => data.names[i]),
      values: data.order.map((i) => data.order.map((j) => cell(i, j))),
      hover: data.order.map((i) => data.order.map((j) => i === j ? "" :
        "<b>" + plain(data.names[i]) + "</b> and <b>" + plain(data.names[j]) + "</b><br>" + plain(data.pairs[key(i, j)].text))),
      frames: frames,
    });
  }

  function drawRank() {
    const from = find("from").value;
    const all = from === "all";
    const lines = all
      ? data.ranking.map((line) => Object.assign({}, line, { names: line.pair.split(",").map((i) => data.names[i]) }))
      : data.rankings[Number(from)].map((line) => Object.assign({}, line, { names: [line.name] }));
    const some = lines.slice(0, MOST_LINES);
    const ties = some.some((line) => line.tied) ? " Open circles are ties: the projections do not tell them apart." : "";
    const rest = lines.length > some.length ? " Only the nearest " + some.length + " of " + lines.length + " are drawn." : "";
    find("rank-note").textContent = (some.some((line) => line.low !== null) ? "Bars are 95 % intervals." : "") + ties + rest;
    rankChart(find("rank"), colours(), some, data.unit);
  }

  function drawClasses(why, names) {
    const theme = colours();
    const [rows, columns] = why.classes;
    heatMap(find("class-heat"), theme, {
      rows: rows, columns: columns, values: why.distances,
      hover: rows.map((one, i) => columns.map((other, j) =>
        plain(names[0]) + " <b>" + plain(one) + "</b>, " + plain(names[1]) + " <b>" + plain(other) + "</b><br>distance " +
        threeDigits(why.distances[i][j]) + "<br>" + (100 * why.moved[i][j]).toFixed(1) + " % of points move between these classes")),
      frames: why.counterparts.map(([i, j]) => frame(theme, i, j, 2)),
      xTitle: names[1], yTitle: names[0],
    });
  }

  // ------------------------------------------------------------------ two datasets

  // The explanation of a pair, with the sides swapped if the reader chose them in the other order.
  function explanation(i, j) {
    const why = data.explanations[key(i, j)];
    if (!why || i < j) return why;
    const turned = (matrix) => (matrix.length ? matrix[0].map((_, column) => matrix.map((row) => row[column])) : matrix);
    return Object.assign({}, why, {
      lost: why.lost.slice().reverse(), classes: why.classes.slice().reverse(), lines: why.lines.slice().reverse(),
      n_classes: why.n_classes.slice().reverse(), distances: turned(why.distances), moved: turned(why.moved),
      counterparts: why.counterparts.map(([a, b]) => [b, a]),
    });
  }

  function element(tag, text, className) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  function classTable(why, names, side) {
    const table = element("table");
    const head = table.createTHead().insertRow();
    ["class", "points", "share", "nearest", "distance", "counterpart"].forEach((name, i) => {
      const cell = head.appendChild(element("th", name, i === 1 ? "number" : ""));
      cell.scope = "col";
    });
    const body = table.createTBody();
    const most = Math.max(...why.lines[side].map((line) => line.share), 1e-9);
    why.lines[side].forEach((line) => {
      const row = body.insertRow();
      if (!line.counterpart || line.moved) row.className = "lost";
      row.appendChild(element("th", line.label)).scope = "row";
      row.appendChild(element("td", line.points.toLocaleString("en"), "number"));
      const share = row.appendChild(element("td", undefined, "meter"));
      share.appendChild(element("span")).style.width = (2.6 * line.share / most).toFixed(2) + "rem";
      share.appendChild(document.createTextNode((100 * line.share).toFixed(0) + " %"));
      row.appendChild(element("td", line.nearest, "label"));
      [line.distance, !line.counterpart ? "none" : line.moved ? "moved" : "yes"].forEach((text) => row.appendChild(element("td", text)));
    });
    const holder = element("div");
    const title = holder.appendChild(element("h3", "Classes of " + names[side] + ", and the nearest in " + names[1 - side]));
    title.id = "classes-" + side;
    const scroll = holder.appendChild(element("div", undefined, "scroll"));
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-labelledby", title.id);
    scroll.appendChild(table);
    return holder;
  }

  function drawPair() {
    const [i, j] = state.pair;
    const names = [data.names[i], data.names[j]];
    const distance = data.pairs[key(i, j)];
    const interval = distance.low === null ? data.unit : "95 % interval " + range(distance) + ", " + data.unit;
    const notes = [interval].concat(distance.remarks).filter(Boolean).join("; ");
    find("pair-distance").replaceChildren(element("strong", distance.text), element("span", notes));
    const why = explanation(i, j);
    find("no-classes").hidden = Boolean(why);
    find("parts").hidden = find("classes").hidden = find("shares").hidden = !why;
    if (!why) return;
    const share = why.features === null ? null : Math.min(1, Math.max(0, why.features));
    find("split").style.display = share === null ? "none" : "";
    find("split-features").style.flexGrow = share;
    find("split-labels").style.flexGrow = 1 - share;
    find("parts-said").textContent = why.parts[0].toUpperCase() + why.parts.slice(1) +
      ". Features: the distance without any labels. Labels: what they add to it. Noise: what chance gives when the " +
      "points of both datasets are permuted.";
    find("shares-title").textContent = "Which classes the distance between " + names[0] + " and " + names[1] + " comes from";
    const cut = why.n_classes.some((n, side) => n > why.classes[side].length) ? " Only the classes with the largest shares are shown." : "";
    const sentence = (text) => text[0].toUpperCase() + text.slice(1) + ".";
    find("classes-note").textContent = why.changes.concat(why.lost).map(sentence).join(" ") +
      (why.counterparts.length ? " Frames mark counterparts." : "") + cut;
    drawClasses(why, names);
    find("class-tables").replaceChildren(classTable(why, names, 0), classTable(why, names, 1));
  }

  function choose(i, j) {
    if (i === j || count < 2) return;
    state.pair = [i, j];
    find("first").value = i;
    find("second").value = j;
    drawPair();
    drawHeat();
  }

  // The two lists never show the same dataset: the list that the reader did not touch changes.
  function listed(changed, other) {
    const i = Number(find(changed).value);
    let j = Number(find(other).value);
    if (i === j) j = state.pair.find((k) => k !== i);
    if (changed === "first") choose(i, j);
    else choose(j, i);
  }

  // ------------------------------------------------------------------ keys, clicks, light and dark

  function onKey(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key in moves) {
      const limit = (value) => Math.min(count - 1, Math.max(0, value));
      state.row = limit(state.row + moves[event.key][0]);
      state.column = limit(state.column + moves[event.key][1]);
      drawHeat();
      find("heat-said").textContent = spoken(data.order[state.row], data.order[state.column]);
    } else if (event.key === "Enter" || event.key === " ") {
      choose(data.order[state.row], data.order[state.column]);
    } else {
      return;
    }
    event.preventDefault();
  }

  function drawAll() {
    drawHeat();
    drawRank();
    mapChart(find("map"), colours(), data);
    treeChart(find("tree"), colours(), data);
    if (state.pair) drawPair();
  }

  function setTheme(dark) {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    find("theme").textContent = dark ? "Light" : "Dark";
    find("theme").setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
    find("theme").setAttribute("aria-pressed", String(dark));
    document.querySelectorAll(".near").forEach((word) => { word.textContent = dark ? "Brighter" : "Darker"; });
  }

  const system = matchMedia("(prefers-color-scheme: dark)");
  setTheme(system.matches);
  system.addEventListener("change", (event) => { setTheme(event.matches); drawAll(); });
  find("theme").addEventListener("click", () => {
    setTheme(document.documentElement.dataset.theme !== "dark");
    drawAll();
  });

  // Paper is light, has no lists to choose from, and nothing that could be unfolded.
  let before = null;
  addEventListener("beforeprint", () => {
    const folded = Array.from(document.querySelectorAll("details:not([open])"));
    before = { dark: document.documentElement.dataset.theme === "dark", folded: folded };
    folded.forEach((part) => { part.open = true; });
    if (before.dark) setTheme(false);
    if (count > 1) drawAll();
  });
  addEventListener("afterprint", () => {
    if (!before) return;
    before.folded.forEach((part) => { part.open = false; });
    if (before.dark) setTheme(true);
    before = null;
    if (count > 1) drawAll();
  });

  if (count < 2) {
    document.querySelectorAll(".needs-script").forEach((part) => { part.hidden = true; });
    return;
  }
  find("map-note").textContent = "Distances on the map approximate the measured ones; stress " +
    data.map.stress.toFixed(3) + ": " + data.map.faithful + ".";
  state.pair = data.ranking[0].pair.split(",").map(Number);
  choose(state.pair[0], state.pair[1]);
  drawAll();
  find("heat").on("plotly_click", (event) => {
    const [i, j] = [data.order[event.points[0].y], data.order[event.points[0].x]];
    choose(i, j);
    if (i !== j && matchMedia("(max-width: 62rem)").matches) find("pair").scrollIntoView({ block: "nearest" });
  });
  find("heat").addEventListener("keydown", onKey);
  // Not for a mouse: drawing again between press and release would lose the click.
  find("heat").addEventListener("focus", () => { if (find("heat").matches(":focus-visible")) drawHeat(); });
  find("heat").addEventListener("blur", drawHeat);
  find("first").addEventListener("change", () => listed("first", "second"));
  find("second").addEventListener("change", () => listed("second", "first"));
  find("from").addEventListener("change", drawRank);
  let width = innerWidth;
  let waiting = 0;
  addEventListener("resize", () => {
    if (innerWidth === width) return; // a phone that hides its address bar changes only the height
    width = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 120);
  });
})();
