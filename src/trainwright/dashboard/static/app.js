// The frame around the views: who is looking, where, and which view the address names.
import { html, render, useState, useEffect, useRoute, Link, api, on, setCsrf, recall, remember, go } from "/static/lib.js";
import { Notice, Skeleton } from "/static/parts.js";
import { Jobs } from "/static/views/jobs.js";
import { SignIn } from "/static/views/signin.js";

const VIEWS = {
  jobs: ["./views/job.js", "Job"], history: ["./views/history.js", "History"], runs: ["./views/run.js", "Run"],
  compare: ["./views/compare.js", "Compare"], runtimes: ["./views/runtimes.js", "Runtimes"], cluster: ["./views/cluster.js", "Cluster"],
};

function useView(name) {
  const [found, set] = useState({});
  useEffect(() => {
    if (VIEWS[name] && !found[name]) import(VIEWS[name][0]).then((module) => set((all) => ({ ...all, [name]: module[VIEWS[name][1]] })));
  }, [name]);
  return found[name];
}

function Theme() {
  const [theme, set] = useState(() => { try { return localStorage.getItem("theme") || ""; } catch { return ""; } });
  const change = () => {
    const chosen = { "": "dark", dark: "light", light: "" }[theme];
    try { chosen ? localStorage.setItem("theme", chosen) : localStorage.removeItem("theme"); } catch { /* forbidden */ }
    set(chosen);
    dispatchEvent(new Event("themechosen"));
  };
  return html`<button type="button" class="quiet" onClick=${change} title="Theme: ${theme || "as the system"}" aria-label="Theme: ${theme || "as the system"}">
    ${{ "": "◐", dark: "●", light: "○" }[theme]}</button>`;
}

function Toast() {
  const [toast, set] = useState(null);
  useEffect(() => on("toast", (value) => { set(value);
      setTimeout(() => set((now) => (now === value ? null : now)), value.kind === "error" ? 9000 : 3500); }), []);
  return html`<div class="toasts" aria-live="polite">${toast && html`<div class="toast ${toast.kind || ""}">${toast.text}</div>`}</div>`;
}

function Help({ onClose }) {
  const keys = [["/", "filter"], ["j  k", "next and previous job"], ["Enter", "open"], ["Esc", "back, or clear the filter"],
      ["1 – 4", "jobs, history, runtimes, cluster"], ["?", "this list"]];
  return html`<div class="help" role="dialog" aria-label="Keys"><h2>Keys</h2><dl>${keys.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}
    </dd></div>`)}</dl><button type="button" onClick=${onClose}>Close</button></div>`;
}

function App() {
  const route = useRoute();
  const [me, setMe] = useState(null);
  const [door, setDoor] = useState("");
  const [problem, setProblem] = useState("");
  const [namespace, setNamespace] = useState(() => recall("namespace", ""));
  const [help, setHelp] = useState(false);
  const enter = () => api(`me?namespace=${encodeURIComponent(namespace)}`).then((value) => { setCsrf(value.csrf); setMe(value); setDoor("");
      setProblem(""); }, (error) => error.status === 401 || setProblem(error.message));
  useEffect(() => on("signin", (value) => setDoor(value.door || "key")), []);
  useEffect(() => { enter(); }, [namespace]);
  const [view = ""] = route.parts;
  const View = useView(view === "jobs" && route.parts.length < 3 ? "" : view);
  useEffect(() => {
    const key = (event) => {
      if (event.target.closest("input, textarea, select, dialog") || event.metaKey || event.ctrlKey || event.altKey) return;
      if (event.key === "?") setHelp((open) => !open);
      const place = { 1: "/", 2: "/history", 3: "/runtimes", 4: "/cluster" }[event.key];
      if (place) go(place);
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  useEffect(() => { document.title = [...route.parts.slice(-1), "Trainwright"].join(" · "); });
  const choose = (value) => { remember("namespace", value); setNamespace(value); };
  const leave = async () => { await api("session", {}, "DELETE"); setMe(null); setDoor(me.door); };
  const links = [["", "/", "Jobs"], ["history", "/history", "History"], ["runtimes", "/runtimes", "Runtimes"], ["cluster", "/cluster", "Cluster"]];
  const here = { jobs: "", runs: "history", compare: "history" }[view] ?? view;
  return html`<a class="skip" href="#main">Skip to the content</a>
    <header class="bar"><${Link} to="/" class="brand"><img src="/static/icon.svg" alt="" width="22" height="22" /> Trainwright<//>
      <nav aria-label="Views">${me && links.map(([id, to, title]) => html`<${Link} to=${to} aria-current=${here === id ? "page" : undefined}>${title}<//>`)}
        </nav>
      <span class="grow"></span>
      ${me && html`<span class="where" title=${me.user}>${me.where}${me.user && me.door === "token" ? ` as ${me.user}` : ""}</span>`}
      <button type="button" class="quiet only-wide" onClick=${() => setHelp(true)} aria-label="Keys">?</button><${Theme} />
      ${me?.door === "token" && html`<button type="button" class="quiet" onClick=${leave}>Sign out</button>`}</header>
    <main id="main" tabindex="-1">${door ? html`<${SignIn} door=${door} onEnter=${enter} />`
      : problem ? html`<${Notice} kind="error">${problem} <button type="button" onClick=${enter}>Try again</button><//>`
      : !me ? html`<${Skeleton} rows=${8} />`
      : !view || (view === "jobs" && route.parts.length < 3) ? html`<${Jobs} ...${{ me, namespace, onNamespace: choose }} />`
      : View ? html`<${View} ...${{ me, route, namespace }} />`
      : VIEWS[view] ? html`<${Skeleton} rows=${8} />` : html`<${Notice} kind="error">There is no such page. <${Link} to="/">All jobs<//><//>`}</main>
    <${Toast} />${help && html`<${Help} onClose=${() => setHelp(false)} />`}`;
}

document.getElementById("app").replaceChildren();
render(html`<${App} />`, document.getElementById("app"));
