// Finds words or documents on the map of an embedding: by typing, pointing or tapping.
function embeddingMap(root, tip) {
  "use strict";
  const data = JSON.parse(root.querySelector("script").textContent);
  const drawing = root.querySelector("svg");
  const { width, height } = drawing.viewBox.baseVal;
  const x = data.x.map(share => share * width / 1000);
  const y = data.y.map(share => share * height / 1000);
  const lower = data.labels.map(label => label.toLowerCase());
  const MOST = 12, LONGEST = 28;
  const clipped = label => label.length > LONGEST ? label.slice(0, LONGEST - 1) + "…" : label;
  let marks = [], taken = [];

  function shape(name, attributes, style) {
    const made = document.createElementNS(drawing.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.setAttribute("class", style);
    drawing.append(made);
    marks.push(made);
    return made;
  }

  // A label that would overlap others is left out; the line above the map shows it anyway.
  function mark(i, style) {
    const left = x[i] > width / 2;
    shape("circle", { cx: x[i], cy: y[i], r: 4 }, style);
    const at = { x: x[i] + (left ? -6 : 6), y: y[i] + 4, "text-anchor": left ? "end" : "start" };
    const label = shape("text", at, style);
    label.textContent = clipped(data.labels[i]);
    const box = label.getBBox();
    const overlaps = other => box.x < other.x + other.width && other.x < box.x + box.width &&
      box.y < other.y + other.height && other.y < box.y + box.height;
    if (taken.some(overlaps)) label.remove();
    else taken.push(box);
  }

  const nearest = i => `nearest in all ${data.dimension} dimensions: ` +
    data.nearest[i].map(j => data.labels[j]).join("; ");

  function show(i) {
    mark(i, "found");
    data.nearest[i].forEach(j => mark(j, "near"));
    return `${data.labels[i]}: ${nearest(i)}`;
  }

  function find(typed) {
    if (!typed) return "";
    const all = [...lower.keys()];
    const exact = all.filter(i => lower[i] === typed);  // documents may share a title
    const found = exact.length ? exact : all.filter(i => lower[i].includes(typed));
    if (found.length === 1) return show(found[0]);
    found.slice(0, MOST).forEach(i => mark(i, "found"));
    const names = found.slice(0, MOST).map(i => data.labels[i]).join("; ");
    return found.length ? `${found.length} of ${lower.length} ${data.of}: ${names}${found.length > MOST ? "; …" : ""}`
      : `none of the ${data.of} contains this text`;
  }

  function tell(text) {
    marks.forEach(one => one.remove());
    marks = [];
    taken = [];
    root.querySelector(".status").textContent = text();
    drawing.classList.toggle("asked", marks.length > 0);
  }

  function nearestDot(event) {
    const box = drawing.getBoundingClientRect();
    const [px, py] = [(event.clientX - box.left) * width / box.width, (event.clientY - box.top) * height / box.height];
    let best = -1, least = 64;  // squared distance
    for (let i = 0; i < x.length; i++) {
      const distance = (x[i] - px) ** 2 + (y[i] - py) ** 2;
      if (distance < least) [best, least] = [i, distance];
    }
    return best;
  }

  root.querySelector(".controls").hidden = false;
  const input = root.querySelector("input");
  input.addEventListener("input", () => tell(() => find(input.value.trim().toLowerCase())));
  drawing.addEventListener("pointermove", event => {
    const i = nearestDot(event);
    if (i < 0) tip.hide();
    else tip.show(event, `${data.labels[i]}: ${nearest(i)}`);
  });
  drawing.addEventListener("pointerleave", tip.hide);
  drawing.addEventListener("click", event => {
    const i = nearestDot(event);
    input.value = i < 0 ? "" : data.labels[i];
    tell(() => i < 0 ? "" : show(i));
  });
}
