// Axes and paths, the same as the page was drawn with: what zooming draws anew
// must continue what is there.

const WIDTH = 1000;

const logPosition = (low, high, value) =>
  value <= low ? 0 : Math.min(1, Math.log(value / low) / Math.log(high / low));

const axisPosition = ([kind, low, high], value) =>
  kind === 'log' ? logPosition(low, high, value) : Math.sqrt(Math.min(1, Math.max(0, value) / high));

const short = (value) => String(Math.round(value * 100) / 100);

/** Smallest and largest value of the steps from `first` up to `end`; null where nothing is known. */
function extremes(band, first, end) {
  let low = Infinity;
  let high = -Infinity;
  const highs = band.high || band.low;
  for (let index = first; index < end; index += 1) {
    if (band.low[index] === null || band.low[index] === undefined) continue;
    low = Math.min(low, band.low[index]);
    high = Math.max(high, highs[index]);
  }
  return low > high ? null : [low / band.unit, high / band.unit];
}

/** The outline of `band` between two instants, in at most `columns` steps. */
function bandPath(band, from, to, columns, y) {
  const first = Math.max(0, Math.floor(from / band.step));
  const end = Math.min(band.low.length, Math.ceil(to / band.step));
  const joined = Math.max(1, Math.ceil((end - first) / columns));
  const x = (index) => short(((index * band.step - from) / (to - from)) * WIDTH);
  let data = '';
  let stretch = [];
  const finish = () => {
    if (stretch.length === 0) return;
    const last = stretch[stretch.length - 1];
    data += `M${x(stretch[0].at)} ${short(y(stretch[0].high))}`;
    for (const each of stretch.slice(1)) data += `H${x(each.at)}V${short(y(each.high))}`;
    data += `H${x(last.end)}`;
    for (const each of stretch.slice().reverse()) data += `V${short(y(each.low))}H${x(each.at)}`;
    data += 'Z';
    stretch = [];
  };
  for (let at = first; at < end; at += joined) {
    const stop = Math.min(end, at + joined);
    const range = extremes(band, at, stop);
    if (range === null) finish();
    else stretch.push({ at, end: stop, low: range[0], high: range[1] });
  }
  finish();
  return data;
}

/** Ticks at the top for the steps in which messages were lost. */
function lostPath(lost, step, from, to, columns) {
  const first = Math.max(0, Math.floor(from / step));
  const end = Math.min(lost.length, Math.ceil(to / step));
  const joined = Math.max(1, Math.ceil((end - first) / columns));
  let data = '';
  for (let at = first; at < end; at += joined) {
    const stop = Math.min(end, at + joined);
    if (lost.slice(at, stop).some((count) => count > 0)) {
      data += `M${short((((at + joined / 2) * step - from) / (to - from)) * WIDTH)} 1v5`;
    }
  }
  return data;
}

const STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];

/** Round instants between two, at most `atMost` of them. */
function timeTicks(from, to, atMost) {
  const step = STEPS.find((each) => (to - from) / each <= atMost) || (to - from) / atMost;
  const ticks = [];
  for (let index = Math.ceil(from / step - 1e-9); index * step <= to + step * 1e-6; index += 1) {
    ticks.push([index * step, clock(index * step, step)]);
  }
  return ticks;
}

/** An instant of the run: 0:45, 9:59.5, 1:02:03. */
function clock(seconds, step) {
  const decimals = step < 0.1 ? 2 : step < 1 ? 1 : 0;
  const scale = 10 ** decimals;
  const whole = Math.round(Math.max(0, seconds) * scale) / scale;
  const minutes = Math.floor(whole / 60);
  const rest = (whole - minutes * 60).toFixed(decimals).padStart(decimals === 0 ? 2 : 3 + decimals, '0');
  const hours = Math.floor(minutes / 60);
  return hours > 0 ? `${hours}:${String(minutes % 60).padStart(2, '0')}:${rest}` : `${minutes}:${rest}`;
}

/** Milliseconds with their unit, written as everywhere on the page. */
function milliseconds(value) {
  if (value < 9.995) return `${value.toFixed(2)} ms`;
  if (value < 99.95) return `${value.toFixed(1)} ms`;
  if (value < 9999.5) return `${value.toFixed(0)} ms`;
  return `${(value / 1000).toFixed(value < 99950 ? 1 : 0)} s`;
}
