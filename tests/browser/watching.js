// Runs before every page of a test: a trap for canaries, and what the browser itself measures.
window.canary = () => console.log("canary called");
document.addEventListener("securitypolicyviolation", (event) => console.log(`csp ${event.violatedDirective} ${event.blockedURI}`));
window.longTasks = [];
window.shifts = [];
const observe = (type, take) => new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type, buffered: true });
observe("longtask", (entry) => window.longTasks.push([entry.startTime, entry.duration]));
observe("layout-shift", (entry) => entry.hadRecentInput || window.shifts.push(entry.value));
