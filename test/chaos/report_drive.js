/*
 * What a person does with the page, in a browser. report_browser.sh appends it to a page, whose name is in the
 * root's data-driven; it leaves its findings as the page's text.
 */
addEventListener('load', () => setTimeout(async () => {
  const out = [];
  const rows = document.querySelector('.rows'), shown = document.getElementById('shown'), tip = document.getElementById('tip');
  const data = JSON.parse(document.getElementById('chaos-data').textContent).runs[0];
  const { top, pitch } = rows ? rows.dataset : {}, name = document.documentElement.dataset.driven;
  const settle = () => new Promise(done => setTimeout(done, 50));
  const check = (what, ok) => out.push((ok ? 'ok: ' : 'NOT OK: ') + what);
  const plot = () => rows.querySelector('.plot');
  const view = () => plot().getAttribute('viewBox').split(' ').map(Number);
  const press = key => rows.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
  /* Where a tick of a client's row is on the screen. */
  const place = (tick, client) => {
    const box = rows.getBoundingClientRect(), [start, , length] = view();
    return { clientX: box.left + +plot().getAttribute('x') + (tick - start) / length * +plot().getAttribute('width'),
      clientY: box.top + +top + (client + 0.5) * pitch };
  };
  const point = (type, at, more) => rows.dispatchEvent(new PointerEvent(type, { bubbles: true, cancelable: true, pointerId: 1, button: 0, ...at, ...more }));
  const drawn = selector => [...document.querySelectorAll(selector)];
  /* What is told at a tick of one of the charts. */
  const chartSaid = (chart, tick) => {
    const lane = document.querySelector(chart), box = lane.getBoundingClientRect();
    lane.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, pointerId: 1, clientX: place(tick, 0).clientX, clientY: box.top + 5 }));
    return tip.textContent;
  };
  /* What every page must have. */
  const checkAll = () => {
    const links = drawn('a').map(link => link.getAttribute('href')), inside = links.filter(href => href[0] === '#');
    check('all links lead somewhere, ' + links.length, links.every(href => href[0] === '#' ? document.getElementById(href.slice(1)) : /^(none|fencing|guards)\/report.html$/.test(href)));
    const ids = drawn('[id]').map(element => element.id);
    check('each id is there once', new Set(ids).size === ids.length && inside.length >= 0);
    const bad = drawn('svg, svg *').filter(element => [...element.attributes].some(({ value }) => /NaN|undefined|Infinity/.test(value)));
    check('all that is drawn has numbers', bad.length === 0);
    check('no text from outside became a script or an element', window.broken === undefined && !document.querySelector('img, script[src], .what > *, #tip > :not(b)'));
    check('nothing is wider than the window: ' + document.documentElement.scrollWidth, document.documentElement.scrollWidth <= innerWidth);
  };
  /* Faults that overlap have lanes of their own; over clients that they hit, neighbours are one. */
  const checkLanes = () => {
    const d = (index, which) => { const path = document.querySelector(`[data-band="${index}"] .${which}`); return path && path.getAttribute('d'); };
    const expected = ['M10000 25h20000v15H10000z', 'M20000 42h30000v15H20000zM20000 81h30000v15H20000z', 'M25000 59h1000v15H25000z', 'M30000 25h30000v15H30000z', 'M50000 42h0v15H50000z'];
    expected.forEach((path, i) => check(`fault ${i + 1} is in its lane: ${d(i, 'on-node')}`, d(i, 'on-node') === path));
    check('a fault covers its clients: ' + d(1, 'on-client'), d(1, 'on-client') === 'M20000 132h30000v47H20000z' && !d(0, 'on-client'));
  };
  /* Acquires by intervals of half a second, and how many clients have no healthy quorum. */
  const checkIntervals = () => {
    const told = [['13000', '103 acquires: 100 (97 %) acquired, 1 (1 %) held by others, 2 (2 %) without quorum'], ['13000', 'median 5.00 ms, 99th percentile 9.90 ms'], ['13000', '1 client without a healthy quorum'],
      ['17000', '1 acquire: 1 (100 %) acquired, 0 (0 %) held by others'], ['17000', 'median 7.00 ms, 99th percentile 7.00 ms'], ['17000', '2 clients without a healthy quorum'], ['7000', '0 acquires']];
    for (const [tick, words] of told) check(`at ${tick}: ${words}`, chartSaid('.latency', +tick).includes(words));
    check('later all are healthy', !chartSaid('.latency', 57000).includes('without a healthy quorum') && chartSaid('.latency', 55000).includes('2 clients without'));
    const d = which => document.querySelector('.became .' + which).getAttribute('d');
    check('the number of acquires is drawn: ' + d('acquired.volume'), d('acquired.volume').startsWith('M10000 154.0H14583V111.3H10000z'));
    check('their shares are drawn: ' + d('unserved.share'), d('unserved.share') === 'M10000 3.9H14583V2.0H10000z');
    check('the time without a quorum is hatched: ' + d('behind'), d('behind') === 'M10000 0h5000v154H10000zM15000 0h41000v154H15000z' && getComputedStyle(document.querySelector('.became .behind')).fill.includes('#hatch-soft'));
    check('what is hatched is named', drawn('.legend .behind').length === 1);
    check('how many wait is told: ' + chartSaid('.places', 13000), chartSaid('.places', 13000).includes(' waiting'));
    const served = drawn('.places .dots').map(path => path.getAttribute('d').split('M').length - 1);
    check('a dot a place in line: ' + served, served[0] + served[1] > 10 && /^M0 \d+H/.test(document.querySelector('.places .contended').getAttribute('d')));
    check('a dot an acquire: ' + drawn('.dots').map(path => path.getAttribute('d').split('M').length - 1), drawn('.dots').reduce((sum, path) => sum + path.getAttribute('d').split('M').length - 1, 0) > 30);
  };
  /* Two read, a writer waits for both, and then one of them for the writer. */
  const checkReaders = async () => {
    const d = selector => document.querySelector(selector).getAttribute('d'), boxes = selector => d(selector).split('z').length - 1;
    const at = (second, client) => { point('pointermove', place(second * 10000, client)); return tip.textContent; };
    check('each client is said to read or to write', drawn('.rows [data-client]').map(name => name.textContent.replace('client c', '')).join() === '1 writes,2 reads,3 reads');
    check('how many read is drawn: ' + d('[data-held=reading0]'), d('[data-held=reading0]').startsWith('M0 102H10010V92.0H12000V82.0H18000V92.0H20000V102.0H25000V92.0H30000V102.0H'));
    check('who has it alone is drawn: ' + d('[data-held=alone0]'), d('[data-held=alone0]') === 'M20000.00 82H25000.00v20H20000.00z');
    check('that somebody waits to write is drawn: ' + d('[data-held=pending0]'), d('[data-held=pending0]') === 'M15000.00 77H20000.00v3H15000.00z');
    check('leases are drawn by their mode', boxes('[data-bars=read0]') === 3 && boxes('[data-bars="0"]') === 1);
    check('a writer tells whom it waited for: ' + at(2.2, 0), tip.textContent.includes('Client 1 held r1') && tip.textContent.includes('waited for client 2 (read until 2.000 s), client 3 (read until 1.800 s)'));
    check('these are framed', boxes('.blockers') === 2);
    check('a reader tells it, too: ' + at(2.7, 1), tip.textContent.includes('Client 2 read r1') && tip.textContent.includes('waited for client 1 (alone until 2.500 s)') && boxes('.blockers') === 1);
    check('readers do not wait for each other: ' + at(1.3, 2), !tip.textContent.includes('waited for') && boxes('.blockers') === 0);
    const row = { ...place(16000, 0), clientY: rows.getBoundingClientRect().top + 90 };
    point('pointermove', row);
    check('the row of a resource tells who has it, and who waits: ' + tip.textContent, /^r1 at 1.[56]\d\d s\n2 readers: clients 2, 3\nwaiting to write: client 1$/.test(tip.textContent));
    check('what is thin, full and black is named', ['read', 'alone', 'pending'].every(name => drawn('.legend .' + name).length === 1));
  };
  const checkComparison = async () => {
    const counts = { 'svg.compared': 3, '.compared rect[class^=hue]': 6, '.compared .overlap': 2, '.compared .lost-update': 1, '.compared .refused': 1, '.compared .fault': 3, '.compared .without': 1 };
    for (const selector in counts) check(`${selector}: ${drawn(selector).length}`, drawn(selector).length === counts[selector]);
    check('a name is text', document.querySelector('.compared .name').textContent === '<r&1>');
    const words = { '.overlap': 'relied on it from', '.lost-update': 'wrote', '.refused': 'client 1: a write with token 10 was refused', '.fault': 'fault', 'rect[class^=hue]': 'client 1 held <r&1> for', '.without': 'no quorum that may vote, 1.300 s – 2.300 s' };
    for (const selector in words) {
      document.querySelector('.compared ' + selector).dispatchEvent(new MouseEvent('click', { bubbles: true }));
      check(`${selector} tells: ${tip.textContent}`, !tip.hidden && tip.textContent.includes(words[selector]));
    }
    tip.hidden = true;
    document.querySelector('.compared .fault').dispatchEvent(new FocusEvent('focusin', { bubbles: true }));
    check('a fault in focus tells its words', !tip.hidden && document.querySelector('.compared .fault').tabIndex === 0);
    document.querySelector('h1').dispatchEvent(new MouseEvent('click', { bubbles: true }));
    check('a click elsewhere hides it', tip.hidden);
  };
  /* A finger: the first tap on a fault tells its words and leads nowhere, the second one leads to its line. */
  const checkTaps = index => {
    const fault = data.faults[index], box = document.querySelector(`[data-band="${index}"] .on-node`), mouse = { bubbles: true, cancelable: true, detail: 1 };
    const at = { bubbles: true, cancelable: true, pointerId: 7, button: 0, pointerType: 'touch', clientX: place((fault.from + Math.min(fault.to, data.end)) / 2, 0).clientX, clientY: box.getBoundingClientRect().top + 5 };
    const tap = () => {
      for (const type of ['pointerdown', 'pointerup']) box.dispatchEvent(new PointerEvent(type, at));
      const click = new MouseEvent('click', mouse);
      box.dispatchEvent(click);
      return click;
    };
    document.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: 0, clientY: 0 }));
    tip.hidden = true;
    const first = tap();
    check('a tap on a fault tells its words: ' + tip.textContent, first.defaultPrevented && !tip.hidden && tip.textContent.includes(fault.text));
    check('a second tap leads to its line', !tap().defaultPrevented && location.hash === '#f' + (index + 1));
    const near = { ...at, clientX: place(Math.min(fault.to, data.end), 0).clientX + 9 };
    for (const type of ['pointerdown', 'pointerup']) rows.dispatchEvent(new PointerEvent(type, near));
    check('a tap beside it tells them too', !tip.hidden && tip.textContent.includes(fault.text));
  };
  const checkTimeline = async () => {
    const whole = shown.textContent;
    check('the whole run is shown at first: ' + whole, /^the whole run: \d+\.\d{3} s$/.test(whole) && view()[0] === 0);
    document.querySelector('[data-do=in]').click(); await settle();
    check('the button zooms in by two: ' + shown.textContent, Math.abs(view()[2] - data.end / 2) < 1);
    const left = view()[0];
    press('ArrowLeft'); await settle();
    check('the left arrow moves by a quarter', Math.abs(left - view()[0] - data.end / 8) < 1);
    press('-'); press('-'); press('-'); await settle();
    check('out is no further than the whole', view()[0] === 0 && view()[2] === data.end);
    for (let i = 0; i < 40; i++) press('+');
    await settle();
    check('in is no closer than 2 ms', Math.round(view()[2] * data.tick_us) === 2000);
    check('the axis is readable there', document.querySelectorAll('.times text').length >= 3);
    press('0'); await settle();
    check('0 shows all again', shown.textContent === whole);
    const failures = data.clients.map(({ acquires }) => { let at = 0; return acquires.map(([gap, tookUs,, result]) => ({ at: at += gap, wait: tookUs / data.tick_us, result })); });
    const unseen = failures.flatMap((list, row) => list.filter(({ at, wait }) => {
      const point = new DOMPoint(at - wait / 2, +top + row * pitch + (pitch >> 1) + 0.5);
      return wait >= 1 && !rows.querySelector('[data-bars=wait]').isPointInFill(point);
    }));
    check('all waiting is drawn, ' + failures.flat().length + ' times in vain', unseen.length === 0);
    check('a row a node and a row a client', rows.querySelectorAll('.names text:not(.bad)').length === data.nodes + drawn('[data-held^=alone]').length + data.clients.length &&
      rows.querySelector('.names text:last-child').textContent.startsWith('client c' + data.clients.length));
    check('a box a fault, a mark a violation', drawn('.band').length === data.faults.length && drawn('.violation[id]').length === data.violations.length);
    if (data.clients.some(({ leases }) => leases.length)) check('it is drawn how long acquires took', drawn('.latency .p50')[0].getAttribute('d').startsWith('M'));
    const client = Math.max(0, data.clients.findIndex(({ leases }) => leases.length > 3));
    let start = 0, lease = null;
    for (const item of data.clients[client].leases.slice(0, 4)) { start += item[0]; lease = { from: start, to: start + item[1], item }; start += item[1]; }
    const before = place(data.end * 0.4, client);
    const wheel = new WheelEvent('wheel', { deltaY: -2000, ctrlKey: true, bubbles: true, cancelable: true, ...before });
    rows.dispatchEvent(wheel);
    await settle();
    const after = place(data.end * 0.4, client);
    check('the wheel zooms around the pointer', wheel.defaultPrevented && view()[2] < data.end * 0.7 && Math.abs(before.clientX - after.clientX) < 2);
    const plain = new WheelEvent('wheel', { deltaY: -200, bubbles: true, cancelable: true, ...before });
    document.activeElement.blur();
    rows.dispatchEvent(plain);
    check('the wheel alone scrolls the page', !plain.defaultPrevented);
    if (lease) {
      location.hash = `t=${(lease.from - 300) * data.tick_us / 1e6},${(lease.to + 300) * data.tick_us / 1e6}`; await settle();
      point('pointermove', place((lease.from + lease.to) / 2, client));
      check('the lease under the pointer is told: ' + tip.textContent, !tip.hidden && tip.textContent.includes(lease.item[4]) &&
        tip.textContent.includes('Client ' + (client + 1) + ' held ' + data.resources[lease.item[2]]) && tip.textContent.includes('acquired within '));
    }
    location.hash = 't=4,6'; await settle();
    const grip = place(view()[0] + view()[2] / 2, client), at = view()[0];
    point('pointerdown', grip);
    point('pointermove', { ...grip, clientX: grip.clientX + 100 });
    point('pointerup', { ...grip, clientX: grip.clientX + 100 });
    await settle();
    check('dragging moves the window', Math.abs(at - view()[0] - 100 * view()[2] / +plot().getAttribute('width')) < 1 || view()[0] === 0);
    press('0'); await settle();
    const spread = (id, x) => ({ ...grip, pointerId: id, clientX: rows.getBoundingClientRect().left + x });
    point('pointerdown', spread(1, 200)); point('pointerdown', spread(2, 300));
    point('pointermove', spread(2, 400)); await settle();
    check('two fingers zoom', Math.abs(view()[2] - data.end / 2) < 1);
    point('pointerup', spread(1, 200)); point('pointerup', spread(2, 400));
    const strip = document.querySelector('.overview'), along = share => ({ bubbles: true, cancelable: true, pointerId: 1, button: 0,
      clientX: strip.getBoundingClientRect().left + +plot().getAttribute('x') + share * +plot().getAttribute('width') });
    strip.setPointerCapture = () => {}; // which only real pointers have
    press('0');
    for (const [type, share] of [['pointerdown', 0.25], ['pointermove', 0.5], ['pointerup', 0.5]]) strip.dispatchEvent(new PointerEvent(type, along(share)));
    await settle();
    check('a drag over the overview picks a window: ' + shown.textContent, Math.abs(view()[0] - data.end / 4) < data.end / 100 && Math.abs(view()[2] - data.end / 4) < data.end / 100);
    for (const [type, share] of [['pointerdown', 0.4], ['pointermove', 0.6], ['pointerup', 0.6]]) strip.dispatchEvent(new PointerEvent(type, along(share)));
    await settle();
    check('a drag inside it moves it: ' + shown.textContent, Math.abs(view()[0] - data.end * 0.45) < data.end / 100);
    press('0'); press('ArrowDown'); await settle();
    check('the arrow picks a row: ' + tip.textContent, tip.textContent.startsWith('Client 1: '));
    press('n'); press('n'); await settle();
    check('n tells the next: ' + tip.textContent, (data.clients[0].leases.length + data.clients[0].acquires.length ? /^Client 1 (held|read|did not get) / : /^Client 1: 0 leases/).test(tip.textContent));
    press('Escape'); await settle();
    check('Escape hides it', tip.hidden);
    if (data.violations.length) {
      document.querySelector('[data-violation="0"]').click(); await settle();
      const { from, to } = data.violations[0], [a, , length] = view();
      check('a violation leads to its place', length < data.end / 2 && a <= from && a + length >= Math.min(to, data.end) && document.getElementById('m1').classList.contains('lit'));
    }
    const last = data.violations.length;
    if (last > 5) {
      const mark = document.getElementById('m' + last);
      point('pointerdown', grip);
      point('pointerup', grip);
      mark.querySelector('.flag').dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, detail: 1 }));
      check('a mark leads to its words, which are unfolded', document.getElementById('v' + last).closest('details').open && location.hash === '#v' + last);
      const click = new MouseEvent('click', { bubbles: true, cancelable: true, detail: 1 });
      mark.querySelector('.where').dispatchEvent(click);
      check('a click in the rows stays there', click.defaultPrevented);
    }
    if (data.faults.length) {
      document.querySelector('[data-fault="0"]').click(); await settle();
      check('a fault leads to its place', view()[0] <= data.faults[0].from && view()[0] + view()[2] >= data.faults[0].from);
      const band = rows.querySelector('.band');
      band.dispatchEvent(new FocusEvent('focusin', { bubbles: true }));
      check('a fault in focus tells its words: ' + tip.textContent, tip.textContent.includes(data.faults[0].text));
      press('0'); await settle();
      checkTaps(data.faults.findIndex(fault => fault.nodes.length && fault.from > 0));
    }
    location.hash = 't=2,3'; await settle();
    check('#t=2,3 shows these seconds: ' + shown.textContent, shown.textContent.startsWith('2.000 s \u2013 3.000 s'));
  };
  try {
    if (name === 'comparison') await checkComparison(); else await checkTimeline();
    if (name === 'lanes') checkLanes();
    if (name === 'readers') { press('0'); await settle(); await checkReaders(); }
    if (name === 'intervals') { press('0'); await settle(); checkIntervals(); }
    checkAll();
  } catch (error) {
    out.push('NOT OK: ' + error.stack);
  }
  document.documentElement.replaceChildren(document.createElement('body'));
  document.body.textContent = '\n' + out.join('\n') + '\nEND\n';
}, 100));
