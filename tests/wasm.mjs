// Runs a Python program on the build for WebAssembly: node wasm.mjs FOLDER_OF_PARTS PROJECT PROGRAM
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import zlib from "node:zlib";
import { WASI } from "node:wasi";

const [parts, project, program] = process.argv.slice(2);
const part = (name) => path.join(parts, fs.readdirSync(parts).find((file) => file.startsWith(name)));
const root = fs.mkdtempSync(path.join(os.tmpdir(), "wasm-"));
process.on("exit", () => fs.rmSync(root, { recursive: true }));
for (const folder of ["usr/local/lib", "tmp"]) fs.mkdirSync(path.join(root, folder), { recursive: true });
fs.copyFileSync(part("library-"), path.join(root, "usr/local/lib/python315.zip"));
fs.copyFileSync(part("packages-"), path.join(root, "packages.xz"));
const first = `import lzma, sys
open("/tmp/packages.zip", "wb").write(lzma.open("/packages.xz").read())
sys.path[:0] = ["/app", "/tmp/packages.zip"]
`;
const compiled = await WebAssembly.compile(zlib.gunzipSync(fs.readFileSync(part("python-"))));
const wasi = new WASI({
  version: "preview1", args: ["python", "-c", first + program], preopens: { "/": root, "/app": project },
  env: { HOME: "/tmp", TMPDIR: "/tmp" },
});
const imports = wasi.getImportObject();
for (const { module, name, kind } of WebAssembly.Module.imports(compiled))
  if (kind === "function") (imports[module] ||= {})[name] ||= () => 52; // "not supported"
const instance = await WebAssembly.instantiate(compiled, imports);
wasi.initialize(instance);
process.exitCode = instance.exports.run();
