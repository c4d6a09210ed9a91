// Curves of all reported metrics: zoom by dragging, steps or time, log scale, several runs over each other.
import { html, useState, useEffect, useRef, useMemo, number } from "/static/lib.js";

// uPlot, loaded when the first curve is drawn. Null if it did not come; the next curve asks again.
let loading = null;
const uPlotReady = () => (loading ||= new Promise((resolve) => {
  const lost = () => { loading = null; resolve(null); };
  document.head.append(Object.assign(document.createElement("script"), { src: "/static/vendor/uplot.js", onload: () => resolve(window.uPlot), onerror: lost }));
}));

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// One table of x and a column for each run, from runs with their own x.
function joined(runs, metric, x) {
  const columns = runs.map((run) => {
    const places = x === "step" && run.step.some((value) => value !== null) ? run.step : x === "age" ? run.time.map((time) => time - run.time[0]) : run.time;
    const found = new Map();
    (run.metrics[metric] || []).forEach((value, at) => { if (value !== null && places[at] !== null) found.set(places[at], value); });
    return found;
  });
  const places = [...new Set(columns.flatMap((column) => [...column.keys()]))].sort((a, b) => a - b);
  return [places, ...columns.map((column) => places.map((place) => column.get(place) ?? null))];
}

function Chart({ runs, metric, x, log }) {
  const box = useRef(null);
  const plot = useRef(null);
  const data = useMemo(() => joined(runs, metric, x), [runs, metric, x]);
  const latest = useRef(data);
  latest.current = data;
  const [hover, setHover] = useState(null);
  useEffect(() => {
    let over = false;
    const draw = async () => {
      const UPlot = await uPlotReady();
      if (over || !box.current || !UPlot) return;
      plot.current?.destroy();
      const axis = { stroke: css("--soft"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 }, font: "11px system-ui" };
      plot.current = new UPlot({
        width: box.current.clientWidth, height: 190, cursor: { sync: { key: "curves" }, drag: { x: true, y: false } }, legend: { show: false },
        scales: { x: { time: x === "time" }, y: log ? { distr: 3 } : {} },
        series: [{}, ...runs.map((run, at) => (
          { label: run.label, stroke: css(`--c${at}`), width: 1.75, spanGaps: true, points: { show: run.time.length < 3 } }))],
        axes: [{ ...axis, size: 32 }, { ...axis, size: 58, values: (_, values) => values.map((value) => (value === null ? "" : number(value))) }],
        hooks: { setCursor: [(u) => setHover(u.cursor.idx)] },
      }, latest.current, box.current);
    };
    draw();
    const observer = new ResizeObserver(() => plot.current && box.current && plot.current.setSize({ width: box.current.clientWidth, height: 190 }));
    observer.observe(box.current);
    addEventListener("themechange", draw);
    return () => { over = true; observer.disconnect(); removeEventListener("themechange", draw); plot.current?.destroy(); plot.current = null; };
  }, [metric, x, log, runs.length]);
  useEffect(() => { plot.current?.setData(data); }, [data]);
  const at = hover ?? data[0].length - 1;
  const last = (column) => { for (let n = at; n >= 0; n -= 1) if (column[n] !== null && column[n] !== undefined) return column[n]; return null; };
  return html`<section class="card chart" aria-label=${`Curve of ${metric}`} data-points=${data[0].length}><h3>${metric} <span class="grow"></span>
    ${data.slice(1).map((column, n) => html`<span class="muted">${runs.length > 1 && html`<i class="swatch s${n}"></i>`}${number(last(column))}</span>`)}</h3>
    <div class="plot" ref=${box}></div></section>`;
}

// `runs`: [{label, time, step, metrics}]; the first one is the run itself.
export function Curves({ runs, children }) {
  const metrics = [...new Set(runs.flatMap((run) => Object.keys(run.metrics)))];
  const stepped = runs.some((run) => run.step.some((value) => value !== null));
  const [x, setX] = useState("");
  const [log, setLog] = useState(false);
  const chosen = x || (stepped ? "step" : runs.length > 1 ? "age" : "time");
  if (!metrics.length) {
    const lines = html`<code>from trainwright import progress</code> and <code>progress(step, total, loss=loss)</code>`;
    return html`<div class="card muted">No numbers have been reported yet. Two lines of the training code do it: ${lines}.</div>`;
  }
  return html`<div class="toolbar"><h2>Curves</h2>
    <div class="chips" role="group" aria-label="Horizontal axis">
      ${[["step", "steps"], ["time", "clock"], ["age", "time since begin"]]
          .map(([id, title]) => html`<button type="button" class="chip" disabled=${id === "step" && !stepped} aria-pressed=${chosen === id ? "true" : "false"}
          onClick=${() => setX(id)}>
      ${title}</button>`)}</div>
    <button type="button" class="chip" aria-pressed=${log ? "true" : "false"} onClick=${() => setLog(!log)}>log scale</button>${children}<span class="grow">
      </span><span class="muted only-wide">drag to zoom, double-click to go back</span></div>
    ${runs.length > 1 && html`<p class="legend">${runs.map((run, at) => html`<span><i class="swatch s${at}"></i>${run.label}</span>`)}</p>`}
    <div class="charts">${metrics.map((metric) => html`<${Chart} key=${metric} ...${{ runs, metric, x: chosen, log }} />`)}</div>`;
}
