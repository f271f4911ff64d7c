// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Searches the text of all pages, which search-index.js has, section by section. That file is loaded when the search is first used. It is a
// script, not data, so that the site can also be read from a folder without a server.

"use strict";

const root = new URL("../", document.currentScript.src);
const input = document.querySelector("header input");
const results = document.querySelector(".results");
// shown is the maximum number of results.
const shown = 20;

// sections are the sections of all pages, once they are loaded.
let sections;

// loading is set while they are loaded, and afterwards.
let loading = false;

window.slipstreamSearch = (loaded) => {
  sections = loaded.map((section) => ({
    ...section,
    names: `${section.page} ${section.heading}`.toLowerCase(),
    body: section.text.toLowerCase(),
  }));
  search();
};

function load() {
  if (loading) {
    return;
  }
  loading = true;
  const script = document.createElement("script");
  script.src = new URL("search-index.js", root);
  script.onerror = () => {
    loading = false;
    say("The search index cannot be loaded.");
  };
  document.head.append(script);
}

// score ranks a section that has all words: first those that have them in their titles, then those that have the whole phrase, or them often.
// It is 0 if a word is missing.
function score(section, words, phrase) {
  let sum = 0;
  for (const word of words) {
    const often = section.body.split(word).length - 1;
    const named = section.names.includes(word);
    if (often === 0 && !named) {
      return 0;
    }
    sum += (named ? 20 : 0) + Math.min(often, 5);
  }
  if (words.length > 1 && (section.body.includes(phrase) || section.names.includes(phrase))) {
    sum += 30;
  }
  return sum;
}

function search() {
  const phrase = input.value.trim().toLowerCase();
  const words = phrase.split(/\s+/).filter(Boolean);
  if (sections === undefined || words.length === 0) {
    results.hidden = true;
    return;
  }
  const found = sections
    .map((section) => ({ section, score: score(section, words, phrase) }))
    .filter((each) => each.score > 0)
    .sort((a, b) => b.score - a.score)
    .map((each) => each.section);
  say(found.length === 0 ? "No section has all these words." : found.length > shown ? `The first ${shown} of ${found.length} sections` : "");
  results.append(...found.slice(0, shown).map((section) => link(section, words)));
}

// say shows a line in place of the results.
function say(line) {
  results.replaceChildren();
  if (line) {
    const paragraph = document.createElement("p");
    paragraph.textContent = line;
    results.append(paragraph);
  }
  results.hidden = false;
}

function link(section, words) {
  const anchor = document.createElement("a");
  anchor.href = new URL(section.address, root);
  anchor.append(section.heading === section.page ? section.page : `${section.page}: ${section.heading}`, excerpt(section, words));
  return anchor;
}

// excerpt returns the text around the first word, with all words marked. It begins and ends between words.
function excerpt({ text, body }, words) {
  const at = Math.max(0, body.indexOf(words.find((word) => body.includes(word)) ?? "") - 60);
  const start = at === 0 ? 0 : text.indexOf(" ", at) + 1;
  const end = text.length <= start + 200 ? text.length : Math.max(text.lastIndexOf(" ", start + 200), start + 100);
  const part = text.slice(start, end);
  const span = document.createElement("span");
  const pattern = new RegExp(`(${words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "gi");
  span.append(start > 0 ? "… " : "");
  // The pieces with an odd index are the words.
  part.split(pattern).forEach((piece, index) => {
    if (index % 2 === 0) {
      span.append(piece);
      return;
    }
    const mark = document.createElement("mark");
    mark.textContent = piece;
    span.append(mark);
  });
  span.append(end < text.length ? " …" : "");
  return span;
}

input.addEventListener("focus", load);
input.addEventListener("input", () => {
  load();
  search();
});

// "/" without a modifier starts a search, the arrows move through the results, and Escape ends it.
document.addEventListener("keydown", (event) => {
  const links = [input, ...results.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  if (event.key === "/" && at < 0 && !event.ctrlKey && !event.altKey && !event.metaKey) {
    input.focus();
  } else if (event.key === "Escape" && at >= 0) {
    results.hidden = true;
    input.focus();
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && at >= 0 && !results.hidden) {
    links[Math.max(0, Math.min(links.length - 1, at + (event.key === "ArrowDown" ? 1 : -1)))].focus();
  } else if (event.key === "Enter" && at === 0 && links.length > 1 && !results.hidden) {
    links[1].click();
  } else {
    return;
  }
  event.preventDefault();
});

document.addEventListener("click", (event) => {
  if (!event.target.closest("search")) {
    results.hidden = true;
  }
});
