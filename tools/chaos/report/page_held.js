/* Who has each resource, and who waited for whom: why a writer waited. */
const sharing = run.clients.some(client => client.reads);
const excludes = (one, other) => !(one.shared && other.shared);
/* The leases of each resource, by their begin; the longest of them. */
const heldOf = run.resources.map((_, resource) => {
  const leases = run.clients.flatMap(client => client.leases.filter(lease => lease.resource === resource)).sort((a, b) => a.from - b.from);
  return { leases, longest: leases.reduce((most, { from, to }) => Math.max(most, to - from), 0) };
});

/* The first lease that begins at or after a time. */
function firstFrom(leases, at) {
  let low = 0, high = leases.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (leases[middle].from < at) low = middle + 1; else high = middle;
  }
  return low;
}
/* The leases that kept it out while it waited, the last to end first. */
function blockersOf(item) {
  const { leases, longest } = heldOf[item.resource], begun = item.from - item.wait, found = [];
  for (let i = firstFrom(leases, item.from) - 1; i >= 0 && leases[i].from >= begun - longest; i--) {
    if (leases[i].to > begun && leases[i].client !== item.client && excludes(leases[i], item)) found.push(leases[i]);
  }
  return found.sort((a, b) => b.to - a.to);
}
const BLOCKERS_SAID = 4;
function waitSaid(item) {
  const blockers = item.wait > 0 ? blockersOf(item) : [];
  if (!blockers.length) return '';
  const said = blockers.slice(0, BLOCKERS_SAID).map(({ client, shared, to }) => 'client ' + (client + 1) + ' (' + (shared ? 'read' : sharing ? 'alone' : 'held it') + ' until ' + seconds(to) + ')');
  return 'waited for ' + said.join(', ') + (blockers.length > BLOCKERS_SAID ? ' and ' + (blockers.length - BLOCKERS_SAID) + ' more' : '');
}

/* In runs with readers, a row a resource: how many read it, or that somebody has it alone; above, that somebody waits to write. */
const HELD = { pitch: 30, top: 6, bar: 20, flag: 3 };
const readingOf = resource => stepsOf(heldOf[resource].leases.filter(lease => lease.shared).map(({ from, to }) => [from, to]));
const reading = sharing ? run.resources.map((_, resource) => readingOf(resource)) : [];
const readersMost = Math.max(1, ...reading.flat().map(([, count]) => count));
const pending = reading.map((_, resource) => run.acquires.filter(acquire => acquire.resource === resource && !acquire.shared));
function heldRows() {
  return layout.held.flatMap((y, resource) => ['reading', 'alone', 'pending'].map(name => svg('path', { class: name + ' hue' + resource % HUES, 'data-held': name + resource })));
}
/* Steps from left to right, as far as they are seen. */
function readingPath(resource, y) {
  const { from, to } = window_, base = y + HELD.top + HELD.bar, steps = reading[resource], d = ['M', Math.max(0, from - 9), ' ', base];
  for (let i = 0; i < steps.length && steps[i][0] <= to; i++) {
    if (i + 1 < steps.length && steps[i + 1][0] < from) continue;
    d.push('H', Math.max(steps[i][0], from - 9), 'V', (base - steps[i][1] * HELD.bar / readersMost).toFixed(1));
  }
  return d.join('') + `H${to + 9}V${base}z`;
}
function drawHeld(rows) {
  const { from, to } = window_, set = (name, d) => rows.querySelector(`[data-held="${name}"]`).setAttribute('d', d);
  layout.held.forEach((y, resource) => {
    const alone = new Bars(), waits = new Bars(), { leases, longest } = heldOf[resource];
    for (let i = firstFrom(leases, from - longest); i < leases.length && leases[i].from <= to; i++) {
      if (!leases[i].shared) alone.add(leases[i].from, leases[i].to, y + HELD.top, HELD.bar);
    }
    const spans = pending[resource].map(acquire => ({ from: acquire.from - acquire.wait, to: acquire.from })).filter(span => span.to >= from && span.from <= to);
    for (const span of spans.sort((a, b) => a.from - b.from)) waits.add(span.from, span.to, y + 1, HELD.flag);
    set('reading' + resource, readingPath(resource, y));
    set('alone' + resource, alone.text());
    set('pending' + resource, waits.text());
  });
}
const clientsSaid = items => 'client' + (items.length > 1 ? 's ' : ' ') + items.map(({ client }) => client + 1).sort((a, b) => a - b).join(', ');
function heldSaid(resource, at) {
  const { leases } = heldOf[resource], now = leases.filter(({ from, to }) => from <= at && at < to), readers = now.filter(lease => lease.shared), alone = now.filter(lease => !lease.shared);
  const waiting = run.acquires.filter(({ resource: of, from, wait }) => of === resource && from - wait <= at && at < from);
  const said = [run.resources[resource] + ' at ' + seconds(at) + (now.length ? '' : ': nobody has it')];
  if (alone.length) said.push(clientsSaid(alone) + ' alone');
  if (readers.length) said.push(many(readers.length, 'reader') + ': ' + clientsSaid(readers));
  for (const [items, words] of [[waiting.filter(item => !item.shared), 'to write'], [waiting.filter(item => item.shared), 'to read']]) {
    if (items.length) said.push('waiting ' + words + ': ' + clientsSaid(items));
  }
  return said;
}
/* What kept an item out is framed. */
function frameBlockers(item) {
  const blockers = item && item.wait > 0 ? blockersOf(item) : [];
  rows.querySelector('.blockers').setAttribute('d', blockers.map(({ client, from, to }) => rectangle(from, Math.max(to, from + perPixel() * 2), clientY(client) + 1, layout.pitch - 3)).join(''));
}
