/* The timeline under somebody's hands: zoom, move, keys, and what is under the pointer. */
/* The closest look, in ticks: 2 ms. */
const LEAST = Math.min(run.end, Math.max(20, 2000 / run.tick_us));
const TOUCH = 12, MOUSE = 4; // how near is near, in pixels
let time, rows, lanes, overview, brush, shown, cross;
let lit = null; // a fault or violation that was jumped to

function toolsOf() {
  const tool = (name, sign, label, key) => {
    const button = html('button', { type: 'button', 'data-do': name, 'aria-label': label, title: label + ' (' + key + ')' }, sign);
    button.addEventListener('click', () => actions[name]());
    return button;
  };
  return html('div', { class: 'tools', role: 'toolbar', 'aria-label': 'Zoom and move' },
    tool('in', '+', 'Zoom in', '+'), tool('out', '−', 'Zoom out', '-'), tool('left', '←', 'Earlier', 'left arrow'), tool('right', '→', 'Later', 'right arrow'),
    tool('all', 'All', 'The whole run', '0'), html('output', { id: 'shown', 'aria-live': 'polite' }),
    html('span', { class: 'hint', id: 'hint' }, 'Click the timeline, then: wheel or + − zooms, dragging or ← → moves, ↑ ↓ picks a row, n and p go from lease to lease, Tab from fault to fault.'));
}
function makeTimeline() {
  rows = rowsOf();
  overview = overviewOf();
  cross = html('div', { class: 'cross', hidden: '' });
  lanes = html('div', { class: 'lanes' }, rows, ...(run.acquires.some(acquire => !acquire.failed) ? [...latencyOf(), ...placesOf()] : []), ...becameOf(), cross);
  time.append(timelineLegend(),
    html('div', { class: 'window' }, toolsOf(), overview, lane('axis', 24, 'Time since the start', svg('g', { class: 'times' }))), lanes);
  brush = overview.querySelector('.brush');
  shown = document.getElementById('shown');
  rows.setAttribute('tabindex', 0);
  rows.setAttribute('aria-describedby', 'hint');
  Object.assign(rows.dataset, { top: layout.top, pitch: layout.pitch });
}
function draw() {
  const { from, to } = window_, { width, gutter } = size, whole = from === 0 && to === run.end;
  for (const each of time.querySelectorAll('.lane')) {
    const height = each.dataset.h, drawing = each.querySelector('.plot');
    each.setAttribute('viewBox', `0 0 ${width} ${height}`);
    each.style.height = height + 'px';
    for (const group of each.querySelectorAll('.names')) group.setAttribute('transform', `translate(${gutter - (width < 640 ? 6 : 10)})`);
    if (!drawing) continue;
    drawing.setAttribute('x', gutter);
    drawing.setAttribute('width', size.plot);
    if (!drawing.classList.contains('whole')) drawing.setAttribute('viewBox', `${from} 0 ${to - from} ${height}`);
  }
  for (const pattern of rows.querySelectorAll('pattern')) pattern.setAttribute('patternTransform', `scale(${perPixel()} 1)`);
  drawRows(rows);
  drawAxis(time);
  const latency = time.querySelector('.latency');
  if (latency) {
    drawDots(latency, ({ tookUs }) => latencyY(tookUs), ({ attempts }) => attempts > 1);
    drawDots(time.querySelector('.places'), ({ place }) => placeY(place), ({ place }) => place > 1);
  }
  brush.style.left = gutter + from / run.end * size.plot + 'px';
  brush.style.width = Math.max(4, (to - from) / run.end * size.plot) + 'px';
  brush.style.visibility = whole ? 'hidden' : 'visible';
  shown.textContent = whole ? 'the whole run: ' + seconds(run.end) : seconds(from) + ' – ' + seconds(to) + ' (' + lasting(to - from) + ')';
}
let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}
function measure() {
  size.width = Math.max(280, Math.round(lanes.clientWidth));
  size.gutter = (size.width < 640 ? 54 : 92) + (sharing ? 26 : 0);
  size.plot = size.width - size.gutter - RIGHT;
}

/* The window. */
function look(start, length) {
  length = Math.min(run.end, Math.max(LEAST, length));
  window_.from = Math.min(Math.max(0, start), run.end - length);
  window_.to = window_.from + length;
  redraw();
}
const shownLength = () => window_.to - window_.from;
const zoom = (factor, at) => look(at - (at - window_.from) * factor, shownLength() * factor);
const pan = share => look(window_.from + shownLength() * share, shownLength());
const middle = () => (window_.from + window_.to) / 2;
const actions = { in: () => zoom(0.5, middle()), out: () => zoom(2, middle()), left: () => pan(-0.25), right: () => pan(0.25), all: () => look(0, run.end) };
/* Shows a span with as much again around it. */
function jump({ from, to }, element) {
  const length = Math.max((to - from) * 3, Math.min(run.end / 20, 1e6 / run.tick_us));
  look((from + to) / 2 - length / 2, length);
  if (lit) lit.classList.remove('lit');
  lit = element;
  lit.classList.add('lit');
}
const tickAtX = x => window_.from + (x - lanes.getBoundingClientRect().left - size.gutter) * perPixel();

/* What is under the pointer. */
function clientAt(y) {
  const client = Math.floor((y - layout.top) / layout.pitch);
  return client >= 0 && client < run.clients.length ? client : -1;
}
function nearest(items, at, reach) {
  let best = null, distance = reach;
  for (let i = Math.max(0, firstAfter(items, at) - 1); i < items.length && items[i].from <= at + reach; i++) {
    const away = Math.max(items[i].from - at, at - items[i].to, 0);
    if (away <= distance && (away < distance || !best)) { best = items[i]; distance = away; }
  }
  return best;
}
/* The lease or the acquire in vain at a place of a client's row. */
function itemAt(client, at, reach) {
  if (client < 0) return null;
  const lease = nearest(run.clients[client].leases, at, reach), failure = nearest(run.clients[client].failures, at, reach);
  return lease && (!failure || at >= lease.from && at <= lease.to) ? lease : failure;
}
const itemSaid = item => item.result ? failureSaid(item) : leaseSaid(item);
function rowSaid(y, at, pixels) {
  const said = [], reach = perPixel() * pixels, near = ({ from, to }) => at >= from - reach && at <= to + reach;
  const client = clientAt(y), item = itemAt(client, at, reach), resource = layout.held.findIndex(top => y >= top && y < top + HELD.pitch), node = layout.nodes.findIndex(({ y: top, height }) => y >= top && y < top + height);
  const violations = run.violations.filter(violation => near(violation) && (client >= 0 ? violation.clients.includes(client) : node < 0 && y < layout.top - 10));
  if (violations.length) {
    said.push('Violation at ' + seconds(violations[0].from) + ': ' + violations[0].text);
    if (violations.length > 1) said.push('and ' + (violations.length - 1) + ' more here');
  }
  if (resource >= 0) said.push(...heldSaid(resource, at));
  if (item) said.push(...itemSaid(item));
  run.faults.filter(fault => near(fault) && (client >= 0 ? fault.clients.includes(client) : fault.nodes.includes(node)))
    .slice(0, 6).forEach(fault => said.push(...faultSaid(fault)));
  return said;
}
/* A tap shows what the pointer's stay shows. */
function hover(event) {
  const at = tickAtX(event.clientX), each = event.target.closest('.lane');
  const inside = each && at >= window_.from && at <= window_.to;
  cross.hidden = !inside;
  frameBlockers(chosen && chosen.item);
  if (!inside) { tell([]); return; }
  cross.style.left = event.clientX - lanes.getBoundingClientRect().left + 'px';
  const y = event.clientY - each.getBoundingClientRect().top;
  const near = event.pointerType === 'touch' ? TOUCH : MOUSE, item = each === rows && itemAt(clientAt(y), at, perPixel() * near);
  if (item) frameBlockers(item);
  tell(each === rows ? rowSaid(y, at, near) : chartSaid(at), event.clientX, event.clientY);
}

/* Pointers: one drags, two pinch. */
const pointers = new Map();
let moved = 0, pinch = null, touched = false, tapped = null;
function spread() {
  const [a, b] = [...pointers.values()];
  return { distance: Math.max(20, Math.abs(a.x - b.x)), middle: (a.x + b.x) / 2 };
}
function press(event) {
  if (event.button !== 0 || !event.target.closest('.lane')) return;
  pointers.set(event.pointerId, { x: event.clientX });
  touched = event.pointerType === 'touch';
  moved = 0;
  pinch = pointers.size === 2 ? { ...spread(), length: shownLength(), at: tickAtX(spread().middle) } : null;
}
function drag(event) {
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
    const now = spread(), length = Math.min(run.end, Math.max(LEAST, pinch.length * pinch.distance / now.distance));
    look(pinch.at - (now.middle - lanes.getBoundingClientRect().left - size.gutter) * length / size.plot, length);
  } else if (moved > 3) {
    lanes.classList.add('moving');
    tell([]);
    cross.hidden = true;
    look(window_.from - by * perPixel(), shownLength());
  }
}
function lift(event) {
  if (pointers.delete(event.pointerId) && moved <= 3 && event.type === 'pointerup') hover(event);
  pinch = null;
  if (pointers.size === 0) lanes.classList.remove('moving');
}
/*
 * A click at the end of a drag follows no link, nor does one on what covers the rows of many clients: it only brings
 * the focus here. The first tap of a finger tells what a link is about; the second one follows it.
 */
function click(event) {
  const link = event.target.closest('.band, .violation');
  const dragged = event.detail > 0 && moved > 3, wide = event.detail > 0 && event.target.matches('.on-client, .where');
  const first = touched && link !== tapped;
  tapped = touched ? link : null;
  moved = 0;
  if (dragged || wide || first) { event.preventDefault(); return; }
  const folded = link && document.querySelector(link.getAttribute('href')).closest('details');
  if (folded) folded.open = true;
}
function wheel(event) {
  const focused = rows.contains(document.activeElement);
  const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
  if (!focused && !event.ctrlKey && !event.metaKey && !sideways) return;
  event.preventDefault();
  const unit = event.deltaMode === 1 ? 16 : 1;
  if (sideways) look(window_.from + (event.deltaX || event.deltaY) * unit * perPixel(), shownLength());
  else zoom(Math.exp(Math.max(-80, Math.min(80, event.deltaY * unit)) * (event.ctrlKey ? 0.01 : 0.003)), tickAtX(event.clientX));
  tell([]);
}

/* The overview: inside the window a drag moves it, outside a drag draws a new one. */
function listenToOverview() {
  let grip = null;
  const perWhole = () => run.end / size.plot, isWhole = () => shownLength() === run.end;
  const tickOf = event => Math.min(run.end, Math.max(0, (event.clientX - overview.getBoundingClientRect().left - size.gutter) * perWhole()));
  overview.addEventListener('pointerdown', event => {
    const at = tickOf(event), { from, to } = window_, reach = perWhole() * 7;
    overview.setPointerCapture(event.pointerId);
    grip = { at, from, to, mode: isWhole() ? 'new' : Math.abs(at - from) < reach ? 'from' : Math.abs(at - to) < reach ? 'to' : at > from && at < to ? 'move' : 'new' };
    event.preventDefault();
  });
  overview.addEventListener('pointermove', event => {
    if (!grip) return;
    const at = tickOf(event);
    if (grip.mode === 'move') look(grip.from + at - grip.at, grip.to - grip.from);
    else {
      const anchor = grip.mode === 'from' ? grip.to : grip.mode === 'to' ? grip.from : grip.at;
      if (grip.mode !== 'new' || Math.abs(at - anchor) > perWhole() * 4) look(Math.min(at, anchor), Math.abs(at - anchor));
    }
  });
  overview.addEventListener('pointerup', event => {
    const at = tickOf(event);
    if (grip && grip.mode === 'new' && Math.abs(at - grip.at) <= perWhole() * 4 && !isWhole()) look(at - shownLength() / 2, shownLength());
    grip = null;
  });
}

/* Keys. */
function step(by) {
  const row = chosen ? chosen.row : 0, { leases, failures } = run.clients[row];
  const items = leases.concat(failures).sort((a, b) => a.from - b.from);
  if (!items.length) { choose(row, null); return; }
  let index = chosen && chosen.item && chosen.item.client === row ? items.indexOf(chosen.item) + by : items.findIndex(item => item.to >= window_.from);
  index = Math.min(items.length - 1, Math.max(0, index));
  const item = items[index];
  if (item.from < window_.from || item.to > window_.to) look(item.from - shownLength() / 2, shownLength());
  choose(row, item);
}
function choose(row, item) {
  chosen = { row, item };
  for (const name of rows.querySelectorAll('[data-client]')) name.classList.toggle('here', +name.dataset.client === row);
  draw();
  const box = rows.getBoundingClientRect(), y = box.top + clientY(row) + layout.pitch, { leases, failures } = run.clients[row];
  const lines = item ? itemSaid(item) : ['Client ' + (row + 1) + ': ' + many(leases.length, 'lease') + ', ' + many(failures.length, 'failed acquire')];
  tell(lines, box.left + size.gutter + (item ? (item.from - window_.from) / perPixel() : 0), y);
}
function key(event) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const row = chosen ? chosen.row : -1;
  const keys = {
    '+': actions.in, '=': actions.in, '-': actions.out, 'ArrowLeft': actions.left, 'ArrowRight': actions.right,
    '0': actions.all, 'Home': () => look(0, shownLength()), 'End': () => look(run.end, shownLength()),
    'ArrowDown': () => choose(Math.min(run.clients.length - 1, row + 1), null), 'ArrowUp': () => choose(Math.max(0, row - 1), null),
    'n': () => step(1), 'p': () => step(-1), 'Escape': () => { chosen = null; tell([]); redraw(); },
  };
  if (!keys[event.key] || run.clients.length === 0) return;
  event.preventDefault();
  keys[event.key]();
}
/* A fault that the keyboard comes to tells its words. */
function focus(event) {
  const band = event.target.closest('.band');
  if (!band || touched && !tip.hidden) return;
  const box = band.getBoundingClientRect();
  tell(faultSaid(run.faults[band.dataset.band]), Math.max(8, box.left), Math.min(innerHeight - 90, box.top));
}
/* From a list to the place in the timeline. */
function follow(event) {
  const link = event.target.closest('[data-violation], [data-fault]');
  if (!link) return;
  event.preventDefault();
  const index = link.dataset.violation || link.dataset.fault, violation = link.dataset.violation !== undefined;
  if (violation) jump(run.violations[index], document.getElementById('m' + (+index + 1)));
  else jump(run.faults[index], rows.querySelectorAll('.band')[index]);
  const named = violation ? run.violations[index].clients : [];
  const y = rows.getBoundingClientRect().top + scrollY + (named.length ? clientY(Math.min(...named)) : 0);
  scrollTo({ top: Math.max(0, y - time.querySelector('.window').offsetHeight - 60) });
  rows.focus({ preventScroll: true });
}
/* #picture leaves out what a picture does not need; #t=12,20 shows these seconds. */
function obey() {
  const wish = new URLSearchParams(location.hash.slice(1));
  pageRoot.classList.toggle('picture', wish.has('picture'));
  const [start, end] = (wish.get('t') || '').split(',').map(Number);
  if (end > start) look(start * 1e6 / run.tick_us, (end - start) * 1e6 / run.tick_us);
}
function listen() {
  lanes.addEventListener('pointerdown', press);
  addEventListener('pointermove', drag);
  addEventListener('pointerup', lift);
  addEventListener('pointercancel', lift);
  lanes.addEventListener('dragstart', event => event.preventDefault());
  lanes.addEventListener('click', click, true);
  lanes.addEventListener('wheel', wheel, { passive: false });
  listenToOverview();
  rows.addEventListener('pointerdown', () => rows.focus({ preventScroll: true }));
  rows.addEventListener('keydown', key);
  rows.addEventListener('focusin', focus);
  rows.addEventListener('focusout', () => { if (!touched) tell([]); });
  document.addEventListener('click', follow);
  addEventListener('hashchange', obey);
  addEventListener('beforeprint', () => {
    for (const folded of document.querySelectorAll('details')) folded.open = true;
    measure();
    draw();
  });
  new ResizeObserver(() => { measure(); redraw(); }).observe(lanes);
}
function startTimeline() {
  time = document.getElementById('time');
  makeTimeline();
  listen();
  obey();
  measure();
  draw();
  const copy = document.getElementById('copy');
  if (!navigator.clipboard) return;
  copy.hidden = false;
  copy.addEventListener('click', () => navigator.clipboard.writeText(copy.parentNode.querySelector('code').textContent)
    .then(() => { copy.textContent = 'Copied'; }, () => { copy.textContent = 'Not copied'; }));
}
