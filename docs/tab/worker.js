// Python in a worker: fetches the parts that parts.json names, checks each, and runs one command or a notebook's cells.
import { ConsoleStdout, Directory, File, OpenFile, PreopenDirectory, WASI } from "./shim/index.js";

const say = (kind, rest) => postMessage({ kind, ...rest });
const encoded = (text) => new TextEncoder().encode(text);
let parts = null, instance = null;

async function fetched(all) {
  const total = all.reduce((sum, one) => sum + one.bytes, 0);
  let got = 0;
  return Promise.all(all.map(async (one) => {
    const answer = await fetch(one.file);
    if (!answer.ok) throw new Error(`${one.file} is not to be had (${answer.status}): reload the page`);
    const pieces = [];
    for (const reader = answer.body.getReader(); ;) {
      const { done, value } = await reader.read();
      if (done) break;
      pieces.push(value);
      got += value.length;
      say("bar", { share: got / total });
      say("said", { text: `Fetching Python, once: ${(got / 1e6).toFixed(0)} of ${(total / 1e6).toFixed(0)} MB` });
    }
    const bytes = new Uint8Array(await new Blob(pieces).arrayBuffer());
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    if (Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("") !== one.sha256)
      throw new Error(`${one.file} is damaged, so it was not run: reload the page`);
    return bytes;
  }));
}

async function prepared(project) {
  const listed = await (await fetch("parts.json", { cache: "no-cache" })).json();
  const [python, library, packages, kit, files] = await fetched(
    [listed.python, listed.library, listed.packages, listed.kit, ...(project ? [project] : [])]);
  say("bar", { share: null });
  say("said", { text: "Starting Python" });
  const stream = new Blob([python]).stream().pipeThrough(new DecompressionStream("gzip"));
  const compiled = await WebAssembly.compileStreaming(new Response(stream, { headers: { "Content-Type": "application/wasm" } }));
  return { compiled, library, packages, kit, files, driver: listed.driver, cells: listed.cells };
}

function placed(root, path, bytes) {
  const names = path.split("/");
  for (const name of names.splice(0, names.length - 1)) {
    if (!root.has(name)) root.set(name, new Directory(new Map()));
    root = root.get(name).contents;
  }
  root.set(names[0], new File(bytes));
}

function collected(contents, prefix, found) {
  for (const [name, one] of contents) {
    if (one instanceof Directory) collected(one.contents, `${prefix}${name}/`, found);
    else found[prefix + name] = one.data;
  }
  return found;
}

// Python's code, where what code before it defined is there. 0: it ran to its end.
function python(code) {
  const bytes = encoded(code), place = instance.exports.host_alloc(bytes.length);
  new Uint8Array(instance.exports.memory.buffer, place, bytes.length).set(bytes);
  return instance.exports.turn(place, bytes.length);
}

// A new Python with these files; the folder that they are in.
async function started(files) {
  const root = new Map([["tmp", new Directory(new Map())], ["out", new Directory(new Map())]]);
  placed(root, "usr/local/lib/python315.zip", parts.library);
  placed(root, "packages.zip.xz", parts.packages);
  placed(root, "kit.zip", parts.kit);
  for (const { path, bytes } of files) placed(root, path, bytes);
  const line = (text) => say("line", { text });
  const fds = [new OpenFile(new File([])), ConsoleStdout.lineBuffered(line), ConsoleStdout.lineBuffered(line), new PreopenDirectory("/", root)];
  const wasi = new WASI(["python"], ["HOME=/tmp", "TMPDIR=/tmp", "PYTHONTZPATH=", "NO_COLOR=1"], fds, { debug: false });
  const imports = { wasi_snapshot_preview1: wasi.wasiImport, host: { call: () => 0 } };
  for (const { module, name, kind } of WebAssembly.Module.imports(parts.compiled))
    if (kind === "function") (imports[module] ||= {})[name] ||= () => 52; // "not supported", of what no job here calls
  instance = await WebAssembly.instantiate(parts.compiled, imports);
  say("said", { text: "Reading the files and computing" });
  wasi.initialize(instance);
  if (python(parts.driver)) throw new RangeError("no room for the packages");
  return root;
}

const jobs = {
  async report({ files, words }) {
    parts ||= await prepared();
    const root = await started(files.map(({ path, bytes }) => ({ path: `in/${path}`, bytes })));
    python(`report(${JSON.stringify(words)})`);
    return { files: collected(root.get("out").contents, "", {}) };
  },
  async open({ id, project, lesson }) {
    parts = await prepared(project);
    await started([{ path: "project.zip", bytes: parts.files }]);
    python(`project(${JSON.stringify(id)})`);
    python(parts.cells + (lesson ? "models_kept()\n" : ""));
    return {};
  },
  async cell({ source, committed }) {
    return { code: python(`cell(${JSON.stringify(source)}, ${JSON.stringify(committed)})`) };
  },
};

onmessage = async ({ data }) => {
  try {
    say("done", await jobs[data.job](data));
  } catch (error) {
    const memory = error instanceof RangeError || /memory|unreachable/i.test(error.message);
    say("failed", { text: memory ? "The tab has too little memory for this. Less data may fit; the same on a command line takes it all."
      : `This did not work: ${error.message}` });
  }
};
