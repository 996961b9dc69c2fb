// Pages work without this. It keeps them up to date while they are seen, and lets people work by keyboard.

// The server escapes all text of the cluster; this makes HTML of nothing else but its pages.
const policy = window.trustedTypes
  ? window.trustedTypes.createPolicy('sluice', { createHTML: (html) => html })
  : { createHTML: (html) => html };

const parse = (html) => new DOMParser().parseFromString(policy.createHTML(html), 'text/html');

const age = document.getElementById('age');

// say tells how old the page is.
function say(text) {
  if (age.textContent !== text) age.textContent = text;
}

// lastHeard is when the server was heard last; null while nothing is followed.
let lastHeard = null;
let stream = null;
let pause = 1000;
let timer = 0;

const longestPause = 30000;

// follow opens the stream of this page, as long as somebody sees it.
function follow() {
  const from = document.body.dataset.live;
  if (!from || stream || document.hidden) return;
  stream = new EventSource(from);
  const on = (name, act) => stream.addEventListener(name, (event) => {
    lastHeard = Date.now();
    act(event);
  });
  on('open', () => {
    pause = 1000;
    say('live');
  });
  on('patch', (event) => patch(JSON.parse(event.data)));
  on('reload', reload);
  stream.onerror = () => {
    const refused = stream.readyState === EventSource.CLOSED;
    followAgain();
    // Whether it was for the login, the page says.
    if (refused) reload();
  };
}

// followAgain follows after a while. Pages that lost the same server do not come back at the same moment.
function followAgain() {
  leave();
  tellAge();
  timer = setTimeout(follow, pause * (0.5 + Math.random() / 2));
  pause = Math.min(2 * pause, longestPause);
}

function leave() {
  clearTimeout(timer);
  if (stream) stream.close();
  stream = null;
}

function tellAge() {
  if (stream || document.hidden || !document.body.dataset.live) return;
  const seconds = lastHeard ? Math.round((Date.now() - lastHeard) / 1000) : 0;
  say(lastHeard ? `not live: this is ${seconds} s old` : 'not live');
}

setInterval(tellAge, 5000);

// patch replaces a row by the one that the server sends for it.
function patch({ id, html }) {
  const row = document.getElementById(id);
  const made = parse(`<table><tbody>${html}</tbody></table>`).querySelector('tr');
  if (!row || !made) return;
  const focused = row.contains(document.activeElement);
  row.replaceWith(made);
  if (focused) made.querySelector('a')?.focus();
}

let reading = false;
let stale = false;

// reload reads the page anew, and puts its content in the place of what is shown. What is open stays open, and what
// somebody is typing into stays as it is.
async function reload() {
  if (reading) {
    stale = true;
    return;
  }
  reading = true;
  do {
    stale = false;
    try {
      const answer = await fetch(location.href, { credentials: 'same-origin', redirect: 'error' });
      if (answer.ok || answer.status === 404) show(parse(await answer.text()));
      else if (answer.status === 401 || answer.status === 403) return gone();
      else throw new Error(answer.statusText);
    } catch {
      // What is shown may be old: it is followed anew, which has it read again.
      followAgain();
    }
    if (stale) await new Promise((done) => setTimeout(done, 1000));
  } while (stale);
  reading = false;
}

// gone ends all, since the login is not taken any more.
function gone() {
  leave();
  delete document.body.dataset.live;
  say('not live: ' + document.body.dataset.again);
}

function show(next) {
  const main = document.getElementById('main');
  const made = next.getElementById('main');
  if (!made) return;
  const form = main.querySelector('form[role=search]');
  const typed = form && form.contains(document.activeElement);
  const open = [...main.querySelectorAll('details')].map((one) => one.open);
  const focused = document.activeElement?.closest('[id]')?.id;
  if (typed) made.querySelector('form[role=search]')?.replaceWith(form);
  main.replaceChildren(...made.childNodes);
  main.querySelectorAll('details').forEach((one, i) => { one.open = open[i] || false; });
  if (typed) form.querySelector('input')?.focus();
  else if (focused && focused !== 'main') document.getElementById(focused)?.querySelector('a')?.focus();
  document.title = next.title;
  // Its stream says what has changed since.
  if (document.body.dataset.live && next.body.dataset.live) document.body.dataset.live = next.body.dataset.live;
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) leave();
  else follow();
});

// move puts the focus on the row before or after the one that has it.
function move(by) {
  const links = [...document.querySelectorAll('main tbody th a')];
  if (links.length === 0) return;
  const now = links.findIndex((link) => link === document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, now < 0 ? 0 : now + by))].focus();
}

document.addEventListener('keydown', (event) => {
  const typing = event.target.closest('input, select, textarea');
  if (event.ctrlKey || event.metaKey || event.altKey || (typing && event.key !== 'Escape')) return;
  const search = document.getElementById('search');
  switch (event.key) {
    case '/': if (!search) return; search.focus(); search.select(); break;
    case 'Escape': document.activeElement?.blur(); break;
    case 'j': move(1); break;
    case 'k': move(-1); break;
    case 'g': document.querySelector('header nav a').click(); break;
    default: return;
  }
  event.preventDefault();
});

follow();
