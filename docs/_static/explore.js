// Figures with sliders, drawn as SVG from the rows that the page carries.
"use strict";

(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 640, HEIGHT = 420, LEFT = 150, RIGHT = 20, TOP = 36, BOTTOM = 48;
  const unique = (values) => Array.from(new Set(values));
  const span = (values) => [Math.min(...values), Math.max(...values)];

  function put(parent, name, attributes, text) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }

  // Round steps of about a fifth of the range.
  function ticks([low, high]) {
    const raw = (high - low) / 5 || 1, power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 5, 10].find((one) => one * power >= raw);
    const found = [];
    for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6; at += step) found.push(Number(at.toPrecision(6)));
    return found;
  }

  class Axes {
    constructor(svg, x, y, names) {
      svg.replaceChildren();
      this.svg = svg;
      this.left = names.y ? 70 : LEFT;
      this.x = (value) => this.left + ((value - x[0]) / (x[1] - x[0])) * (WIDTH - this.left - RIGHT);
      this.y = (value) => HEIGHT - BOTTOM - ((value - y[0]) / (y[1] - y[0])) * (HEIGHT - TOP - BOTTOM);
      for (const at of ticks(x)) {
        this.line([at, at], y, { stroke: "#ddd" });
        put(svg, "text", { x: this.x(at), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, at);
      }
      for (const at of names.y ? ticks(y) : []) {
        this.line(x, [at, at], { stroke: "#ddd" });
        put(svg, "text", { x: this.left - 6, y: this.y(at) + 4, "text-anchor": "end" }, at);
      }
      put(svg, "text", { x: (this.left + WIDTH - RIGHT) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, names.x);
      const middle = (TOP + HEIGHT - BOTTOM) / 2;
      if (names.y)
        put(svg, "text", { x: 16, y: middle, "text-anchor": "middle", transform: `rotate(-90 16 ${middle})` }, names.y);
      put(svg, "text", { x: this.left, y: 20, class: "title" }, names.title);
      svg.setAttribute("aria-label", names.title);
    }
    line(x, y, style) {
      put(this.svg, "line", { x1: this.x(x[0]), x2: this.x(x[1]), y1: this.y(y[0]), y2: this.y(y[1]), ...style });
    }
    dot(x, y, colour, filled, r = 5, title = "") {
      const style = { cx: this.x(x), cy: this.y(y), r, stroke: colour, fill: filled ? colour : "#fff", "stroke-width": 1.5 };
      put(put(this.svg, "circle", style), "title", {}, title);
    }
    text(x, y, text, style = {}) {
      put(this.svg, "text", { x: this.x(x) + 9, y: this.y(y) + 4, ...style }, text);
    }
  }

  // Neighbouring bins put together; a bin without pairs has no mark.
  function merged(rows, bins) {
    const found = Array.from({ length: bins }, () => ({ pairs: 0, score: 0, hits: 0 }));
    for (const row of rows) {
      if (!row.pairs) continue;
      const bin = found[Math.min(bins - 1, Math.floor(((row.lower + row.upper) / 2) * bins))];
      bin.pairs += row.pairs;
      bin.score += row.pairs * row.confidence;
      bin.hits += row.pairs * row.accuracy;
    }
    return found.filter((bin) => bin.pairs);
  }

  const ece = (bins) =>
    bins.reduce((sum, bin) => sum + Math.abs(bin.hits - bin.score), 0) / bins.reduce((sum, bin) => sum + bin.pairs, 0);

  const KINDS = {
    reliability: {
      controls: (rows) => [
        ["model", unique(rows.map((row) => row.model))],
        ["k", unique(rows.map((row) => row.k))],
        ["bins", [1, 2, 5, 10], 3],
      ],
      draw(svg, { rows, colours }, { model, k, bins }) {
        const states = ["before", "after"].map((state) =>
          merged(rows.filter((row) => row.model === model && row.k === k && row.state === state), bins));
        const [before, after] = states.map((found) => (100 * ece(found)).toFixed(1));
        const title = `${model}, k = ${k}: ECE ${before} % before (open), ${after} % after (filled)`;
        const axes = new Axes(svg, [0, 1], [0, 1], { x: "mean score", y: "share of hits", title });
        axes.line([0, 1], [0, 1], { stroke: "#888", "stroke-dasharray": "4 4" });
        states.forEach((found, filled) => {
          for (const bin of found)
            axes.dot(bin.score / bin.pairs, bin.hits / bin.pairs, colours[model], filled, 3 + Math.log10(bin.pairs) * 2,
              `${bin.pairs} pairs`);
        });
      },
    },
    intervals: {
      controls: (rows) => [
        ["metric", unique(rows.map((row) => row.metric))],
        ["k", unique(rows.map((row) => row.k))],
        ["dataset", unique(rows.map((row) => row.dataset))],
      ],
      draw(svg, { rows, colours }, { metric, k, dataset }) {
        const part = rows.filter((row) => row.metric === metric && row.k === k && row.dataset === dataset);
        part.sort((a, b) => a.value - b.value);
        const [low, high] = span(part.flatMap((row) => [row.low, row.high]));
        const room = (high - low) * 0.08 || 1;
        const title = `${metric}@${k} on ${dataset}`;
        const axes = new Axes(svg, [Math.max(0, low - room), high + room], [-0.5, part.length - 0.5], { x: `${metric}@${k}, %`, title });
        part.forEach((row, at) => {
          axes.line([row.low, row.high], [at, at], { stroke: colours[row.model], "stroke-width": 3 });
          axes.dot(row.value, at, colours[row.model], true, 5, `${row.value.toFixed(1)} (${row.low.toFixed(1)} to ${row.high.toFixed(1)})`);
          put(svg, "text", { x: LEFT - 8, y: axes.y(at) + 4, "text-anchor": "end" }, row.model);
        });
      },
    },
    path: {
      controls: (rows) => [
        ["probabilities", unique(rows.map((row) => row.rule.split(", ")).filter((parts) => parts[1]).map((parts) => parts[0]))],
        ["k", unique(rows.map((row) => row.k))],
        ["β", unique(rows.map((row) => row.rule.split("β=")[1]).filter(Boolean)), 3],
      ],
      draw(svg, { rows }, { probabilities, k, β }) {
        const part = rows.filter((row) => row.k === k);
        const value = (rule, metric) => part.find((row) => row.rule === rule && row.metric.startsWith(metric)).value;
        const at = (rule) => [value(rule, "cov"), value(rule, "P")];
        const every = unique(part.map((row) => row.rule)).map(at);
        const [x, y] = [0, 1].map((i) => span(every.map((point) => point[i]))).map(([low, high]) => {
          const room = (high - low) * 0.08;
          return [low - room, high + room * 2];
        });
        const path = unique(part.map((row) => row.rule)).filter((rule) => rule.startsWith(`${probabilities}, β=`));
        const chosen = `${probabilities}, β=${β}`, [cov, P] = at(chosen);
        const title = `k = ${k}, β = ${β}: P@${k} ${P.toFixed(1)} %, Cov@${k} ${cov.toFixed(1)} % of the labels with a test point`;
        const axes = new Axes(svg, x, y, { x: `Cov@${k} (test labels), %`, y: `P@${k}, %`, title });
        for (let i = 1; i < path.length; i++) {
          const [[x0, y0], [x1, y1]] = [at(path[i - 1]), at(path[i])];
          axes.line([x0, x1], [y0, y1], { stroke: "#888" });
        }
        for (const rule of path) axes.dot(...at(rule), "#005f73", rule === chosen, 6, rule);
        const top = at(`${probabilities}, top k`);
        axes.dot(...top, "#9b2226", true, 5, "top k");
        axes.text(...top, "top k (plain PLT)", { class: "label" });
      },
    },
  };

  function build(figure) {
    const spec = JSON.parse(figure.querySelector("script").textContent), kind = KINDS[spec.kind];
    const svg = put(figure, "svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
    const form = document.createElement("form"), chosen = {};
    const draw = () => kind.draw(svg, spec, chosen);
    for (const [name, values, start = 0] of kind.controls(spec.rows)) {
      const label = document.createElement("label");
      chosen[name] = values[start];
      let input, told;
      if (["k", "bins", "β"].includes(name)) {
        input = document.createElement("input");
        Object.assign(input, { type: "range", min: 0, max: values.length - 1, value: start });
        told = document.createElement("output");
        told.textContent = values[start];
      } else {
        input = document.createElement("select");
        values.forEach((value, i) => input.add(new Option(value, i)));
      }
      input.setAttribute("aria-label", name);
      input.addEventListener("input", () => {
        chosen[name] = values[input.value];
        if (told) told.textContent = chosen[name];
        draw();
      });
      label.append(`${name} `, input, ...(told ? [told] : []));
      form.append(label);
    }
    svg.before(form);
    draw();
  }

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("figure.explore").forEach(build));
})();
