"use strict";
(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const dark = matchMedia("(prefers-color-scheme: dark)");

  // A page on disk may have no storage: the theme is then kept until the page is left.
  function stored() {
    try { return localStorage.getItem("temporalwiki-theme"); } catch { return null; }
  }
  function store(theme) {
    try { localStorage.setItem("temporalwiki-theme", theme); } catch { /* not kept */ }
  }
  if (["light", "dark"].includes(stored())) root.dataset.theme = stored();
  const theme = () => root.dataset.theme ?? (dark.matches ? "dark" : "light");

  document.addEventListener("DOMContentLoaded", () => {
    const data = JSON.parse(byId("data").textContent);
    const models = data.models;
    const MOST = 1200; // cells of scores that are shown at once: a browser takes seconds to lay out thousands
    const ALL = "all";

    // --- what is shown: the state, which is also the address's hash ---

    const controls = byId("controls").elements;
    const unique = (values) => [...new Set(values)];
    const words = (name) => name.replaceAll("_", " ");
    const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
    const monthName = (month) => month ?? "no month";
    const monthKey = (month) => month ?? "none";
    const start = data.boards[data.start];
    let state, board, months, columns, order, all;

    function readState() {
      const asked = new URLSearchParams(location.hash.slice(1));
      const pick = (name, from, first) => (from.includes(asked.get(name)) ? asked.get(name) : first);
      let of = data.boards;
      const tasks = unique(of.map((b) => b.task));
      const task = pick("task", tasks, start.task);
      of = of.filter((b) => b.task === task);
      const tests = unique(of.map((b) => b.test));
      const test = pick("test", tests, tests.includes("average") ? "average" : tests[0]);
      of = of.filter((b) => b.test === test);
      const measures = unique(of.map((b) => b.measure));
      const measure = pick("measure", measures, measures.includes("perplexity") ? "perplexity" : measures[0]);
      board = of.find((b) => b.measure === measure);
      const tested = unique(board.tested).sort((a, b) => a - b);
      const keys = tested.map((i) => monthKey(data.months[i]));
      const month = pick("month", tested.length > 1 ? [ALL, ...keys] : keys, keys.at(-1));
      months = month === ALL ? tested : [tested[keys.indexOf(month)]];
      const known = (values) => unique(values).map((value) => value ?? "");
      state = {
        task, test, measure, month,
        method: pick("method", known(models.method), null),
        base: pick("base", known(models.base), null),
        trained: pick("trained", known(data.trained), null),
        q: asked.get("q") ?? "",
      };
      columns = columnsOf();
      const first = firstColumn();
      const column = columns.find((c) => c.key === asked.get("sort")) ?? first;
      const dir = column === first && !asked.has("sort") ? null : asked.get("dir");
      state.sort = column.key;
      state.dir = ["asc", "desc"].includes(dir) ? dir : column.first;
      fill("task", tasks.map((t) => [t, t]), task);
      fill("test", tests.map((t) => [t, t]), test);
      fill("measure", measures.map((m) => [m, words(m)]), measure);
      const named = tested.map((i, at) => [keys[at], monthName(data.months[i])]).reverse();
      fill("month", tested.length > 1 ? [...named, [ALL, "all months"]] : named, month);
      const filter = (name, values, none) =>
        fill(name, [[null, "all"], ...unique(values).map((value) => [value ?? "", value ?? none])], state[name]);
      filter("method", [...models.method].sort(inOrder), "not trained");
      filter("base", [...models.base].map((base) => base || null).sort(inOrder), "not known");
      filter("trained", data.trained, "before any month");
      if (controls.q.value !== state.q) controls.q.value = state.q;
    }

    // The values of a <select> are positions, as any text can be a name; null is none chosen.
    function fill(name, options, chosen) {
      const select = controls[name];
      select.replaceChildren(...options.map(([, text], i) => {
        const option = make("option", { value: i, dir: "auto" }, text);
        option.selected = options[i][0] === chosen;
        return option;
      }));
      select.values = options.map(([value]) => value);
      select.disabled = options.length < 2;
    }

    function hashOf(changes, keep = ["task", "test", "measure", "month", "method", "base", "trained", "q", "sort", "dir"]) {
      const next = { ...state, ...changes };
      const first = firstColumn();
      const plain = !("sort" in changes) && state.sort === first.key && state.dir === first.first;
      const parts = new URLSearchParams();
      for (const name of keep) {
        const drop = next[name] === null || (name === "q" && !next.q) || (plain && (name === "sort" || name === "dir"));
        if (!drop) parts.set(name, next[name]);
      }
      return `#${parts}`;
    }

    function go(hash, replace = false) {
      if (replace) location.replace(hash);
      else location.hash = hash;
      show(); // hashchange comes later, and finds this done
    }

    // --- numbers: the same as page/__init__.py writes them ---

    function number(value) {
      if (Number.isNaN(value)) return "not a number";
      if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
      const size = Math.abs(value);
      let text;
      if (size >= 1e7 || (size && size < 1e-6)) text = value.toExponential(2).replace("e+", "e");
      else if (size && size < Number(`1e${1 - board.decimals}`)) text = value.toPrecision(3);
      else {
        const [whole, rest] = value.toFixed(board.decimals).split(".");
        text = whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? `.${rest}` : "");
      }
      return text.replaceAll("-", "−");
    }

    const none = (value) => value === null || value === undefined;
    const ends = (k) =>
      none(board.low[k]) || none(board.high[k])
        ? "no interval" : `${number(Number(board.low[k]))} – ${number(Number(board.high[k]))}`;
    function ranks(k) {
      const [best, worst] = [board.best[k], board.worst[k]];
      if (none(best) || none(worst)) return "";
      return best === worst ? `${best}` : `${best}–${worst}`;
    }
    function indistinct(k) { // its range is that of all ranks
      const { best, worst, most } = all.get(board.tested[k]) ?? {};
      return most > 1 && board.best[k] === best && board.worst[k] === worst && best !== worst;
    }

    // --- elements: text only ever becomes text ---

    function make(tag, attributes = {}, ...inside) {
      const element = document.createElement(tag);
      for (const [name, value] of Object.entries(attributes)) {
        if (value !== null && value !== undefined) element.setAttribute(name, value);
      }
      element.append(...inside.filter((part) => part !== null && part !== ""));
      return element;
    }

    function drawing(k, scale, width) {
      const value = Number(board.value[k]);
      if (!scale || !Number.isFinite(value)) return null;
      const at = (x) => (4 + scale(x) * (width - 8)).toFixed(1);
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      const part = (name, attributes) => {
        const element = document.createElementNS("http://www.w3.org/2000/svg", name);
        for (const key of Object.keys(attributes)) element.setAttribute(key, attributes[key]);
        svg.append(element);
      };
      svg.setAttribute("viewBox", `0 0 ${width} 10`);
      svg.setAttribute("width", width);
      svg.setAttribute("height", 10);
      svg.setAttribute("aria-hidden", "true");
      part("path", { class: "track", d: `M0 5H${width}` });
      const [low, high] = [board.low[k], board.high[k]].map((x) => (none(x) ? NaN : Number(x)));
      if (Number.isFinite(low) && Number.isFinite(high)) part("path", { class: "range", d: `M${at(low)} 5H${at(high)}` });
      part("circle", { cx: at(value), cy: 5, r: 2.8 });
      return svg;
    }

    // One scale for all cells of a board, so that dots can be compared along lines and columns.
    function scaleOf() {
      let [least, most] = [Infinity, -Infinity];
      for (const column of [board.value, board.low, board.high]) {
        for (const x of column) {
          const value = none(x) ? NaN : Number(x);
          if (Number.isFinite(value)) [least, most] = [Math.min(least, value), Math.max(most, value)];
        }
      }
      if (!(least < most)) return null;
      const logarithmic = least > 0 && most / least > 10;
      const by = logarithmic ? Math.log : (x) => x;
      const scale = (x) => (by(x) - by(least)) / (by(most) - by(least));
      return Object.assign(scale, { text: `${number(least)} to ${number(most)}${logarithmic ? ", logarithmic" : ""}` });
    }

    const path = (name) => name.split("/").map(encodeURIComponent).join("/");
    const fileOf = (k) => (data.results === null ? null : `${data.results}/${path(data.files[board.file[k]].toWellFormed())}`);

    // --- the table ---

    const collator = new Intl.Collator("en", { numeric: true });
    const inOrder = (a, b) => (a === null) - (b === null) || collator.compare(a, b);

    // A board without ranks is sorted by name: neither end is better.
    function firstColumn() {
      return board.higher === null ? columns[0] : columns.findLast((column) => column.month !== undefined);
    }

    // Scores that a model could have without knowing anything come last.
    function sortedBy(line, month) {
      const k = line.at.get(month);
      return k === undefined || (board.higher !== null && !board.competes[k]) ? NaN : Number(board.value[k]);
    }

    function columnsOf() {
      const better = board.higher ? "desc" : "asc";
      const scores = months.map((i) => ({
        key: `on-${monthKey(data.months[i])}`, month: i, first: better,
        title: months.length > 1 ? monthName(data.months[i]) : capital(`${words(board.measure)} on ${monthName(data.months[i])}`),
        value: (line) => sortedBy(line, i), kind: "score",
      }));
      const rank = {
        key: "rank", title: "Rank", first: "asc", kind: "rank",
        value: (line) => {
          const k = line.at.get(months[0]);
          return none(board.best[k]) ? NaN : board.best[k] + (board.worst[k] ?? 0) / 1e6;
        },
      };
      const count = (name, title) => ({
        key: name, title, first: "asc", kind: "number",
        value: (line) => models[name][line.model] ?? NaN,
      });
      return [
        { key: "model", title: "Model", first: "asc", kind: "model", value: (line) => models.label[line.model] },
        {
          key: "trained", title: "Trained to", first: "asc", kind: "text",
          value: (line) => (data.trained[models.trained[line.model]] === null ? NaN : models.trained[line.model]),
        },
        ...scores,
        ...(months.length === 1 ? [rank] : []),
        { key: "base", title: "Base", first: "asc", kind: "text", value: (line) => models.base[line.model] },
        count("trainable", "Trainable"),
        count("tokens", "Tokens"),
      ];
    }

    let drawn = null; // the board and months whose lines are there
    let lines = [];
    let limit = 0; // of lines

    function readLines() {
      const of = new Map();
      all = new Map();
      for (let k = 0; k < board.model.length; k += 1) {
        const tested = board.tested[k];
        if (!none(board.best[k])) {
          const now = all.get(tested) ?? { best: Infinity, worst: 0, most: 0 };
          all.set(tested, {
            best: Math.min(now.best, board.best[k]), worst: Math.max(now.worst, board.worst[k]), most: now.most + 1,
          });
        }
        if (!months.includes(tested)) continue;
        const model = board.model[k];
        if (!of.has(model)) {
          const about = [models.label, models.method, models.base, models.model].map((column) => column[model] ?? "");
          about.push(data.trained[models.trained[model]] ?? "");
          of.set(model, { model, at: new Map(), text: about.join("\n").normalize("NFKC").toLowerCase(), element: null });
        }
        of.get(model).at.set(tested, k);
      }
      lines = [...of.values()].sort((a, b) => a.model - b.model);
    }

    function elementOf(line, scale) {
      const m = line.model;
      const wide = months.length === 1;
      const card = models.card[m];
      // In a tab of its own: a Space is a frame, in which the Hub's pages do not open.
      const link = card && make("a", { href: card, target: "_blank", rel: "noopener" }, models.label[m]);
      const label = make("bdi", { class: "label" }, link ?? models.label[m]);
      const cells = columns.map((column) => {
        if (column.kind === "model") {
          return make("th", { scope: "row" }, label,
            make("small", { class: "id", title: models.model[m] }, make("bdi", {}, models.model[m])));
        }
        if (column.key === "trained") return make("td", {}, data.trained[models.trained[m]] ?? "none");
        if (column.key === "base") return make("td", { class: "base", title: models.base[m] }, make("bdi", {}, models.base[m]));
        if (column.kind === "number") return make("td", { class: "number" }, models[`${column.key}_text`][m]);
        const k = line.at.get(column.kind === "rank" ? months[0] : column.month);
        if (k === undefined) return make("td", { class: "missing" }, "–");
        if (column.kind === "rank") return make("td", { class: "rank" }, ...rankOf(k));
        const text = number(Number(board.value[k]));
        const file = fileOf(k);
        const own = data.months[column.month] !== null && data.trained[models.trained[m]] === data.months[column.month];
        const parts = [
          make("span", { class: "value" }, file === null ? text : make("a", { href: file }, text)), " ",
          make("span", { class: "interval" }, ends(k)), " ",
          drawing(k, scale, wide ? 150 : 60) ?? "",
        ];
        if (!wide && ranks(k)) parts.push(make("span", { class: "rank" }, "rank ", ...rankOf(k)));
        return make("td", {
          class: `score${wide ? " wide" : ""}${own && !wide ? " own" : ""}`,
          title: `${data.configs[board.config[k]]}: ${board.items[k].toLocaleString("en")} items of `
            + `${board.clusters[k].toLocaleString("en")} subjects, `
            + (board.runs[k] > 1 ? `mean of ${board.runs[k]} training runs` : "one run"),
        }, ...(wide ? parts : [make("div", { class: "cell" }, ...parts)]));
      });
      return make("tr", {}, ...cells);
    }

    function rankOf(k) {
      const text = ranks(k);
      return indistinct(k) ? [text, " ", make("abbr", { title: "not significantly different from any other" }, "n.s.")] : [text];
    }

    function headOf() {
      return make("thead", {}, make("tr", {}, ...columns.map((column) => {
        const sorted = column.key === state.sort;
        const arrow = sorted ? (state.dir === "asc" ? "▲" : "▼") : "";
        const button = make("button", { type: "button" }, column.title, make("span", { class: "arrow", "aria-hidden": "true" }, arrow));
        button.addEventListener("click", () => {
          const dir = !sorted ? column.first : state.dir === "asc" ? "desc" : "asc";
          go(hashOf({ sort: column.key, dir }));
          byId("scores").querySelector(`th[data-key="${CSS.escape(column.key)}"] button`)?.focus();
        });
        return make("th", {
          scope: "col", class: column.kind + (column.kind === "score" && months.length === 1 ? " wide" : ""), "data-key": column.key, "data-title": column.title,
          "aria-sort": sorted ? (state.dir === "asc" ? "ascending" : "descending") : null,
        }, button);
      })));
    }

    function compare(a, b) {
      const column = columns.find((c) => c.key === state.sort);
      const [x, y] = [column.value(a), column.value(b)];
      const missing = Number.isNaN(x) - Number.isNaN(y); // last, whichever way
      if (missing || Number.isNaN(x)) return missing || a.model - b.model;
      const less = typeof x === "string" ? collator.compare(x, y) : x < y ? -1 : Number(x > y);
      return (state.dir === "asc" ? less : -less) || a.model - b.model;
    }

    function fits(line) {
      const m = line.model;
      if (state.method !== null && (models.method[m] ?? "") !== state.method) return false;
      if (state.base !== null && models.base[m] !== state.base) return false;
      if (state.trained !== null && (data.trained[models.trained[m]] ?? "") !== state.trained) return false;
      return state.q.normalize("NFKC").toLowerCase().split(/\s+/).every((word) => line.text.includes(word));
    }

    let shown = null; // the hash that the page shows
    let scale = null;

    function show() {
      if (shown === location.hash) return;
      shown = location.hash;
      readState();
      const now = JSON.stringify([data.boards.indexOf(board), months]);
      if (now !== drawn) {
        drawn = now;
        limit = Math.min(Math.max(Math.floor(MOST / months.length), 60), 200);
        readLines();
        scale = scaleOf();
      }
      order = lines.filter(fits).sort(compare);
      draw();
    }

    function draw() {
      const visible = order.slice(0, limit);
      for (const line of visible) line.element ??= elementOf(line, scale);
      const better = board.higher === null ? "No better or worse, so no ranks"
        : board.higher ? "↑ Higher is better" : "↓ Lower is better";
      const verdict = months.length === 1 ? board.verdicts[months[0]] : "";
      const on = months.length === 1 ? `on ${monthName(data.months[months[0]])}` : "on all months";
      byId("scores").replaceChildren(
        make("caption", { class: "unseen" }, `${state.task}, ${state.test}, ${words(state.measure)} ${on}`),
        headOf(), make("tbody", {}, ...visible.map((line) => line.element)));
      byId("direction").replaceChildren(make("b", {}, better), verdict ? ` ${verdict}` : "",
        ...(scale ? [make("span", { class: "scale" }, ` Bars: ${scale.text}.`)] : []));
      const of = order.length === lines.length ? "" : ` of ${lines.length}`;
      byId("count").textContent = `${order.length}${of} ${lines.length === 1 ? "model" : "models"}`;
      byId("board").hidden = !order.length;
      byId("empty").hidden = Boolean(order.length);
      byId("csv").disabled = !order.length;
      byId("own").hidden = months.length === 1;
      byId("more").hidden = order.length <= limit;
      byId("more").textContent = `Show all ${order.length} models`;
    }

    function showAll() {
      limit = Infinity;
      draw();
    }

    // --- CSV of what is shown ---

    // A spreadsheet runs a cell that begins so; numbers are written as numbers.
    const cell = (value) => {
      if (none(value)) return "";
      if (typeof value === "number") return String(value);
      const text = /^[=+\-@\t\r\n＝＋－＠]/.test(value) ? `'${value}` : value;
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    function csv() {
      const plain = (x) => (none(x) ? null : Number(x));
      const parts = ["value", "low", "high", "rank_best", "rank_worst"];
      const head = ["label", "trained_to", "method", "base", "model", "revision", "trainable", "tokens",
        ...months.flatMap((i) => parts.map((part) => `${monthName(data.months[i])} ${part}`))];
      const body = order.map(({ model: m, at }) => [
        models.label[m], data.trained[models.trained[m]], models.method[m], models.base[m], models.model[m],
        models.revision[m], models.trainable[m], models.tokens[m],
        ...months.flatMap((i) => {
          const k = at.get(i);
          return k === undefined ? parts.map(() => null)
            : [plain(board.value[k]), plain(board.low[k]), plain(board.high[k]), board.best[k], board.worst[k]];
        }),
      ]);
      return [head, ...body].map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
    }

    // --- events ---

    for (const name of ["task", "test", "measure", "month", "method", "base", "trained"]) {
      controls[name].addEventListener("change", () => {
        const value = controls[name].values[controls[name].selectedIndex];
        const scored = ["task", "test", "measure", "month"].includes(name);
        const sorted = columns.find((column) => column.key === state.sort);
        const changes = { [name]: value };
        // another month's scores are sorted by themselves; a new task brings its own tests
        const keep = ["task", "test", "measure", "month", "method", "base", "trained", "q"];
        if (scored && (sorted.month !== undefined || sorted.kind === "rank")) go(hashOf(changes, keep));
        else go(hashOf(changes));
      });
    }
    controls.q.addEventListener("input", () => go(hashOf({ q: controls.q.value }), true));
    byId("controls").addEventListener("submit", (event) => event.preventDefault());
    byId("reset").addEventListener("click", () => {
      go(hashOf({ method: null, base: null, trained: null, q: "" }));
      controls.q.focus();
    });
    byId("more").addEventListener("click", () => {
      showAll();
      byId("board").focus();
    });
    addEventListener("beforeprint", showAll);
    addEventListener("hashchange", () => {
      if (location.hash.includes("=") || !location.hash) show(); // else a place in the page, such as #tables
    });

    byId("csv").addEventListener("click", () => {
      const url = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
      const name = [state.task, state.test, state.measure, state.month].join("-").replace(/[^A-Za-z0-9._-]+/g, "-");
      const link = make("a", { href: url, download: `${name}.csv` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    });

    const toggle = byId("theme");
    const nameToggle = () => { toggle.textContent = theme() === "dark" ? "Light theme" : "Dark theme"; };
    toggle.addEventListener("click", () => {
      root.dataset.theme = theme() === "dark" ? "light" : "dark";
      store(root.dataset.theme);
      nameToggle();
    });
    dark.addEventListener("change", nameToggle);
    nameToggle();

    const large = byId("large");
    for (const link of document.querySelectorAll("a.open")) {
      link.setAttribute("aria-haspopup", "dialog");
      link.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a tab of its own
        event.preventDefault();
        const caption = link.parentElement.querySelector("figcaption");
        byId("large-title").textContent = caption.querySelector("strong").textContent;
        byId("large-caption").textContent = caption.querySelector("span").textContent;
        byId("large-image").src = link.href;
        byId("large-image").alt = link.querySelector("img").alt;
        byId("large-svg").href = link.href;
        byId("large-png").href = link.dataset.png;
        large.showModal();
      });
    }
    byId("close").addEventListener("click", () => large.close());
    large.addEventListener("click", (event) => { if (event.target === large) large.close(); }); // beside it

    for (const id of ["controls", "summary", "theme"]) byId(id).hidden = false;
    show();
  });
})();
