// Search and copy buttons. Without this script pages are complete, but for these.
"use strict";

for (const code of document.querySelectorAll("main pre:not(.output) > code")) {
  const button = document.createElement("button");
  button.textContent = "Copy";
  button.onclick = async () => {
    await navigator.clipboard.writeText(code.innerText);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  };
  code.parentElement.prepend(button);
}

const input = document.getElementById("search");
const results = document.getElementById("results");
const root = document.querySelector("header .name").href.replace(/index\.html$/, "");
const most = 12;

// The index is loaded when somebody searches.
input.addEventListener("focus", () => {
  const script = document.createElement("script");
  script.src = root + "search-index.js";
  script.onload = show;
  document.head.append(script);
}, {once: true});

function show() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (const {url, page, section, text} of words.length ? window.searchIndex || [] : []) {
    const titles = (page + " " + section).toLowerCase(), all = titles + " " + text.toLowerCase();
    if (words.every((word) => all.includes(word))) {
      const score = words.filter((word) => titles.includes(word)).length * 10 + (section ? 0 : 1);
      found.push({url, page, section, text, score});
    }
  }
  found.sort((a, b) => b.score - a.score);
  results.replaceChildren(...found.slice(0, most).map((entry) => item(entry, words[0])));
  if (words.length && !found.length && window.searchIndex) {
    results.textContent = "Nothing was found.";
  }
  results.hidden = !words.length;
}

function item({url, page, section, text}, word) {
  const link = document.createElement("a"), title = document.createElement("b"), excerpt = document.createElement("span");
  link.href = root + url;
  title.textContent = section ? `${page}: ${section}` : page;
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 40);
  excerpt.textContent = (at ? "… " : "") + text.slice(at, at + 140);
  link.append(title, excerpt);
  const li = document.createElement("li");
  li.append(link);
  return li;
}

input.addEventListener("input", show);
document.addEventListener("keydown", (event) => {
  const links = [...results.querySelectorAll("a")], at = links.indexOf(document.activeElement);
  if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
    input.focus();
  } else if (event.key === "Escape") {
    results.hidden = true;
  } else if (!results.hidden && event.key === "ArrowDown") {
    links[Math.min(at + 1, links.length - 1)]?.focus();
  } else if (!results.hidden && event.key === "ArrowUp") {
    (links[at - 1] || input).focus();
  } else if (!results.hidden && event.key === "Enter" && document.activeElement === input) {
    links[0]?.click();
  } else {
    return;
  }
  event.preventDefault();
});
document.addEventListener("click", (event) => { results.hidden = results.hidden || !event.target.closest("search"); });
