// One kept run, from its files alone: how it ended, its curves, lines, events, surroundings and what was submitted.
import { html, useState, useAnswer, Link, path, duration, moment, go } from "/static/lib.js";
import { State, Notice, Skeleton, Tabs } from "/static/parts.js";
import { Curves } from "/static/views/curves.js";
import { Logs } from "/static/views/logs.js";
import { Timeline } from "/static/views/ranks.js";
import { Yaml, Difference } from "/static/views/objects.js";

const TABS = [["overview", "Overview"], ["logs", "Logs"], ["timeline", "Timeline"], ["environment", "Environment"], ["yaml", "YAML"], ["diff", "Diff"]];

export function Run({ me, route }) {
  const [, id, tab = "overview"] = route.parts;
  const { value, error } = useAnswer(`run?id=${encodeURIComponent(id)}`);
  const [rank, setRank] = useState("");
  if (error) return html`<${Notice} kind="error">${error} <${Link} to="/history">All runs<//><//>`;
  if (!value) return html`<${Skeleton} rows=${8} />`;
  const { run, record } = value;
  const facts = [["TrainJob", `${record.name} in ${record.namespace}`], ["Took", duration(run.seconds)], ["Created", moment(record.created)],
      ["Runtime", record.runtime], ["Nodes", record.nodes], ["Attempts", record.attempts > 1 ? record.attempts : ""], ["Exit code", record.exit_code],
      ["Source", record.source], ["Python", record.python], ["Outputs", html`<code>
    ${value.output}</code>`]];
  return html`<p class="crumbs"><${Link} to="/history">History<//> / ${record.name}</p>
    <div class="head"><h1>${run.id}</h1><${State} name=${run.state} /><span class="grow"></span>
      ${!run.finished && html`<${Link} to=${path("jobs", record.namespace, record.name)}>live page<//>`}${value.previous
          && html`<${Link} to=${`/compare?ids=${encodeURIComponent(run.id)},${encodeURIComponent(value.previous)}`}>compare with the run before<//>`}
      </div>
    <p class="sentence">${record.message}</p>
    <dl class="facts">${facts.filter(([, fact]) => fact || fact === 0).map(([title, fact]) => html`<div><dt>${title}</dt><dd>${fact}</dd></div>`)}</dl>
    <${Tabs} tabs=${TABS} current=${tab} onChange=${(next) => go(path("runs", id, ...(next === "overview" ? [] : [next])), { replace: true })}
        label="Parts of the run" />
    ${tab === "overview" && html`<section class="card" aria-label="Curves"><${Curves} runs=${[{ label: run.id, ...value.curve }]} /></section>`}
    ${tab === "logs" && html`<${KeptLogs} id=${run.id} rank=${rank} onRank=${setRank} />`}
    ${tab === "timeline" && html`<${Timeline} items=${value.events.map((event) => ({ time: event.time, kind: event.type || "Normal", reason: event.reason
        || "", object: event.object || "", message: event.message || "", count: event.count || 1 }))} />`}
    ${tab === "environment" && html`<${Environment} of=${value.environment} />`}
    ${tab === "yaml" && html`<${Yaml} text=${value.yaml} />`}
    ${tab === "diff" && html`<${Difference} previous=${value.previous} lines=${value.difference} />`}`;
}

function KeptLogs({ id, rank, onRank }) {
  const { value, error } = useAnswer(`run/lines?id=${encodeURIComponent(id)}`);
  return error ? html`<${Notice} kind="error">${error}
    <//>` : !value ? html`<${Skeleton} />` : html`<${Logs} lines=${value.lines} rank=${rank} onRank=${onRank} name=${id} />`;
}

function Environment({ of }) {
  const packages = Object.entries(of.packages || {});
  if (!of.python && !packages.length && !(of.variables
      || []).length) return html`<div class="card muted">Nobody noted the surroundings of this run: trainwright run does.</div>`;
  return html`<section class="card"><h2>Python ${of.python}</h2><h3>${packages.length} packages</h3><p class="muted">
    ${packages.map(([name, version]) => `${name} ${version}`).join(", ")}</p><h3>${(of.variables || []).length} variables were set (values are not kept)</h3>
    <p class="muted">${(of.variables || []).join(", ")}</p></section>`;
}
