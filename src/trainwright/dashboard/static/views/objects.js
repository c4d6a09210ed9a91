// The objects that a TrainJob becomes, field by field with their origins; YAML; a difference.
import { html, useState } from "/static/lib.js";
import { Empty } from "/static/parts.js";

export function Objects({ objects }) {
  const [filter, setFilter] = useState("");
  if (!objects.length) return html`<${Empty} title="Nothing is built for it." />`;
  const word = filter.toLowerCase();
  return html`<div class="toolbar">
    <input type="search" placeholder="Filter fields" aria-label="Filter fields" value=${filter} onInput=${(event) => setFilter(event.target.value)} />
    <span class="muted">Where each field comes from: the TrainJob, its runtime, a plugin, or a default</span></div>
    ${objects.map((object, number) => html`<details class="card" open=${number === objects.length - 1 || objects.length < 3}><summary><b>${object.title}
      </b> <span class="muted">${object.fields.length} fields</span></summary>
      <div class="scroll"><table class="fields"><thead class="hidden"><tr><th>Field</th><th>Value</th><th>Origin</th></tr></thead><tbody>
        ${object.fields.filter((field) => !word || `${field.path} ${field.value} ${field.origin}`.toLowerCase().includes(word)).map((field) => html`<tr><td>
        ${field.path}</td><td>${field.value}${field.lost.map((lost) => html`<div class="lost" title=${`instead of this value of ${lost.origin}`}>${lost.value}
        </div>`)}</td><td><span class="layer ${field.layer}">${field.origin}</span></td></tr>`)}</tbody></table></div></details>`)}`;
}

export const Yaml = ({ text }) => (text ? html`<pre class="yaml" tabindex="0" aria-label="YAML">${text}
  </pre>` : html`<${Empty} title="What was submitted is not kept." />`);

const KIND = { "+": "plus", "-": "minus", "@": "at" };

export function Difference({ previous, lines }) {
  if (!previous) return html`<${Empty} title="There is no run before this one." />`;
  if (!lines.length) return html`<${Empty} title=${`It is the same as ${previous}.`} />`;
  return html`<p class="muted">What changed since ${previous}</p><pre class="diff" tabindex="0" aria-label="Difference">
    ${lines.map((line) => html`<span class=${line.startsWith("+++") || line.startsWith("---") ? "at" : KIND[line[0]] || "same"}>${line || " "}</span>`)}</pre>`;
}
