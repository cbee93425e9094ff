// Build static/vendor of explorer/ and toolkit/, and axe-core for tests/browser, from what package-lock.json names.
// Usage: node build.mjs [ROOT]   (the repository by default)
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(process.argv[2] ?? join(here, "..", ".."));
const SPDX = { "BSD-0-Clause": "0BSD" };

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
const inPackage = (...path) => join(here, "node_modules", ...path);

/** The package that a file below node_modules is of. */
const packageOf = (file) => file.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1];

/** Bundle a file of this folder: its text, and the packages in it. */
async function bundled(entry, format) {
  const { outputFiles, metafile } = await build({
    absWorkingDir: here,
    bundle: true,
    charset: "utf8",
    entryPoints: [entry],
    format,
    legalComments: "none",
    metafile: true,
    minify: true,
    target: "es2022",
    write: false,
  });
  const [output] = Object.values(metafile.outputs);
  const used = Object.entries(output.inputs).filter(([, { bytesInOutput }]) => bytesInOutput);
  const packages = [...new Set(used.map(([file]) => packageOf(file)).filter(Boolean))].sort();
  return { bytes: Buffer.from(outputFiles[0].contents), packages };
}

/**
 * Classless Pico with its icons as files: the pages' policy allows no data: addresses.
 *
 * In slate: on buttons of the default, azure, dark mode has less contrast than WCAG AA asks for.
 */
function pico() {
  const packages = ["@picocss/pico"];
  const icons = {};
  const text = readFileSync(inPackage("@picocss/pico/css/pico.classless.slate.min.css"), "utf8");
  const style = text.replace(/url\("data:image\/svg\+xml,([^"]*)"\)/g, (_, address) => {
    const bytes = Buffer.from(decodeURIComponent(address));
    const name = `icons/${sha256(bytes).slice(0, 8)}.svg`;
    icons[name] = { bytes, packages };
    return `url("${name}")`;
  });
  return { "pico.css": { bytes: Buffer.from(style), packages }, ...icons };
}

function licence(name) {
  const file = readdirSync(inPackage(name)).find((each) => /^licen[cs]e(\.(md|txt))?$/i.test(each));
  return readFileSync(inPackage(name, file), "utf8").trim();
}

/** Write files with their licences and VERSIONS.json; return the folder. */
function write(folder, files) {
  const target = join(root, folder);
  rmSync(target, { recursive: true, force: true });
  const names = [...new Set(Object.values(files).flatMap(({ packages }) => packages))].sort();
  const packages = {};
  for (const name of names) {
    const { version, license } = JSON.parse(readFileSync(inPackage(name, "package.json"), "utf8"));
    packages[name] = { version, licence: SPDX[license] ?? license };
  }
  const texts = names.map((name) => `${name} ${packages[name].version}\n\n${licence(name)}\n`);
  files["LICENSES.txt"] = { bytes: Buffer.from(texts.join(`\n${"-".repeat(72)}\n\n`)), packages: names };
  const table = {};
  for (const name of Object.keys(files).sort()) {
    const { bytes, packages: of } = files[name];
    table[name] = { sha256: sha256(bytes), packages: of };
    mkdirSync(dirname(join(target, name)), { recursive: true });
    writeFileSync(join(target, name), bytes);
  }
  writeFileSync(join(target, "VERSIONS.json"), `${JSON.stringify({ packages, files: table }, null, 2)}\n`);
  return target;
}

const shared = { "htmx.js": await bundled("htmx.js", "iife"), ...pico() };
const served = {
  "explorer/static/vendor": shared,
  "toolkit/static/vendor": { "editor.js": await bundled("editor.js", "esm"), ...shared },
};
for (const [folder, files] of Object.entries(served)) {
  const target = write(folder, files);
  // Browsers get these: the files themselves are beyond what a page may weigh.
  for (const [name, { bytes }] of Object.entries(files).filter(([name]) => /\.(js|css)$/.test(name))) {
    writeFileSync(join(target, `${name}.gz`), gzipSync(bytes, { level: 9 }));
  }
}
write("tests/browser/axe", {
  "axe.min.js": { bytes: readFileSync(inPackage("axe-core/axe.min.js")), packages: ["axe-core"] },
});
