// Requests, server-sent events, routes, and values as text. Nothing here knows a view.
import { html, useState, useEffect, useRef } from "/static/vendor/preact.js";
export * from "/static/vendor/preact.js";

// Requests

class Failed extends Error {
  constructor(status, body) { super(body.error || `the server answered ${status}`); this.status = status; this.body = body; }
}

let csrf = "";
export const setCsrf = (token) => { csrf = token; };

export async function api(path, body, method = body === undefined ? "GET" : "POST") {
  const headers = method === "GET" ? {} : { "Content-Type": "application/json", "X-CSRF-Token": csrf };
  let answer;
  try {
    answer = await fetch(`/api/${path}`, { method, headers, body: method === "GET" ? undefined : JSON.stringify(body ?? {}), credentials: "same-origin" });
  } catch {
    throw new Failed(0, { error: "The page's server does not answer. Is trainwright ui still running?" });
  }
  const value = await answer.json().catch(() => ({}));
  if (!answer.ok) { if (value.door) signal("signin", value); throw new Failed(answer.status, value); }
  return value;
}

const listeners = {};
export const signal = (name, value) => (listeners[name] || []).forEach((f) => f(value));
export const on = (name, f) => { (listeners[name] ||= new Set()).add(f); return () => listeners[name].delete(f); };

// Server-sent events. A page that nobody looks at for a while lets go of its connection: a browser has six of them.
const HIDDEN_MS = 15000;

export function useStream(path, handlers) {
  const [live, setLive] = useState(false);
  const current = useRef(handlers);
  current.current = handlers;
  useEffect(() => {
    if (!path) return undefined;
    let source = null, timer = 0, hidden = 0, over = false;
    const open = () => {
      if (over || source) return;
      source = new EventSource(`/api/stream/${path}`);
      source.onopen = () => setLive(true);
      source.onerror = () => {
        setLive(false);
        if (source && source.readyState === EventSource.CLOSED) { close(); timer = setTimeout(() => { api("me").catch(() => {}); open(); }, 1500); }
      };
      for (const name of Object.keys(current.current)) source.addEventListener(name, (event) => current.current[name]?.(JSON.parse(event.data)));
    };
    const close = () => { source?.close(); source = null; };
    const look = () => {
      clearTimeout(hidden);
      if (document.hidden) hidden = setTimeout(() => { close(); setLive(false); }, HIDDEN_MS);
      else open();
    };
    document.addEventListener("visibilitychange", look);
    open();
    return () => { over = true; clearTimeout(timer); clearTimeout(hidden); document.removeEventListener("visibilitychange", look); close(); };
  }, [path]);
  return live;
}

export function useAnswer(path) {
  const [state, set] = useState({ value: null, error: "" });
  useEffect(() => {
    let over = false;
    set({ value: null, error: "" });
    if (path) api(path).then((value) => over || set({ value, error: "" }), (error) => over || set({ value: null, error: error.message }));
    return () => { over = true; };
  }, [path]);
  return state;
}

// Routes

export const go = (path, { replace = false } = {}) => {
  history[replace ? "replaceState" : "pushState"](null, "", path);
  if (!replace) scrollTo(0, 0);
  signal("route");
};

export function useRoute() {
  const [, set] = useState(0);
  useEffect(() => {
    const change = () => set((n) => n + 1);
    addEventListener("popstate", change);
    const off = on("route", change);
    return () => { removeEventListener("popstate", change); off(); };
  }, []);
  return { parts: location.pathname.split("/").filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(location.search) };
}

export const path = (...parts) => `/${parts.map(encodeURIComponent).join("/")}`;

export function Link({ to, children, ...rest }) {
  const click = (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(to);
  };
  return html`<a href=${to} onClick=${click} ...${rest}>${children}</a>`;
}

// Time

export function useNow(ms = 1000) {
  const [now, set] = useState(Date.now());
  useEffect(() => { const timer = setInterval(() => document.hidden || set(Date.now()), ms); return () => clearInterval(timer); }, [ms]);
  return now;
}

const two = (whole, unit, rest, small) => `${whole}${unit}${rest && whole < 10 ? `${rest}${small}` : ""}`;
export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "";
  const s = Math.max(0, Math.floor(seconds));
  if (s < 120) return `${s}s`;
  if (s < 7200) return two(Math.floor(s / 60), "m", s % 60, "s");
  if (s < 172800) return two(Math.floor(s / 3600), "h", Math.floor((s % 3600) / 60), "m");
  return `${Math.floor(s / 86400)}d`;
}
export const since = (time, now) => (time ? duration((now - Date.parse(time)) / 1000) : "");
export const clock = (time) => (time ? new Date(time).toLocaleTimeString([], { hour12: false }) : "");
export const moment = (time) => (time ? new Date(time).toLocaleString([], { dateStyle: "medium", timeStyle: "medium", hour12: false }) : "");

// Numbers

export function number(value) {
  const n = Number(value);
  if (value === null || value === "" || !Number.isFinite(n)) return String(value ?? "");
  if (n === 0) return "0";
  const size = Math.abs(n);
  if (size >= 1e6 || size < 1e-3) return n.toExponential(2).replace("e+", "e");
  return String(Number(n.toPrecision(size >= 1000 ? 6 : 4)));
}
export function bytes(n) {
  if (n === null || n === undefined) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (n >= 1024 && at < units.length - 1) { n /= 1024; at += 1; }
  return `${n >= 100 || at === 0 ? Math.round(n) : n.toFixed(1)} ${units[at]}`;
}
export const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

export const remember = (name, value) => { try { localStorage.setItem(name, JSON.stringify(value)); } catch { /* forbidden */ } };
export const recall = (name, other) => { try { return JSON.parse(localStorage.getItem(name)) ?? other; } catch { return other; } };
