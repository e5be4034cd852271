/* A comparison: in each run, the leases of each resource over time, and what went wrong. */
const SIDE = { gutter: 46, right: 20, faults: 12, lanes: 3, lane: 8, gap: 5, axis: 18 };
SIDE.row = SIDE.lanes * SIDE.lane + SIDE.gap;
const longest = Math.max(...runs.map(each => each.end * each.tick_us));

/* An element that tells its words under the pointer, by a tap, and, if it may have it, in focus. */
function telling(element, words, focusable) {
  return build(element, { 'data-said': words, ...(focusable && { tabindex: 0, role: 'img', 'aria-label': words }) }, []);
}
/* When the guards leave no quorum that may vote. Between two moments at which one begins or ends to keep a node out, nothing changes. */
function votelessOf({ faults, nodes, quorum }) {
  const guarded = faults.filter(({ from, kept }) => kept > from), times = guarded.flatMap(({ from, kept }) => [from, kept]).sort((a, b) => a - b);
  const out = (from, to) => new Set(guarded.filter(fault => fault.from < to && fault.kept > from).flatMap(fault => fault.nodes)).size;
  return times.slice(1).map((to, i) => [times[i], to]).filter(([from, to]) => to > from && nodes - out(from, to) < quorum);
}
function sidePicture(side, width) {
  const pixels = width - SIDE.gutter - SIDE.right, height = SIDE.faults + SIDE.gap + side.resources.length * SIDE.row + SIDE.axis;
  const x = tick => SIDE.gutter + Math.min(longest, tick * side.tick_us) * pixels / longest, y = resource => SIDE.faults + SIDE.gap + resource * SIDE.row;
  const secondsIn = tick => (tick * side.tick_us / 1e6).toFixed(3) + ' s', spanSaid = (from, to) => secondsIn(from) + (to > from ? ' – ' + secondsIn(to) : '');
  const box = (name, from, to, top, tall, least) => svg('rect', { class: name, x: x(from).toFixed(1), y: top, width: Math.max(least, x(to) - x(from)).toFixed(1), height: tall });
  /* Each lease in the first lane that is free; where there is none, in the last. */
  const free = side.resources.map(() => Array(SIDE.lanes).fill(-1));
  const leases = side.clients.flatMap(client => client.leases).filter(({ from, to }) => to > from).sort((a, b) => a.from - b.from).map(({ client, resource, shared, from, to }) => {
    const lanes_ = free[resource], found = lanes_.findIndex(until => until <= from), at = found < 0 ? SIDE.lanes - 1 : found;
    lanes_[at] = Math.max(lanes_[at], to);
    return telling(box('hue' + client % HUES + (shared ? ' read' : ''), from, to, y(resource) + at * SIDE.lane, SIDE.lane - 1, 1.2),
      `client ${client + 1} ${shared ? 'read' : 'held'} ${side.resources[resource]} for ${lastingUs((to - from) * side.tick_us)}, ${spanSaid(from, to)}`);
  });
  const marks = side.violations.filter(({ resource }) => resource >= 0).flatMap(({ kind, from, to, resource, text }) =>
    kind === 'overlap' ? [telling(box(kind, from, to, y(resource) - 2, SIDE.lanes * SIDE.lane + 3, 4), text, true)]
      : kind === 'lost update' ? [telling(svg('path', { class: 'lost-update', d: `M${x(to) - 3.5} ${y(resource) + 2 * SIDE.lane - 1}l7 7m0-7l-7 7` }), text, true)] : []);
  const refusals = side.refusals.map(({ at, client, resource, write, fence, highest }) =>
    telling(svg('path', { class: 'refused', d: `M${x(at)} ${y(resource) + 2 * SIDE.lane - 1}l4.5 8h-9z` }),
      `client ${client + 1}: a ${write ? 'write' : 'read'} with token ${fence} was refused at ${secondsIn(at)}, for ${highest} had been seen`, true));
  return svg('svg', { class: 'lane compared', viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'The leases of each resource over time' },
    ...votelessOf(side).map(([from, to]) => telling(box('without', from, to, SIDE.faults, height - SIDE.axis - SIDE.faults, 0), 'the guards leave no quorum that may vote, ' + spanSaid(from, to))),
    ...side.resources.flatMap((name, i) => [svg('text', { class: 'name', x: SIDE.gutter - 8, y: y(i) + (SIDE.row >> 1) + 1 }, name),
      svg('path', { class: 'rule', d: `M${SIDE.gutter} ${y(i) + SIDE.lanes * SIDE.lane + 2}h${pixels}` })]),
    ...leases,
    ...side.faults.map(({ from, to, text }) => telling(box('fault', from, to, 0, SIDE.faults - 2, 2.5), text + ', ' + spanSaid(from, to), true)),
    ...marks, ...refusals,
    ...axisTimes(0, longest / side.tick_us, side.tick_us, pixels, 60).map(({ at, text }) => timeText(x(at), height - 4, width, SIDE.gutter, text)));
}
function startComparison() {
  const section = document.getElementById('pictures'), figures = [...section.querySelectorAll('figure')];
  section.querySelector('h2').after(legend([['hue0', 'a lease, while its owner relies on it'], ...(sharing ? [['read', 'one that is shared, to read']] : []), ['violation', 'two owners at once'], ['lost-update', 'lost update'],
    ['refused', 'access with an old token, refused'], ['breaks', 'fault'], ['without', 'guards leave no quorum that may vote']]));
  let width = 0;
  const drawSides = () => {
    if (section.clientWidth === width) return;
    width = section.clientWidth;
    figures.forEach((figure, i) => figure.replaceChildren(sidePicture(runs[i], Math.max(280, width))));
  };
  const show = (element, x, y) => tell(element.dataset && element.dataset.said ? [element.dataset.said] : [], x, y);
  for (const type of ['pointermove', 'pointerup', 'click']) addEventListener(type, event => show(event.target, event.clientX, event.clientY));
  section.addEventListener('focusin', ({ target }) => { const { left, bottom } = target.getBoundingClientRect(); show(target, left, bottom); });
  section.addEventListener('focusout', () => tell([]));
  new ResizeObserver(drawSides).observe(section);
  drawSides();
}

pageRoot.classList.add('js');
if (runs.length > 1) startComparison(); else startTimeline();
