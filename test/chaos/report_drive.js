/* What a person does with the page, in a browser: appended to a page by report_browser.sh, it leaves its findings as the page's text. */
addEventListener('load', () => setTimeout(async () => {
  const out = [];
  const rows = document.querySelector('.rows'), shown = document.getElementById('shown'), tip = document.getElementById('tip');
  const data = JSON.parse(document.getElementById('chaos-data').textContent);
  const settle = () => new Promise(done => setTimeout(done, 50));
  const check = (what, ok) => out.push((ok ? 'ok: ' : 'NOT OK: ') + what);
  const plot = () => rows.querySelector('.plot');
  const view = () => plot().getAttribute('viewBox').split(' ').map(Number);
  const press = key => rows.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
  /* Where a tick of a client's row is on the screen. */
  const place = (tick, client) => {
    const box = rows.getBoundingClientRect(), [start, , length] = view();
    return { clientX: box.left + +plot().getAttribute('x') + (tick - start) / length * +plot().getAttribute('width'),
      clientY: box.top + data.top + (client + 0.5) * data.pitch };
  };
  const point = (type, at, more) => rows.dispatchEvent(new PointerEvent(type, { bubbles: true, cancelable: true, pointerId: 1, button: 0, ...at, ...more }));
  try {
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
    check('in is no closer than 2 ms', Math.round(view()[2] * data.tick) === 2000);
    check('the axis is readable there', document.querySelectorAll('.times text').length >= 3);
    press('0'); await settle();
    check('0 shows all again', shown.textContent === whole);
    const unseen = data.failures.flatMap((list, row) => {
      let at = 0;
      return list.filter(([gap, wait]) => {
        at += gap;
        const point = new DOMPoint(at - wait / 2, data.top + row * data.pitch + (data.pitch >> 1) + 0.5);
        return wait > 0 && !rows.querySelector('[data-bars=wait]').isPointInFill(point);
      });
    });
    check('all waiting is drawn, ' + data.failures.flat().length + ' times in vain', unseen.length === 0);
    const client = Math.max(0, data.leases.findIndex(list => list.length > 3));
    let start = 0, lease = null;
    for (const item of data.leases[client].slice(0, 4)) { start += item[0]; lease = { from: start, to: start + item[1], item }; start += item[1]; }
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
      location.hash = `t=${(lease.from - 300) * data.tick / 1e6},${(lease.to + 300) * data.tick / 1e6}`; await settle();
      point('pointermove', place((lease.from + lease.to) / 2, client));
      check('the lease under the pointer is told: ' + tip.textContent, !tip.hidden && tip.textContent.includes(lease.item[7]) &&
        tip.textContent.includes('Client ' + (client + 1) + ' held ' + data.resources[lease.item[2]]));
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
    check('n tells the next: ' + tip.textContent, (data.leases[0].length + data.failures[0].length ? /^Client 1 (held|did not get) / : /^Client 1: 0 leases/).test(tip.textContent));
    press('Escape'); await settle();
    check('Escape hides it', tip.hidden);
    if (data.violations.length) {
      document.querySelector('[data-violation="0"]').click(); await settle();
      const [from, to] = data.violations[0], [a, , length] = view();
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
    if (data.bands.length) {
      document.querySelector('[data-fault="0"]').click(); await settle();
      check('a fault leads to its place', view()[0] <= data.bands[0][0] && view()[0] + view()[2] >= data.bands[0][0]);
      const band = rows.querySelector('.band');
      band.dispatchEvent(new FocusEvent('focusin', { bubbles: true }));
      check('a fault in focus tells its words: ' + tip.textContent, tip.textContent.includes(data.bands[0][4]));
    }
    location.hash = 't=2,3'; await settle();
    check('#t=2,3 shows these seconds: ' + shown.textContent, shown.textContent.startsWith('2.000 s \u2013 3.000 s'));
    check('no text from outside became a script or an element', window.broken === undefined && !document.querySelector('img, script[src], .what > *, #tip > :not(b)'));
    check('nothing is wider than the window: ' + document.documentElement.scrollWidth, document.documentElement.scrollWidth <= innerWidth);
  } catch (error) {
    out.push('NOT OK: ' + error.stack);
  }
  document.documentElement.replaceChildren(document.createElement('body'));
  document.body.textContent = '\n' + out.join('\n') + '\nEND\n';
}, 100));
