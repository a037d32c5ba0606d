// What both pages share: what the browser must have, the words on progress, and the worker with Python in it.
export const at = (id) => document.getElementById(id);
export const say = (text) => { at("said").textContent = text; };
const lacks = [
  [typeof WebAssembly === "object", "WebAssembly"], [typeof DecompressionStream === "function", "DecompressionStream"],
  [self.crypto && crypto.subtle, "secure addresses (https, or this machine)"],
].filter(([there]) => !there).map(([, what]) => what);
let worker = null;

export function able(instead) {
  if (lacks.length) say(`This browser lacks ${lacks.join(" and ")}. A newer one will do, or ${instead}.`);
  else if ("serviceWorker" in navigator) navigator.serviceWorker.register("offline.js").catch(() => {}); // only saves time
  return !lacks.length;
}

export function busy(yes) {
  at("inputs").disabled = yes;
  at("stop").hidden = at("bar").hidden = !yes;
}

export function stopped(text) {
  if (worker) worker.terminate();
  worker = null;
  busy(false);
  say(text);
}

function log(text) {
  at("log").hidden = false;
  at("log").textContent += `${text}\n`;
}

// Asks the worker for one thing: gives what it has in the end, null where it failed, which is then said.
export function asked(message, line = log) {
  busy(true);
  worker ||= new Worker("worker.js", { type: "module" });
  const own = worker;
  return new Promise((resolve) => {
    const failed = (text) => {
      stopped(text);
      resolve(null);
    };
    at("stop").onclick = () => failed("Stopped.");
    own.onerror = (event) => failed(`This stopped: ${event.message || "the tab has too little memory"}. Less data may fit.`);
    own.onmessage = ({ data }) => {
      if (data.kind === "bar") at("bar").value = data.share;
      if (data.kind === "bar" && data.share === null) at("bar").removeAttribute("value");
      if (data.kind === "said") say(data.text);
      if (data.kind === "line") line(data.text);
      if (data.kind === "failed") failed(data.text);
      if (data.kind === "done") {
        busy(false);
        resolve(data);
      }
    };
    own.postMessage(message);
  });
}
