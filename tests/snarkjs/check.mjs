// Holds our proofs against snarkjs, an implementation of Groth16 that shares no code with ours.
//
// usage: node check.mjs PROVER [VECTORS]
//
// What PROVER proves, `snarkjs groth16 verify` accepts; what is changed afterwards, both refuse. VECTORS is a folder
// with a proof that snarkjs made of a circom circuit; where it is not there, that check is skipped. One line a check
// on standard output: `ok: …`, `FAILED: …` or `skipped: WHAT: WHY: HOW`. Exit code 1 if one failed.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { argv, execPath, exit, stdout } from "node:process";
import { fileURLToPath } from "node:url";

const SNARKJS = fileURLToPath(new URL("node_modules/snarkjs/build/cli.cjs", import.meta.url));
/** The base field's modulus: −(x, y) is (x, p − y). */
const P = BigInt(
  "0x1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab",
);
const TIME_LIMIT_MS = 120_000;

const [prover, vectors] = argv.slice(2).map((path) => resolve(path));
const folder = mkdtempSync(join(tmpdir(), "sexton-snarkjs-"));
let failed = 0;

function run(program, args) {
  const ended = spawnSync(program, args, { cwd: folder, encoding: "utf8", timeout: TIME_LIMIT_MS });
  if (ended.error) throw ended.error;
  return { code: ended.status, said: `${ended.stdout}${ended.stderr}`.trim() };
}

function report(what, problems) {
  if (problems.length > 0) failed += 1;
  stdout.write(problems.length > 0 ? `FAILED: ${what}: ${problems.join("; ")}\n` : `ok: ${what}\n`);
}

/** Asks both verifiers about three files of `folder`; each has to accept (exit code 0) or refuse (1) them. */
function expect(what, accepted, vk, publicInputs, proof) {
  const code = accepted ? 0 : 1;
  const theirs = run(execPath, [SNARKJS, "groth16", "verify", vk, publicInputs, proof]);
  const ours = run(prover, ["verify", proof, "--vk", vk, "--public", publicInputs]);
  const problems = [];
  const verdict = accepted ? /OK!/ : /Invalid proof|not valid/;
  if (theirs.code !== code || !verdict.test(theirs.said)) {
    problems.push(`snarkjs ended with ${theirs.code}, expected ${code} and ${verdict}: ${theirs.said}`);
  }
  if (ours.code !== code) problems.push(`prover verify ended with ${ours.code}, expected ${code}: ${ours.said}`);
  report(`${what} is ${accepted ? "accepted" : "refused"} by both`, problems);
}

const read = (name) => JSON.parse(readFileSync(join(folder, name), "utf8"));

/** Writes a changed copy of a document of `folder` and gives its name. */
function changed(name, change) {
  const document = read(name);
  change(document);
  writeFileSync(join(folder, `changed-${name}`), JSON.stringify(document));
  return `changed-${name}`;
}

const plusOne = (list, index) => (list[index] = String(BigInt(list[index]) + 1n));

function checkOurs(circuit, args) {
  const files = ["--proof", "proof.json", "--vk", "vk.json", "--public", "public.json"];
  const proved = run(prover, ["prove", ...args, "--keys", "keys", "--format", "snarkjs", ...files]);
  if (proved.code !== 0) return report(`${circuit}: a proof is made`, [proved.said]);
  const [vk, inputs, proof] = ["vk.json", "public.json", "proof.json"];
  expect(`${circuit}: our proof`, true, vk, inputs, proof);
  for (const index of read(inputs).keys()) {
    const other = changed(inputs, (list) => plusOne(list, index));
    expect(`${circuit}: public input ${index} + 1`, false, vk, other, proof);
  }
  const offCurve = changed(proof, ({ pi_a }) => plusOne(pi_a, 0));
  expect(`${circuit}: a proof whose A is off the curve`, false, vk, inputs, offCurve);
  const negated = changed(proof, ({ pi_a }) => (pi_a[1] = String(P - BigInt(pi_a[1]))));
  expect(`${circuit}: a proof with −A`, false, vk, inputs, negated);
  const swapped = changed(proof, (points) => ([points.pi_a, points.pi_c] = [points.pi_c, points.pi_a]));
  expect(`${circuit}: a proof with A and C exchanged`, false, vk, inputs, swapped);
  const otherKey = changed(vk, (key) => (key.vk_alpha_1 = key.IC[0]));
  expect(`${circuit}: a key with another α`, false, otherKey, inputs, proof);
}

function checkTheirs() {
  const what = "a proof that snarkjs made of a circom circuit";
  if (vectors === undefined || !existsSync(vectors)) {
    stdout.write(`skipped: ${what}: the test vectors of others are not here: scripts/test --help says where they go\n`);
    return;
  }
  const path = (name) => join(vectors, name);
  for (const [name, copy] of [["verification_key.json", "vk"], ["public.json", "public"], ["circom.proof", "proof"]]) {
    writeFileSync(join(folder, `${copy}.json`), readFileSync(path(name)));
  }
  expect(what, true, "vk.json", "public.json", "proof.json");
  expect(`${what}, with another product,`, false, "vk.json", changed("public.json", (list) => plusOne(list, 0)), "proof.json");
}

try {
  checkOurs("mimc-2^8", ["mimc", "--size", "2^8"]);
  checkOurs("sha256-1", ["sha256", "--preimage", "sexton"]);
  checkTheirs();
} finally {
  rmSync(folder, { recursive: true });
}
exit(failed > 0 ? 1 : 0);
