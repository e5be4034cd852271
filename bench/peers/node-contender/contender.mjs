// What the contenders in Node share: commands in, figures out, as bench/README.md says.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

import { connect } from "./connect.mjs";
import { contend } from "./contend.mjs";
import { cycles } from "./cycles.mjs";

const WORKERS_MAX = 4096;
const CLIENTS_MAX = 1024;
const SAMPLES_MAX = 200_000;
const OVERTIME_MS = 25_000;

// As package.json pins them.
function versions(library) {
  const pinned = JSON.parse(readFileSync(new URL("package.json", import.meta.url))).dependencies;
  return `${pinned[library]}, ioredis ${pinned.ioredis}`;
}

function numbers(words, count) {
  const all = words.map((word) => (/^\d{1,15}$/.test(word) ? Number(word) : NaN));
  return all.length === count && !all.some(Number.isNaN) ? all : undefined;
}

// ioredis has no timeout of commands by default: a hung node can stop a library for ever. The
// driver is to get an answer all the same.
async function bounded(work, nodes, ms) {
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, ms + OVERTIME_MS);
  });
  const figures = await Promise.race([work, late]).finally(() => clearTimeout(timer));
  if (!figures) {
    nodes.close();
    throw new Error(`had not ended ${OVERTIME_MS / 1000} s after its time: it waits for nodes that do not answer`);
  }
  return figures;
}

async function execute(session, [command, ...words]) {
  if (command === "connect") {
    session.nodes?.close();
    session.nodes = undefined;
    session.nodes = await connect(session.makeLocks, words);
    return {};
  }
  if (!["cycles", "line", "loop"].includes(command)) {
    throw new Error("unsupported");
  }
  if (!session.nodes?.open) {
    throw new Error("not connected");
  }
  const { locks } = session.nodes;
  if (command === "cycles") {
    const [count, ms, samples] = numbers(words, 3) ?? [];
    if (!(count >= 1 && count <= WORKERS_MAX && samples <= SAMPLES_MAX)) {
      throw new Error("cycles needs WORKERS MS SAMPLES");
    }
    return bounded(cycles(locks, count, ms, samples), session.nodes, ms);
  }
  const last = words.pop();
  const given = numbers(words, 5) ?? [];
  if (!(given[0] <= CLIENTS_MAX)) {
    const sixth = command === "line" ? "FREE_US" : "COUNTER";
    throw new Error(`${command} needs CLIENTS HOLD_US BEGIN_US SPACE_US END_US and ${sixth}`);
  }
  const ms = given[4] / 1000 - Number(process.hrtime.bigint()) / 1e6;
  return bounded(contend(locks, command === "loop", given, last), session.nodes, ms);
}

/*
 * about: name, library (as npm names it), notes. makeLocks(clients), with one ioredis client a
 * node, gives an object with
 *   tryAcquire(resource): one try; resolves to a lock, or rejects
 *   acquire(resource, signal): waits as the library waits; may reject once the signal is aborted
 *   release(lock): rejects where it failed
 */
export async function run({ name, library, notes }, makeLocks) {
  const session = { makeLocks, nodes: undefined };
  const write = (object) => process.stdout.write(`${JSON.stringify(object)}\n`);
  write({ name, version: versions(library), language: "Node", notes });
  for await (const line of createInterface({ input: process.stdin })) {
    const answer = await execute(session, line.split(" ")).catch((error) => ({ error: error.message }));
    process.stdout.write("done\n");
    write(answer);
  }
  process.exit(0);
}
