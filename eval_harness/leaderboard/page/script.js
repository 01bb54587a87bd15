"use strict";
// The table of all scores. Numbers are written in Python; names only ever become text.
document.addEventListener("DOMContentLoaded", () => {
  const byId = (id) => document.getElementById(id);
  const { boards, models, months, start, results, items, ranked } = JSON.parse(byId("data").textContent);
  function make(tag, attributes, ...inside) {
    const element = document.createElement(tag);
    for (const name in attributes) element.setAttribute(name, attributes[name]);
    element.append(...inside.filter((part) => part !== null));
    return element;
  }

  // A click on a method shows what it answered.
  function unfolding(line) {
    const [month, nth] = line.dataset.items.split(" ").map(Number);
    const name = line.querySelector("th bdi");
    const button = make("button", { type: "button", "aria-expanded": "false" });
    name.replaceWith(button);
    button.append(name);
    button.addEventListener("click", () => {
      const opens = button.getAttribute("aria-expanded") === "false";
      button.setAttribute("aria-expanded", opens);
      if (!opens) line.nextElementSibling.remove();
      else line.after(make("tr", { class: "items" }, make("td", { colspan: line.cells.length }, answersOf(items[month], nth))));
    });
  }

  function answersOf({ facts, lines }, nth) {
    const known = (value) => (value === null ? "–" : value ? "yes" : "no");
    const row = (tag, texts) => make("tr", {}, ...texts.map((text) => make(tag, {}, make("bdi", {}, text))));
    const body = facts.flatMap(([split, question, right], i) => {
      const own = lines[nth][i];
      return own ? [row("td", [split === "changed" ? "new" : "old", question, right, own[0], `${known(own[1])} → ${known(own[2])}`])] : [];
    });
    const heads = row("th", ["Fact", "Question", "Right answer", "Model’s answer", "Known before → after"]);
    return make("div", { class: "answers", tabindex: 0, role: "region", "aria-label": "Facts" },
      make("table", {}, make("thead", {}, heads), make("tbody", {}, ...body)));
  }

  for (const line of document.querySelectorAll("tr[data-items]")) unfolding(line);
  if (!boards.length) return;
  const controls = byId("controls").elements;
  const table = byId("board").firstElementChild;
  const csv = make("a", { download: "scores.csv", class: "links" }, "CSV");
  byId("summary").after(csv);
  const collator = new Intl.Collator("en", { numeric: true });
  const ALL = "all months";
  const GREY = { class: "grey" };
  const COLUMNS = ["model", "month", "value", "text", "interval", "competes", "best", "rank", "file"];
  for (const one of boards) {
    one.rows = one.model.map((_, i) => Object.fromEntries(COLUMNS.map((name) => [name, one[name][i]])));
  }
  let board, state;

  // The value of an option is its place, as any text can be a name. Returns the first wanted name that there is.
  function fill(name, options, ...wanted) {
    const chosen = [...wanted, options[0]].find((one) => options.includes(one));
    controls[name].replaceChildren(...options.map((text, i) => make("option", { value: i, dir: "auto" }, text)));
    controls[name].selectedIndex = options.indexOf(chosen);
    controls[name].names = options;
    controls[name].disabled = options.length < 2;
    return chosen;
  }

  const columns = [
    { title: "Model", of: (row) => models[row.model].name, show: nameOf },
    { title: "Score", of: (row) => Number(row.value), show: scoreOf },
    { title: "Rank", of: (row) => row.best ?? Infinity, show: (row) => [row.rank] },
    { title: "95 % interval", of: (row) => Number(row.value), show: (row) => [row.interval] },
    { title: "Trained to", of: (row) => models[row.model].place, show: (row) => [models[row.model].month] },
    { title: "Tested on", of: (row) => row.month, show: (row) => [months[row.month]] },
    { title: "Base", of: (row) => models[row.model].base, show: (row) => [make("bdi", {}, models[row.model].base)] },
    { title: "Trained parameters", of: (row) => models[row.model].trainable ?? Infinity, show: (row) => [models[row.model].trainable_text] },
    { title: "Tokens read", of: (row) => models[row.model].tokens ?? Infinity, show: (row) => [models[row.model].tokens_text] },
  ];

  const SCORE = columns[1];

  function nameOf(row) {
    const { name, card, id } = models[row.model];
    // In a tab of its own: a Space is a frame, in which the Hub's pages do not open.
    const shown = card ? make("a", { href: card, target: "_blank", rel: "noopener" }, name) : name;
    return [make("bdi", { class: "label" }, shown), make("small", {}, make("bdi", {}, id))];
  }

  // A score that others reported leads to where they say that it is from.
  function scoreOf(row) {
    const { reported } = models[row.model];
    if (reported) return [make("a", { href: reported, target: "_blank", rel: "noopener nofollow" }, row.text)];
    return [results === null ? row.text : make("a", { href: `${results}/${row.file}` }, row.text)];
  }

  const textOf = (part) => part?.textContent ?? `${part ?? ""}`;

  // A spreadsheet must not read a name as a formula.
  function quoted(text) {
    return `"${/^[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(text) ? "'" : ""}${text.replaceAll('"', '""')}"`;
  }

  function show() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const names = (of, key) => [...new Set(of.map((one) => one[key]))];
    const task = fill("task", names(boards, "task"), asked.get("task"), boards[start].task);
    let of = boards.filter((one) => one.task === task);
    const test = fill("test", names(of, "test"), asked.get("test"), boards[start].test, "average");
    of = of.filter((one) => one.test === test);
    const measure = fill("measure", names(of, "measure"), asked.get("measure"), boards[start].measure, "perplexity");
    board = of.find((one) => one.measure === measure);
    const tested = names(board.rows, "month").sort((a, b) => b - a).map((i) => months[i]);
    const month = fill("month", tested.length > 1 ? [...tested, ALL] : tested, asked.get("month"));
    const q = asked.get("q") ?? "";
    if (controls.q.value !== q) controls.q.value = q;
    const chosen = columns.find((column) => column.title === asked.get("sort"));
    const sort = chosen ?? columns[board.higher === null ? 0 : 1];
    const down = chosen ? asked.get("down") === "1" : sort === SCORE && board.higher;
    state = { task, test, measure, month, q, ...(chosen && { sort: sort.title, down: Number(down) }) };
    draw(sort, down);
  }

  function draw(sort, down) {
    const words = state.q.normalize("NFKC").toLowerCase().split(/\s+/);
    const rows = board.rows.filter((row) => {
      const { name, id, base, method, month } = models[row.model];
      const text = [name, id, base, method, month].join("\n").normalize("NFKC").toLowerCase();
      return (state.month === ALL || months[row.month] === state.month) && words.every((word) => text.includes(word));
    });
    // A score that a model could have without knowing anything comes last, and so does one that is missing.
    const known = (row, x) => (sort === SCORE ? row.competes || board.higher === null : x !== Infinity) && !Number.isNaN(x);
    rows.sort((a, b) => {
      const [x, y] = [sort.of(a), sort.of(b)];
      const missing = known(b, y) - known(a, x); // last, whichever way
      const less = typeof x === "string" ? collator.compare(x, y) : (x > y) - (x < y);
      return missing || (down ? -less : less) || a.model - b.model;
    });
    const left = { "Tested on": state.month !== ALL, Rank: !ranked };
    const shown = columns.filter((column) => !left[column.title]);
    const head = shown.map((column) => {
      const sorted = column === sort;
      const button = make("button", { type: "button" }, column.title, sorted ? (down ? " ▼" : " ▲") : "");
      button.addEventListener("click", () => {
        go({ sort: column.title, down: Number(sorted ? !down : column === SCORE && board.higher) });
        table.querySelectorAll("thead button")[shown.indexOf(column)].focus();
      });
      return make("th", { scope: "col", ...(sorted ? { "aria-sort": down ? "descending" : "ascending" } : {}) }, button);
    });
    const body = rows.map((row) => make("tr", models[row.model].reported ? GREY : {}, ...shown.map((column, i) =>
      make(i ? "td" : "th", i ? (ranked && row.best === null && column === SCORE ? GREY : {}) : { scope: "row" }, ...column.show(row)))));
    table.replaceChildren(make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body));
    const lines = [shown.map((column) => column.title), ...rows.map((row) => shown.map((column) => textOf(column.show(row)[0])))];
    csv.href = `data:text/csv;charset=utf-8,${encodeURIComponent(lines.map((line) => line.map(quoted).join(",")).join("\n"))}`;
    const better = board.higher === null ? "Neither higher nor lower is better, so there are no ranks"
      : board.higher ? "Higher is better" : "Lower is better";
    byId("summary").textContent = `${better}. ${rows.length || "No"} ${rows.length === 1 ? "score" : "scores"}${state.q ? " found" : ""}.`;
  }

  // The address holds what is shown, so that it can be sent to others.
  function go(changes) {
    history.replaceState(null, "", `#${new URLSearchParams({ ...state, ...changes })}`);
    show();
  }

  for (const name of ["task", "test", "measure", "month"]) {
    controls[name].addEventListener("change", () => {
      delete state.sort; // other scores may be better at the other end
      go({ [name]: controls[name].names[controls[name].selectedIndex] });
    });
  }
  controls.q.addEventListener("input", () => go({ q: controls.q.value }));
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", () => {
    if (location.hash.includes("=") || !location.hash) show(); // else a place in the page
  });
  for (const id of ["controls", "summary", "board"]) byId(id).hidden = false;
  show();
});
