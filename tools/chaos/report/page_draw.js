/* The timeline: a row a node, a row a resource in runs with readers, and a row a client. A plot has ticks across and pixels down. */
const RIGHT = 16, LANE = 17, LANES_MAX = 5, LABELS_MAX = 800, HUES = 8;
const window_ = { from: 0, to: run.end };                   // what is shown, in ticks
const size = { width: 1200, gutter: 92, plot: 1092 };       // in pixels
const perPixel = () => (window_.to - window_.from) / size.plot;
const layout = { nodes: [], held: [], labels: [] };
let chosen = null;                                          // { row, item } of the keyboard

/* Each fault of a node is in the first lane that is free, or in the last one. */
function layOut() {
  let y = run.violations.length ? 22 : 0;
  for (let node = 0; node < run.nodes; node++) {
    const free = Array(LANES_MAX).fill(-1), lanes = new Map();
    run.faults.forEach((fault, index) => {
      if (!fault.nodes.includes(node)) return;
      let lane = free.findIndex(until => until <= fault.from);
      if (lane < 0) lane = LANES_MAX - 1;
      free[lane] = Math.max(free[lane], fault.to);
      lanes.set(index, lane);
    });
    const height = (Math.max(0, ...lanes.values()) + 1) * LANE + 5;
    layout.nodes.push({ y, height, lanes });
    y += height;
  }
  if (sharing) {
    layout.held = run.resources.map((_, resource) => y + 10 + resource * HELD.pitch);
    y += 10 + run.resources.length * HELD.pitch;
  }
  const count = run.clients.length;
  layout.top = y + 10;
  layout.pitch = count <= 8 ? 24 : count <= 32 ? 19 : 15;
  layout.bar = count <= 8 ? 14 : count <= 32 ? 11 : 9;
  layout.height = layout.top + layout.pitch * count;
}
const clientY = client => layout.top + client * layout.pitch;

const lane = (classes, height, label, ...children) => svg('svg', { class: 'lane ' + classes, 'data-h': height, role: 'group', 'aria-label': label }, ...children);
const plot = (height, ...children) => svg('svg', { class: 'plot', y: 0, height, preserveAspectRatio: 'none' }, svg('path', { class: 'grid', 'data-h': height }), ...children);
const names = (...children) => svg('g', { class: 'names' }, ...children);
/* Narrow windows have the short words. */
const rowName = (y, long, short, rest = '', more = {}) => svg('text', { y, ...more }, svg('tspan', { class: 'long' }, long), svg('tspan', { class: 'short' }, short), rest);
const rectangle = (from, to, y, height) => `M${from} ${y}h${to - from}v${height}H${from}z`;

/* A fault: a link to its line in the table. */
function bandOf(fault, index) {
  const link = svg('a', { class: `band ${fault.shade}${fault.failed ? ' broken' : ''}`, href: '#f' + (index + 1), 'data-band': index, 'aria-label': faultSaid(fault).join(', ') });
  const onNodes = fault.nodes.map(node => rectangle(fault.from, fault.to, layout.nodes[node].y + 3 + layout.nodes[node].lanes.get(index) * LANE, LANE - 2));
  if (onNodes.length) link.append(svg('path', { class: 'on-node', d: onNodes.join('') }));
  const onClients = fault.clients.filter(client => !fault.clients.includes(client - 1)).map(first => {
    let after = first;
    while (fault.clients.includes(after)) after++;
    /* Neighbours are one box. */
    return rectangle(fault.from, fault.to, clientY(first), (after - first) * layout.pitch - 1);
  });
  if (onClients.length) link.append(svg('path', { class: 'on-client', d: onClients.join('') }));
  return link;
}
function markOf(violation, index) {
  const { from, clients } = violation, to = Math.max(from, violation.to);
  return svg('a', { class: 'violation', id: 'm' + (index + 1), href: '#v' + (index + 1), tabindex: -1, 'aria-label': violation.text },
    svg('path', { class: 'flag', d: `M${from} 2v16` }),
    svg('path', { class: 'where', d: clients.map(client => rectangle(from, to, clientY(client), layout.pitch - 1)).join('') }));
}
/* The names of faults on nodes. */
function labelsOf() {
  run.faults.forEach((fault, index) => {
    for (const node of fault.nodes.slice(0, Math.max(0, LABELS_MAX - layout.labels.length))) {
      const { y, lanes } = layout.nodes[node];
      layout.labels.push({ fault, text: svg('text', { class: fault.shade, y: y + 14 + lanes.get(index) * LANE }, fault.kind) });
    }
  });
  return svg('g', { class: 'labels', 'aria-hidden': true }, ...layout.labels.map(label => label.text));
}
const hatch = name => svg('pattern', { id: name, class: name, width: 6, height: 6, patternUnits: 'userSpaceOnUse' },
  svg('rect', { width: 6, height: 6 }), svg('path', { d: 'M-1 1l2-2M0 6l6-6M5 7l2-2' }));
/* 3 is the hue of a lease, read3 that of one that is shared. */
const barHues = Array.from({ length: HUES }, (_, hue) => hue);
const barNames = ['wait', ...barHues, ...barHues.map(hue => 'read' + hue), 'renewed', 'kept', 'lost', 'denied', 'failed'];
function rowsOf() {
  layOut();
  const middle = client => clientY(client) + (layout.pitch >> 1) + 4;
  const rules = [...layout.nodes.map(({ y, height }) => y + height - 1), ...layout.held.map(y => y + HELD.pitch - 2), ...run.clients.slice(1).map((_, i) => clientY(i + 1) - 1)];
  return lane('rows', layout.height, 'Nodes and their faults, clients and their leases, over time',
    svg('defs', {}, hatch('hatch'), hatch('hatch-soft')),
    names(...(run.violations.length ? [rowName(13, 'violations', '!', '', { class: 'bad' })] : []),
      ...layout.nodes.map(({ y, height }, i) => rowName(y + (height >> 1) + 4, 'node ', 'n', i + 1)),
      ...layout.held.map((y, i) => svg('text', { y: y + HELD.top + (HELD.bar >> 1) + 4 }, run.resources[i])),
      ...run.clients.map(({ reads }, i) => rowName(middle(i), 'client ', 'c', i + 1 + (!sharing ? '' : reads ? ' reads' : ' writes'), { 'data-client': i }))),
    svg('path', { class: 'rule', d: rules.map(y => `M0 ${y}.5H9999`).join('') }),
    plot(layout.height, ...run.faults.map(bandOf), ...heldRows(),
      ...barNames.map(name => svg('path', { class: typeof name === 'number' ? 'lease hue' + name : name.replace(/^read/, 'lease read hue'), 'data-bars': name })),
      ...run.violations.map(markOf), svg('path', { class: 'blockers' }), svg('path', { class: 'chosen' })),
    labelsOf());
}

/* The first item that ends at or after a time. Items are in order; one client's do not overlap. */
function firstAfter(items, at) {
  let low = 0, high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle].to < at) low = middle + 1; else high = middle;
  }
  return low;
}
/* Bars and ticks that nearly touch become one: nobody sees less than half a pixel. */
class Bars {
  constructor() { this.d = []; this.start = null; }
  add(start, end, y, height) {
    if (this.start !== null && y === this.y && start >= this.start && start - this.end <= perPixel() * 0.4) { this.end = Math.max(this.end, end); return; }
    this.flush();
    Object.assign(this, { start, end, y, height });
  }
  flush() {
    if (this.start === null) return;
    const a = Math.max(this.start, window_.from - 9), b = Math.min(Math.max(this.end, this.start + perPixel() * 0.7), window_.to + 9);
    this.d.push('M', a.toFixed(2), ' ', this.y, 'H', b.toFixed(2), 'v', this.height, 'H', a.toFixed(2), 'z');
    this.start = null;
  }
  text() { this.flush(); return this.d.join(''); }
}
class Ticks {
  constructor() { this.d = []; this.last = -1; this.y = -1; }
  add(at, y, height) {
    if (y === this.y && at - this.last < perPixel() * 0.7) return;
    this.d.push('M', at, ' ', y, 'v', height);
    this.last = at; this.y = y;
  }
  text() { return this.d.join(''); }
}
function drawRows(rows) {
  const { from, to } = window_, { pitch, bar } = layout, low = Math.max(3, bar >> 1);
  const drawn = Object.fromEntries(barNames.map(name => [name, ['lost', 'denied', 'failed', 'renewed'].includes(name) ? new Ticks() : new Bars()]));
  run.clients.forEach(({ leases, failures }, client) => {
    const y = clientY(client), middle = y + (pitch >> 1), top = y + ((pitch - bar) >> 1);
    for (let i = Math.max(0, firstAfter(leases, from) - 1); i < leases.length && leases[i].from - leases[i].wait <= to; i++) {
      const lease = leases[i];
      if (lease.wait > 0) drawn.wait.add(lease.from - lease.wait, lease.from, middle, 1);
      if (lease.shared) drawn['read' + lease.resource % HUES].add(lease.from, lease.to, y + ((pitch - low) >> 1), low);
      else drawn[lease.resource % HUES].add(lease.from, lease.to, top, bar);
      if (lease.how === LOST) drawn.lost.add(lease.to, y + 1, pitch - 3);
      if (lease.how === DIED) drawn.kept.add(lease.to, lease.until, middle - 1, 3);
      if (perPixel() * 6 < lease.to - lease.from) for (const at of lease.renewals) drawn.renewed.add(at, top, bar);
    }
    for (let i = firstAfter(failures, from); i < failures.length && failures[i].to - failures[i].wait <= to; i++) {
      const failure = failures[i];
      drawn.wait.add(failure.to - failure.wait, failure.to, middle, 1);
      if (!failure.over) drawn[failure.result === 'CONTENDED' ? 'denied' : 'failed'].add(failure.to, y + pitch - 7, 5);
    }
  });
  for (const path of rows.querySelectorAll('[data-bars]')) path.setAttribute('d', drawn[path.dataset.bars].text());
  drawHeld(rows);
  const item = chosen && chosen.item;
  frameBlockers(item);
  rows.querySelector('.chosen').setAttribute('d', item ? rectangle(item.from, Math.max(item.to, item.from + perPixel() * 2), clientY(item.client) + 1, pitch - 3) : '');
  for (const { fault, text } of layout.labels) {
    const a = Math.max(from, fault.from), b = Math.min(to, fault.to), fits = (b - a) / perPixel() > fault.kind.length * 6 + 10;
    text.classList.toggle('off', !fits);
    if (fits) text.setAttribute('x', (size.gutter + (a - from) / perPixel() + 5).toFixed(1));
  }
}
