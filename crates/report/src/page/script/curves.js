// Pointing at the percentile curves: the nearest lane answers.

function curvesOf(article, data, lanes) {
  const plot = article.querySelector('.labelled-plot > svg.plot');
  if (!plot) return;
  const [top, bottom] = data.curve;
  const y = (value) => bottom - (bottom - top) * logPosition(...data.rtt, value);
  const pointer = plot.querySelector('.pointer');
  const dot = document.createElementNS('http://www.w3.org/2000/svg', 'circle');
  dot.setAttribute('r', 4.5);

  /** The round trip of a lane at so many nines; null beyond its end. */
  const at = (curve, nines) => {
    for (let index = 2; index < curve.length; index += 2) {
      if (curve[index] >= nines) {
        const share = (nines - curve[index - 2]) / (curve[index] - curve[index - 2] || 1);
        return curve[index - 1] + share * (curve[index + 1] - curve[index - 1]);
      }
    }
    return null;
  };

  const nearest = (event) => {
    const box = plot.getBoundingClientRect();
    const nines = Math.max(0, ((event.clientX - box.left) / box.width) * data.nines);
    let best = null;
    data.lanes.forEach((lane, place) => {
      const rtt = lanes.shown(String(place)) ? at(lane.curve, nines) : null;
      if (rtt === null) return;
      const distance = Math.abs(y(rtt) - (event.clientY - box.top));
      if (best === null || distance < best.distance) best = { lane, place, rtt, distance, nines };
    });
    return best;
  };

  const percentile = (nines) => `p${(100 - 100 * 10 ** -nines).toFixed(Math.max(0, Math.ceil(nines) - 1))}`;

  plot.addEventListener('pointermove', (event) => {
    const found = nearest(event);
    if (!found) return;
    dot.setAttribute('cx', `${(found.nines / data.nines) * 100}%`);
    dot.setAttribute('cy', y(found.rtt));
    pointer.setAttribute('class', `pointer ${found.lane.look}`);
    pointer.replaceChildren(dot);
    lanes.point(String(found.place));
    const name = percentile(found.nines);
    const late = 10 ** -found.nines;
    const one = late >= 0.05 ? `${Math.round(late * 100)} in 100` : `1 in ${Math.round(1 / late)}`;
    showTooltip(event, found.lane.name, [`${name}: ${milliseconds(found.rtt)}`, `${one} took longer or was lost`]);
  });
  plot.addEventListener('pointerleave', () => {
    pointer.replaceChildren();
    lanes.point(null);
    hideTooltip();
  });
}
