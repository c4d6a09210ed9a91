// The cluster: nodes with what is free on them, and the TrainJobs and gangs that wait, with the reason.
import { html, useState, useEffect, api, Link, path, since, bytes, number, useNow, plural } from "/static/lib.js";
import { State, Bar, Notice, Empty, Skeleton } from "/static/parts.js";

const AGAIN_MS = 5000;

export function Cluster({ namespace, me }) {
  const [value, set] = useState(null);
  const [error, setError] = useState("");
  const now = useNow(1000);
  useEffect(() => {
    let over = false, timer = 0;
    const look = async () => {
      try { const found = await api(`cluster?namespace=${encodeURIComponent(namespace)}`); if (!over) { set(found); setError(""); }
          } catch (failure) { if (!over) setError(failure.message); }
      if (!over) timer = setTimeout(look, AGAIN_MS);
    };
    look();
    return () => { over = true; clearTimeout(timer); };
  }, [namespace]);
  const amount = (name, count) => (name === "memory" ? bytes(count) : number(count));
  return html`<div class="toolbar"><h1>Cluster</h1><span class="muted">${me.where}${value?.version ? `, ${value.version}` : ""}</span></div>
    ${error && html`<${Notice} kind="warning">${error}<//>`}${!value && !error && html`<${Skeleton} />`}
    ${value && html`${value.forbidden.length > 0 && html`<${Notice}>Not shown, because you may not read them: ${[...new Set(value.forbidden)].join(", ")}<//>`}
    <h2>${plural(value.nodes.length, "node")}</h2><div class="cards-grid">
      ${value.nodes.map((node) => html`<section class="card" aria-label=${`Node ${node.name}`}><div class="head"><h3>${node.name}</h3>
      <span class="tag ${node.ready ? "" : "bad"}">${node.ready ? "ready" : "not ready"}</span></div>${node.why && html`<p class="muted">${node.why}</p>`}
      <div class="uses">${node.resources.map((one) => html`<span>${one.name}</span>
        <${Bar} percent=${one.room ? Math.min(100, (100 * one.asked) / one.room) : 0} label=${`${one.name} of ${node.name} that is asked for`} /><span>
        ${amount(one.name, one.asked)} of ${amount(one.name, one.room)}</span>`)}</div>
      <p class="sub">
        ${plural(node.pods, "pod")}${node.jobs.length ? `: ${node.jobs.slice(0, 6).join(", ")}` : ""}${node.taints.length ? ` · taints ${node.taints
            .join(", ")}` : ""}
        </p></section>`)}</div>
    <div class="toolbar"></div><h2>Waiting</h2>${value.waiting.length ? html`<div class="card scroll"><table class="plain"><thead><tr><th>Job</th><th>State</th>
      <th>Why</th><th>Queue</th><th>Age</th></tr></thead><tbody>${value.waiting.map((row) => html`<tr><td><${Link} to=${path("jobs", row.namespace, row.name)}>
      ${row.name}<//></td><td><${State} name=${row.state} /></td><td>${row.sentence}</td><td>${row.queue}</td><td>${since(row.created, now)}</td></tr>`)}
      </tbody></table></div>` : html`<${Empty} title="Nothing waits." />`}
    ${value.gangs.length > 0 && html`<div class="toolbar"></div><h2>Gangs</h2><div class="card scroll"><table class="plain"><thead><tr><th>Gang</th>
      <th>Needs</th><th>Placed</th><th>Pods</th><th>Phase</th></tr></thead><tbody>${value.gangs.map((gang) => html`<tr><td>${gang.namespace}/${gang.name}</td>
      <td>${gang.needs}</td><td>${gang.placed}</td><td>${gang.pods}</td><td>${gang.phase}</td></tr>`)}</tbody></table></div>`}`}`;
}
