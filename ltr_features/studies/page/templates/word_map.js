// Finds words on the map of an embedding, by typing or under the pointer.
function wordMap(root, tip) {
  "use strict";
  const data = JSON.parse(root.querySelector("script").textContent);
  const drawing = root.querySelector("svg");
  const { width, height } = drawing.viewBox.baseVal;
  const x = data.x.map(share => share * width / 1000);
  const y = data.y.map(share => share * height / 1000);
  const lower = data.words.map(word => word.toLowerCase());
  const MOST = 12;
  let marks = [];

  function shape(name, attributes, style) {
    const made = document.createElementNS(drawing.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.setAttribute("class", style);
    drawing.append(made);
    marks.push(made);
    return made;
  }

  function mark(i, style) {
    const left = x[i] > width - 90;
    shape("circle", { cx: x[i], cy: y[i], r: 4 }, style);
    shape("text", { x: x[i] + (left ? -6 : 6), y: y[i] + 4, "text-anchor": left ? "end" : "start" },
          style).textContent = data.words[i];
  }

  const nearest = i => `nearest in all ${data.dimension} dimensions: ` +
    data.nearest[i].map(j => data.words[j]).join(", ");

  function find(typed) {
    marks.forEach(one => one.remove());
    marks = [];
    if (!typed) return "";
    const exact = lower.indexOf(typed);
    if (exact >= 0) {
      data.nearest[exact].forEach(j => mark(j, "near"));
      mark(exact, "found");
      return `${data.words[exact]}; ${nearest(exact)}`;
    }
    const found = [...lower.keys()].filter(i => lower[i].includes(typed));
    found.slice(0, MOST).forEach(i => mark(i, "found"));
    const names = found.slice(0, MOST).map(i => data.words[i]).join(", ");
    return found.length ? `${found.length} of ${lower.length} words: ${names}${found.length > MOST ? ", …" : ""}`
      : "no word on the map has these letters";
  }

  root.querySelector(".controls").hidden = false;
  root.querySelector("input").addEventListener("input", event => {
    root.querySelector(".status").textContent = find(event.target.value.trim().toLowerCase());
    drawing.classList.toggle("asked", marks.length > 0);
  });
  drawing.addEventListener("pointermove", event => {
    const box = drawing.getBoundingClientRect();
    const [px, py] = [(event.clientX - box.left) * width / box.width, (event.clientY - box.top) * height / box.height];
    let best = -1, least = 64;  // squared distance
    for (let i = 0; i < x.length; i++) {
      const distance = (x[i] - px) ** 2 + (y[i] - py) ** 2;
      if (distance < least) [best, least] = [i, distance];
    }
    if (best < 0) tip.hide();
    else tip.show(event, `${data.words[best]}; ${nearest(best)}`);
  });
  drawing.addEventListener("pointerleave", tip.hide);
}
