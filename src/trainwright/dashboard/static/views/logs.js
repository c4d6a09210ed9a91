// The output of the ranks: merged or side by side, followed, searched, with the colours of a terminal.
import { html, useState, useEffect, useRef, useMemo, useLayoutEffect } from "/static/lib.js";

const HEIGHT = 20;
const MOST = 50000;
const SGR = /\x1b\[([0-9;]*)m/g;

// Text with colour sequences as spans. Everything is a text node: nothing of a log is ever markup.
function coloured(text, search = "") {
  const parts = [];
  let classes = [], from = 0;
  const put = (piece) => { if (piece) parts.push(classes.length ? html`<span class=${classes.join(" ")}>${marked(piece, search)}
    </span>` : marked(piece, search)); };
  for (const found of text.matchAll(SGR)) {
    put(text.slice(from, found.index));
    from = found.index + found[0].length;
    for (const code of (found[1] || "0").split(";").map(Number)) {
      if (code === 0) classes = [];
      else if (code === 39) classes = classes.filter((name) => !/^a[39]\d$/.test(name));
      else if (code === 22) classes = classes.filter((name) => name !== "a1" && name !== "a2");
      else if (code <= 4) classes = [...classes, `a${code}`];
      else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) classes = [...classes.filter((name) => !/^a[39]\d$/.test(name)), `a${code}`];
    }
  }
  put(text.slice(from));
  return parts;
}

function marked(text, search) {
  if (!search) return text;
  const parts = [];
  const lower = text.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(search); at >= 0; at = lower.indexOf(search, from)) {
    parts.push(text.slice(from, at), html`<mark>${text.slice(at, at + search.length)}</mark>`);
    from = at + search.length;
  }
  return [...parts, text.slice(from)];
}

const plain = (text) => text.replace(SGR, "");

function Lines({ lines, open, follow, onScrolled, search, hit, who, when, label }) {
  const box = useRef(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const all = useMemo(() => [...lines, ...open.map((line) => [...line, true])], [lines, open]);
  useLayoutEffect(() => { setHeight(box.current.clientHeight); if (follow) box.current.scrollTop = box.current.scrollHeight; });
  useEffect(() => { if (hit >= 0) box.current.scrollTop = Math.max(0, hit * HEIGHT - height / 2); }, [hit]);
  const scroll = () => {
    const element = box.current;
    setTop(element.scrollTop);
    onScrolled(element.scrollTop + element.clientHeight >= element.scrollHeight - 2 * HEIGHT);
  };
  const first = Math.max(0, Math.floor(top / HEIGHT) - 10), end = Math.min(all.length, first + Math.ceil(height / HEIGHT) + 30);
  return html`<div class="lines" ref=${box} onScroll=${scroll} tabindex="0" role="log" aria-label=${label} aria-live="off">
    <div class="sheet" style=${{ height: `${all.length * HEIGHT + 8}px` }}>
    ${all.slice(first, end).map(([rank, time, text, isOpen], n) => html`
      <div key=${first + n} class="line ${isOpen ? "open" : ""} ${first + n === hit ? "hit" : ""}" style=${{ top: `${(first + n) * HEIGHT + 4}px` }}>
      ${when && html`<span class="when">${time.slice(11, 23)}</span>`}${who && html`<span class="who">${rank}</span>`}${coloured(text, search)}</div>`)}</div>
      </div>`;
}

// `lines`: [rank, time, text]; `open`: lines that are not finished, by their source.
export function Logs({ lines, open = {}, rank, onRank, problem, name }) {
  const [follow, setFollow] = useState(true);
  const [beside, setBeside] = useState(false);
  const [when, setWhen] = useState(false);
  const [search, setSearch] = useState("");
  const [only, setOnly] = useState(false);
  const [at, setAt] = useState(-1);
  const unfinished = Object.values(open).filter(Boolean);
  const ranks = useMemo(() => [...new Set([...lines, ...unfinished].map(([label]) => label))]
      .sort((a, b) => a.localeCompare(b, undefined, { numeric: true })), [lines.length, unfinished.length]);
  const word = search.toLowerCase();
  const chosen = useMemo(() => lines.filter(([label, , text]) => (!rank || label === rank) && (!only || !word
      || plain(text).toLowerCase().includes(word))), [lines, lines.length, rank, only, word]);
  const hits = useMemo(() => (word ? chosen.flatMap(([, , text], n) => (plain(text).toLowerCase().includes(word) ? [n] : [])) : []), [chosen, word]);
  const next = (step) => { if (hits.length) { setFollow(false); setAt((old) => (old + step + hits.length) % hits.length); } };
  const save = () => {
    const text = chosen.map(([label, time, line]) => `${time} ${label} ${plain(line)}`).join("\n");
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(new Blob([text], { type: "text/plain" })), download: `${name}.log` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const columns = beside && !rank ? ranks.slice(0, 4) : [null];
  return html`<section class="logs" aria-label="Logs"><div class="logbar">
      <div class="chips" role="group" aria-label="Ranks">
        <button type="button" class="chip" aria-pressed=${!rank ? "true" : "false"} onClick=${() => onRank("")}>all</button>
        ${ranks.slice(0, 64).map((label) => html`<button type="button" class="chip" aria-pressed=${rank === label ? "true" : "false"}
            onClick=${() => onRank(rank === label ? "" : label)}>
        ${label}</button>`)}</div>
      <span class="grow"></span>
      <input type="search" placeholder="Search" aria-label="Search the logs" value=${search} onInput=${(event) => { setSearch(event.target.value); setAt(-1); }}
          onKeyDown=${(event) => event.key === "Enter" && next(event.shiftKey ? -1 : 1)} />
      ${word && html`<span class="muted">${hits.length ? `${at + 1}/${hits.length}` : "none"}</span>`}
      <button type="button" class="chip" aria-pressed=${only ? "true" : "false"} onClick=${() => setOnly(!only)}>matches only</button>
      <button type="button" class="chip" aria-pressed=${beside ? "true" : "false"} onClick=${() => setBeside(!beside)}>side by side</button>
      <button type="button" class="chip" aria-pressed=${when ? "true" : "false"} onClick=${() => setWhen(!when)}>times</button>
      <button type="button" class="chip" aria-pressed=${follow ? "true" : "false"} onClick=${() => setFollow(!follow)}>follow</button>
      <button type="button" class="chip" onClick=${save}>save</button></div>
    ${problem && html`<p class="notice warning">${problem}</p>`}
    <div class="columns">${columns.map((label) => html`<div>${label && html`<h3>${label}</h3>`}
      <${Lines} lines=${label ? chosen.filter(([of]) => of === label) : chosen} open=${unfinished.filter(([of]) => (!rank || of === rank) && (!label
          || of === label))} ...${{ follow, search: word, when }} hit=${label ? -1 : hits[at] ?? -1} who=${!label && !rank}
          onScrolled=${(end) => end !== follow && !word && setFollow(end)} label=${`Output of ${label || rank || "all ranks"}`} />
      </div>`)}</div></section>`;
}

export const appended = (old, fresh) => { const all = [...old, ...fresh]; return all.length > MOST ? all.slice(-MOST) : all; };
