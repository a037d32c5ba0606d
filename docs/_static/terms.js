// Metrics explain themselves: the first of a kind in each paragraph or table head gets its definition, which shows on hover, and
// on a phone or from the keyboard on focus. The definitions are the glossary's (terms-data.js).
"use strict";

// The search fetches pages for summaries, which a browser refuses where they are files; an entry of the index is a place without
// text, of which Sphinx makes none and then breaks.
if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
document.addEventListener("DOMContentLoaded", () => {
  const search = typeof Search === "undefined" ? {} : Search, made = search.makeSearchSummary;
  search.makeSearchSummary = (html, words, place) => made(html, words, place) || made(html, words, "") || document.createElement("p");
});

(() => {
  const SKIP = "a, abbr, button, code, pre, script, style, h1, h2, h3, .math, mjx-container, .explore";

  function pattern(names) {
    // ECE is written with and without its k; P is not.
    const escaped = names.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
      .replace(/@k$/, /^([A-Z]{3}|Brier)@/.test(name) ? "(?:@(?:k|\\d+))?" : "@(?:k|\\d+)"));
    return new RegExp(`(?<![\\w@-])(?:${escaped.join("|")})(?![\\w@])`, "i");
  }

  function explain(root, terms) {
    const names = Object.keys(terms).sort((a, b) => b.length - a.length);
    const all = pattern(names);
    const named = (text) => names.find((name) => pattern([name]).test(text));
    for (const block of root.querySelectorAll("p, li, th, td, figcaption")) {
      const seen = new Set(), nodes = [];
      const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) nodes.push(walker.currentNode);
      for (let node of nodes) {
        if (node.parentElement.closest(SKIP)) continue;
        for (let match = all.exec(node.data); match; match = all.exec(node.data)) {
          const rest = node.splitText(match.index), after = rest.splitText(match[0].length), name = named(match[0]);
          if (!seen.has(name)) {
            const word = document.createElement("abbr");
            [word.className, word.title, word.tabIndex] = ["term", terms[name][0], 0];
            rest.replaceWith(word);
            word.append(rest);
            seen.add(name);
          }
          node = after;
        }
      }
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    const article = document.querySelector("article");
    if (article && window.XC_TERMS) explain(article, window.XC_TERMS);
  });
})();
