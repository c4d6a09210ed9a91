// The runs that are kept on this machine, with no cluster up. Two to six of them can be compared.
import { html, useState, useMemo, useAnswer, useNow, Link, go, path, since, duration } from "/static/lib.js";
import { State, Notice, Empty, Skeleton, Metric } from "/static/parts.js";

export function History({ me }) {
  const { value, error } = useAnswer(me.history ? "runs" : null);
  const [filter, setFilter] = useState("");
  const [chosen, setChosen] = useState([]);
  const now = useNow(5000);
  const shown = useMemo(() => {
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (run) => `${run.id} ${run.state} ${run.runtime} ${run.source} ${run.message}`.toLowerCase();
    return (value?.runs || []).filter((run) => words.every((word) => text(run).includes(word)));
  }, [value, filter]);
  if (!me.history) return html`<div class="toolbar"><h1>History</h1></div><${Empty} title="A cluster keeps no runs of its own.">
    <p>Its history are the TrainJobs that are there: <${Link} to="/">all jobs<//>.</p><//>`;
  const toggle = (id) => setChosen((old) => (old.includes(id) ? old.filter((one) => one !== id) : old.length < 6 ? [...old, id] : old));
  return html`<div class="toolbar"><h1>History</h1>
    <input type="search" placeholder="Filter" aria-label="Filter runs" value=${filter} onInput=${(event) => setFilter(event.target.value)} /><span class="grow">
    </span>
      <span class="muted">${chosen.length ? `${chosen.length} of 6 chosen` : "choose two to six to compare"}</span>
        <button type="button" class="primary" disabled=${chosen.length < 2} onClick=${() => go(`/compare?ids=${chosen.map(encodeURIComponent)
            .join(",")}`)}>Compare</button>
        </div>
    ${error ? html`<${Notice} kind="error">${error}
      <//>` : !value ? html`<${Skeleton} rows=${8} />` : !shown.length ? html`<${Empty} title="No runs are kept here yet." />` : html`
    <div class="card scroll"><table class="plain"><thead><tr><th><span class="hidden">Compare</span></th><th>Run</th><th>State</th><th>Last report</th>
      <th>Runtime</th><th>Nodes</th><th>Took</th><th>Age</th></tr></thead>
      <tbody>${shown.slice(0, 500).map((run) => html`<tr key=${run.id}><td>
        <input type="checkbox" aria-label=${`Compare ${run.id}`} checked=${chosen.includes(run.id)} onChange=${() => toggle(run.id)} /></td>
        <td><${Link} to=${path("runs", run.id)}>${run.id}<//><span class="sub">
          ${run.source}${run.context && run.context !== "local" ? ` on ${run.context}` : ""}</span></td>
        <td><${State} name=${run.state} /><span class="sub wide" title=${run.message}>${run.message}</span></td>
        <td>${(run.metrics || []).slice(0, 2).map(([name, value]) => html`<${Metric} name=${name}
            value=${value} /> `)}${run.step !== null && run.step !== undefined ? html`<span class="sub">step ${run.step}${run.total ? ` of ${run.total}` : ""}
          </span>` : ""}</td>
        <td>${run.runtime}</td><td>${run.nodes ?? ""}</td><td>${duration(run.seconds)}</td><td>${since(run.created, now)}</td></tr>`)}</tbody></table></div>`}`;
}
