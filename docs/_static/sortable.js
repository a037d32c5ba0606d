// Tables of class "sortable": a click on a column's head sorts by it, numbers downwards first; a second click turns it round.
// Cells without a number stay last. Equal cells keep their order.
"use strict";

function sortTable(table, column) {
  const heads = table.tHead.rows[0].cells;
  const numeric = heads[column].classList.contains("number");
  const was = heads[column].getAttribute("aria-sort");
  const up = was ? was === "descending" : !numeric || heads[column].dataset.less === "better";
  const value = (row) => {
    const text = row.cells[column].textContent.trim();
    return numeric ? parseFloat(text.replace(/[†,]/g, "")) : text.toLowerCase();
  };
  const missing = (v) => v === "" || Number.isNaN(v);
  const rows = Array.from(table.tBodies[0].rows);
  rows.sort((a, b) => {
    const x = value(a), y = value(b);
    if (missing(x) || missing(y)) return missing(x) - missing(y);
    return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
  });
  table.tBodies[0].append(...rows);
  for (const head of heads) head.removeAttribute("aria-sort");
  heads[column].setAttribute("aria-sort", up ? "ascending" : "descending");
}

document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.sortable")) {
    Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
      const button = document.createElement("button");
      button.textContent = head.textContent;
      button.addEventListener("click", () => sortTable(table, column));
      head.replaceChildren(button);
    });
  }
});
