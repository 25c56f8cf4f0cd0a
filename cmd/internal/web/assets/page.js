// Keeps what is marked data-live up to date: when the node says that something has changed, the page is asked for again and
// what differs is put in its place. Nothing here is needed: without it the page loads itself again.
"use strict";
(() => {
  const every = 15000; // look anyway: ages grow, and a stream may be cut without anybody noticing
  const pulse = document.getElementById("pulse"), main = document.getElementById("main");
  const self = main.dataset.self || location.href; // a form that did not work is at another address than its page
  let busy = false, again = false, timer = 0;

  // morph makes old like fresh and touches only what differs, so that focus, selection and open details stay.
  function morph(old, fresh) {
    if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || (old.id || "") !== (fresh.id || "")) {
      old.replaceWith(document.importNode(fresh, true));
      return;
    }
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    for (const a of [...old.attributes]) if (!fresh.hasAttribute(a.name) && a.name !== "open") old.removeAttribute(a.name);
    for (const a of [...fresh.attributes]) if (old.getAttribute(a.name) !== a.value) old.setAttribute(a.name, a.value);
    const was = [...old.childNodes], is = [...fresh.childNodes];
    is.forEach((node, i) => i < was.length ? morph(was[i], node) : old.append(document.importNode(node, true)));
    was.slice(is.length).forEach((node) => node.remove());
  }

  function say(on, text) {
    if (!pulse) return;
    pulse.hidden = false;
    pulse.className = on ? "on" : "";
    if (pulse.textContent !== text) pulse.textContent = text;
  }

  // ended shows the log-in, unless something is typed that would be lost.
  function ended() {
    changes.close();
    const differs = (e) => e.type === "checkbox" ? e.checked !== e.defaultChecked
      : e.tagName === "SELECT" ? e.selectedIndex !== Math.max(0, [...e.options].findIndex((o) => o.defaultSelected)) : e.value !== e.defaultValue;
    const typed = [...main.querySelectorAll("input:not([type=hidden]), select, textarea")].some(differs);
    if (typed) say(false, "your session has ended");
    else location.assign(self);
  }

  async function look() {
    if (busy) { again = true; return; }
    if (document.hidden) return;
    busy = true;
    clearTimeout(timer);
    try {
      const answer = await fetch(self, { headers: { "Fencepost-Looking-On": "1" }, redirect: "manual", cache: "no-store" });
      if (answer.type === "opaqueredirect" || answer.status === 401) { ended(); return; }
      if (answer.ok) {
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const old of document.querySelectorAll("[data-live]")) {
          const next = fresh.getElementById(old.id);
          if (next) morph(old, next);
        }
        say(true, "live");
      } else {
        say(false, "not up to date: the node answers " + answer.status);
      }
    } catch {
      say(false, "not up to date: the node does not answer");
    }
    busy = false;
    timer = setTimeout(look, again ? 300 : every);
    again = false;
  }

  if (!document.querySelector("[data-live]")) return;
  timer = setTimeout(look, every);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
  const changes = new EventSource("/api/v1/changes");
  let met = new Set(); // the first event of each resource only says how it is
  changes.onopen = () => { met = new Set(); say(true, "live"); };
  changes.onerror = () => say(false, "connecting");
  for (const name of main.dataset.watch.split(" ")) {
    changes.addEventListener(name, () => met.has(name) ? look() : met.add(name));
  }
  window.addEventListener("pagehide", () => changes.close());
})();
