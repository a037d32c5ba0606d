// The page: files in, the worker's words and report out. Nothing is sent anywhere.
import { able, asked, at, say, stopped } from "./tab.js";

const MOST = 300e6; // bytes of all files together; what Python makes of them has to fit beside them
let urls = [];
at("inputs").disabled = !able("the command xcrepro report");

for (const box of document.querySelectorAll(".drop")) {
  const input = box.querySelector("input");
  box.addEventListener("dragover", (event) => { event.preventDefault(); box.classList.add("over"); });
  box.addEventListener("dragleave", () => box.classList.remove("over"));
  box.addEventListener("drop", (event) => {
    event.preventDefault();
    box.classList.remove("over");
    input.files = event.dataTransfer.files;
  });
}

async function read(file, path) {
  try {
    return { path, bytes: new Uint8Array(await file.arrayBuffer()) };
  } catch (error) {
    throw new Error(`${file.name} cannot be read (${error.message}): was it changed or moved since you chose it?`);
  }
}

function show(files) {
  const page = files["report.html"];
  if (!page) return say("There is no report: see what was said below.");
  urls.forEach(URL.revokeObjectURL);
  const url = (bytes, type) => urls[urls.push(URL.createObjectURL(new Blob([bytes], { type }))) - 1];
  at("report").src = url(page, "text/html");
  at("report").hidden = at("links").hidden = false;
  at("links").replaceChildren(...[["report.html", page, "text/html"], ["report.zip", files["report.zip"], "application/zip"]].map(
    ([name, bytes, type]) => {
      const link = document.createElement("a");
      Object.assign(link, { href: url(bytes, type), download: name, textContent: `Save ${name}` });
      link.style.marginRight = "1rem";
      return link;
    }));
  say("Done. The report is below; report.zip holds it with its tables (CSV, LaTeX) and figures.");
}

async function run(files, words) {
  const bytes = files.reduce((sum, file) => sum + file.bytes.length, 0);
  if (bytes > MOST) throw new Error(`These files have ${(bytes / 1e6).toFixed(0)} MB, more than a tab can take (300 MB). `
    + `On a command line: pip install xcrepro, then xcrepro ${words.join(" ")}`);
  at("log").textContent = "";
  at("log").hidden = at("links").hidden = at("report").hidden = true;
  const made = await asked({ job: "report", files, words });
  if (made) show(made.files);
}

at("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const [truth, labels, train] = ["truth", "labels", "train"].map((id) => at(id).files[0]);
  const predictions = [...at("predictions").files];
  if (!truth || !predictions.length) return say("Choose a file of true labels and at least one of predictions.");
  try {
    const size = [truth, labels, train, ...predictions].reduce((sum, file) => sum + (file ? file.size : 0), 0);
    const words = ["report", truth.name, ...predictions.map((file) => file.name), "-k", ...at("ks").value.trim().split(/\s+/)];
    if (labels) words.push("--labels", `names/${labels.name}`);
    if (train) words.push("--train-truth", `train/${train.name}`);
    if (size > MOST) return await run([{ bytes: { length: size } }], words); // refused before anything is read
    const folder = predictions.some((file) => file.name === truth.name) ? "truth/" : "";
    words[1] = folder + truth.name;
    const wanted = [[truth, words[1]], ...predictions.map((file) => [file, file.name])];
    if (labels) wanted.push([labels, `names/${labels.name}`]);
    if (train) wanted.push([train, `train/${train.name}`]);
    await run(await Promise.all(wanted.map(([file, path]) => read(file, path))), words);
  } catch (error) {
    stopped(error.message);
  }
});

at("example").addEventListener("click", async () => {
  try {
    const { words, files } = await (await fetch("example.json")).json();
    await run(files.map(({ path, text }) => ({ path, bytes: new TextEncoder().encode(text) })), words);
  } catch (error) {
    stopped(`The example cannot be read: ${error.message}`);
  }
});
