// What a person with a keyboard, a screen reader, weak eyes or a phone would stumble over on this page: one sentence each.
(() => {
  const wrong = [];
  const seen = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const name = (e) => e.tagName.toLowerCase() + (e.id ? "#" + e.id : "") + (e.name ? "[name=" + e.name + "]" : "") + " «" + (e.textContent || "").trim().slice(0, 40) + "»";
  const all = (selector) => [...document.querySelectorAll(selector)];

  // the page itself
  if (document.documentElement.lang !== "en") wrong.push("the page does not say its language");
  if (!document.title.includes("·")) wrong.push("the page has no title");
  if (all("main").length !== 1) wrong.push("the page has " + all("main").length + " main parts");
  if (all("h1").length !== 1) wrong.push("the page has " + all("h1").length + " headings of the first level");
  let level = 0;
  for (const h of all("h1, h2, h3, h4, h5, h6")) {
    const n = Number(h.tagName[1]);
    if (n > level + 1) wrong.push("a heading leaves a level out: " + name(h));
    level = n;
  }
  const ids = all("[id]").map((e) => e.id);
  for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) wrong.push("an id is there twice: " + id);
  for (const e of all("[aria-labelledby]")) if (!document.getElementById(e.getAttribute("aria-labelledby"))) wrong.push("what labels it is not there: " + name(e));
  for (const e of all("[style], [onclick], [onload]")) wrong.push("something is in line: " + name(e));
  for (const e of all("script:not([src]), style")) wrong.push("something is in line: " + name(e));
  for (const e of all("[src], link[href]")) if (new URL(e.src || e.href).origin !== location.origin) wrong.push("something comes from elsewhere: " + name(e));

  // names
  for (const e of all("input:not([type=hidden]), select, textarea")) {
    const text = [...(e.labels || [])].map((l) => l.textContent.trim()).join(" ") || e.getAttribute("aria-label");
    if (!text) wrong.push("a field has no label: " + name(e));
  }
  for (const e of all("button, a, summary")) if (!(e.getAttribute("aria-label") || e.textContent).trim()) wrong.push("it has no name: " + name(e));
  for (const e of all("img, svg, progress")) if (e.getAttribute("aria-hidden") !== "true" && !e.getAttribute("aria-label") && !e.getAttribute("alt")) wrong.push("a picture has no name: " + name(e));
  for (const e of all("table")) {
    if (e.rows.length > 0 && !e.querySelector("th[scope=col]")) wrong.push("a table has no heads: " + name(e));
    for (const th of e.querySelectorAll("th:not([scope])")) wrong.push("a head does not say of what: " + name(th));
  }
  const does = {};
  for (const e of all("main button, main a")) {
    const said = (e.getAttribute("aria-label") || e.textContent).trim(), to = e.href || e.form && e.form.action + [...new FormData(e.form)].filter(([k]) => k !== "key" && k !== "form_token");
    if (e.tagName === "BUTTON" && does[said] && does[said] !== to) wrong.push("two buttons that do different things are called the same: " + said);
    does[said] = to;
  }

  // the order of the focus is that of the page, and where it is can be seen
  for (const e of all("[tabindex]")) if (e.tabIndex > 0) wrong.push("the focus leaves the order of the page: " + name(e));
  for (const e of all("a, button, input:not([type=hidden]), select, textarea, summary")) if (e.tabIndex < 0 && !e.disabled) wrong.push("the keyboard does not reach it: " + name(e));
  if (document.querySelector("a, button, input") !== document.querySelector(".skip")) wrong.push("the first thing is not the way past the menu");

  // contrast: of each piece of text that can be seen, with what lies below it
  const colour = (() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const known = new Map();
    return (text) => {
      if (!known.has(text)) {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = text;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
        known.set(text, [r, g, b, a / 255]);
      }
      return known.get(text);
    };
  })();
  const over = ([r, g, b, a], under) => [r, g, b].map((v, i) => v * a + under[i] * (1 - a));
  const ground = (e) => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) {
      const c = colour(getComputedStyle(at).backgroundColor);
      layers.push(c);
      if (c[3] === 1) break;
    }
    return layers.reverse().reduce((under, c) => over(c, under), colour("Canvas").slice(0, 3));
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const told = new Set();
  let least = 99;
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    const e = n.parentElement;
    if (!n.data.trim() || !seen(e) || e.closest("script, noscript, title, progress, option, .skip")) continue;
    const style = getComputedStyle(e), drawn = e.closest("svg");
    const got = contrast(over(colour(drawn ? style.fill : style.color), ground(e)), ground(e));
    least = Math.min(least, got);
    const key = e.tagName + e.className + style.color;
    if (got < 4.5 && !told.has(key)) { told.add(key); wrong.push("contrast " + got.toFixed(2) + ": " + name(e)); }
  }
  if (least === 99) wrong.push("nothing on the page can be read");

  // the width
  if (document.scrollingElement.scrollWidth > innerWidth) {
    const widest = all("body *").filter((e) => seen(e) && e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".picture")).slice(0, 3).map(name);
    wrong.push("the page is " + document.scrollingElement.scrollWidth + " wide in a window of " + innerWidth + ": " + widest.join(", "));
  }

  // no word and no number is broken: one that is too long for its place is in a place that is too narrow
  for (const cell of all("td, th, dd, dt, li, label, button, summary, .chip, .tile, .banner")) {
    if (!seen(cell)) continue;
    const words = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let n = words.nextNode(); n; n = words.nextNode()) {
      for (const m of n.data.matchAll(/(?<![\w.:/-])(?:[A-Za-z]{3,16}|\d{4,17})(?![\w.:/-])/g)) {
        const range = document.createRange();
        range.setStart(n, m.index);
        range.setEnd(n, m.index + m[0].length);
        if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) wrong.push("it is broken over two lines: " + m[0] + " in " + name(cell));
      }
    }
  }
  return wrong;
})()
