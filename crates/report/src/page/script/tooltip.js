// One tooltip for the page. Elements drawn with a <title> show it here, at
// once and in the page's own type; without the script the browser shows it.

const tooltip = document.querySelector('.tooltip');

function showTooltip(event, heading, lines) {
  const bold = document.createElement('b');
  bold.textContent = heading;
  tooltip.replaceChildren(bold, lines.filter(Boolean).join('\n'));
  tooltip.hidden = false;
  const { width, height } = tooltip.getBoundingClientRect();
  const right = event.clientX + 16 + width > innerWidth;
  const below = event.clientY + 18 + height > innerHeight;
  const left = right ? event.clientX - width - 12 : event.clientX + 16;
  const top = below ? event.clientY - height - 12 : event.clientY + 18;
  tooltip.style.left = `${Math.max(4, left)}px`;
  tooltip.style.top = `${Math.max(4, top)}px`;
}

const hideTooltip = () => {
  tooltip.hidden = true;
};

function adoptTitles(article) {
  for (const title of article.querySelectorAll('svg title')) {
    const element = title.parentElement;
    const [heading, ...rest] = title.textContent.split(/[:,] /);
    title.remove();
    // Curves and the time plot answer for themselves.
    if (element.matches('.curve, .timeplot *')) {
      element.dataset.words = `${heading}, ${rest.join(', ')}`;
      continue;
    }
    element.addEventListener('pointermove', (event) => showTooltip(event, heading, [rest.join(', ')]));
    element.addEventListener('pointerleave', hideTooltip);
  }
}
