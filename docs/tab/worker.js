// Python in a worker: fetches the parts that parts.json names, checks each, and runs one command on the files it is given.
import { ConsoleStdout, Directory, File, OpenFile, PreopenDirectory, WASI } from "./shim/index.js";

const say = (kind, rest) => postMessage({ kind, ...rest });
let parts = null;

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

async function prepared() {
  const listed = await (await fetch("parts.json", { cache: "no-cache" })).json();
  const [python, library, kit] = await fetched([listed.python, listed.library, listed.kit]);
  say("bar", { share: null });
  say("said", { text: "Starting Python" });
  const stream = new Blob([python]).stream().pipeThrough(new DecompressionStream("gzip"));
  const compiled = await WebAssembly.compileStreaming(new Response(stream, { headers: { "Content-Type": "application/wasm" } }));
  return { compiled, library, kit, driver: new TextEncoder().encode(listed.driver) };
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

onmessage = async ({ data: { files, words } }) => {
  try {
    parts ||= await prepared();
    const root = new Map([["tmp", new Directory(new Map())], ["out", new Directory(new Map())]]);
    placed(root, "usr/local/lib/python315.zip", parts.library);
    placed(root, "kit.zip", parts.kit);
    placed(root, "words.json", new TextEncoder().encode(JSON.stringify(words)));
    for (const { path, bytes } of files) placed(root, `in/${path}`, bytes);
    const line = (text) => say("line", { text });
    const fds = [new OpenFile(new File([])), ConsoleStdout.lineBuffered(line), ConsoleStdout.lineBuffered(line), new PreopenDirectory("/", root)];
    const wasi = new WASI(["python", "-c", new TextDecoder().decode(parts.driver)], ["HOME=/tmp", "TMPDIR=/tmp", "PYTHONTZPATH=", "NO_COLOR=1"], fds, { debug: false });
    const imports = { wasi_snapshot_preview1: wasi.wasiImport, host: { call: () => 0 } };
    for (const { module, name, kind } of WebAssembly.Module.imports(parts.compiled))
      if (kind === "function") (imports[module] ||= {})[name] ||= () => 52; // "not supported", of what no job here calls
    const instance = await WebAssembly.instantiate(parts.compiled, imports);
    say("said", { text: "Reading the files and computing" });
    wasi.initialize(instance);
    const code = instance.exports.run();
    say("done", { code, files: collected(root.get("out").contents, "", {}) });
  } catch (error) {
    const memory = error instanceof RangeError || /memory|unreachable/i.test(error.message);
    say("failed", { text: memory ? "The tab has too little memory for these files. Fewer points or models may fit; the command xcrepro report takes them all."
      : `This did not work: ${error.message}` });
  }
};
