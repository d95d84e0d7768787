// Lanes are hidden and shown everywhere at once, and stand out while pointed
// at.

function lanesOf(article) {
  const buttons = [...article.querySelectorAll('[data-toggle]')];
  const shown = (place) =>
    buttons.some((button) => button.dataset.toggle === place && button.getAttribute('aria-pressed') === 'true');

  const show = (place, on) => {
    for (const button of buttons) {
      if (button.dataset.toggle === place) button.setAttribute('aria-pressed', String(on));
    }
    for (const element of article.querySelectorAll(`[data-lane="${place}"]`)) element.classList.toggle('off', !on);
    for (const row of article.querySelectorAll(`tr[data-row="${place}"]`)) row.classList.toggle('dim', !on);
  };

  const point = (place) => {
    article.classList.toggle('focused', place !== null);
    for (const element of article.querySelectorAll('.hot')) element.classList.remove('hot');
    if (place === null) return;
    for (const element of article.querySelectorAll(`[data-lane="${place}"], tr[data-row="${place}"]`)) {
      element.classList.add('hot');
    }
  };

  for (const button of buttons) {
    const place = button.dataset.toggle;
    button.addEventListener('click', () => {
      show(place, !shown(place));
      point(null);
    });
    button.addEventListener('pointerenter', () => point(shown(place) ? place : null));
    button.addEventListener('pointerleave', () => point(null));
  }
  for (const choice of article.querySelectorAll('[data-choose]')) {
    choice.addEventListener('click', () => {
      const wanted = choice.dataset.choose.split(' ');
      for (const button of buttons) {
        show(button.dataset.toggle, choice.dataset.choose === 'all' || wanted.includes(button.dataset.toggle));
      }
    });
  }
  for (const element of article.querySelectorAll('.direct span, .point, .early')) {
    element.addEventListener('pointerenter', () => point(element.dataset.lane));
    element.addEventListener('pointerleave', () => point(null));
  }
  return { shown, point };
}
