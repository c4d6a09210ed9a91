// What several views are made of.
import { html, useState, useEffect, useRef, useLayoutEffect, api, number, signal } from "/static/lib.js";

const MARKS = { Running: "▶", Complete: "✓", Failed: "✕", Suspended: "❙❙", Pending: "…", Waiting: "…", Submitting: "…", Deleted: "⌫", Lost: "?", Succeeded: "✓" };

export const State = ({ name }) => html`<span class="state ${name.toLowerCase()}"><span aria-hidden="true">${MARKS[name] || "•"}</span> ${name}</span>`;

export function Bar({ percent, label, state = "" }) {
  if (percent === null || percent === undefined) return null;
  const whole = Math.round(percent);
  return html`<span class="progress ${state.toLowerCase()}" role="progressbar" aria-valuenow=${whole} aria-valuemin="0" aria-valuemax="100" aria-label=${label}>
    <span class="filled" style=${{ width: `${percent}%` }}></span></span>`;
}

export function Spark({ points, width = 84, height = 22 }) {
  if (!points || points.length < 2) return html`<svg class="spark" width=${width} height=${height} aria-hidden="true"></svg>`;
  const low = Math.min(...points), high = Math.max(...points), span = high - low || 1;
  const at = points.map((y, x) => `${((x / (points.length - 1)) * (width - 4) + 2).toFixed(1)},${(height - 3 - ((y - low) / span) * (height - 6)).toFixed(1)}`);
  const [lastX, lastY] = at[at.length - 1].split(",");
  return html`<svg class="spark" width=${width} height=${height} viewBox="0 0 ${width} ${height}" aria-hidden="true">
    <polyline points=${at.join(" ")} /><circle cx=${lastX} cy=${lastY} r="2" /></svg>`;
}

export function Copy({ text }) {
  const [done, set] = useState(false);
  const copy = async () => {
    try { await navigator.clipboard.writeText(text); } catch {
      const area = Object.assign(document.createElement("textarea"), { value: text });
      document.body.append(area); area.select(); document.execCommand("copy"); area.remove();
    }
    set(true); setTimeout(() => set(false), 1500);
  };
  return html`<span class="command"><code>${text}</code><button type="button" class="small" onClick=${copy} aria-label=${`Copy the command ${text}`}>
    ${done ? "copied" : "copy"}</button></span>`;
}

export const Notice = ({ kind = "info", children }) => html`<p class="notice ${kind}" role=${kind === "error" ? "alert" : "status"}>${children}</p>`;
export const Empty = ({ title, children }) => html`<div class="empty"><p class="title">${title}</p>${children}</div>`;
export const Skeleton = ({ rows = 6 }) => html`<div class="skeleton" aria-hidden="true">${Array.from({ length: rows }, () => html`<div></div>`)}</div>`;

export function Tabs({ tabs, current, onChange, label }) {
  const key = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.findIndex(([id]) => id === current) + step + tabs.length) % tabs.length][0];
    onChange(next);
    event.currentTarget.querySelector(`[data-tab="${next}"]`)?.focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${key}>${tabs.map(([id, title]) => html`
    <button type="button" role="tab" data-tab=${id} aria-selected=${id === current ? "true" : "false"} tabindex=${id === current ? 0 : -1}
        onClick=${() => onChange(id)}>
      ${title}</button>`)}</div>`;
}

// A question before a change.
export function Ask({ question, explanation, verb, danger, onAnswer, children }) {
  const dialog = useRef(null);
  useEffect(() => { dialog.current.showModal(); }, []);
  return html`<dialog ref=${dialog} aria-labelledby="question" onCancel=${(event) => { event.preventDefault(); onAnswer(false); }}>
    <h2 id="question">${question}</h2><p>${explanation}</p>${children}
    <div class="buttons"><button type="button" onClick=${() => onAnswer(false)}>Leave it</button>
    <button type="button" class=${danger ? "danger" : "primary"} onClick=${() => onAnswer(true)}>${verb}</button></div></dialog>`;
}

const QUESTIONS = {
  suspend: (name) => ["Suspend", `Suspend ${name}?`, "Its processes end and its job stays. Resume starts them again, from the last checkpoint if the code loads one.", false],
  resume: (name) => ["Resume", `Resume ${name}?`, "Its processes start again.", false],
  scale: (name) => ["Scale", `How many nodes for ${name}?`, "The ranks form a new group and go on from the last checkpoint.", false],
  delete: (name) => ["Delete", `Delete ${name}?`, "The TrainJob and all of its pods go, and training that is not saved is lost. On this machine, its run stays in the history.", true],
};

export function Actions({ row, me }) {
  const [asked, ask] = useState(null);
  const [busy, setBusy] = useState(false);
  const [nodes, setNodes] = useState(0);
  const over = ["Complete", "Failed"].includes(row.state), paused = row.state === "Suspended";
  const fits = { suspend: !over && !paused, resume: paused, scale: row.elastic && !over && !paused, delete: true };
  const verbs = me.verbs.filter((verb) => fits[verb]);
  const answer = async (yes) => {
    const verb = asked;
    ask(null);
    if (!yes) return;
    setBusy(true);
    try {
      await api("action", { verb, namespace: row.namespace, name: row.name, uid: row.uid, nodes: verb === "scale" ? nodes : undefined });
      signal("toast", { text: { suspend: "Suspending", resume: "Resuming", scale: "Scaling", delete: "Deleting" }[verb] + ` ${row.name}` });
    } catch (error) { signal("toast", { text: error.message, kind: "error" }); }
    setBusy(false);
  };
  if (!verbs.length) return me.readOnly ? html`<span class="muted">read-only</span>` : null;
  const [verb, question, explanation, danger] = asked ? QUESTIONS[asked](row.name) : [];
  return html`<div class="actions">
    ${verbs.map((name) => html`<button type="button" disabled=${busy || row.deleting} class=${name === "delete" ? "quiet danger" : "quiet"}
        onClick=${() => { setNodes(row.elastic?.wanted ?? 0); ask(name); }}>
    ${QUESTIONS[name](row.name)[0]}</button>`)}
    ${asked && html`<${Ask} ...${{ question, explanation, verb, danger, onAnswer: answer }}>
      ${asked === "scale" && html`<label>Nodes <input type="number" min=${row.elastic.least} max=${row.elastic.most} value=${nodes}
          onInput=${(event) => setNodes(Number(event.target.value))} />
      <span class="muted">${row.elastic.least} to ${row.elastic.most}</span></label>`}<//>`}</div>`;
}

export const Metric = ({ name, value }) => html`<span class="metric"><span class="name">${name}</span> <span class="value">${number(value)}</span></span>`;

// Which of many rows of one height are in the window.
export function useWindowed(count, height, container) {
  const [range, set] = useState([0, 40]);
  const last = useRef("");
  useLayoutEffect(() => {
    let frame = 0;
    const look = () => {
      frame = 0;
      const element = container.current;
      if (!element) return;
      const top = -element.getBoundingClientRect().top;
      const first = Math.max(0, Math.min(count, Math.floor(top / height) - 8));
      const end = Math.min(count, first + Math.ceil(innerHeight / height) + 16);
      if (last.current !== `${first}-${end}`) { last.current = `${first}-${end}`; set([first, end]); }
    };
    const later = () => { frame ||= requestAnimationFrame(look); };
    look();
    addEventListener("scroll", later, { passive: true });
    addEventListener("resize", later);
    return () => { cancelAnimationFrame(frame); removeEventListener("scroll", later); removeEventListener("resize", later); };
  }, [count, height]);
  return [Math.min(range[0], count), Math.min(range[1], count)];
}

export function useMedia(query) {
  const [matches, set] = useState(() => matchMedia(query).matches);
  useEffect(() => { const list = matchMedia(query); const change = () => set(list.matches); list.addEventListener("change", change);
      return () => list.removeEventListener("change", change); }, [query]);
  return matches;
}
