document.querySelectorAll(".xcrepro-report thead th").forEach(function (head) {
  head.tabIndex = 0;
  head.addEventListener("keydown", function (event) { if (event.key === "Enter") { head.click(); } });
  head.addEventListener("click", function () {
    var table = head.closest("table"), body = table.tBodies[0], at = head.cellIndex;
    var down = head.getAttribute("aria-sort") !== "descending";
    table.querySelectorAll("thead th").forEach(function (other) { other.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    var key = function (row) { return parseFloat(row.cells[at].dataset.v); };
    var rows = Array.from(body.rows), numeric = rows.some(function (row) { return !isNaN(key(row)); });
    rows.sort(function (a, b) {
      var x = key(a), y = key(b);
      if (numeric && (isNaN(x) || isNaN(y))) { return isNaN(x) - isNaN(y); }  // no value: last, either way
      var order = numeric ? x - y : a.cells[at].textContent.localeCompare(b.cells[at].textContent);
      return down ? -order : order;
    }).forEach(function (row) { body.appendChild(row); });
  });
});
document.querySelectorAll(".xcrepro-report .box").forEach(function (box) {
  var rows = Array.from(box.querySelectorAll("tbody tr")), field = document.createElement("input");
  if (rows.length <= 10) { return; }
  field.type = "search";
  field.placeholder = "rows with this text";
  field.setAttribute("aria-label", "Show only the rows with this text");
  field.addEventListener("input", function () {
    var text = field.value.toLowerCase();
    rows.forEach(function (row) { row.hidden = row.textContent.toLowerCase().indexOf(text) < 0; });
  });
  box.before(field);
});
