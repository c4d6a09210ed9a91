// Parts of a job's page: why it is as it is, its ranks, and what happened when.
import { html, bytes, clock, number, plural } from "/static/lib.js";
import { State, Bar, Copy, Empty } from "/static/parts.js";

export function Why({ why, state, onRank }) {
  return html`<section class="card why ${state.toLowerCase()}" aria-label="Why"><h2>${why.headline}</h2>${why.mend && html`<p>${why.mend}.</p>`}
    <p>${why.commands.map((command) => html`<${Copy} text=${command} />`)}${why.rank !== null && onRank && html`<button type="button"
        onClick=${() => onRank(`rank ${why.rank}`)}>Logs of rank ${why.rank}
      </button>`}</p>
    ${why.details.length > 0 && html`<pre class="details" tabindex="0" aria-label="What its lines say">${why.details.join("\n")}</pre>`}
    ${why.chain.length > 0 && html`<ul class="chain">${why.chain.map((link, depth) => html`
      <li style=${{ paddingLeft: `${depth * 16}px` }}>${depth > 0 && "└ "}
      <b>${link.kind} ${link.name}</b> ${link.says}</li>`)}</ul>`}</section>`;
}

export function Ranks({ ranks, failing, forbidden, onOpen }) {
  if (forbidden.includes("pods")) return html`<section class="card muted">You may not read pods here, so the ranks are not shown.</section>`;
  if (!ranks.length) return html`<section class="card muted">There are no pods now.</section>`;
  return html`<section class="card" aria-label="Ranks"><h2>${plural(ranks.length, "pod")}</h2><div class="ranks">${ranks.map((one) => {
    const bad = one.phase === "Failed" || (failing !== null && failing !== undefined && one.ranks.includes(failing));
    const label = one.ranks.length === 1 ? `rank ${one.ranks[0]}` : one.ranks.length ? `ranks ${one.ranks[0]}–${one.ranks[one.ranks.length - 1]}` : one.label;
    const use = (title, used, asked, show) => (used === null || used === undefined ? null : html`<span>${title}</span>
      ${asked ? html`<${Bar} percent=${Math.min(100, (100 * used) / asked)} label=${`${title} of ${one.label}`} />` : html`<span></span>`}<span>
      ${show(used)}${asked ? ` / ${show(asked)}` : ""}</span>`);
    return html`<button type="button" class="rank ${bad ? "failed" : one.phase.toLowerCase()}"
        onClick=${() => onOpen(one.ranks.length === 1 ? label : bad && failing !== null && failing !== undefined ? `rank ${failing}` : "")}
        aria-label=${`${label}, ${one.phase}${one.why ? `, ${one.why}` : ""}: open its logs`}>
      <span class="top"><span>${label}${one.ranks.length ? html` <span class="muted">${one.label}</span>` : ""}</span><${State} name=${one.phase} /></span>
      ${one.why && html`<span class="sub">${one.why}</span>`}
      <span class="sub">
        ${[one.host || one.pod, one.node && `on ${one.node}`, one.ip, one.restarts ? plural(one.restarts, "restart") : "",
          one.attempt > 1 ? `attempt ${one.attempt}` : "", one.phase === "Running" && !one.ready ? "not ready" : ""].filter(Boolean).join(" · ")}
        </span>
      ${one.uses && html`<span class="uses">
        ${use("CPU", one.uses.cpu, one.asks.cpu, number)}${use("memory", one.uses.memory, one.asks.memory, bytes)}
        ${use("GPU memory", one.uses.gpuMemory, null, bytes)}
        </span>`}${one.asks.gpu ? html`<span class="sub">${plural(one.asks.gpu, "GPU")}</span>` : null}</button>`;
  })}</div></section>`;
}

export function Timeline({ items }) {
  if (!items.length) return html`<${Empty} title="Nothing has happened yet." />`;
  return html`<section class="card" aria-label="Timeline"><ol class="timeline">${items.map((item) => html`<li class=${item.kind.toLowerCase()}>
    <time datetime=${item.time} title=${item.time}>${clock(item.time)}</time><span class="dot" aria-hidden="true"></span><span class="what"><b>${item.reason}
    </b>${item.count > 1 ? ` ×${item.count}` : ""} <span class="muted">${item.object}</span>${item.message && html`<br />${item.message}`}</span></li>`)}</ol>
    </section>`;
}
