document.querySelectorAll(".xcrepro-report thead th").forEach(function (head) {
  head.tabIndex = 0;
  head.addEventListener("keydown", function (event) { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); head.click(); } });
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
  var rows = Array.from(box.querySelectorAll("tbody tr")), heads = Array.from(box.querySelectorAll("thead th"));
  if (rows.length <= 10) { return; }
  var line = document.createElement("p"), chosen = [], field = document.createElement("input");
  var show = function () {
    var text = field.value.toLowerCase();
    rows.forEach(function (row) {
      row.hidden = row.textContent.toLowerCase().indexOf(text) < 0 || chosen.some(function (one) {
        return one.list.value && row.cells[one.at].textContent !== one.list.value;
      });
    });
  };
  heads.forEach(function (head, at) {  // one list for each column of names: two models and a metric
    var texts = Array.from(new Set(rows.map(function (row) { return row.cells[at].textContent; })));
    if (head.className === "n" || texts.length < 2 || texts.length > 40 || texts.length === rows.length) { return; }
    var list = document.createElement("select");
    list.setAttribute("aria-label", "Only rows with this " + head.textContent);
    [head.textContent + ": all"].concat(texts).forEach(function (text, i) {
      var option = document.createElement("option");
      option.value = i ? text : "";
      option.textContent = text;
      list.append(option);
    });
    list.addEventListener("input", show);
    chosen.push({ at: at, list: list });
    line.append(list);
  });
  field.type = "search";
  field.placeholder = "rows with this text";
  field.setAttribute("aria-label", "Only rows with this text");
  field.addEventListener("input", show);
  line.append(field);
  box.before(line);
});
