// One ioredis client a node with its default options, and the library's locks over them.
import { setTimeout as sleep } from "node:timers/promises";
import Redis from "ioredis";

const CONNECT_MS = 10_000;
const ALL_NODES_MS = 1_000; // a dead node is not waited for any longer
const AGAIN_MS = 20;

function client(address) {
  const colon = address.lastIndexOf(":");
  const redis = new Redis({ host: address.slice(0, colon), port: Number(address.slice(colon + 1)) });
  // It reconnects by itself; without a listener it would print each failure.
  redis.on("error", () => {});
  return redis;
}

function ready(redis) {
  return new Promise((resolve) => {
    redis.once("ready", resolve);
  });
}

async function takeOne(nodes, deadline) {
  for (;;) {
    try {
      await nodes.locks.release(await nodes.locks.tryAcquire("bench-connect"));
      return;
    } catch (error) {
      if (!nodes.open || performance.now() > deadline) {
        throw error;
      }
      await sleep(AGAIN_MS);
    }
  }
}

export async function connect(makeLocks, addresses) {
  if (addresses.length === 0 || !addresses.every((address) => /^.+:\d{1,5}$/.test(address))) {
    throw new Error("connect needs HOST:PORT …");
  }
  const clients = addresses.map(client);
  const nodes = {
    open: true,
    locks: makeLocks(clients),
    close() {
      nodes.open = false;
      clients.forEach((redis) => redis.disconnect());
    },
  };
  const deadline = performance.now() + CONNECT_MS;
  const late = sleep(CONNECT_MS, undefined, { ref: false }).then(() => {
    throw new Error(`no lock could be taken and released in ${CONNECT_MS / 1000} s`);
  });
  try {
    await Promise.race([Promise.all(clients.map(ready)), sleep(ALL_NODES_MS)]);
    await Promise.race([takeOne(nodes, deadline), late]);
  } catch (error) {
    nodes.close();
    throw error;
  }
  return nodes;
}
