// The time axis: one zoom for all ribbons and for the link's truth beneath.

function timeOf(article, data) {
  const root = article.querySelector('.timeplot');
  if (!root) return null;
  const plots = [...root.querySelectorAll('svg.plot')];
  const reset = article.querySelector('.reset');
  const zoomed = article.querySelector('.zoomed');
  const crosshair = root.appendChild(document.createElement('div'));
  const selection = root.appendChild(document.createElement('div'));
  crosshair.className = 'crosshair';
  selection.className = 'selection';
  crosshair.hidden = selection.hidden = true;
  const [top, bottom] = data.strip;
  const ribbonY = (value) => bottom - (bottom - top) * logPosition(...data.rtt, value);
  const spans = [...root.querySelectorAll('.shade, .bar, .episode')].map((element) => ({
    element,
    start: (parseFloat(element.getAttribute('x')) / 100) * data.span,
    length: (parseFloat(element.getAttribute('width')) / 100) * data.span,
  }));
  const shortest = Math.min(data.span, 0.5);
  let [from, to] = [0, data.span];

  const draw = () => {
    const columns = Math.max(200, Math.floor(plots[0].getBoundingClientRect().width / 1.5));
    for (const strip of root.querySelectorAll('.strip')) {
      const lane = data.lanes[strip.dataset.lane];
      strip.querySelector('.ribbon').setAttribute('d', bandPath(lane.band, from, to, columns, ribbonY));
      strip.querySelector('.lost').setAttribute('d', lostPath(lane.lost, lane.band.step, from, to, columns));
    }
    for (const series of root.querySelectorAll('.series')) {
      const row = data.rows[series.dataset.row];
      const band = row.bands[series.classList.contains('up') ? 0 : 1];
      const y = (value) => row.top + row.height - row.height * axisPosition(row.axis, value);
      series.setAttribute('d', bandPath(band, from, to, columns, y));
    }
    for (const { element, start, length } of spans) {
      element.setAttribute('x', `${((start - from) / (to - from)) * 100}%`);
      element.setAttribute('width', `${(length / (to - from)) * 100}%`);
    }
    drawAxis();
    const whole = from === 0 && to === data.span;
    reset.hidden = whole;
    zoomed.textContent = whole ? '' : `${clock(from, (to - from) / 100)} to ${clock(to, (to - from) / 100)}`;
    root.dataset.from = from;
    root.dataset.to = to;
  };

  const drawAxis = () => {
    const axis = root.querySelector('.time-axis');
    const labels = axis.closest('svg').getBoundingClientRect().width / 90;
    const y = Number(axis.dataset.top) + 13;
    axis.replaceChildren(...timeTicks(from, to, Math.max(2, labels)).map(([seconds, label]) => {
      const position = (seconds - from) / (to - from);
      const text = document.createElementNS('http://www.w3.org/2000/svg', 'text');
      text.setAttribute('class', 'tick');
      text.setAttribute('x', `${position * 100}%`);
      text.setAttribute('y', y);
      text.setAttribute('text-anchor', position < 0.02 ? 'start' : position > 0.98 ? 'end' : 'middle');
      text.textContent = label;
      return text;
    }));
  };

  const zoom = (newFrom, newTo) => {
    const length = Math.min(data.span, Math.max(shortest, newTo - newFrom));
    const start = Math.min(Math.max(0, (newFrom + newTo - length) / 2), data.span - length);
    [from, to] = [start, Math.min(data.span, start + length)];
    draw();
  };

  const place = (event) => {
    const box = plots[0].getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    return { seconds: from + share * (to - from), x: box.left + share * box.width - root.getBoundingClientRect().left };
  };

  const truthAt = (seconds) => data.rows.map((row) => {
    const at = row.bands.map((band) => {
      const index = Math.floor(seconds / band.step);
      return extremes(band, index, index + 1);
    });
    const unit = { delay: 'ms', loss: '%' }[row.name] || 'kbit/s';
    const one = (range) => (range === null ? '–' : short(range[1]));
    return `link ${row.name.split(',')[0]}: up ${one(at[0])}, down ${one(at[1])} ${unit}`;
  });

  const describe = (event, seconds) => {
    const strip = event.target.closest('.strip');
    const precise = clock(seconds, Math.max(0.05, (to - from) / 1000));
    if (!strip) return showTooltip(event, precise, [event.target.dataset.words, ...truthAt(seconds)]);
    const lane = data.lanes[strip.dataset.lane];
    const step = lane.band.step;
    // As many steps as a column of the drawing shows.
    const reach = Math.max(1, Math.ceil((to - from) / step / plots[0].getBoundingClientRect().width));
    const index = Math.floor(seconds / step / reach) * reach;
    const range = extremes(lane.band, index, index + reach);
    const lost = lane.lost.slice(index, index + reach).reduce((sum, each) => sum + each, 0);
    const rtt = range === null ? 'nothing arrived' : range[0] === range[1]
      ? milliseconds(range[0])
      : `${milliseconds(range[0])} to ${milliseconds(range[1])}`;
    return showTooltip(event, `${lane.name} at ${precise}`, [
      rtt, lost > 0 && `${lost} lost`, event.target.dataset.words, ...truthAt(seconds),
    ]);
  };

  let dragged = null;
  root.addEventListener('pointerdown', (event) => {
    if (event.button !== 0 || !event.target.closest('svg.plot')) return;
    dragged = place(event);
    root.setPointerCapture(event.pointerId);
  });
  root.addEventListener('pointermove', (event) => {
    const here = place(event);
    if (dragged) {
      selection.hidden = Math.abs(here.x - dragged.x) < 4;
      selection.style.left = `${Math.min(here.x, dragged.x)}px`;
      selection.style.width = `${Math.abs(here.x - dragged.x)}px`;
      hideTooltip();
      return;
    }
    const over = event.target.closest('svg.plot');
    crosshair.hidden = !over;
    crosshair.style.left = `${here.x}px`;
    if (over) describe(event, here.seconds);
    else hideTooltip();
  });
  root.addEventListener('pointerup', (event) => {
    if (!dragged) return;
    const here = place(event);
    const [first, last] = [Math.min(here.seconds, dragged.seconds), Math.max(here.seconds, dragged.seconds)];
    const far = Math.abs(here.x - dragged.x) >= 4;
    dragged = null;
    selection.hidden = true;
    if (far) zoom(first, last);
  });
  root.addEventListener('pointercancel', () => {
    dragged = null;
    selection.hidden = true;
  });
  root.addEventListener('pointerleave', () => {
    crosshair.hidden = true;
    hideTooltip();
  });
  root.addEventListener('dblclick', () => zoom(0, data.span));
  root.addEventListener('keydown', (event) => {
    const length = to - from;
    const moves = {
      ArrowLeft: () => zoom(Math.max(0, from - length / 5), Math.max(0, from - length / 5) + length),
      ArrowRight: () => zoom(Math.min(data.span, to + length / 5) - length, Math.min(data.span, to + length / 5)),
      '+': () => zoom(from + length / 4, to - length / 4),
      '=': () => zoom(from + length / 4, to - length / 4),
      '-': () => zoom(from - length / 2, to + length / 2),
      0: () => zoom(0, data.span),
      Escape: () => zoom(0, data.span),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in moves)) return;
    event.preventDefault();
    moves[event.key]();
  });
  reset.addEventListener('click', () => zoom(0, data.span));
  for (const button of article.querySelectorAll('.show-lag')) {
    button.addEventListener('click', () => {
      const [first, last] = [Number(button.dataset.from), Number(button.dataset.to)];
      const around = Math.max(2, (last - first) * 2);
      zoom(first - around, last + around);
      root.scrollIntoView({ block: 'start' });
    });
  }
  drawAxis();
  return { draw, drawAxis };
}
