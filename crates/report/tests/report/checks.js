// Run behind the page's own script: uses the page as a reader would and writes
// what it finds into the document, a line for each check.
'use strict';
(() => {
  const results = [];
  const check = (name, passed) => results.push(`${passed ? 'ok' : 'FAILED'} ${name}`);
  const pointer = (element, type, x, y) =>
    element.dispatchEvent(new PointerEvent(type, {
      bubbles: true, cancelable: true, clientX: x, clientY: y, button: 0, pointerId: 1, isPrimary: true,
    }));
  const visible = (element) => element.getClientRects().length > 0;
  const tooltip = document.querySelector('.tooltip');

  const checkRun = (article, run) => {
    const data = JSON.parse(article.querySelector('script.data').textContent);
    const strips = [...article.querySelectorAll('.strip')];
    const toggles = [...article.querySelectorAll('[data-toggle]')];
    check(`${run}: every lane has a button, a ribbon, a curve and a bar`, toggles.length > 0 && toggles.every((button) =>
      ['.strip', '.curve', '.bar-row'].every((kind) => {
        const element = article.querySelector(`${kind}[data-lane="${button.dataset.toggle}"]`);
        return element && visible(element);
      })));
    check(`${run}: every ribbon is a path`, strips.every((strip) => strip.querySelector('.ribbon').getTotalLength() > 500));

    // Drawing anew without zooming must leave what was drawn.
    const root = article.querySelector('.timeplot');
    const key = (name) => root.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true }));
    const boxes = () => strips.map((strip) => strip.querySelector('.ribbon').getBBox());
    const before = boxes();
    key('0');
    check(`${run}: script and page draw ribbons alike`, boxes().every((box, index) =>
      Math.abs(box.x - before[index].x) < 1 && Math.abs(box.y - before[index].y) < 0.5
      && Math.abs(box.width - before[index].width) < 3 && Math.abs(box.height - before[index].height) < 0.5));

    // Hiding and showing.
    const lane = toggles[0].dataset.toggle;
    const all = () => [...article.querySelectorAll(`[data-lane="${lane}"]`)];
    toggles[0].click();
    check(`${run}: a lane's button hides it everywhere`, toggles[0].getAttribute('aria-pressed') === 'false' && !all().some(visible));
    check(`${run}: other lanes stay`, toggles.length < 2 || visible(article.querySelector(`.strip[data-lane="${toggles[1].dataset.toggle}"]`)));
    toggles[0].click();
    check(`${run}: and shows it again`, toggles[0].getAttribute('aria-pressed') === 'true' && visible(all()[0]));
    article.querySelector('[data-choose=""]').click();
    check(`${run}: none hides all`, !strips.some(visible));
    article.querySelector('[data-choose="all"]').click();
    check(`${run}: all shows all`, strips.every(visible));

    // Zooming.
    const ribbon = () => strips[0].querySelector('.ribbon').getAttribute('d');
    const truth = () => { const each = article.querySelector('.series'); return each ? each.getAttribute('d') : ribbon(); };
    const axis = () => article.querySelector('.time-axis').textContent;
    const [whole, wholeTruth, wholeAxis] = [ribbon(), truth(), axis()];
    root.scrollIntoView();
    const plot = strips[0].querySelector('svg.plot');
    const box = plot.getBoundingClientRect();
    const drag = (from, to) => {
      pointer(plot, 'pointerdown', box.left + box.width * from, box.top + 20);
      pointer(plot, 'pointermove', box.left + box.width * to, box.top + 20);
      pointer(plot, 'pointerup', box.left + box.width * to, box.top + 20);
    };
    // The events are not a real pointer's, which alone can be captured.
    root.setPointerCapture = () => {};
    drag(0.25, 0.5);
    const near = (value, wanted) => Math.abs(value - wanted) < data.span * 0.01;
    check(`${run}: dragging zooms to what was dragged over`, near(Number(root.dataset.from), data.span * 0.25) && near(Number(root.dataset.to), data.span * 0.5));
    check(`${run}: ribbons, truth and axis are drawn anew`, ribbon() !== whole && truth() !== wholeTruth && axis() !== wholeAxis);
    check(`${run}: the way back is offered`, !article.querySelector('.reset').hidden && article.querySelector('.zoomed').textContent.includes('to'));
    check(`${run}: nothing drawn is not a number`, !article.innerHTML.includes('NaN'));
    drag(0.5, 0.5);
    check(`${run}: a click is not a zoom`, near(Number(root.dataset.to), data.span * 0.5));
    key('+');
    check(`${run}: + magnifies`, Number(root.dataset.to) - Number(root.dataset.from) < data.span * 0.2);
    key('ArrowRight');
    check(`${run}: → moves on`, Number(root.dataset.from) > data.span * 0.3);
    for (let index = 0; index < 40; index += 1) key('+');
    check(`${run}: magnifying ends`, Number(root.dataset.to) - Number(root.dataset.from) >= Math.min(data.span, 0.5) * 0.99);
    article.querySelector('.reset').click();
    check(`${run}: resetting shows the whole run`, Number(root.dataset.from) === 0 && Number(root.dataset.to) === data.span);
    const lag = article.querySelector('.show-lag');
    if (lag) {
      lag.click();
      check(`${run}: a lag in the details is shown`, Number(root.dataset.from) <= Number(lag.dataset.from) && Number(root.dataset.to) >= Number(lag.dataset.to));
      key('Escape');
    }

    // Pointing.
    pointer(plot, 'pointermove', box.left + box.width * 0.4, box.top + 20);
    const name = data.lanes[strips[0].dataset.lane].name;
    check(`${run}: a ribbon shows its values`, !tooltip.hidden && tooltip.textContent.includes(name) && / ms|nothing arrived/.test(tooltip.textContent));
    check(`${run}: and the link's truth`, data.rows.length === 0 || tooltip.textContent.includes('link '));
    pointer(root, 'pointerleave', 0, 0);
    const curves = article.querySelector('.labelled-plot > svg.plot');
    curves.scrollIntoView();
    const area = curves.getBoundingClientRect();
    pointer(curves, 'pointermove', area.left + area.width * 0.5, area.top + area.height * 0.6);
    check(`${run}: a curve shows its percentile`, !tooltip.hidden && /p\d/.test(tooltip.textContent));
    pointer(curves, 'pointerleave', 0, 0);
    check(`${run}: nothing is said once the pointer has left`, tooltip.hidden);
    const point = [...article.querySelectorAll('.point')].find(visible);
    pointer(point, 'pointermove', 50, 50);
    check(`${run}: a point shows its cost`, !tooltip.hidden && tooltip.textContent.includes('× the payload'));
    pointer(point, 'pointerleave', 0, 0);
  };

  try {
    document.querySelectorAll('.run').forEach((article, index) => checkRun(article, `run ${index}`));
    check('no table of lanes is cut at its frame', [...document.querySelectorAll('.lanes .scroll')].every((frame) =>
      !visible(frame) || frame.scrollWidth <= frame.clientWidth));
    check('the page is not wider than the window', document.documentElement.scrollWidth <= innerWidth);
    check('no text became script', window.hacked === undefined && document.images.length === 0);
    check('no text is read as markup', document.querySelectorAll('script').length === document.querySelectorAll('.run').length + 2);
  } catch (error) {
    results.push(`FAILED ${error.stack}`);
  }
  const out = document.body.appendChild(document.createElement('pre'));
  out.id = 'results';
  out.textContent = results.join('\n');
})();
