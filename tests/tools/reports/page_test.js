// The page's script on a table of twelve rows in a DOM that knows just what the script asks for. Prints what a reader would see.
"use strict";
const [, , script] = process.argv;

function element(more) {
  const found = { attributes: {}, listeners: {}, ...more };
  found.getAttribute = (name) => (name in found.attributes ? found.attributes[name] : null);
  found.setAttribute = (name, value) => { found.attributes[name] = value; };
  found.removeAttribute = (name) => { delete found.attributes[name]; };
  found.addEventListener = (name, listener) => { found.listeners[name] = listener; };
  found.click = () => found.listeners.click();
  return found;
}

const texts = Array.from({ length: 12 }, (_, at) => [`model ${at}`, (at * 7) % 12, at < 5 ? "few" : "many"]);
const rows = texts.map(([name, number, kind]) => element({
  hidden: false, textContent: `${name} ${number}`,
  cells: [{ textContent: name, dataset: {} }, { textContent: `${number}`, dataset: { v: `${number}` } },
    { textContent: kind, dataset: {} }],
}));
const missing = [{ textContent: "none", dataset: {} }, { textContent: "-", dataset: {} }, { textContent: "few", dataset: {} }];
rows.unshift(element({ hidden: false, textContent: "none -", cells: missing }));
const body = { rows, appendChild: (row) => { rows.splice(rows.indexOf(row), 1); rows.push(row); } };
const heads = [0, 1, 2].map((cellIndex) => element({ cellIndex, className: cellIndex === 1 ? "n" : "", textContent: `head ${cellIndex}` }));
const table = { tBodies: [body], querySelectorAll: () => heads };
heads.forEach((head) => { head.closest = () => table; });
let line = null;
const box = { querySelectorAll: (where) => (where.startsWith("tbody") ? rows : heads), before: (one) => { line = one; } };
global.document = {
  createElement: () => { const one = element({ value: "", inside: [] }); one.append = (other) => one.inside.push(other); return one; },
  querySelectorAll: (where) => (where.endsWith(".box") ? [box] : heads),
};
require(script);
const numbers = () => rows.filter((row) => !row.hidden).map((row) => Number(row.cells[1].textContent));
const seen = {};
heads[1].click();
seen.falling = numbers();
heads[1].listeners.keydown({ key: "Enter", preventDefault: () => {} });
seen.rising = numbers();
const [list, field] = line.inside;
field.value = "MODEL 1";
field.listeners.input();
seen.filtered = numbers();
seen.choices = line.inside.length === 2 && list.inside.map((option) => option.textContent);
field.value = "";
list.value = "few";
list.listeners.input();
seen.chosen = rows.filter((row) => !row.hidden).map((row) => row.cells[2].textContent).length;
heads[0].click();
seen.names = rows.map((row) => row.cells[0].textContent).slice(0, 3);
console.log(JSON.stringify(seen));
