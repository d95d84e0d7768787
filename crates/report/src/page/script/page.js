// Brings every run of the page to life.

document.documentElement.classList.add('js');
const times = [];
for (const article of document.querySelectorAll('.run')) {
  const data = JSON.parse(article.querySelector('script.data').textContent);
  const lanes = lanesOf(article);
  adoptTitles(article);
  const time = timeOf(article, data);
  if (time) times.push(time);
  curvesOf(article, data, lanes);
  const copy = article.querySelector('.copy');
  if (copy) {
    copy.addEventListener('click', async () => {
      const code = article.querySelector('.replay code');
      try {
        await navigator.clipboard.writeText(code.textContent);
        copy.textContent = 'Copied';
      } catch {
        // Pages from disk may not write the clipboard: select it instead.
        getSelection().selectAllChildren(code);
        copy.textContent = 'Selected';
      }
    });
  }
}
addEventListener('resize', () => times.forEach((time) => time.drawAxis()));
// An axis that was drawn where it was not shown knew no width.
for (const choice of document.querySelectorAll('.presets > input')) {
  choice.addEventListener('change', () => times.forEach((time) => time.drawAxis()));
}
document.documentElement.dataset.ready = 'yes';
