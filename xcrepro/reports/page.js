document.querySelectorAll(".xcrepro-report thead th").forEach(function (head) {
  head.addEventListener("click", function () {
    var table = head.closest("table"), body = table.tBodies[0], at = head.cellIndex;
    var down = head.getAttribute("aria-sort") !== "descending";
    table.querySelectorAll("thead th").forEach(function (other) { other.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    var key = function (row) { var v = row.cells[at].dataset.v; return v === undefined ? null : parseFloat(v); };
    Array.from(body.rows).sort(function (a, b) {
      var x = key(a), y = key(b);
      var order = x === null || y === null
        ? a.cells[at].textContent.localeCompare(b.cells[at].textContent) : x - y;
      return down ? -order : order;
    }).forEach(function (row) { body.appendChild(row); });
  });
});
