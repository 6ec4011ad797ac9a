"use strict";
(() => {
  const data = JSON.parse(document.getElementById("chart-data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const coarse = window.matchMedia("(pointer: coarse)");
  const glyphs = {
    circle: "●", square: "■", "triangle-up": "▲", diamond: "◆", "triangle-down": "▼", cross: "✚", x: "✖", star: "★",
  };
  const scoreNames = { mse: "test MSE", robust: "robust test MSE", worst_group: "test MSE of the worst group" };
  const groupOf = (chart) => chart.legend ?? chart.id; // charts with the same legend
  const hidden = new Map(data.charts.map((chart) => [groupOf(chart), new Set()]));
  const BARS = 8, FEWEST_BARS = 3; // of a curve, at points of its own where there are enough; more hide each other
  const LEAST = 1e-3, MOST = 10; // ends of the color scale: how far above the lowest error, in units of it

  const config = {
    responsive: true, displaylogo: false, modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
    showSendToCloud: false, plotlyServerURL: "", // nothing leaves this page
  };

  const state = () => {
    const chosen = { problem: "0", grid_problem: "0" };
    for (const input of document.querySelectorAll(".switches input:checked, .switches select")) {
      chosen[input.name] = input.value;
    }
    return chosen;
  };
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const color = (method) => data.methods[method][dark.matches ? "dark" : "light"];
  // Plotly reads some HTML in texts; these are texts only.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const short = (value) => (value === null ? "–" : Number(value.toPrecision(4)).toString());
  const wrapped = (text) => plain(text.slice(0, 400)).replace(/(.{1,48})(\s|$)/g, "$1<br>");

  function layout(extra) {
    const family = getComputedStyle(document.body).fontFamily;
    const axis = {
      gridcolor: css("--line"), zeroline: false, linecolor: css("--muted"), showline: true, ticks: "outside",
      tickcolor: css("--muted"), ticklen: 4, automargin: true, exponentformat: "SI", title: { standoff: 8 },
    };
    return {
      autosize: true, showlegend: false, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 10, r: 12, t: 12, b: 10 }, dragmode: coarse.matches ? false : "zoom", ...extra,
      font: { family, size: 12, color: css("--ink") },
      hoverlabel: {
        bgcolor: css("--paper"), bordercolor: css("--line"), font: { family, color: css("--ink"), size: 12 }, align: "left",
        namelength: -1,
      },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--muted"), activecolor: css("--ink") },
      xaxis: { ...axis, showgrid: false, ...extra.xaxis, title: { ...axis.title, text: extra.xaxis.title } },
      yaxis: { ...axis, showline: false, ticks: "", ...extra.yaxis, title: { ...axis.title, text: extra.yaxis.title } },
    };
  }

  const ticks = (scale, form) => (scale === "log" ? { dtick: "D2", tickformat: form } : {});

  function bars(above, below) {
    return {
      type: "data", symmetric: false, array: above.map((value) => value ?? NaN),
      arrayminus: below.map((value) => value ?? NaN), thickness: 1.3, width: 3,
    };
  }

  function spread(score, way) {
    if (way === "mean") return { middle: score.mean, above: score.deviation, below: score.deviation };
    const apart = (high, low) => high.map((value, i) => (value === null || low[i] === null ? null : value - low[i]));
    return { middle: score.median, above: apart(score.high, score.median), below: apart(score.median, score.low) };
  }

  function curveTrace(curve, place, count, chosen) {
    const { middle, above, below } = spread(curve.scores[chosen.score], chosen.average);
    const wanted = Math.max(Math.floor(middle.length / BARS), count);
    const distance = Math.max(1, Math.min(wanted, Math.floor(middle.length / FEWEST_BARS)));
    const marked = middle.map((_, i) => i % distance === Math.floor((place * distance) / count));
    const only = (values) => values.map((value, i) => (marked[i] ? value : null));
    const look = data.methods[curve.method];
    return {
      type: "scatter", mode: "lines+markers", name: plain(look.label), method: curve.method,
      x: curve[chosen.x], y: middle, error_y: bars(only(above), only(below)),
      line: { color: color(curve.method), width: 1.8 },
      marker: { color: color(curve.method), symbol: look.symbol, size: marked.map((is) => (is ? 8 : 0.1)), opacity: 1, line: { width: 0 } },
      text: above.map((value, i) => (value === null ? "" : chosen.average === "mean"
        ? ` ± ${short(value)}` : ` [${short(middle[i] - below[i])}, ${short(middle[i] + value)}]`)),
      hovertemplate: "%{y:.4g}%{text}",
    };
  }

  const faint = (method) => `${color(method)}26`; // with an alpha of 0.15

  /** Lines with bands, which are shaded where they have both ends. */
  function bandTraces(lines, x, scale = () => 1) {
    return lines.flatMap((line) => {
      const by = scale(line);
      const at = (values) => values.map((value) => (value === null ? null : value / by));
      const [middle, low, high] = [line.value, line.low, line.high].map(at);
      const closed = low.map((_, i) => i).filter((i) => low[i] && high[i] !== null);
      const turned = [...closed].reverse();
      const look = data.methods[line.method];
      const band = {
        type: "scatter", mode: "lines", fill: "toself", fillcolor: faint(line.method), line: { width: 0 },
        hoverinfo: "skip", method: line.method, x: [...closed, ...turned].map((i) => x(line, i)),
        y: [...closed.map((i) => high[i]), ...turned.map((i) => low[i])],
      };
      return [band, {
        type: "scatter", mode: "lines+markers", name: plain(look.label), method: line.method,
        x: middle.map((_, i) => x(line, i)), y: middle, line: { color: color(line.method), width: 1.8, dash: line.dash },
        marker: { color: color(line.method), symbol: look.symbol, size: 5 },
        text: middle.map((_, i) => ` [${short(low[i])}, ${high[i] === null ? "∞" : short(high[i])}]`),
        hovertemplate: "%{y:.3g}%{text}",
      }];
    });
  }

  function bandEntries(lines) {
    return lines.map(({ method, note }) => ({ key: method, method, text: data.methods[method].label, note }));
  }

  const draw = {
    tails(chart, chosen) {
      const ratio = chosen.tails_scale === "ratio";
      const scale = (line) => (ratio ? line.value[0] ?? 1 : 1);
      const ends = tailsEnds(scale);
      const deltas = [0.5, 0.1, 0.01, 0.001];
      return {
        traces: bandTraces(chart.lines, (line, i) => 1 / line.delta[i], scale),
        entries: bandEntries(chart.lines),
        layout: layout({
          hovermode: "x unified",
          xaxis: { title: "δ", type: "log", tickvals: deltas.map((d) => 1 / d), ticktext: deltas.map(String), hoverformat: ".4~g" },
          yaxis: {
            title: ratio ? "gap / its median" : "F(w) − F*", type: "log", range: ends.map(Math.log10),
            exponentformat: "power", dtick: ends[1] / ends[0] > 30 ? 1 : "D2",
          },
        }),
      };
    },

    rates(chart) {
      const places = [...new Set(chart.lines.flatMap((line) => line.samples))].sort((a, b) => a - b);
      const named = places.length > 6 ? {} : { tickvals: places };
      return {
        traces: bandTraces(chart.lines, (line, i) => line.samples[i]),
        entries: bandEntries(chart.lines),
        layout: layout({
          hovermode: "x unified",
          xaxis: { title: "samples of each group", type: "log", tickformat: "~s", hoverformat: ",d", ...named },
          yaxis: { title: "median of F(w) − F*", type: "log", exponentformat: "power", dtick: 1 },
        }),
      };
    },

    curve(chart, chosen) {
      const curves = chart.curves.filter((c) => c.selection === chosen.selection && String(c.problem) === chosen.problem);
      const traces = curves.map((curve, place) => curveTrace(curve, place, curves.length, chosen));
      const entries = curves.map(({ method, note }) => ({ key: method, method, text: data.methods[method].label, note }));
      const samples = chosen.x === "samples";
      return {
        traces, entries,
        layout: layout({
          hovermode: "x unified",
          margin: { l: 10, r: 12, t: 30, b: 10 },
          xaxis: {
            title: samples ? "samples" : "seconds", type: chosen.xscale, rangemode: "tozero",
            hoverformat: samples ? ",d" : ".3g", ...ticks(chosen.xscale, samples ? "~s" : "~g"),
          },
          yaxis: { title: scoreNames[chosen.score], type: chosen.yscale, ...ticks(chosen.yscale, "~g") },
        }),
      };
    },

    grid(chart, chosen) {
      const here = (c) => String(c.problem) === chosen.grid_problem;
      const cells = chart.cells.filter(here);
      const lowest = lowestError(chosen);
      const z = chart.alphas.map(() => chart.steps.map(() => null));
      const text = chart.alphas.map(() => chart.steps.map(() => "not run"));
      for (const cell of cells) {
        const error = cell[chosen.grid_selection];
        z[cell.alpha][cell.step] = error === null ? null : heatOf(error, lowest);
        text[cell.alpha][cell.step] = error === null ? wrapped(`${cell.ending}. ${cell.message}`) : `error ${short(error)}`;
      }
      const best = chart.chosen.filter((c) => here(c) && c.selection === chosen.grid_selection);
      const named = (names) => {
        const every = names.length > 6 ? 2 : 1;
        const kept = names.map((_, i) => i).filter((i) => (i - Math.floor(names.length / 2)) % every === 0);
        return { tickvals: kept, ticktext: kept.map((i) => names[i]), range: [-0.5, names.length - 0.5], fixedrange: true };
      };
      const heat = {
        type: "heatmap", z, text, zmin: Math.log10(LEAST), zmax: Math.log10(MOST), xgap: 1, ygap: 1, showscale: false, hoverongaps: true,
        colorscale: [[0, css("--heat-low")], [0.5, css("--heat-middle")], [1, css("--heat-high")]],
        customdata: chart.alphas.map((alpha) => chart.steps.map((step) => [alpha, step])),
        hovertemplate: "λ<sub>reg</sub> %{customdata[0]}, step %{customdata[1]}<br>%{text}<extra></extra>",
      };
      return {
        traces: [heat, ...["diverged", "hopeless", "failed"].map((ending) => marks(cells, ending, chosen))],
        entries: [],
        layout: layout({
          dragmode: false, plot_bgcolor: css("--sunken"),
          shapes: best.map(({ alpha, step }) => ({
            type: "rect", x0: step - 0.5, x1: step + 0.5, y0: alpha - 0.5, y1: alpha + 0.5,
            line: { color: css("--on-heat"), width: 2.5 },
          })),
          xaxis: { title: "step size", ticks: "", showline: false, ...named(chart.steps) },
          yaxis: { title: "λ<sub>reg</sub>", showgrid: false, ...named(chart.alphas) },
        }),
      };
    },

    truncation(chart) {
      const traces = chart.methods.flatMap((found) => ["y", "z"].map((part) => ({
        type: "bar", name: `${plain(data.methods[found.method].label)}, ${part}`, method: `${found.method} ${part}`,
        x: found[part].map((_, i) => `stage ${i + 1}`), y: found[part],
        marker: {
          color: color(found.method), line: { width: 1, color: color(found.method) },
          pattern: part === "z" ? { shape: "/", size: 6, solidity: 0.35, fillmode: "replace" } : undefined,
        },
        hovertemplate: "%{y:.3p}",
      })));
      const entries = chart.methods.flatMap(({ method }) => ["y", "z"].map((part) => ({
        key: `${method} ${part}`, method, text: `${data.methods[method].label}, ${part}`, note: "",
        glyph: part === "y" ? "■" : "▨",
      })));
      return {
        traces, entries,
        layout: layout({
          barmode: "group", bargap: 0.35, hovermode: "x unified",
          xaxis: { title: "", type: "category" },
          yaxis: { title: "share of steps", tickformat: "~p", rangemode: "tozero" },
        }),
      };
    },

    variant(chart) {
      const traces = chart.lines.map((line) => ({
        type: "scatter", mode: "lines+markers", name: plain(data.methods[line.method].label), method: line.method,
        x: chart.x, y: line.mean, error_y: bars(line.deviation, line.deviation),
        line: { color: color(line.method), width: 1.8 },
        marker: { color: color(line.method), symbol: data.methods[line.method].symbol, size: 8 },
        text: line.deviation.map((value) => (value === null ? "" : ` ± ${short(value)}`)),
        hovertemplate: "%{y:.4g}%{text}",
      }));
      const entries = chart.lines.map(({ method }) => ({ key: method, method, text: data.methods[method].label, note: "" }));
      const byLoss = chart.by === "loss";
      const places = byLoss ? {} : { tickvals: chart.x, ticktext: chart.x.map(String) };
      return {
        traces, entries,
        layout: layout({
          hovermode: "x unified",
          xaxis: { title: chart.by, type: byLoss ? "category" : "log", ...places },
          yaxis: { title: "test MSE at the end" },
        }),
      };
    },
  };

  /** The ends of the axis that all charts of quantiles share; what is far above the gap at the start is left out. */
  function tailsEnds(scale) {
    const shown = data.charts.filter((chart) => chart.kind === "tails").flatMap((chart) => chart.lines.flatMap(
      (line) => line.value.filter((value) => value && value <= 3 * chart.start).map((value) => value / scale(line))));
    return shown.length ? [Math.min(...shown) * 0.7, Math.max(...shown) * 1.5] : [0.1, 10];
  }

  function marks(cells, ending, chosen) {
    const isOne = (cell) => cell[chosen.grid_selection] === null
      && (cell.ending === "finished" ? "diverged" : cell.ending) === ending;
    const found = cells.filter(isOne);
    const symbol = { diverged: "x-thin", hopeless: "line-ew", failed: "triangle-up" }[ending];
    const strong = ending === "failed" ? css("--on-heat") : css("--muted");
    return {
      type: "scatter", mode: "markers", hoverinfo: "skip", x: found.map((c) => c.step), y: found.map((c) => c.alpha),
      marker: { symbol, size: ending === "failed" ? 8 : 6, color: strong, line: { width: ending === "failed" ? 0 : 1.4, color: strong } },
    };
  }

  /** The lowest error of all maps in sight; 0 where there is none. */
  function lowestError(chosen) {
    const errors = data.charts.filter((chart) => chart.kind === "grid").flatMap((chart) => chart.cells)
      .filter((cell) => String(cell.problem) === chosen.grid_problem)
      .map((cell) => cell[chosen.grid_selection]).filter((error) => error !== null);
    return errors.length ? errors.reduce((a, b) => Math.min(a, b)) : 0;
  }

  /** The color of an error: noisy labels set a floor to all of them, so it is the excess that tells cells apart. */
  function heatOf(error, lowest) {
    const excess = lowest > 0 ? error / lowest - 1 : error;
    return Math.log10(Math.min(MOST, Math.max(LEAST, excess)));
  }

  function showColorbar(chosen) {
    const bar = document.querySelector(".colorbar");
    if (!bar) return;
    const lowest = lowestError(chosen);
    const label = (text) => Object.assign(document.createElement("span"), { textContent: text });
    bar.replaceChildren(
      label(`error ${short(lowest)}`), document.createElement("i"), label(`${short(lowest * (1 + MOST))} or more`));
  }

  function showLegend(chart, entries) {
    const box = document.querySelector(`.legend[data-for="${CSS.escape(groupOf(chart))}"]`);
    const focused = document.activeElement?.parentElement === box ? document.activeElement.dataset.key : null;
    box.replaceChildren(...entries.map((entry) => {
      const button = document.createElement("button");
      const mark = document.createElement("span");
      mark.className = "mark";
      mark.ariaHidden = "true";
      mark.style.color = color(entry.method);
      mark.textContent = entry.glyph ?? glyphs[data.methods[entry.method].symbol];
      button.type = "button";
      button.dataset.key = entry.key;
      button.setAttribute("aria-pressed", String(!hidden.get(groupOf(chart)).has(entry.key)));
      button.append(mark, entry.text);
      if (entry.note) {
        button.append(Object.assign(document.createElement("small"), { textContent: `, ${entry.note}` }));
      }
      button.addEventListener("click", () => {
        const set = hidden.get(groupOf(chart));
        if (!set.delete(entry.key)) set.add(entry.key);
        data.charts.filter((other) => groupOf(other) === groupOf(chart)).forEach(show);
      });
      return button;
    }));
    if (focused) box.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  function show(chart) {
    const drawn = draw[chart.kind](chart, state());
    for (const trace of drawn.traces) trace.visible = !hidden.get(groupOf(chart)).has(trace.method);
    showLegend(chart, drawn.entries);
    return window.Plotly.react(chart.id, drawn.traces, drawn.layout, { ...config, displayModeBar: chart.kind === "curve" });
  }

  function showAll() {
    showColorbar(state());
    data.charts.forEach(show);
  }

  document.addEventListener("change", (event) => {
    if (!event.target.closest(".switches")) return;
    const kind = /^(grid|tails)_/.exec(event.target.name)?.[1] ?? "curve";
    showColorbar(state());
    data.charts.filter((chart) => chart.kind === kind).forEach(show);
  });
  document.addEventListener("submit", (event) => event.preventDefault());
  dark.addEventListener("change", showAll);
  showAll();
})();
