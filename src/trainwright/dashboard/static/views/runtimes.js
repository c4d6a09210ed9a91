// Runtimes and plugins: what is there, who uses it, and what it becomes.
import { html, useState, useAnswer, Link, path, plural } from "/static/lib.js";
import { Notice, Empty, Skeleton } from "/static/parts.js";
import { Objects, Yaml } from "/static/views/objects.js";

export function Runtimes({ namespace }) {
  const { value, error } = useAnswer(`runtimes?namespace=${encodeURIComponent(namespace)}`);
  const [open, setOpen] = useState("");
  if (error) return html`<div class="toolbar"><h1>Runtimes</h1></div><${Notice} kind="warning">${error}<//>`;
  if (!value) return html`<${Skeleton} rows=${8} />`;
  return html`<div class="toolbar"><h1>Runtimes</h1><span class="muted">${plural(value.runtimes.length, "runtime")}</span></div>
    ${!value.runtimes.length && html`<${Empty} title="There are no runtimes, or you may not read them." />`}
    ${value.runtimes.length > 0 && html`<div class="card scroll"><table class="plain"><thead><tr><th>Name</th><th>Framework</th><th>Nodes</th><th>Gang</th>
      <th>Images</th><th>Used by</th></tr></thead><tbody>${value.runtimes.map((one) => {
      const id = `${one.kind}/${one.namespace}/${one.name}`;
      return [html`<tr><td><button type="button" class="quiet" aria-expanded=${open === id ? "true" : "false"} onClick=${() => setOpen(open === id ? "" : id)}>
        ${open === id ? "▾" : "▸"} ${one.name}</button>${one.namespace && html`<span class="sub">in ${one.namespace}</span>`}</td>
        <td>${one.framework}</td><td>
        ${one.nodes}</td><td>${one.gang}</td><td><code>${one.images.join(" ")}</code></td><td>
        ${one.users.slice(0, 4).map((job) => html`<${Link} to=${path("jobs", job.namespace, job.name)}>${job.name}
        <//> `)}${one.users.length > 4 ? `and ${one.users.length - 4} more` : ""}</td></tr>`,
        open === id && html`<tr><td colspan="6"><h2>What a TrainJob with nothing but this runtime becomes</h2>${one.problem && html`<${Notice} kind="warning">
          ${one.problem}<//>`}<${Objects} objects=${one.becomes} /><details><summary>YAML of the runtime</summary><${Yaml} text=${one.yaml} /></details></td>
          </tr>`];
    })}</tbody></table></div>`}
    <div class="toolbar"></div><h2>Plugins</h2><div class="card scroll"><table class="plain"><thead><tr><th>Order</th><th>Name</th><th>From</th><th>Points</th>
      <th>Watches</th><th>State</th></tr></thead><tbody>${value.plugins.map((one) => html`<tr><td>${one.order ?? "–"}</td><td>${one.name}</td><td>
      ${one.origin} ${one.where}</td><td class="muted">${(one.points || []).join(", ")}</td><td class="muted">
      ${(one.watches || []).map((it) => it.resource).join(", ")}</td><td>${one.state}${one.why ? `: ${one.why}` : ""}</td></tr>`)}</tbody></table></div>`;
}
