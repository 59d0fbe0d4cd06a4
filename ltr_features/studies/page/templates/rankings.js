// Shows the first documents of a query in the rankings of a system and its baseline.
const Rankings = (() => {
  "use strict";
  const TOP = 10;

  // Unpacks zlib-compressed JSON in base64, see packed_rankings in script_data.py.
  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(plain).json();
  }

  function element(name, content, style) {
    const made = document.createElement(name);
    if (typeof content === "string") made.textContent = content;
    else made.append(...content);
    if (style) made.className = style;
    return made;
  }

  const rank = r => r ? String(r) : "–";
  const grade = g => g === null ? "–" : String(g).replace("-", "−");

  // From position 4, rows have pairs of a column's number and its shift in hundredths.
  function pushes(data, row) {
    const found = [];
    for (let at = 4; at < row.length; at += 2) {
      const shift = row[at + 1] / 100;
      found.push(`${data.columns[row[at]]} ${(shift < 0 ? "−" : "+") + Math.abs(shift).toFixed(2)}`);
    }
    return found.length ? "pushed by " + found.join(", ") : "";
  }

  // One ranking: own and other are the positions in a row of a document's rank here and there.
  function ranking(data, rows, own, other, caption, heading, showsColumns) {
    const lines = rows.filter(row => row[own] && row[own] <= TOP).sort((a, b) => a[own] - b[own]);
    const body = lines.map(row => {
      const [title, id] = data.documents[row[0]];
      const name = element("th", title || id);
      name.scope = "row";
      if (title) name.append(element("small", id));
      if (showsColumns(row)) name.append(element("small", pushes(data, row)));
      const [before, after] = [row[2], row[3]];
      const up = !before || (after && after < before);
      const moved = before === after ? "" : up ? " ▲" : " ▼";
      const style = moved ? (up === (row[1] > 0) ? " gain-text" : " loss-text") : "";
      return element("tr", [element("td", rank(row[own]), "number"), name,
        element("td", grade(row[1]), "number" + (row[1] > 0 ? " relevant" : "")),
        element("td", rank(row[other]) + moved, "number" + style)]);
    });
    const heads = ["Rank", "Document", "Grade", heading].map((text, i) => {
      const head = element("th", text, i === 1 ? "" : "number");
      head.scope = "col";
      return head;
    });
    const table = element("table", [element("caption", caption),
      element("thead", [element("tr", heads)]), element("tbody", body)], "compact");
    return element("div", lines.length ? [table] : [element("p", `${caption}: nothing was ranked.`)]);
  }

  // Content of the row that opens below a query: baseline and system side by side.
  function shown(data, query, [system, baseline]) {
    const rows = data.queries[query];
    if (!rows) {
      const held = Object.keys(data.queries).length.toLocaleString("en");
      return [element("p", `This page contains only the rankings of the ${held} queries that changed most.`)];
    }
    const high = r => r > 0 && r <= TOP;
    const sides = [
      // Columns are shown once per document, if possible in the system's ranking.
      ranking(data, rows, 2, 3, baseline, "After", row => row.length > 4 && !high(row[3])),
      ranking(data, rows, 3, 2, system, "Before", row => row.length > 4),
    ];
    return [element("div", sides, "rankings")];
  }

  return { unpacked, shown };
})();
