// Two to six runs beside each other: curves over each other, then everything that differs.
import { html, useState, useAnswer, Link, path, duration } from "/static/lib.js";
import { State, Notice, Skeleton } from "/static/parts.js";
import { Curves } from "/static/views/curves.js";

export function Compare({ route }) {
  const { value, error } = useAnswer(`compare?ids=${encodeURIComponent(route.query.get("ids") || "")}`);
  const [all, setAll] = useState(false);
  if (error) return html`<${Notice} kind="error">${error}<//>`;
  if (!value) return html`<${Skeleton} rows=${8} />`;
  const { runs } = value;
  if (!runs.length) return html`<${Notice} kind="error">None of these runs is kept here. <${Link} to="/history">All runs<//><//>`;
  const shown = (name, text) => (name === "duration" && text ? duration(Number(text)) : text);
  return html`<p class="crumbs"><${Link} to="/history">History<//></p><div class="head"><h1>Compare ${runs.length} runs</h1></div>
    <section class="card" aria-label="Curves"><${Curves} runs=${value.curves.map((curve, at) => ({ label: runs[at].id, ...curve }))} /></section>
    <div class="toolbar"><h2>What differs</h2>
      <button type="button" class="chip" aria-pressed=${all ? "true" : "false"} onClick=${() => setAll(!all)}>what is equal, too</button></div>
    ${value.sections.map((section) => {
      const rows = section.rows.filter((row) => all || row.differs);
      return html`<section class="card scroll" aria-label=${section.title}><table class="plain compare"><caption class="hidden">${section.title}</caption>
        <thead><tr><th>${section.title}</th>${runs.map((run, at) => html`<th><i class="swatch s${at}"></i><${Link} to=${path("runs", run.id)}>${run.id}
        <//> <${State} name=${run.state} /></th>`)}</tr></thead>
        <tbody>${rows.length ? rows.map((row) => html`<tr class=${row.differs ? "differs" : ""}><td>${row.name}</td>${row.values.map((text) => html`<td>
          ${shown(row.name, text)}</td>`)}</tr>`) : html`<tr><td class="muted" colspan=${runs.length + 1}>
          ${section.rows.length ? "all equal" : "nothing is known"}</td></tr>`}</tbody></table></section>`;
    })}`;
}
