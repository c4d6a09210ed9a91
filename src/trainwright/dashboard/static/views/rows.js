// Parts of the list of jobs: one line of it, and the choice of a namespace.
import { html, Component, useState, useEffect, Link, go, path, duration } from "/static/lib.js";
import { State, Bar, Spark, Metric } from "/static/parts.js";

// Only what changed is drawn again: a scroll draws the rows that come into the window, and no others.
export class Row extends Component {
  shouldComponentUpdate(next) { return ["row", "age", "many", "current"].some((name) => next[name] !== this.props[name]); }

  render({ row, age, many, current }) {
    const over = ["Complete", "Failed"].includes(row.state);
    const metric = row.metrics[0];
    return html`<tr class=${current ? "current" : ""} onClick=${(event) => event.target.closest("a") || go(path("jobs", row.namespace, row.name))}>
      <td class="c-name"><${Link} to=${path("jobs", row.namespace, row.name)} title=${row.name}>${row.name}<//>${many && html`<span class="sub">${row.namespace}
        </span>`}</td>
      <td class="c-state"><${State} name=${row.state} /><span class="sub" title=${row.sentence}>${row.sentence}</span></td>
      <td class="c-nodes">
        ${row.ready === null ? "" : over ? row.nodes ?? "" : `${row.ready}/${row.nodes ?? "?"}`}${row.restarts > 0 && html` <span class="tag"
            title="restarts">↻${row.restarts}
        </span>`}</td>
      <td class="c-progress">${row.percent !== null && html`<${Bar} percent=${row.percent} state=${row.state} label=${`Progress of ${row.name}`} />
        <span class="sub">${Math.floor(row.percent)} %${row.remaining && row.state === "Running" ? `, ${duration(row.remaining)} left` : ""}</span>`}</td>
      <td class="c-metric">${metric && html`<${Spark} points=${row.spark?.points} />
        <${Metric} name=${row.spark?.name ?? metric[0]} value=${row.metrics.find(([name]) => name === row.spark?.name)?.[1] ?? metric[1]} />`}</td>
      <td class="c-runtime"><span title=${row.runtime}>${row.runtime}</span></td>
      <td class="c-age"><time datetime=${row.created}>${age}</time></td></tr>`;
  }
}

export function Namespaces({ namespace, spaces, onNamespace, home }) {
  const [typed, setTyped] = useState(namespace);
  useEffect(() => setTyped(namespace), [namespace]);
  const submit = (event) => { event.preventDefault(); onNamespace(typed.trim()); };
  return html`<form class="namespaces" onSubmit=${submit}><label for="namespace" class="hidden">Namespace</label>
    <input id="namespace" list="spaces" placeholder="all namespaces" value=${typed} onInput=${(event) => setTyped(event.target.value)} onChange=${submit} />
    <datalist id="spaces">${[...new Set([home, ...spaces])].map((name) => html`<option value=${name} />`)}</datalist></form>`;
}
