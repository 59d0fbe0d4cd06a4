(() => {
  "use strict";
  const PAGE = 10;
  const rounded = v => Math.round(v * 1e9) / 1e9;
  // Four decimals; of halves, 1/32, 5/32, ... go down to the even digit, as in the tables.
  const fixed = (size, digits = 4) => (32 * size % 4 === 1 ? size - 1e-9 : size).toFixed(digits);
  // Two significant digits of a number that would be rounded to 0.
  const digits = size => size && !+size.toFixed(4) ? 1 - Math.floor(Math.log10(size)) : 4;
  const signed = v => (v > 0 ? "+" : v < 0 ? "−" : "") + fixed(Math.abs(v), digits(Math.abs(v)));
  // Rounding once more would decide otherwise where a difference is nearly a half.
  const gain = (system, baseline) => signed(rounded(system - baseline) && system - baseline);
  const collator = new Intl.Collator("en", { numeric: true });  // made once, not for each comparison
  const studies = {};

  // Values are billionths, as four little-endian bytes each.
  function decoded(text) {
    const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
    return Float64Array.from(new Uint32Array(bytes.buffer), v => v / 1e9);
  }

  for (const element of document.querySelectorAll("script.study-data")) {
    const data = JSON.parse(element.textContent);
    data.numbers = decoded(data.values);
    data.column = (system, measure) => {
      const start = (system * data.measures.length + measure) * data.queries.length;
      return data.numbers.subarray(start, start + data.queries.length);
    };
    data.labels = data.queries.map((query, i) => data.texts[i] || query);
    studies[element.dataset.study] = data;
  }

  function explorer(key, data) {
    const root = document.getElementById(key + "-explorer");
    const find = selector => root.querySelector(selector);
    const lower = data.queries.map((q, i) => (q + " " + data.texts[i]).toLowerCase());
    const state = { key: "difference", up: false, page: 0, open: new Set() };
    root.hidden = false;

    function rows() {
      const system = data.column(+find(".system").value, +find(".measure").value);
      const baseline = data.column(+find(".against").value, +find(".measure").value);
      const kind = find(".kind")?.value;  // the number of a property and the letter of a class
      const kinds = kind && data.kinds[+kind.slice(0, -1)];
      const words = find(".search").value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = [];
      for (let i = 0; i < data.queries.length; i++) {
        if (kinds && kinds[i] !== kind.slice(-1)) continue;
        if (words.every(w => lower[i].includes(w))) {
          found.push({ i, system: system[i], baseline: baseline[i],
                       difference: rounded(system[i] - baseline[i]) });
        }
      }
      const textual = { id: data.queries, text: data.labels }[state.key];
      const by = textual
        ? (a, b) => collator.compare(textual[a.i], textual[b.i])
        : (a, b) => a[state.key] - b[state.key];
      found.sort((a, b) => (state.up ? by(a, b) : by(b, a)) || a.i - b.i);
      return found;
    }

    function cell(row, content, style) {
      const element = document.createElement("td");
      element.textContent = content;
      if (style) element.className = style;
      row.append(element);
      return element;
    }

    function bar(row, difference, largest) {
      const size = largest ? 50 * Math.abs(difference) / largest : 0;
      const shape = document.createElement("i");
      shape.className = "bar " + (difference > 0 ? "gain" : "loss");
      shape.style.marginLeft = (difference > 0 ? 50 : 50 - size) + "%";
      shape.style.width = size + "%";
      cell(row, "").append(shape);
    }

    function text(i) {
      const element = document.createElement("span");
      element.className = "clamped";
      element.textContent = data.labels[i];
      return element;
    }

    // A button with the query's text that opens its rankings in a row below.
    function opener(i, row) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "opener";
      button.setAttribute("aria-expanded", false);
      button.append(text(i));
      button.addEventListener("click", () => {
        if (state.open.delete(i)) {
          row.nextElementSibling.remove();
          button.setAttribute("aria-expanded", false);
        } else {
          state.open.add(i);
          open(i, row);
        }
      });
      return button;
    }

    function open(i, row) {
      const detail = document.createElement("tr");
      detail.className = "detail";
      detail.id = `${key}-query${i}`;
      const button = row.querySelector(".opener");
      button.setAttribute("aria-expanded", true);
      button.setAttribute("aria-controls", detail.id);
      const place = cell(detail, "Unpacking the rankings …");
      place.colSpan = [...row.cells].filter(c => c.offsetWidth).length;  // a phone shows fewer
      row.after(detail);
      data.unpacked ??= Rankings.unpacked(data.rankings);
      data.unpacked.then(
        found => place.replaceChildren(...Rankings.shown(found, i, data.pair)),
        () => { place.textContent = "This browser cannot unpack the rankings; a newer one can."; },
      );
    }

    function show() {
      const found = rows();
      const pages = Math.max(1, Math.ceil(found.length / PAGE));
      state.page = Math.min(Math.max(state.page, 0), pages - 1);
      const start = state.page * PAGE;
      const largest = found.reduce((most, r) => Math.max(most, Math.abs(r.difference)), 0);
      const body = find("tbody");
      body.replaceChildren();
      for (const r of found.slice(start, start + PAGE)) {
        const row = document.createElement("tr");
        cell(row, data.queries[r.i], "muted");
        cell(row, "").append(data.rankings ? opener(r.i, row) : text(r.i));
        cell(row, fixed(r.baseline), "number");
        cell(row, fixed(r.system), "number");
        const style = r.difference > 0 ? " gain-text" : r.difference < 0 ? " loss-text" : "";
        cell(row, gain(r.system, r.baseline), "number" + style);
        bar(row, r.difference, largest);
        body.append(row);
        if (state.open.has(r.i)) open(r.i, row);
      }
      const count = n => n.toLocaleString("en");
      find(".status").textContent = found.length
        ? `${count(start + 1)}–${count(Math.min(start + PAGE, found.length))} of ${count(found.length)} queries`
        : "no query matches";
      const sum = found.reduce((total, r) => total + r.difference, 0);
      find(".mean").textContent = found.length
        ? `mean difference ${signed(rounded(sum / found.length))}` : "";
      find(".back").disabled = state.page === 0;
      find(".next").disabled = state.page === pages - 1;
      for (const head of root.querySelectorAll("th[data-key]")) {
        if (head.dataset.key === state.key) {
          head.setAttribute("aria-sort", state.up ? "ascending" : "descending");
        } else {
          head.removeAttribute("aria-sort");
        }
      }
    }

    for (const control of root.querySelectorAll(".controls input, .controls select")) {
      control.addEventListener("input", () => { state.page = 0; show(); });
    }
    find(".back").addEventListener("click", () => { state.page--; show(); });
    find(".next").addEventListener("click", () => { state.page++; show(); });
    for (const head of root.querySelectorAll("th[data-key]")) {
      head.querySelector("button").addEventListener("click", () => {
        const textual = head.dataset.key === "id" || head.dataset.key === "text";
        state.up = state.key === head.dataset.key ? !state.up : textual;
        state.key = head.dataset.key;
        state.page = 0;
        show();
      });
    }
    matchMedia("(max-width: 44rem)").addEventListener("change", show);
    show();
  }

  // A tooltip next to the pointer.
  const tip = {
    element: document.getElementById("tip"),
    show(event, text) {
      const { element } = tip;
      element.hidden = false;
      element.textContent = text;
      const most = document.documentElement.clientWidth - element.offsetWidth - 8;
      element.style.left = Math.max(Math.min(event.pageX + 14, most), 8) + "px";
      element.style.top = event.pageY + 16 + "px";
    },
    hide: () => { tip.element.hidden = true; },
  };

  // Tooltips for the query under the pointer, over the sorted bars.
  function tips(figure) {
    const data = studies[figure.dataset.study];
    const system = data.column(data.systems.indexOf(figure.dataset.system), 0);
    const baseline = data.column(data.systems.indexOf(figure.dataset.baseline), 0);
    const drawing = figure.querySelector("svg");
    const [left, right] = figure.dataset.ends.split(" ").map(Number);  // of the axes, as shares
    let order = null;
    drawing.addEventListener("pointermove", event => {
      order ??= Array.from(data.queries.keys())
        .sort((a, b) => (system[b] - baseline[b]) - (system[a] - baseline[a]) || a - b);
      const box = drawing.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width;
      const rank = Math.floor((x - left) / (right - left) * order.length);
      const i = order[rank];
      if (i === undefined) tip.hide();
      // Isolated, a text from right to left does not turn round the numbers behind it.
      else tip.show(event, `\u2068${data.labels[i]}\u2069: ${fixed(baseline[i])} → ${fixed(system[i])} (${gain(system[i], baseline[i])})`);
    });
    drawing.addEventListener("pointerleave", tip.hide);
  }

  function theme() {
    const button = document.getElementById("theme");
    const root = document.documentElement;
    const dark = () => root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    const label = () => {
      button.textContent = dark() ? "Light" : "Dark";
      button.setAttribute("aria-label", `${button.textContent} colours`);
    };
    button.hidden = !CSS.supports("color", "light-dark(#000, #fff)");
    button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; label(); });
    label();
  }

  // Sibling panels become tabs; without scripts and on paper they follow one another.
  function tabs(root) {
    const panels = [...root.querySelectorAll(":scope > .panel")];
    if (panels.length < 2) return;
    const list = document.createElement("div");
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", root.dataset.label);
    const buttons = panels.map(panel => {
      const button = document.createElement("button");
      button.type = "button";
      button.id = panel.id + "-tab";
      button.textContent = panel.dataset.tab;
      button.setAttribute("role", "tab");
      button.setAttribute("aria-controls", panel.id);
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", button.id);
      return button;
    });
    const select = chosen => buttons.forEach((button, i) => {
      button.setAttribute("aria-selected", i === chosen);
      button.tabIndex = i === chosen ? 0 : -1;
      panels[i].hidden = i !== chosen;
    });
    buttons.forEach((button, i) => {
      button.addEventListener("click", () => select(i));
      panels[i].addEventListener("reveal", event => { if (event.target === panels[i]) select(i); });
    });
    list.addEventListener("keydown", event => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = (buttons.indexOf(event.target) + step + buttons.length) % buttons.length;
      select(next);
      buttons[next].focus();
    });
    list.append(...buttons);
    root.prepend(list);
    select(0);
  }

  // Opens the folded parts around the target of a link before scrolling there.
  function reveal() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let e = target; e; e = e.parentElement) {
      if (e.tagName === "DETAILS") e.open = true;
      if (e.classList.contains("panel")) e.dispatchEvent(new Event("reveal"));
    }
    if (target.tagName === "SECTION") target.querySelector(":scope > details")?.setAttribute("open", "");
    target.scrollIntoView();
  }

  theme();
  document.querySelectorAll(".tabs").forEach(tabs);
  addEventListener("hashchange", reveal);
  if (location.hash) reveal();
  for (const [key, data] of Object.entries(studies)) explorer(key, data);
  for (const figure of document.querySelectorAll("figure.gains")) tips(figure);
  for (const map of document.querySelectorAll(".map")) embeddingMap(map, tip);
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
})();
