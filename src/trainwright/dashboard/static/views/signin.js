// A key on one's own machine, a token in a cluster. Neither is ever part of an address.
import { html, useState, api } from "/static/lib.js";
import { Notice } from "/static/parts.js";

const WORDS = {
  key: ["The key of this page", "trainwright ui and trainwright up --ui print it. The browser they open has it already.", "key"],
  token: ["A token of the cluster", "What it may read is what you see. For a service account: kubectl create token NAME", "token"],
};

export function SignIn({ door, onEnter }) {
  const [secret, set] = useState("");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const [title, explanation, label] = WORDS[door] || WORDS.key;
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try { await api("session", { secret }); await onEnter(); } catch (failure) { setError(failure.message); }
    setBusy(false);
  };
  return html`<form class="signin card" onSubmit=${submit}><h1>${title}</h1><p class="muted">${explanation}</p>
    <label for="secret">The ${label}</label>
    <input id="secret" type="password" autocomplete="current-password" required value=${secret} onInput=${(event) => set(event.target.value)} autofocus />
    ${error && html`<${Notice} kind="error">${error}<//>`}
    <button class="primary" disabled=${busy}>Sign in</button></form>`;
}
