// Keeps the content of the page as the server renders it. The server sends it after each change; only differing nodes are
// replaced, so that focus, selection and scroll positions stay.
"use strict";

const main = document.getElementById("main");
const connection = document.getElementById("connection");
let source;

function show(text, isLive) {
  connection.textContent = text;
  connection.classList.toggle("live", isLive);
}

// A hidden page has no connection: browsers open only six to a server.
function follow() {
  if (document.hidden) {
    source?.close();
    source = undefined;
    return;
  }
  if (source) return;
  const parameters = { page: location.pathname + location.search, version: main.dataset.version };
  source = new EventSource("/live?" + new URLSearchParams(parameters));
  source.addEventListener("open", () => show("Live", true));
  source.addEventListener("error", (event) => {
    const isClosed = event.target.readyState === EventSource.CLOSED;
    show(isClosed ? "Not live: reload the page" : "Not connected: trying again", false);
  });
  source.addEventListener("main", (event) => {
    morph(main, new DOMParser().parseFromString(event.data, "text/html").getElementById("main"));
  });
}

// morph gives a node the content of another one.
function morph(from, to) {
  if (from.nodeName !== to.nodeName) {
    from.replaceWith(to);
    return;
  }
  if (!(from instanceof Element)) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name)) from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  morphChildren(from, to);
}

// morphChildren matches rows by data-key, so that a row that moves is the same one, and other nodes by their order.
function morphChildren(from, to) {
  const keyed = new Map();
  for (const child of from.children) {
    if (child.dataset.key) keyed.set(child.dataset.key, child);
  }
  let next = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const key = wanted.dataset?.key;
    const present = key ? keyed.get(key) : next?.dataset?.key ? undefined : next;
    if (!present) {
      from.insertBefore(wanted, next);
    } else if (present === next) {
      next = next.nextSibling;
      morph(present, wanted);
    } else {
      // moveBefore keeps the focus.
      (from.moveBefore ?? from.insertBefore).call(from, present, next);
      morph(present, wanted);
    }
  }
  while (next) {
    const stale = next;
    next = next.nextSibling;
    stale.remove();
  }
}

if ("static" in main.dataset) {
  show("Not live: reload the page to compare again", false);
} else {
  document.addEventListener("visibilitychange", follow);
  follow();
}
