/* What stands above and below the rows: overview, time axis, latency, what became of acquires. */
const OVERVIEW = { height: 40, rate: 28 };
const LATENCY = { height: 190, pad: 6 };
const SHARES = { height: 100, volumeY: 110, volume: 44, stripY: 160, strip: 18 };
const buckets = bucketsOf(run);
const unhealthy = stepsOf(run.clients.flatMap(client => client.unhealthy));
const waits = stepsOf(run.acquires.map(({ from, wait }) => [from - wait, from]));
findPlaces(run);
const RESULTS = ['acquired', 'contended', 'failed'];

function overviewOf() {
  const most = Math.max(1, ...buckets.list.map(bucket => bucket.acquired)), { height, rate } = OVERVIEW;
  const rates = buckets.list.map(({ acquired }, i) => `V${(rate - acquired * (rate - 2) / most).toFixed(1)}H${Math.min(run.end, (i + 1) * buckets.width)}`);
  const drawing = plot(height, svg('path', { class: 'rate', d: `M0 ${rate}${rates.join('')}V${rate}z` }),
    ...run.faults.map(({ from, to, shade }) => svg('path', { class: shade, d: `M${from} ${rate + 3}H${to}v7H${from}z` })),
    svg('path', { class: 'marks', d: run.violations.map(({ from }) => `M${from} 0v${height}`).join('') }));
  drawing.classList.add('whole');
  drawing.setAttribute('viewBox', `0 0 ${run.end} ${height}`);
  drawing.querySelector('.grid').remove();
  return html('div', { class: 'overview' }, lane('', height, 'Overview of the whole run: acquires, faults, violations',
    names(rowName(height / 2 + 4, 'whole run', 'all')), drawing), html('div', { class: 'brush' }));
}

/* A logarithmic scale in whole decades of microseconds. */
function scaleOf() {
  const took = buckets.list.flatMap(bucket => bucket.took);
  const least = Math.max(1, took.reduce((a, b) => Math.min(a, b), 100)), most = took.reduce((a, b) => Math.max(a, b), 1000);
  return { low: Math.floor(Math.log10(least)), high: Math.ceil(Math.log10(most)) };
}
const scale = scaleOf();
function latencyY(us) {
  const above = Math.max(0, Math.log10(Math.max(1, us)) - scale.low) / (scale.high - scale.low);
  return Math.round(LATENCY.height - LATENCY.pad - above * (LATENCY.height - 2 * LATENCY.pad));
}
function latencyOf() {
  const decades = Array.from({ length: scale.high - scale.low + 1 }, (_, i) => 10 ** (scale.low + i));
  const line = (name, key) => svg('path', { class: 'line ' + name, d: buckets.list.map((bucket, i) => bucket.acquired
    ? `${i > 0 && buckets.list[i - 1].acquired ? 'L' : 'M'}${(i + 0.5) * buckets.width} ${latencyY(bucket[key])}` : '').join('') });
  const word = us => us < 1e3 ? us + ' µs' : us < 1e6 ? us / 1e3 + ' ms' : (us / 1e6).toLocaleString('en') + ' s';
  return [html('h3', {}, 'How long a successful acquire took'),
    legend([['dot', 'at the first attempt'], ['dot retried', 'after more attempts'], ['stroke p50', 'median of each ' + intervalSaid(buckets.width * run.tick_us)], ['stroke p99', '99th percentile']]),
    lane('chart latency', LATENCY.height, 'Time that successful acquires took, on a logarithmic scale, over time',
      names(...decades.map(us => svg('text', { y: latencyY(us) + 4 }, word(us)))),
      svg('path', { class: 'rule', d: decades.map(us => `M${size.gutter} ${latencyY(us)}.5H9999`).join('') }),
      plot(LATENCY.height, svg('path', { class: 'dots retried' }), svg('path', { class: 'dots' }), line('p50', 'p50'), line('p99', 'p99')))];
}
/* A dot an acquire; those that fall on the same pixel are one. */
function drawDots(chart, height, isOther) {
  const drawn = { once: new Map(), retried: new Map() };
  for (const acquire of run.acquires) {
    const { from, failed } = acquire;
    if (failed || from < window_.from || from > window_.to) continue;
    const y = height(acquire), pixel = Math.floor((from - window_.from) / perPixel()) * LATENCY.height + y;
    drawn[isOther(acquire) ? 'retried' : 'once'].set(pixel, `M${from} ${y}h0`);
  }
  chart.querySelector('.dots.retried').setAttribute('d', [...drawn.retried.values()].join(''));
  chart.querySelector('.dots:not(.retried)').setAttribute('d', [...drawn.once.values()].join(''));
}

/* How many wait; and for each acquire that got the lock, its place in line. */
const PLACES = { height: 110, pad: 6, most: Math.max(1, ...waits.map(([, count]) => count)) };
const placeY = place => Math.round(PLACES.height - PLACES.pad - place * (PLACES.height - 2 * PLACES.pad) / PLACES.most);
function placesOf() {
  const steps = waits.map(([tick, count]) => `H${tick.toFixed(1)}V${placeY(count)}`);
  return [html('h3', {}, 'Who was served'),
    legend([['contended', 'how many wait'], ['dot', 'got the lock as the first in line, by when they began'], ['dot retried', 'got it before others: the higher, the more']]),
    lane('chart places', PLACES.height, 'How many acquires waited, and the place in line of each that got the lock, over time',
      names(svg('text', { y: placeY(PLACES.most) + 4 }, PLACES.most), svg('text', { y: placeY(0) + 4 }, '0')),
      plot(PLACES.height, svg('path', { class: 'contended', d: `M0 ${placeY(0)}${steps.join('')}V${placeY(0)}z` }), svg('path', { class: 'dots retried' }), svg('path', { class: 'dots' })))];
}

/* Bars of all intervals for one of the results; y() is where so many acquires end. */
function stackOf(which, name, y) {
  return svg('path', { class: name, d: buckets.list.map((bucket, i) => {
    const below = RESULTS.slice(0, which).reduce((sum, key) => sum + bucket[key], 0), part = bucket[RESULTS[which]];
    const from = i * buckets.width, to = Math.floor(from + buckets.width * 11 / 12);
    return part ? `M${from} ${y(below, bucket).toFixed(1)}H${to}V${y(below + part, bucket).toFixed(1)}H${from}z` : '';
  }).join('') });
}
function becameOf() {
  const { height, volumeY, volume, stripY, strip } = SHARES, classes = ['acquired', 'contended', 'unserved'];
  const most = Math.max(1, ...buckets.list.map(bucket => bucket.all));
  const shareY = (count, bucket) => height - count * (height - 2) / bucket.all, volumeAt = count => volumeY + volume - count * volume / most;
  const spans = unhealthy.map(([from, count], i) => ({ from, count, to: i + 1 < unhealthy.length ? unhealthy[i + 1][0] : run.end })).filter(({ count, from, to }) => count > 0 && to > from);
  return [html('h3', {}, 'What became of acquires'),
    legend([['acquired', 'acquired'], ['contended', 'held by others until the end of the wait'], ['unserved', 'no quorum in time'],
      ['behind', 'meanwhile some clients had no healthy quorum'], ['unwell', 'how many of them'],
      ['', 'a bar: ' + intervalSaid(buckets.width * run.tick_us) + '; above its shares, below its number of acquires']]),
    lane('chart became', stripY + strip, 'What became of acquires, as shares and as numbers, over time',
      names(svg('text', { y: 10 }, '100 %'), svg('text', { y: height / 2 + 4 }, '50 %'), svg('text', { y: height }, '0 %'),
        rowName(volumeY + 10, 'up to ', '≤ ', most.toLocaleString('en')), svg('text', { y: volumeY + volume }, '0'),
        rowName(stripY + strip - 3, 'unhealthy', 'ill')),
      svg('path', { class: 'rule', d: [height / 2, height, volumeY + volume, stripY + strip - 1].map(y => `M${size.gutter} ${y}.5H9999`).join('') }),
      plot(stripY + strip, svg('path', { class: 'behind', d: spans.map(({ from, to }) => rectangle(from, to, 0, volumeY + volume)).join('') }),
        svg('path', { class: 'unwell', d: spans.map(({ from, to, count }) => rectangle(from, to, stripY + strip, -Math.ceil(count * strip / run.clients.length))).join('') }),
        ...classes.map((name, i) => stackOf(i, name + ' share', shareY)), ...classes.map((name, i) => stackOf(i, name + ' volume', volumeAt))))];
}
function chartSaid(at) {
  const index = Math.floor(at / buckets.width), bucket = buckets.list[index];
  if (!bucket) return [];
  const { acquired, contended, failed, all, p50, p99 } = bucket, share = count => count + (all ? ' (' + Math.round(count * 100 / all) + ' %)' : '');
  const said = [seconds(index * buckets.width) + ' – ' + seconds(Math.min(run.end, (index + 1) * buckets.width)),
    many(all, 'acquire') + (all ? ': ' + share(acquired) + ' acquired, ' + share(contended) + ' held by others, ' + share(failed) + ' without quorum' : '')];
  if (acquired) said.push('median ' + lastingUs(p50) + ', 99th percentile ' + lastingUs(p99));
  said.push(many(countAt(waits, at), 'acquire') + ' waiting');
  const count = countAt(unhealthy, at);
  if (count) said.push(many(count, 'client') + ' without a healthy quorum');
  return said;
}

/* Times at 1, 2 or 5 times a power of ten, so far apart that they do not touch. */
function axisTimes(from, to, tickUs, pixels, apart) {
  const least = (to - from) * tickUs * apart / pixels, power = 10 ** Math.floor(Math.log10(Math.max(100, least)));
  const step = [1, 2, 5, 10].map(factor => factor * power).find(wide => wide >= least), times = [];
  for (let at = Math.ceil(from * tickUs / step) * step; at <= to * tickUs; at += step) times.push(at);
  const decimals = Math.max(0, 6 - Math.round(Math.log10(step) - 0.35));
  return times.map(at => ({ at: at / tickUs, text: (at / 1e6).toFixed(decimals) + ' s' }));
}
const timeText = (x, y, width, gutter, text) => svg('text', { class: 'time', x: x.toFixed(1), y, 'text-anchor': x > width - 40 ? 'end' : x < gutter + 20 ? 'start' : 'middle' }, text);
function drawAxis(time) {
  const { from, to } = window_, { width, gutter, plot: pixels } = size;
  const times = axisTimes(from, to, run.tick_us, pixels, width < 640 ? 70 : 90);
  time.querySelector('.times').replaceChildren(...times.map(({ at, text }) => timeText(gutter + (at - from) / perPixel(), 16, width, gutter, text)));
  for (const grid of time.querySelectorAll('.grid')) grid.setAttribute('d', times.map(({ at }) => `M${at} 0V${grid.dataset.h}`).join(''));
}

const SHADES = { down: 'down: killed or paused', link: 'link: cut off, delayed, cut', ill: 'impaired: slow, refusing', breaks: 'forgets keys, or has a wrong clock' };
const timelineLegend = () => legend([...run.resources.map((name, i) => ['hue' + i % HUES, name]),
  ...Object.entries(SHADES).filter(([shade]) => run.faults.some(fault => fault.shade === shade)),
  ...(sharing ? [['read', 'thin and pale: it is read, by many at once'], ['alone', 'full: somebody has it alone, to write'], ['pending', 'somebody waits to write']] : []),
  ['stroke wait', 'waits for a lock'], ['denied', 'not acquired: held by others'], ['failed', 'not acquired: no quorum in time'], ['lost', 'lease lost'],
  ...(run.violations.length ? [['violation', 'violation']] : [])]);
