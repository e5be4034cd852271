/* Zoom, pan, and what is under the pointer. The page is whole without it: it draws for the window's width and for a closer look. */
(() => {
'use strict';
const data = JSON.parse(document.getElementById('chaos-data').textContent);
const page = document.documentElement;
const time = document.getElementById('time');
const lanes = time.querySelector('.lanes');
const overview = time.querySelector('.overview');
const brush = time.querySelector('.brush');
const rows = time.querySelector('.rows');
const shown = document.getElementById('shown');
const tip = document.getElementById('tip');
const cross = time.querySelector('.cross');
const LEAST = Math.min(data.end, Math.max(20, 2000 / data.tick)); // the closest look, in ticks: 2 ms
let from = 0, to = data.end;      // the window, in ticks
let width = 1200, gutter = 92, plot = 1092;
const right = 16;
let chosen = null;                // { row, item } of the keyboard
let lit = null;                   // a fault or violation that was jumped to

/* The data, with absolute times. */
const clients = data.leases.map((list, client) => {
  let at = 0;
  const leases = list.map(([gap, length, resource, how, wait, attempts, votes, token, until, ...claims]) => {
    const lease = { kind: 'lease', client, from: at + gap, to: at + gap + length, resource, how, wait, attempts, votes, token, until, claims };
    at = lease.to;
    return lease;
  });
  at = 0;
  const failures = data.failures[client].map(([gap, wait, resource, result, attempts, votes]) => {
    at += gap;
    return { kind: 'failure', client, from: at, to: at, wait, resource, result: data.results[result], attempts, votes };
  });
  return { leases, failures };
});

/* Words. */
const seconds = ticks => (ticks * data.tick / 1e6).toFixed(3) + ' s';
const lasting = ticks => lastingUs(ticks * data.tick);
function lastingUs(us) {
  if (us < 1000) return us + ' \u00b5s';
  const digits = (x, unit) => x.toFixed(x < 10 ? 2 : x < 100 ? 1 : 0) + ' ' + unit;
  return us < 999500 ? digits(us / 1e3, 'ms') : us < 99.95e6 ? digits(us / 1e6, 's') : Math.floor(us / 60e6) + ' min ' + Math.round(us % 60e6 / 1e6) + ' s';
}
const many = (n, word) => n.toLocaleString('en') + ' ' + word + (n === 1 ? '' : 's');
const LETTERS = { G: 'granted', D: 'denied', F: 'failed', U: 'unknown', A: 'abstained', P: 'still pending' };
function votesSaid(index) {
  const letters = data.votes[index] || '', words = [];
  for (const letter in LETTERS) {
    const nodes = [...letters].flatMap((l, i) => l === letter ? [i + 1] : []);
    if (nodes.length) words.push(LETTERS[letter] + ': node' + (nodes.length > 1 ? 's ' : ' ') + nodes.join(', '));
  }
  return words.join('; ');
}
const HOW = ['released', 'lost: its owner saw no validity any more', 'its owner died with it', 'held until the run ended', 'ran out before its owner, which had been stopped, released it'];
function leaseSaid(lease) {
  const lines = ['Client ' + (lease.client + 1) + ' held ' + data.resources[lease.resource] + ' for ' + lasting(lease.to - lease.from),
    seconds(lease.from) + ' \u2013 ' + seconds(lease.to) + ', ' + HOW[lease.how], lease.token ? 'token ' + lease.token : 'token: in history.jsonl'];
  if (lease.wait >= 0) lines.push('acquired within ' + lasting(lease.wait) + ', ' + many(lease.attempts, 'attempt'));
  if (votesSaid(lease.votes)) lines.push(votesSaid(lease.votes));
  if (lease.claims.length) lines.push('renewed ' + many(lease.claims.length, 'time'));
  if (lease.until !== undefined) lines.push('relied on until ' + seconds(lease.from + lease.until) + ' at most');
  return lines;
}
function failureSaid(failure) {
  return ['Client ' + (failure.client + 1) + ' did not get ' + data.resources[failure.resource] + ': ' + failure.result,
    seconds(failure.to) + ', after ' + lasting(failure.wait) + ' and ' + many(failure.attempts, 'attempt'), votesSaid(failure.votes)];
}
const bandSaid = ([start, end, , , text]) => ['Fault: ' + text, seconds(start) + (end > start ? ' \u2013 ' + seconds(end) : '')];

/* Drawing: all in the window, and nothing of it smaller than a pixel. */
const perPixel = () => (to - from) / plot;
const clientY = client => data.top + client * data.pitch;
/* The first item that ends at or after a time; items are in order, and one client's do not overlap. */
function firstAfter(items, at) {
  let low = 0, high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle].to < at) low = middle + 1; else high = middle;
  }
  return low;
}
class Bars {
  constructor() { this.d = []; this.start = null; }
  add(start, end, y, height) {
    const gap = perPixel() * 0.4;
    if (this.start !== null && y === this.y && start >= this.start && start - this.end <= gap) { this.end = Math.max(this.end, end); return; }
    this.flush();
    this.start = start; this.end = end; this.y = y; this.height = height;
  }
  flush() {
    if (this.start === null) return;
    const a = Math.max(this.start, from - 9), b = Math.min(Math.max(this.end, this.start + perPixel() * 0.7), to + 9);
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
function drawRows() {
  const drawn = { wait: new Bars(), kept: new Bars(), lost: new Ticks(), denied: new Ticks(), failed: new Ticks(), renewed: new Ticks() };
  const hues = Array.from({ length: 8 }, () => new Bars());
  clients.forEach(({ leases, failures }, client) => {
    const y = clientY(client), middle = y + (data.pitch >> 1), top = y + ((data.pitch - data.bar) >> 1);
    for (let i = Math.max(0, firstAfter(leases, from) - 1); i < leases.length && leases[i].from - Math.max(0, leases[i].wait) <= to; i++) {
      const lease = leases[i];
      if (lease.wait > 0) drawn.wait.add(lease.from - lease.wait, lease.from, middle, 1);
      hues[lease.resource % 8].add(lease.from, lease.to, top, data.bar);
      if (lease.how === 1) drawn.lost.add(lease.to, y + 1, data.pitch - 3);
      if (lease.how === 2) drawn.kept.add(lease.to, lease.from + lease.until, middle - 1, 3);
      if (perPixel() * 6 < (lease.to - lease.from)) for (const claim of lease.claims) drawn.renewed.add(lease.from + claim, top, data.bar);
    }
    for (let i = firstAfter(failures, from); i < failures.length && failures[i].to - failures[i].wait <= to; i++) {
      const failure = failures[i];
      drawn.wait.add(failure.to - failure.wait, failure.to, middle, 1);
      if (failure.result !== 'CLOSED' && failure.result !== 'CANCELLED') drawn[failure.result === 'CONTENDED' ? 'denied' : 'failed'].add(failure.to, y + data.pitch - 7, 5);
    }
  });
  for (const path of rows.querySelectorAll('[data-bars]')) {
    const name = path.dataset.bars;
    if (name === 'chosen') drawChosen(path);
    else path.setAttribute('d', (drawn[name] || hues[+name]).text());
  }
}
function drawChosen(path) {
  const item = chosen && chosen.item;
  const y = item ? clientY(item.client) + 1 : 0;
  const end = item ? Math.max(item.to, item.from + perPixel() * 2) : 0;
  path.setAttribute('d', item ? `M${item.from} ${y}H${end}v${data.pitch - 3}H${item.from}z` : '');
}
function drawAxis() {
  const least = (to - from) * data.tick * (width < 640 ? 70 : 90) / plot;
  const power = 10 ** Math.floor(Math.log10(Math.max(100, least)));
  const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= least);
  const decimals = Math.max(0, 6 - Math.round(Math.log10(step) - 0.35));
  const times = [];
  for (let at = Math.ceil(from * data.tick / step) * step; at <= to * data.tick; at += step) times.push(at);
  const group = time.querySelector('.times');
  group.replaceChildren(...times.map(at => {
    const text = document.createElementNS('http://www.w3.org/2000/svg', 'text');
    const x = gutter + (at / data.tick - from) / perPixel();
    text.setAttribute('x', x.toFixed(1));
    text.setAttribute('y', 16);
    text.style.textAnchor = x > width - 40 ? 'end' : x < gutter + 20 ? 'start' : 'middle';
    text.textContent = (at / 1e6).toFixed(decimals) + ' s';
    return text;
  }));
  for (const grid of time.querySelectorAll('.grid')) {
    grid.setAttribute('d', times.map(at => `M${at / data.tick} 0V${grid.dataset.h}`).join(''));
  }
}
function drawLabels() {
  for (const label of rows.querySelectorAll('.labels text')) {
    const a = Math.max(from, +label.dataset.f), b = Math.min(to, +label.dataset.t);
    const fits = (b - a) / perPixel() > label.textContent.length * 6 + 10;
    label.classList.toggle('off', !fits);
    if (fits) label.setAttribute('x', (gutter + (a - from) / perPixel() + 5).toFixed(1));
  }
}
function draw() {
  for (const lane of time.querySelectorAll('.lane')) {
    lane.setAttribute('viewBox', `0 0 ${width} ${lane.dataset.h}`);
    lane.style.height = lane.dataset.h + 'px';
    const names = lane.querySelector('.names');
    if (names) names.setAttribute('transform', `translate(${gutter - (width < 640 ? 6 : 10)})`);
    const svg = lane.querySelector('.plot');
    if (!svg) continue;
    svg.setAttribute('x', gutter);
    svg.setAttribute('width', plot);
    if (!svg.classList.contains('whole')) svg.setAttribute('viewBox', `${from} 0 ${to - from} ${lane.dataset.h}`);
  }
  for (const pattern of rows.querySelectorAll('pattern')) pattern.setAttribute('patternTransform', `scale(${perPixel()} 1)`);
  drawRows();
  drawAxis();
  drawLabels();
  brush.style.left = gutter + from / data.end * plot + 'px';
  brush.style.width = Math.max(4, (to - from) / data.end * plot) + 'px';
  brush.style.visibility = from === 0 && to === data.end ? 'hidden' : 'visible';
  shown.textContent = from === 0 && to === data.end ? 'the whole run: ' + seconds(data.end) : seconds(from) + ' \u2013 ' + seconds(to) + ' (' + lasting(to - from) + ')';
}
let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}
function measure() {
  width = Math.max(280, Math.round(lanes.clientWidth));
  gutter = width < 640 ? 54 : 92;
  plot = width - gutter - right;
}

/* The window. */
function look(start, length) {
  length = Math.min(data.end, Math.max(LEAST, length));
  from = Math.min(Math.max(0, start), data.end - length);
  to = from + length;
  redraw();
}
const zoom = (factor, at) => look(at - (at - from) * factor, (to - from) * factor);
const pan = share => look(from + (to - from) * share, to - from);
const actions = {
  in: () => zoom(0.5, (from + to) / 2), out: () => zoom(2, (from + to) / 2),
  left: () => pan(-0.25), right: () => pan(0.25), all: () => look(0, data.end),
};
/* Shows a span with as much again around it. */
function jump(start, end, element) {
  const length = Math.max((end - start) * 3, Math.min(data.end / 20, 10000000 / data.tick / 10));
  look((start + end) / 2 - length / 2, length);
  if (lit) lit.classList.remove('lit');
  lit = element;
  if (lit) lit.classList.add('lit');
}
const tickAt = event => from + (event.clientX - lanes.getBoundingClientRect().left - gutter) * perPixel();

/* What is under the pointer. */
function clientAt(y) {
  const client = Math.floor((y - data.top) / data.pitch);
  return client >= 0 && client < clients.length ? client : -1;
}
function nearest(items, at, reach) {
  let best = null, distance = reach;
  for (let i = Math.max(0, firstAfter(items, at) - 1); i < items.length && items[i].from <= at + reach; i++) {
    const away = Math.max(items[i].from - at, at - items[i].to, 0);
    if (away <= distance && (away < distance || !best)) { best = items[i]; distance = away; }
  }
  return best;
}
function rowSaid(y, at) {
  const said = [], reach = perPixel() * 4;
  const near = ([start, end]) => at >= start - reach && at <= end + reach;
  const client = clientAt(y), node = data.nodes.findIndex(([top, height]) => y >= top && y < top + height);
  const violations = data.violations.filter(v => near(v) && (client >= 0 ? v[2].includes(client) : node < 0 && y < data.nodes[0][0]));
  if (violations.length) {
    said.push('Violation at ' + seconds(violations[0][0]) + ': ' + violations[0][3]);
    if (violations.length > 1) said.push('and ' + (violations.length - 1) + ' more here');
  }
  if (client >= 0) {
    const lease = nearest(clients[client].leases, at, reach), failure = nearest(clients[client].failures, at, reach);
    const inside = lease && at >= lease.from && at <= lease.to;
    if (lease && (inside || !failure)) said.push(...leaseSaid(lease));
    else if (failure) said.push(...failureSaid(failure));
  }
  data.bands.filter(band => near(band) && (client >= 0 ? band[3].includes(client) : band[2].includes(node)))
    .slice(0, 6).forEach(band => said.push(...bandSaid(band)));
  return said;
}
function chartSaid(at) {
  const index = Math.floor(at / data.bucket), bucket = data.buckets[index];
  if (!bucket) return [];
  const [acquired, contended, failed, p50, p99] = bucket, all = acquired + contended + failed;
  const said = [seconds(index * data.bucket) + ' \u2013 ' + seconds(Math.min(data.end, (index + 1) * data.bucket)), many(all, 'acquire') + (all ? ': ' + acquired + ' acquired, ' + contended + ' held by others, ' + failed + ' without quorum' : '')];
  if (acquired) said.push('median ' + lastingUs(p50) + ', 99th percentile ' + lastingUs(p99));
  const steps = data.unwell.filter(([tick]) => tick <= at), unwell = steps.length ? steps[steps.length - 1][1] : 0;
  if (unwell) said.push(many(unwell, 'client') + ' without a healthy quorum');
  return said;
}
function tell(lines, x, y) {
  tip.hidden = lines.length === 0;
  if (tip.hidden) return;
  const first = document.createElement('b');
  first.textContent = lines[0];
  tip.replaceChildren(first, ...lines.slice(1).filter(Boolean).map(line => '\n' + line));
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(8, Math.min(x + 16, innerWidth - box.width - 8)) + 'px';
  tip.style.top = (y + 20 + box.height < innerHeight ? y + 18 : Math.max(8, y - box.height - 14)) + 'px';
}
function hover(event) {
  const at = tickAt(event), lane = event.target.closest('.lane');
  const inside = lane && at >= from && at <= to;
  cross.hidden = !inside;
  if (!inside) { tell([]); return; }
  cross.style.left = event.clientX - lanes.getBoundingClientRect().left + 'px';
  const y = event.clientY - lane.getBoundingClientRect().top;
  tell(lane === rows ? rowSaid(y, at) : chartSaid(at), event.clientX, event.clientY);
}

/* Pointers: one drags, two pinch. */
const pointers = new Map();
let moved = 0, pinch = null;
function spread() {
  const [a, b] = [...pointers.values()];
  return { distance: Math.max(20, Math.abs(a.x - b.x)), middle: (a.x + b.x) / 2 };
}
lanes.addEventListener('pointerdown', event => {
  if (event.button !== 0 || !event.target.closest('.lane')) return;
  pointers.set(event.pointerId, { x: event.clientX });
  moved = 0;
  pinch = pointers.size === 2 ? { ...spread(), length: to - from, at: from + (spread().middle - lanes.getBoundingClientRect().left - gutter) * perPixel() } : null;
});
addEventListener('pointermove', event => {
  const pointer = pointers.get(event.pointerId);
  if (!pointer) {
    if (event.target.closest && event.target.closest('.lanes')) hover(event);
    else if (!cross.hidden) { cross.hidden = true; tell([]); }
    return;
  }
  const by = event.clientX - pointer.x;
  pointer.x = event.clientX;
  moved += Math.abs(by);
  if (pinch && pointers.size === 2) {
    const now = spread(), length = Math.min(data.end, Math.max(LEAST, pinch.length * pinch.distance / now.distance));
    look(pinch.at - (now.middle - lanes.getBoundingClientRect().left - gutter) * length / plot, length);
  } else if (moved > 3) {
    lanes.classList.add('moving');
    tell([]);
    cross.hidden = true;
    look(from - by * perPixel(), to - from);
  }
});
function lift(event) {
  if (pointers.delete(event.pointerId) && moved <= 3 && event.type === 'pointerup') hover(event);
  pinch = null;
  if (pointers.size === 0) lanes.classList.remove('moving');
}
addEventListener('pointerup', lift);
addEventListener('pointercancel', lift);
lanes.addEventListener('dragstart', event => event.preventDefault());
/* A click at the end of a drag follows no link, nor one on what covers the rows of many clients: it only brings the focus here. */
lanes.addEventListener('click', event => {
  const dragged = event.detail > 0 && moved > 3, wide = event.detail > 0 && event.target.matches('.on-client, .where');
  moved = 0;
  if (dragged || wide) event.preventDefault();
  const link = event.target.closest('.violation');
  const folded = link && !dragged && !wide && document.querySelector(link.getAttribute('href')).closest('details');
  if (folded) folded.open = true;
}, true);
lanes.addEventListener('wheel', event => {
  const focused = rows.contains(document.activeElement) || document.activeElement === rows;
  const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
  if (!focused && !event.ctrlKey && !event.metaKey && !sideways) return;
  event.preventDefault();
  const unit = event.deltaMode === 1 ? 16 : 1;
  if (sideways) look(from + (event.deltaX || event.deltaY) * unit * perPixel(), to - from);
  else zoom(Math.exp(Math.max(-80, Math.min(80, event.deltaY * unit)) * (event.ctrlKey ? 0.01 : 0.003)), tickAt(event));
  tell([]);
}, { passive: false });

/* The overview: inside the window a drag moves it, outside a drag draws a new one. */
let grip = null;
const tickOf = event => Math.min(data.end, Math.max(0, (event.clientX - overview.getBoundingClientRect().left - gutter) / plot * data.end));
overview.addEventListener('pointerdown', event => {
  const at = tickOf(event), whole = from === 0 && to === data.end;
  const reach = data.end / plot * 7;
  overview.setPointerCapture(event.pointerId);
  grip = { at, from, to, mode: whole ? 'new' : Math.abs(at - from) < reach ? 'from' : Math.abs(at - to) < reach ? 'to' : at > from && at < to ? 'move' : 'new' };
  event.preventDefault();
});
overview.addEventListener('pointermove', event => {
  if (!grip) return;
  const at = tickOf(event);
  if (grip.mode === 'move') look(grip.from + at - grip.at, grip.to - grip.from);
  else {
    const anchor = grip.mode === 'from' ? grip.to : grip.mode === 'to' ? grip.from : grip.at;
    if (grip.mode !== 'new' || Math.abs(at - anchor) > data.end / plot * 4) look(Math.min(at, anchor), Math.abs(at - anchor));
  }
});
overview.addEventListener('pointerup', event => {
  const at = tickOf(event);
  if (grip && grip.mode === 'new' && Math.abs(at - grip.at) <= data.end / plot * 4 && !(from === 0 && to === data.end)) look(at - (to - from) / 2, to - from);
  grip = null;
});

/* Keys. */
function step(by) {
  const row = chosen ? chosen.row : 0, { leases, failures } = clients[row];
  const items = leases.concat(failures).sort((a, b) => a.from - b.from);
  if (!items.length) { choose(row, null); return; }
  let index = chosen && chosen.item && chosen.item.client === row ? items.indexOf(chosen.item) + by : items.findIndex(item => item.to >= from);
  index = Math.min(items.length - 1, Math.max(0, index));
  const item = items[index];
  if (item.from < from || item.to > to) look(item.from - (to - from) / 2, to - from);
  choose(row, item);
}
function choose(row, item) {
  chosen = { row, item };
  rows.querySelectorAll('.names text').forEach(text => text.classList.remove('here'));
  const names = rows.querySelectorAll('.names text');
  names[names.length - clients.length + row].classList.add('here');
  draw();
  const box = rows.getBoundingClientRect(), y = box.top + clientY(row) + data.pitch;
  const lines = item ? (item.kind === 'lease' ? leaseSaid(item) : failureSaid(item)) : ['Client ' + (row + 1) + ': ' + many(clients[row].leases.length, 'lease') + ', ' + many(clients[row].failures.length, 'failed acquire')];
  tell(lines, box.left + gutter + (item ? (item.from - from) / perPixel() : 0), y);
}
rows.setAttribute('tabindex', 0);
rows.setAttribute('aria-describedby', 'hint');
rows.addEventListener('pointerdown', () => rows.focus({ preventScroll: true }));
rows.addEventListener('blur', () => { tell([]); });
rows.addEventListener('keydown', event => {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const row = chosen ? chosen.row : -1;
  const keys = {
    '+': actions.in, '=': actions.in, '-': actions.out, 'ArrowLeft': actions.left, 'ArrowRight': actions.right,
    '0': actions.all, 'Home': () => look(0, to - from), 'End': () => look(data.end, to - from),
    'ArrowDown': () => choose(Math.min(clients.length - 1, row + 1), null), 'ArrowUp': () => choose(Math.max(0, row - 1), null),
    'n': () => step(1), 'p': () => step(-1), 'Escape': () => { chosen = null; tell([]); redraw(); },
  };
  if (!keys[event.key] || clients.length === 0) return;
  event.preventDefault();
  keys[event.key]();
});
/* A fault that the keyboard comes to tells its words. */
rows.addEventListener('focusin', event => {
  const band = event.target.closest('.band');
  if (!band) return;
  const box = band.getBoundingClientRect();
  tell(bandSaid(data.bands[+band.getAttribute('href').slice(2) - 1]), Math.max(8, box.left), Math.min(innerHeight - 90, box.top));
});
rows.addEventListener('focusout', () => tell([]));

for (const title of rows.querySelectorAll('a > title')) {
  title.parentNode.setAttribute('aria-label', title.textContent);
  title.remove(); // or the browser's own words come on top of ours
}
for (const button of time.querySelectorAll('[data-do]')) button.addEventListener('click', () => actions[button.dataset.do]());
document.addEventListener('click', event => {
  const link = event.target.closest('[data-violation], [data-fault]');
  if (!link) return;
  const violation = link.dataset.violation !== undefined;
  const index = +(violation ? link.dataset.violation : link.dataset.fault);
  const [start, end] = (violation ? data.violations : data.bands)[index];
  jump(start, end, violation ? document.getElementById('m' + (index + 1)) : rows.querySelectorAll('.band')[index]);
  event.preventDefault();
  const named = violation ? data.violations[index][2] : [];
  const y = rows.getBoundingClientRect().top + scrollY + (named.length ? clientY(Math.min(...named)) : 0);
  scrollTo({ top: Math.max(0, y - time.querySelector('.window').offsetHeight - 60) });
  rows.focus({ preventScroll: true });
});
const copy = document.getElementById('copy');
if (navigator.clipboard) {
  copy.hidden = false;
  copy.addEventListener('click', () => navigator.clipboard.writeText(copy.parentNode.querySelector('code').textContent)
    .then(() => { copy.textContent = 'Copied'; }, () => { copy.textContent = 'Not copied'; }));
}

/* #picture leaves out what a picture does not need; #t=12,20 shows these seconds. */
function obey() {
  const wish = new URLSearchParams(location.hash.slice(1));
  page.classList.toggle('picture', wish.has('picture'));
  const [start, end] = (wish.get('t') || '').split(',').map(Number);
  if (end > start) look(start * 1e6 / data.tick, (end - start) * 1e6 / data.tick);
}
addEventListener('hashchange', obey);
page.classList.add('js');
obey();
new ResizeObserver(() => { measure(); redraw(); }).observe(lanes);
addEventListener('beforeprint', () => {
  for (const folded of document.querySelectorAll('details')) folded.open = true;
  measure();
  draw();
});
measure();
draw();
})();
