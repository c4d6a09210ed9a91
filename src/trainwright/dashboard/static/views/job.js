// One TrainJob: why it is as it is, its curves, ranks, timeline, logs and objects.
import { html, useState, useEffect, useStream, useAnswer, useNow, Link, go, path, since, duration, api } from "/static/lib.js";
import { State, Bar, Notice, Empty, Skeleton, Tabs, Actions } from "/static/parts.js";
import { Curves } from "/static/views/curves.js";
import { Logs, appended } from "/static/views/logs.js";
import { Why, Ranks, Timeline } from "/static/views/ranks.js";
import { Objects, Yaml, Difference } from "/static/views/objects.js";

const TABS = [["overview", "Overview"], ["logs", "Logs"], ["timeline", "Timeline"], ["objects", "Objects"], ["yaml", "YAML"], ["diff", "Diff"]];

export function Job({ me, route }) {
  const [, namespace, name, tab = "overview"] = route.parts;
  const rank = route.query.get("rank") || "";
  const where = `namespace=${encodeURIComponent(namespace)}&name=${encodeURIComponent(name)}`;
  const [job, setJob] = useState(null);
  const [curve, setCurve] = useState(null);
  const live = useStream(`job?${where}`, { job: setJob, curve: setCurve });
  const now = useNow(1000);
  const show = (id, label = "") => go(
    path("jobs", namespace, name, ...(id === "overview" ? [] : [id])) + (label ? `?rank=${encodeURIComponent(label)}` : ""), { replace: true });
  useEffect(() => {
    const key = (event) => { if (event.key === "Escape" && !event.target.closest("input, dialog")) go("/"); };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  if (!job) return html`<${Skeleton} rows=${8} />`;
  if (!job.row) return html`<${Empty} title=${job.gone ? `There is no TrainJob ${name} in ${namespace} any more.` : job.failure
      || "The cluster does not answer."}>
    <p><${Link} to="/">All jobs<//> ${me.history && html`· <${Link} to="/history">the history of runs<//>`}</p><//>`;
  const { row, why } = job;
  const over = ["Complete", "Failed"].includes(row.state);
  return html`<p class="crumbs"><${Link} to="/">Jobs<//> / ${row.namespace}</p>
    <div class="head"><h1>${row.name}</h1><${State} name=${row.state} />${row.deleting && html`<span class="tag bad">is being deleted</span>`}
      <span class="grow"></span><span class="live ${live && !job.away ? "on" : ""}" role="status">${job.away ? "cluster away" : live ? "live" : "connecting"}
      </span><${Actions} ...${{ row, me }} /></div>
    <p class="sentence">${row.sentence}</p>
    <div class="progressline">${row.percent !== null && html`<${Bar} percent=${row.percent} state=${row.state} label="Progress" /><span>
      ${Math.floor(row.percent)} %${row.step !== null && row.total !== null ? ` · ${row.step} of ${row.total}` : ""}${
        row.remaining && row.state === "Running" ? ` · ${duration(row.remaining)} left` : ""}
      </span>`}</div>
    <dl class="facts">
      ${[["Runtime", row.runtime], ["Nodes", row.nodes], ["Age", since(row.created, now)],
          ["Took", row.ended ? duration((Date.parse(row.ended) - Date.parse(row.created)) / 1000) : ""], ["Restarts", row.restarts || ""], ["Run", job.run
          && html`<${Link} to=${path("runs", job.run)}>
      ${job.run}<//>`], ["Command", job.command && html`<code>${job.command.slice(0, 160)}
      </code>`]].filter(([, value]) => value || value === 0).map(([title, value]) => html`<div><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>
    <${Tabs} tabs=${TABS} current=${tab} onChange=${(id) => show(id)} label="Parts of the job" />
    ${tab === "overview" && html`${why && html`<${Why} ...${{ why, state: row.state, onRank: (label) => show("logs", label) }} />`}
      <${Overlay} ...${{ row, curve, me, run: job.run }} />
        <${Ranks} ranks=${job.ranks} failing=${why?.rank} forbidden=${job.forbidden} onOpen=${(label) => show("logs", label)} />`}
    ${tab === "logs" && html`<${LiveLogs} ...${{ where, rank, name, onRank: (label) => show("logs", label) }} />`}
    ${tab === "timeline" && html`<${Timeline} items=${job.timeline} />`}
    ${tab === "objects" && html`<${JobObjects} where=${where} />`}
    ${tab === "yaml" && html`<${JobYaml} where=${where} />`}
    ${tab === "diff" && html`<${JobDiff} where=${where} />`}`;
}

function Overlay({ row, curve, me, run }) {
  const [others, setOthers] = useState([]);
  const [choice, setChoice] = useState(null);
  const offer = async () => { try { setChoice((await api("runs")).runs.filter((one) => one.id !== run).slice(0, 100)); } catch { setChoice([]); } };
  const add = async (id) => { if (id && others.length < 5) { const found = await api(`run?id=${encodeURIComponent(id)}`);
      setOthers([...others, { label: id, ...found.curve }]); } };
  const runs = [{ label: row.name, ...(curve || { time: [], step: [], metrics: {} }) }, ...others];
  return html`<section class="card" aria-label="Curves"><${Curves} runs=${runs}>
    ${me.history && (choice === null ? html`<button type="button" class="chip" onClick=${offer}>another run over it</button>` : html`<select
        aria-label="Another run over it" onChange=${(event) => { add(event.target.value); event.target.value = ""; }}>
      <option value="">another run …</option>${choice.map((one) => html`<option value=${one.id}>${one.id}</option>`)}</select>`)}
    ${others.length > 0 && html`<button type="button" class="chip" onClick=${() => setOthers([])}>only this one</button>`}<//></section>`;
}

function LiveLogs({ where, rank, name, onRank }) {
  const [lines, setLines] = useState([]);
  const [open, setOpen] = useState({});
  const [problem, setProblem] = useState("");
  useStream(`lines?${where}`, {
    lines: (batch) => {
      if (batch.problem) setProblem(batch.problem);
      setLines((old) => appended(batch.first ? [] : old, batch.lines));
      setOpen((old) => (batch.first ? {} : { ...old, ...batch.open }));
    },
  });
  return html`<${Logs} ...${{ lines, open, rank, onRank, problem, name }} />`;
}

function JobObjects({ where }) {
  const { value, error } = useAnswer(`objects?${where}`);
  if (error) return html`<${Notice} kind="error">${error}<//>`;
  if (!value) return html`<${Skeleton} />`;
  return html`${value.problem && html`<${Notice} kind="warning">${value.problem}<//>`}<${Objects} objects=${value.objects} />`;
}

function JobYaml({ where }) {
  const { value, error } = useAnswer(`objects?${where}`);
  return error ? html`<${Notice} kind="error">${error}<//>` : !value ? html`<${Skeleton} />` : html`<${Yaml} text=${value.yaml} />`;
}

function JobDiff({ where }) {
  const { value, error } = useAnswer(`difference?${where}`);
  return error ? html`<${Notice} kind="error">${error}<//>` : !value ? html`<${Skeleton} />` : html`<${Difference} ...${value} />`;
}
