// Before the first paint: the theme that was chosen here, or the system's, also when that changes.
const dark = matchMedia("(prefers-color-scheme: dark)");
const chosen = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
const applyTheme = () => { document.documentElement.dataset.theme = chosen() || (dark.matches ? "dark" : "light"); dispatchEvent(new Event("themechange")); };
applyTheme();
dark.addEventListener("change", applyTheme);
addEventListener("themechosen", applyTheme);
