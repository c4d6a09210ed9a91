// All TrainJobs, one line each: state and sentence, nodes, progress, last metric, runtime, age.
import { html, useState, useEffect, useRef, useMemo, useStream, useNow, Link, go, path, since, recall, remember, plural } from "/static/lib.js";
import { Notice, Empty, Skeleton, useWindowed, useMedia } from "/static/parts.js";
import { Row, Namespaces } from "/static/views/rows.js";

const ORDER = { Failed: 0, Running: 1, Pending: 2, Suspended: 3, Complete: 4 };
const COLUMNS = [
  ["name", "Job", (row) => row.name], ["state", "State", (row) => ORDER[row.state] ?? 9], ["nodes", "Nodes", (row) => row.nodes ?? 0],
  ["progress", "Progress", (row) => row.percent ?? -1], ["metric", "Last metric", (row) => Number(row.metrics[0]?.[1] ?? 0)],
  ["runtime", "Runtime", (row) => row.runtime], ["age", "Age", (row) => -Date.parse(row.created || 0)],
];
const STATES = ["Running", "Pending", "Failed", "Suspended", "Complete"];

function useRows(namespace) {
  const [rows, setRows] = useState(null);
  const [status, setStatus] = useState({});
  const live = useStream(`jobs?namespace=${encodeURIComponent(namespace)}`, {
    rows: (told) => {
      setStatus({ away: told.away, failure: told.failure, forbidden: told.forbidden });
      setRows((old) => {
        const all = told.all || !old ? new Map() : new Map(old);
        told.gone.forEach((uid) => all.delete(uid));
        told.rows.forEach((row) => all.set(row.uid, row));
        return all;
      });
    },
  });
  return { rows, live, ...status };
}

export function Jobs({ me, namespace, onNamespace }) {
  const { rows, live, away, failure } = useRows(namespace);
  const [filter, setFilter] = useState("");
  const [state, setState] = useState("");
  const [sort, setSort] = useState(() => recall("sort", ["age", 1]));
  const [at, setAt] = useState(-1);
  const latest = useRef({});  // keys may come faster than the page is drawn
  const now = useNow(1000);
  const phone = useMedia("(max-width: 720px)");
  const height = phone ? 118 : 52;
  const body = useRef(null);
  const search = useRef(null);

  const listed = useMemo(() => [...(rows?.values() || [])], [rows]);
  const counts = useMemo(() => listed.reduce((sum, row) => ({ ...sum, [row.state]: (sum[row.state] || 0) + 1 }), {}), [listed]);
  const shown = useMemo(() => {
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    const value = COLUMNS.find(([id]) => id === sort[0])?.[2] || COLUMNS[6][2];
    const text = (row) => `${row.namespace} ${row.name} ${row.runtime} ${row.sentence}`.toLowerCase();
    return listed.filter((row) => (!state || row.state === state) && words.every((word) => text(row).includes(word)))
      .map((row) => [value(row), row]).sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x.name < y.name ? -1 : 1) * sort[1]).map(([, row]) => row);
  }, [listed, filter, state, sort]);
  const [first, end] = useWindowed(shown.length, height, body);
  const spaces = useMemo(() => [...new Set(listed.map((row) => row.namespace))].sort(), [listed]);
  const many = spaces.length > 1;

  latest.current = { shown, at, height };
  useEffect(() => {
    const key = (event) => {
      const { shown, at, height } = latest.current;
      if (event.key === "/" && !event.target.closest("input")) { event.preventDefault(); search.current?.focus(); return; }
      if (event.target.closest("input") && event.key === "Escape") { setFilter(""); event.target.blur(); return; }
      if (event.target.closest("input, select, dialog, button")) return;
      const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
      if (step) {
        event.preventDefault();
        const next = Math.max(0, Math.min(shown.length - 1, at + step));
        latest.current.at = next;
        setAt(next);
        const top = body.current.getBoundingClientRect().top + scrollY + next * height;
        if (top < scrollY + 160 || top > scrollY + innerHeight - 120) scrollTo(0, top - innerHeight / 2);
      } else if (event.key === "Enter" && shown[at] && !event.target.closest("a")) go(path("jobs", shown[at].namespace, shown[at].name));
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);

  // Who may not list all namespaces begins with the own one.
  useEffect(() => { if (failure && !namespace && me.namespace) onNamespace(me.namespace); }, [failure, namespace]);

  const by = (id) => { const next = [id, sort[0] === id ? -sort[1] : 1]; setSort(next); remember("sort", next); };
  return html`<div class="toolbar"><h1>Jobs</h1>
      <input ref=${search} type="search" placeholder="Filter  /" aria-label="Filter jobs" value=${filter} onInput=${(event) => { setFilter(event.target.value);
          setAt(-1); }} />
      <div class="chips" role="group" aria-label="States">
        ${STATES.map((name) => html`<button type="button" class="chip ${name.toLowerCase()}" aria-pressed=${state === name ? "true" : "false"}
            onClick=${() => setState(state === name ? "" : name)}>
        ${name} <b>${counts[name] || 0}</b></button>`)}</div>
      <${Namespaces} ...${{ namespace, spaces, onNamespace, home: me.namespace }} />
      <span class="grow"></span><span class="live ${live && !away ? "on" : ""}" role="status">${away ? "cluster away" : live ? "live" : "connecting"}</span>
        </div>
    ${away && html`<${Notice} kind="warning">The cluster does not answer${
      me.where === "the local cluster" ? ": it may be down. Start it with trainwright up --detach" + me.flag : ""}. ${
      listed.length ? "What you see is what was last known." : ""} ${me.history && html`<${Link} to="/history">The history of runs<//> needs no cluster.`}
      <//>`}
    ${failure && html`<${Notice} kind="warning">${failure}${namespace ? "" : " Choose a namespace above that you may read."}<//>`}
    ${!rows && !failure ? html`<${Skeleton} rows=${10} />` : html`
    <table class="jobs ${phone ? "cards" : ""}" aria-rowcount=${shown.length}><caption class="hidden">${plural(shown.length, "TrainJob")}</caption>
      <thead><tr>
        ${COLUMNS.map(([id, title]) => html`<th scope="col" class="c-${id}" aria-sort=${sort[0] === id ? (sort[1] > 0 ? "ascending" : "descending") : "none"}>
        <button type="button" onClick=${() => by(id)}>${title}</button></th>`)}</tr></thead>
      <tbody ref=${body}>
        ${first > 0 && html`<tr class="space" aria-hidden="true"><td colspan="7" style=${{ height: `${first * height}px` }}></td></tr>`}
        ${shown.slice(first, end).map((row, n) => html`<${Row} key=${row.uid} ...${{ row, age: since(row.created, now), many, current: first + n === at }} />`)}
        ${end < shown.length && html`<tr class="space" aria-hidden="true"><td colspan="7" style=${{ height: `${(shown.length - end) * height}px` }}></td></tr>`}
      </tbody></table>
    ${!shown.length && !away && !failure && html`<${Empty} title=${listed.length ? "No job matches." : "No TrainJobs here yet."}>
      ${!listed.length && html`<p>Start one: <code>trainwright run train.py --nodes 2${me.flag}</code></p>`}<//>`}`}`;
}
