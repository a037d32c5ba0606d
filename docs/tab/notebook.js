// A notebook: its text and committed outputs, and its cells to be edited and run in the worker. Nothing is sent anywhere.
import { able, asked, at, say, stopped } from "./tab.js";

const id = new URLSearchParams(location.search).get("item") || "", stored = `xcrepro ${id}`;
const lesson = id.startsWith("course/");
let page = null, open = false, edits = {}, cells = []; // of cells: those with a place to write

function made(tag, about, ...children) {
  const element = Object.assign(document.createElement(tag), about);
  element.append(...children);
  return element;
}

const joined = (text) => [text].flat().join("");

function shown(output) {
  const data = output.data || {}, html = output.html || data["text/html"];
  if (data["image/png"]) return made("img", { src: `data:image/png;base64,${joined(data["image/png"])}`, alt: "what the cell draws" });
  if (html) return made("div", { innerHTML: joined(html) });
  const text = output.text || data["text/markdown"] || data["text/plain"] || output.traceback.join("\n");
  return made("pre", { textContent: joined(text), className: output.name === "stderr" || output.traceback ? "aside" : "" });
}

function written(cell, outputs) {
  cell.place.replaceChildren(...outputs.map(shown));
}

function state(cell, text) {
  cell.state.textContent = text;
}

function editable(about, number) {
  const code = about.cell_type === "code", cell = { about, number, code, outputs: null };
  cell.area = made("textarea", { value: edits[number] ?? about.source, spellcheck: !code, autocapitalize: "off" });
  const fit = () => { cell.area.rows = cell.area.value.split("\n").length + 1; };
  cell.area.addEventListener("input", () => {
    fit();
    edits[number] = cell.area.value;
    if (cell.area.value === about.source) delete edits[number];
    localStorage.setItem(stored, JSON.stringify(edits));
  });
  cell.area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.shiftKey && code) {
      event.preventDefault();
      run(cells.slice(0, cells.indexOf(cell) + 1).filter((one) => one === cell || !one.ran));
    }
    if (event.key !== "Tab" || event.shiftKey || event.ctrlKey || !code) return;
    event.preventDefault();
    cell.area.setRangeText("    ", cell.area.selectionStart, cell.area.selectionEnd, "end");
    cell.area.dispatchEvent(new Event("input"));
  });
  fit();
  cells.push(cell);
  if (!code) return made("section", {}, cell.area);
  const button = made("button", { type: "button", textContent: "Run", title: "Shift+Enter; cells above that have not run go first" });
  button.addEventListener("click", () => run(cells.slice(0, cells.indexOf(cell) + 1).filter((one) => one === cell || !one.ran)));
  cell.state = made("small", {});
  cell.place = made("div", { className: "shown" });
  written(cell, about.outputs || []);
  return made("section", {}, cell.area, made("p", { className: "one" }, button, " ", cell.state), cell.place);
}

async function opened() {
  open = Boolean(await asked({ job: "open", project: page.project, lesson, id }));
  return open;
}

// Cells in their order; what fails ends a paper's notebook, a lesson goes on with what does not need it.
async function run(wanted) {
  at("log").hidden = true;
  if (!open && !(await opened())) return;
  let equal = 0, differ = 0;
  for (const cell of wanted.filter((one) => one.code)) {
    const own = cell.area.value === cell.about.source, outputs = [];
    let end = null;
    say(`Running cell ${cell.number + 1}`);
    state(cell, "running");
    cell.place.replaceChildren();
    const done = await asked({ job: "cell", source: cell.area.value, committed: own && cell.about.outputs ? JSON.stringify(cell.about.outputs) : "" }, (line) => {
      const output = JSON.parse(line), last = outputs.at(-1);
      if (output.output_type === "end") return void (end = output);
      if (output.output_type === "stream" && last?.output_type === "stream" && last.name === output.name) last.text += output.text;
      else if (output.update) Object.assign(outputs.find((one) => one.id === output.id) || output, output);
      else outputs.push(output);
      written(cell, outputs);
    });
    if (!done) {
      open = false;
      cells.forEach((one) => { one.ran = false; });
      state(cell, "stopped; what the cells had computed is gone");
      return;
    }
    Object.assign(cell, { ran: true, outputs });
    if (end.differs === "") equal += 1;
    else if (end.ends && end.differs !== "not compared") differ += 1;
    state(cell, !end.ends ? "failed" : end.differs === "" ? "as committed" : end.differs === "not compared" ? "ran" : `differs: ${end.differs}`);
    if (!end.ends && !lesson) return say(`Cell ${cell.number + 1} failed, so those below did not run.`);
  }
  say(`Done: ${equal} cells gave what is committed${differ ? `, ${differ} did not` : ""}.`);
}

function save() {
  const notebook = { nbformat: 4, nbformat_minor: 5, metadata: page.metadata, cells: page.cells.map(({ html: _, ...about }, number) => {
    const cell = cells.find((one) => one.number === number);
    const outputs = (cell?.outputs || []).map(({ id: _id, update: _update, ...output }) => output);
    return { ...about, source: cell ? cell.area.value : about.source, ...(about.cell_type === "code" && { outputs, execution_count: null }) };
  }) };
  const url = URL.createObjectURL(new Blob([JSON.stringify(notebook, null, 1)], { type: "application/x-ipynb+json" }));
  made("a", { href: url, download: `${id.split("/").at(-1)}.ipynb` }).click();
}

function again(text) {
  stopped(text);
  open = false;
  for (const cell of cells.filter((one) => one.code)) {
    Object.assign(cell, { ran: false, outputs: null });
    state(cell, "");
    written(cell, cell.about.outputs || []);
  }
}

try {
  if (able("JupyterLab on your machine")) {
    const answer = await fetch(`notebooks/${id}.json`);
    if (!answer.ok) throw new Error(`there is no notebook ${id} here`);
    page = await answer.json();
    edits = JSON.parse(localStorage.getItem(stored) || "{}");
    at("still").href = `../notebooks/${id}.html`;
    at("cells").append(...page.cells.map((about, number) => about.html && !about.metadata.nbgrader
      ? made("div", { innerHTML: about.html }) : editable(about, number)));
    document.title = `${document.querySelector("h1").textContent}: xcrepro`;
    const brought = page.trained.length ? ` Models are not trained in the tab: predictions of ${page.trained.join(", ")} come with the page.` : "";
    say(`Nothing is loaded yet. Python takes 35 MB, once; this notebook's data ${(page.project.bytes / 1e6).toFixed(1)} MB.${brought}`);
    at("all").onclick = () => run(cells);
    at("again").onclick = () => again("Nothing runs; what the cells had computed is gone.");
    at("save").onclick = save;
    at("reset").onclick = () => {
      localStorage.removeItem(stored);
      location.reload();
    };
    window.MathJax = { options: { enableMenu: false }, svg: { fontCache: "local" } };
    document.head.append(made("script", { src: "../_static/mathjax/tex-svg-full.js" }));
  }
} catch (error) {
  say(`The notebook cannot be shown: ${error.message}`);
}
