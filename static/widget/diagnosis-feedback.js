/* <diagnosis-feedback session-id="…" api="…">: was this answer useful? See docs/widget.md.
   What is said waits in an outbox until the server has answered; by its id, it counts once. */
(() => {
const NAME = "diagnosis-feedback";
if (customElements.get(NAME)) return;

const TEXTS = {
  en: {
    ask: "Was this answer useful?", up: "Useful", down: "Not useful", stars: "Rating", comment: "Comment",
    fix: "Correct the answer", send: "Send", close: "Close", sent: "Recorded, thank you.",
    waiting: "Saved; it will be sent later.", refused: "The server did not accept this.",
  },
  zh: {
    ask: "这个回答有用吗？", up: "有用", down: "没用", stars: "评分", comment: "评论", fix: "修改回答",
    send: "发送", close: "关闭", sent: "已记录，谢谢。", waiting: "已保存，稍后自动发送。", refused: "服务器未接受。",
  },
  ru: {
    ask: "Ответ был полезен?", up: "Полезен", down: "Бесполезен", stars: "Оценка", comment: "Комментарий",
    fix: "Исправить ответ", send: "Отправить", close: "Закрыть", sent: "Записано, спасибо.",
    waiting: "Сохранено, отправится позже.", refused: "Сервер это не принял.",
  },
};
const DARK = "--accent:var(--df-accent,#7db8f0);--on:var(--df-on-accent,#0b1220)";
const CSS = `
:host{--accent:var(--df-accent,#1d5fa8);--on:var(--df-on-accent,#fff);display:block;color:var(--df-text,inherit);
  font:var(--df-font,inherit)}
@media(prefers-color-scheme:dark){:host(:not([theme=light])){${DARK}}}
:host([theme=dark]){${DARK}}
:host([hidden]),form[hidden]{display:none}
div{display:flex;flex-wrap:wrap;gap:.5em .6em;align-items:center}
form,p,fieldset,legend{border:0;margin:0;padding:0}
form,p{flex:1 0 100%}
form{display:grid;gap:.75em}
button,textarea{font:inherit;color:inherit;background:var(--df-surface,transparent);box-sizing:border-box;
  border:1px solid var(--df-border,currentColor);border-radius:var(--df-radius,.5em)}
button{min-height:2.75em;padding:.2em .9em;cursor:pointer}
button:hover{box-shadow:0 0 0 1px}
[aria-pressed=true],[type=submit]{background:var(--accent);border-color:var(--accent);color:var(--on)}
[aria-pressed=true]::before{content:"✓ "/""}
textarea{width:100%;padding:.4em .6em}
::placeholder{color:inherit;opacity:.8}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
input{appearance:none;margin:.1em .15em 0 0;font-size:1.6em;cursor:pointer}
input::before{content:"☆"}
input:has(~:checked)::before,:checked::before{content:"★"}
`;

const SAID = `${NAME}:said`, BOX = `${NAME}:outbox`;
const MOST_TRIES = 8, MOST_CHARS = 20000, CLAIM = 3e4, WEEK = 6048e5;
const memory = {}, mine = {}, widgets = new Set();
let timer, busy;

function read(name) {
  let list;
  try { list = JSON.parse(memory[name] ?? localStorage.getItem(name)); } catch {}
  return Array.isArray(list) ? list.filter((each) => each?.place) : [];
}

function write(name, list) {
  const text = JSON.stringify(list);
  try { localStorage.setItem(name, text); delete memory[name]; } catch { memory[name] = text; }
}

const saidOf = (place) => read(SAID).find((each) => each.place === place) || {};
const showAll = () => widgets.forEach((widget) => widget.show());

function remember(place, change) {
  const others = read(SAID).filter((each) => each.place !== place);
  write(SAID, [...others, { ...saidOf(place), ...change, place }].slice(-300));
  showAll();
}

// -- the outbox

function post(item) {
  const id = crypto.getRandomValues(new Uint32Array(4)).join("-");
  mine[id] = true;
  write(BOX, [...read(BOX), { ...item, id, tries: 0, at: 0, born: Date.now() }].slice(-100));
  flush();
  return id;
}

// A late one says when it was said.
const bodyOf = (items) => JSON.stringify(items.map(({ event, id, tries, born }) => (
  { clientEventId: id, ...event, createdAt: tries ? new Date(born).toISOString() : undefined })));

// In order, one request at a time; a claim keeps other tabs away.
function flush(isUrgent) {
  clearTimeout(timer);
  const now = Date.now(), box = read(BOX).filter((item) => now - item.born < WEEK);
  const first = (!busy && box.find(({ at, tries }) => at <= now || (isUrgent && tries))) || {};
  const batch = box.filter(({ at, tries, url, key }) => (
    url === first.url && key === first.key && (at <= now || tries)));
  for (const item of batch) item.at = now + CLAIM;
  write(BOX, box);
  if (batch.length) send(batch);
  if (box.length) timer = setTimeout(flush, Math.max(1e3, Math.min(...box.map(({ at }) => at)) - now));
}

async function send(items) {
  const { url, key } = items[0], body = bodyOf(items), refusals = {}, states = {};
  let status = 0, pause = 0;
  busy = true;
  try {
    const answer = await fetch(url, {
      method: "POST", body, credentials: "omit", signal: AbortSignal.timeout?.(CLAIM / 2),
      headers: { "Content-Type": "text/plain", ...(key && { Authorization: `Bearer ${key}` }) },
      keepalive: new Blob([body]).size < 6e4, // browsers keep no more alive
    });
    pause = answer.headers.get("Retry-After") * 1e3 || 0;
    if (answer.ok) for (const { index, errors } of (await answer.json()).rejected) refusals[index] = errors;
    status = answer.status;
  } catch {}
  const box = read(BOX), isTaken = status === 200;
  items.forEach(({ id, tries }, index) => {
    const errors = refusals[index];
    // A session may come late, a key be mended: try again.
    const isLast = tries + 1 >= MOST_TRIES && (isTaken || /^4(?!08|29)/.test(status));
    states[id] = isTaken && !errors ? "sent" : isLast || (isTaken && !errors.sessionId) ? "refused" : "waiting";
    const wait = Math.max(pause, Math.min(3e5, 1e3 * 2 ** (tries + 1)) * (0.75 + Math.random() / 2));
    Object.assign(box.find((each) => each.id === id) || {}, { tries: tries + 1, at: Date.now() + wait });
  });
  write(BOX, box.filter(({ id }) => !/sent|refused/.test(states[id])));
  items.forEach((item) => widgets.forEach((widget) => widget.told(item, states[item.id])));
  busy = false;
  flush();
}

addEventListener("pagehide", safely(() => {
  const items = read(BOX).filter(({ id, tries }) => mine[id] && !tries), goal = items[0]?.url;
  const body = bodyOf(items.filter(({ url }) => url === goal));
  if (goal) navigator.sendBeacon(goal, new Blob([body], { type: "text/plain" }));
}));
addEventListener("online", safely(() => flush(true)));
addEventListener("storage", safely(({ key }) => key === SAID && showAll()));

// -- the element

const SOURCE = document.currentScript?.src || location.href;

function safely(act) {
  return (event) => { try { act(event); } catch (error) { console.warn(error); } };
}

function endpoint(api) {
  try {
    const { protocol, origin, pathname } = new URL(api || "/", api ? document.baseURI : SOURCE);
    return /^https?:$/.test(protocol) && `${origin}${pathname.replace(/\/+(api)?$/, "")}/api/feedback/events`;
  } catch { return ""; }
}

function make(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value.call) made.addEventListener(name, safely(value)); else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

customElements.define(NAME, class extends HTMLElement {
  static observedAttributes = ["session-id", "api", "lang"];
  #root = this.attachShadow({ mode: "open" });
  #text; #place; #url; #buttons = []; #form; #status; #original;

  connectedCallback() { safely(() => { widgets.add(this); this.#build(); flush(); })(); }
  attributeChangedCallback() { if (this.isConnected) this.connectedCallback(); }
  disconnectedCallback() { widgets.delete(this); }
  #get(name) { return this.getAttribute(name) || ""; }

  #build() {
    const tongue = (this.closest("[lang]")?.lang || navigator.language).slice(0, 2).toLowerCase();
    const lang = tongue in TEXTS ? tongue : "en", text = this.#text = TEXTS[lang], session = this.#get("session-id");
    this.#url = endpoint(this.#get("api"));
    this.#place = `${this.#url} ${session}`;
    this.#buttons = [];
    this.#root.replaceChildren();
    if (!this.#url || !/^[!-~]{1,64}$/.test(session)) return;
    try {
      const sheet = new CSSStyleSheet(); // of which no policy on styles speaks
      sheet.replaceSync(CSS);
      this.#root.adoptedStyleSheets = [sheet];
    } catch {}
    this.#buttons = ["up", "down"].map((value) => (
      make("button", { type: "button", value, click: () => this.#press(value) }, text[value])));
    this.#status = make("p", { role: "status" });
    this.#form = make("form", { hidden: "", keydown: ({ key }) => key === "Escape" && this.#close(),
      submit: (event) => { event.preventDefault(); this.#submit(); } });
    this.#root.append(make("div", { lang, role: "group", "aria-label": text.ask },
      make("p", {}, text.ask), ...this.#buttons, this.#form, this.#status));
    this.show();
  }

  show() {
    const { verdict } = saidOf(this.#place);
    this.#buttons.forEach((button) => button.setAttribute("aria-pressed", button.value === verdict));
  }

  told({ place, event: { type, value, payload } }, state) {
    if (place !== this.#place) return;
    if (state === "refused" && type === "thumbs" && !payload) remember(place, { verdict: "" });
    this.#status.textContent = this.#text[state];
    this.dispatchEvent(new CustomEvent(NAME, { bubbles: true, detail: { type, value, state } }));
  }

  #say(event) {
    const sessionId = this.#get("session-id"), token = this.#get("token") || undefined;
    this.#status.textContent = "";
    return post({ url: this.#url, key: this.#get("key"), place: this.#place, event: { ...event, sessionId, token } });
  }

  #press(value) {
    const isNew = saidOf(this.#place).verdict !== value;
    if (isNew) remember(this.#place, { verdict: value, id: this.#say({ type: "thumbs", value }) });
    if (this.#form.hidden) this.#open(); else if (!isNew) this.#close();
  }

  #open() {
    const text = this.#text, { stars } = saidOf(this.#place);
    const shown = this.getRootNode().getElementById?.(this.#get("for"));
    const original = this.#original = String(this.answer ?? shown?.innerText ?? "").trim();
    const area = (name, label, value) => make("textarea",
      { name, rows: 3, maxlength: MOST_CHARS, "aria-label": label, placeholder: label }, value);
    const rating = [1, 2, 3, 4, 5].map((value) => make("input",
      { type: "radio", name: "stars", value, "aria-label": `${value}/5`, ...(value === stars && { checked: "" }) }));
    this.#form.replaceChildren(
      make("fieldset", {}, make("legend", {}, text.stars), ...rating),
      area("comment", text.comment, ""),
      original && original.length <= MOST_CHARS
        ? make("details", {}, make("summary", {}, text.fix), area("corrected", text.fix, original)) : "",
      make("div", {}, make("button", { type: "submit" }, text.send),
        make("button", { type: "button", click: () => this.#close() }, text.close)));
    this.#form.hidden = false;
  }

  #close() {
    this.#form.hidden = true;
    this.#root.querySelector("[aria-pressed=true]")?.focus();
  }

  #submit() {
    const data = new FormData(this.#form), original = this.#original, { verdict, stars, id } = saidOf(this.#place);
    const [comment, corrected] = ["comment", "corrected"].map((name) => (data.get(name) || "").trim());
    const value = Number(data.get("stars")), isCorrected = corrected && corrected !== original;
    const payload = comment && !isCorrected ? { comment } : {};
    if (isCorrected) this.#say({ type: "correction", payload: { original, corrected, userNote: comment } });
    if (value && (value !== stars || payload.comment)) {
      remember(this.#place, { stars: value });
      this.#say({ type: "star", value, payload });
    } else if (payload.comment) this.#say({ type: "thumbs", value: verdict, payload, ...(id && { clientEventId: id }) });
    this.#close();
  }
});
})();
