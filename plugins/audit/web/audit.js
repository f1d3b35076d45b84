// The console page of the audit log: settings, counts, and the last entries. Everything shown is a text node.

/** Makes an element with classes and children. */
function make(tag, classes, ...children) {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  element.append(...children);
  return element;
}

function table(label, names, rows) {
  const head = make('tr', '', ...names.map((name) => make('th', '', name)));
  const body = rows.map((row) => make('tr', '', ...row.map((text) => make('td', '', text ?? ''))));
  const element = make('table', 'plain', make('thead', '', head), make('tbody', '', ...body));
  element.setAttribute('aria-label', label);
  const box = make('div', 'table-box', element);
  box.tabIndex = 0;
  box.setAttribute('role', 'region');
  box.setAttribute('aria-label', label);
  return box;
}

const EVENTS = ['', 'statement', 'row', 'schema_change', 'connect', 'disconnect', 'login_failure'];
const SHOWN = ['time', 'event', 'user', 'host', 'schema', 'command', 'query', 'error_code'];

const pairs = (answer) => answer.results[0].rows.map((row) => row.map(String));

/** Fills `element`, and returns what ends the page. */
export function mount(element, api) {
  const failure = make('p', 'failure');
  failure.setAttribute('role', 'alert');
  const facts = make('section', 'card');
  const list = make('section', 'card');
  const event = make('select', '', ...EVENTS.map((name) => {
    const option = make('option', '', name || 'all events');
    option.value = name;
    return option;
  }));
  event.setAttribute('aria-label', 'Event');
  const again = make('button', 'button', 'Read again');
  again.type = 'button';
  element.append(make('header', '', make('h1', '', 'Audit log'), event, again), failure, facts, list);

  async function load() {
    failure.textContent = '';
    try {
      const [variables, counts, recent] = await Promise.all([
        api.run("SHOW GLOBAL VARIABLES LIKE 'audit_log%'"),
        api.run("SHOW GLOBAL STATUS LIKE 'Audit_log%'"),
        api.call('GET', `1.0/audit/entries?event=${encodeURIComponent(event.value)}`),
      ]);
      facts.replaceChildren(make('h2', '', 'Settings and counts'), table('Settings and counts', ['Name', 'Value'], [...pairs(variables), ...pairs(counts)]));
      const rows = recent.entries.map((entry) => SHOWN.map((name) => (entry[name] === undefined || entry[name] === null ? '' : String(entry[name]))));
      list.replaceChildren(make('h2', '', `The last ${rows.length} entries`), table('Last entries', SHOWN.map((name) => name.replace('_', ' ')), rows));
    } catch (error) {
      failure.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  again.addEventListener('click', load);
  event.addEventListener('change', load);
  load();
  return () => element.replaceChildren();
}
