/* The data as objects, and the words for them. */
const runs = JSON.parse(document.getElementById('chaos-data').textContent).runs;
const run = runs[0];
const pageRoot = document.documentElement;
const SHARED = 8; // more in how a lease ended: others had it, too, to read

/* Leases and acquires come relative to the one before: see data.c. Here all times are in ticks
 * since the start. */
for (const each of runs) {
  each.acquires = [];
  each.clients = each.clients.map(({ leases, acquires, unhealthy }, client) => {
    let at = 0, next = 0;
    const tried = acquires.map(([gap, tookUs, resource, result, attempts, votes, shared]) => {
      at += gap;
      const wait = tookUs / each.tick_us;
      return { client, shared: shared === 1, from: at, to: at, resource, tookUs, wait, attempts, votes, result, failed: result !== 'OK', over: /^(CLOSED|CANCELLED)$/.test(result) };
    });
    at = 0;
    const held = leases.map(([gap, length, resource, packed, token, until, ...renewals]) => {
      const from = at + gap;
      at = from + length;
      while (next < tried.length && tried[next].to <= from) next++;
      /* The last acquire before gave it, if it was OK. */
      const last = tried[next - 1], { tookUs, wait, attempts, votes } = last && !last.failed && last.resource === resource ? last : { tookUs: -1, wait: 0, votes: '' };
      return { client, shared: packed >= SHARED, from, to: at, resource, how: packed % SHARED, tookUs, wait, attempts, votes, token,
        until: until === undefined ? undefined : from + until, renewals: renewals.map(since => from + since) };
    });
    each.acquires.push(...tried);
    return { reads: tried.some(acquire => acquire.shared), leases: held, failures: tried.filter(acquire => acquire.failed), unhealthy };
  });
  each.acquires.sort((a, b) => a.from - b.from);
}

/* At most about 60 intervals, of 1, 2 or 5 times a power of ten, and at least half a second. */
function bucketsOf({ end, tick_us, acquires }) {
  let power = 100000, factor = 5;
  while ((end - 1) * tick_us / (factor * power) > 60) {
    if (factor === 5) power *= 10;
    factor = { 1: 2, 2: 5, 5: 1 }[factor];
  }
  const width = factor * power / tick_us;
  const list = Array.from({ length: Math.floor((end - 1) / width) + 1 }, () => ({ acquired: 0, contended: 0, failed: 0, took: [] }));
  for (const acquire of acquires) {
    const bucket = list[Math.floor(acquire.from / width)];
    if (!bucket || acquire.over) continue;
    bucket[!acquire.failed ? 'acquired' : acquire.result === 'CONTENDED' ? 'contended' : 'failed']++;
    if (!acquire.failed) bucket.took.push(acquire.tookUs);
  }
  const rank = (sorted, share) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] || 0;
  for (const bucket of list) {
    bucket.took.sort((a, b) => a - b);
    bucket.p50 = rank(bucket.took, 0.5);
    bucket.p99 = rank(bucket.took, 0.99);
    bucket.all = bucket.acquired + bucket.contended + bucket.failed;
  }
  return { width, list };
}
/* [tick, in how many of the spans it is from then on] */
function stepsOf(spans) {
  const changes = new Map(), add = (tick, by) => changes.set(tick, (changes.get(tick) || 0) + by);
  for (const [from, to] of spans) { add(from, 1); add(to, -1); }
  let count = 0;
  return [...changes].sort(([a], [b]) => a - b).map(([tick, by]) => [tick, count += by]);
}

function countAt(steps, at) {
  const before = steps.filter(([tick]) => tick <= at);
  return before.length ? before[before.length - 1][1] : 0;
}
/* Where each acquire stood in line at its end: how many that began before it still waited, and itself. Those who read
 * do not pass each other. */
function findPlaces({ acquires, resources }) {
  const lines = resources.map(() => []), moments = acquires.flatMap(acquire => [[acquire.from - acquire.wait, acquire, true], [acquire.from, acquire, false]]);
  for (const [, acquire, begins] of moments.sort(([a], [b]) => a - b)) {
    const line = lines[acquire.resource], index = line.indexOf(acquire);
    if (begins) line.push(acquire);
    else { acquire.place = 1 + line.slice(0, index).filter(before => excludes(before, acquire)).length; line.splice(index, 1); }
  }
}

const seconds = ticks => (ticks * run.tick_us / 1e6).toFixed(3) + ' s';
const lasting = ticks => lastingUs(ticks * run.tick_us);
function lastingUs(us) {
  if (us < 1000) return us + ' µs';
  const digits = (x, unit) => x.toFixed(x < 10 ? 2 : x < 100 ? 1 : 0) + ' ' + unit;
  return us < 999500 ? digits(us / 1e3, 'ms') : us < 99.95e6 ? digits(us / 1e6, 's') : Math.floor(us / 60e6) + ' min ' + Math.round(us % 60e6 / 1e6) + ' s';
}
const many = (n, word) => n.toLocaleString('en') + ' ' + word + (n === 1 ? '' : 's');
const intervalSaid = us => us % 1e6 === 0 ? us / 1e6 + ' s' : us / 1e3 + ' ms';
const LETTERS = { G: 'granted', D: 'denied', F: 'failed', U: 'unknown', A: 'abstained', P: 'still pending' };
function votesSaid(letters) {
  const words = [];
  for (const letter in LETTERS) {
    const nodes = [...letters].flatMap((l, i) => l === letter ? [i + 1] : []);
    if (nodes.length) words.push(LETTERS[letter] + ': node' + (nodes.length > 1 ? 's ' : ' ') + nodes.join(', '));
  }
  return words.join('; ');
}
const [RELEASED, LOST, DIED] = [0, 1, 2];
const HOW = ['released', 'lost: its owner saw no validity any more', 'its owner died with it', 'held until the run ended', 'ran out before its owner, which had been stopped, released it'];
function leaseSaid(lease) {
  const lines = ['Client ' + (lease.client + 1) + (lease.shared ? ' read ' : ' held ') + run.resources[lease.resource] + ' for ' + lasting(lease.to - lease.from),
    seconds(lease.from) + ' – ' + seconds(lease.to) + ', ' + HOW[lease.how], lease.token ? 'token ' + lease.token : 'token: in history.jsonl'];
  if (lease.tookUs >= 0) lines.push('acquired within ' + lastingUs(lease.tookUs) + ', ' + many(lease.attempts, 'attempt'));
  lines.push(waitSaid(lease));
  lines.push(votesSaid(lease.votes));
  if (lease.renewals.length) lines.push('renewed ' + many(lease.renewals.length, 'time'));
  if (lease.until !== undefined) lines.push('relied on until ' + seconds(lease.until) + ' at most');
  return lines;
}
function failureSaid(failure) {
  return ['Client ' + (failure.client + 1) + ' did not get ' + run.resources[failure.resource] + (failure.shared ? ' to read: ' : ': ') + failure.result,
    seconds(failure.to) + ', after ' + lastingUs(failure.tookUs) + ' and ' + many(failure.attempts, 'attempt'), waitSaid(failure), votesSaid(failure.votes)];
}
const faultSaid = ({ from, to, text, failed }) => ['Fault: ' + text + (failed ? ' (did not work)' : ''), seconds(from) + (to > from ? ' – ' + seconds(to) : '')];

/* Elements. Text goes in as text, so nothing in it is markup. */
function build(element, attributes, children) {
  for (const name in attributes) element.setAttribute(name, attributes[name]);
  element.append(...children);
  return element;
}
const html = (name, attributes, ...children) => build(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) => build(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
const legend = items => html('ul', { class: 'legend', 'aria-label': 'Legend' },
  ...items.map(([key, words]) => html('li', {}, ...(key ? [html('i', { class: 'key ' + key })] : []), words)));

/* The box that tells what is under the pointer. */
const tip = html('div', { id: 'tip', role: 'status', hidden: '' });
document.body.append(tip);
function tell(lines, x, y) {
  tip.hidden = lines.length === 0;
  if (tip.hidden) return;
  tip.replaceChildren(html('b', {}, lines[0]), ...lines.slice(1).filter(Boolean).map(line => '\n' + line));
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(8, Math.min(x + 16, innerWidth - box.width - 8)) + 'px';
  tip.style.top = (y + 20 + box.height < innerHeight ? y + 18 : Math.max(8, y - box.height - 14)) + 'px';
}
