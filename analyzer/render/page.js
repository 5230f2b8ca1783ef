/* SPDX-License-Identifier: Apache-2.0 */
/* Comfort for a page that is complete without it. Nothing is made of texts: they are read, shown and hidden. */
"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const byId = id => document.getElementById(id);

  const themes = ["auto", "light", "dark"];
  const theme = byId("theme");
  const kept = { get: () => { try { return localStorage.getItem("kshim-theme"); } catch { return null; } },
    set: value => { try { localStorage.setItem("kshim-theme", value); } catch { /* a page without a place to keep it */ } } };
  const show = name => {
    if (name === "auto") delete root.dataset.theme; else root.dataset.theme = name;
    theme.textContent = `Theme: ${name}`;
  };
  let now = themes.includes(kept.get()) ? kept.get() : "auto";
  theme.addEventListener("click", () => {
    now = themes[(themes.indexOf(now) + 1) % themes.length];
    kept.set(now);
    show(now);
  });
  show(now);

  for (const commands of all(".commands")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      const code = commands.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    commands.prepend(button);
  }

  const filter = byId("filter");
  const said = byId("said");
  const things = (selector, parent) => all(selector, parent).map(element => ({ element, text: null }));
  const findings = things(".finding");
  const rows = all(".list > tbody > tr").filter(row => !row.closest(".finding")).map(element => ({ element, text: null }));
  const folded = all("details").filter(details => details.querySelector(".list") && !details.closest(".finding"));
  let wasOpen = null;
  const sift = (list, words) => {
    let count = 0;
    for (const thing of list) {
      thing.text ??= thing.element.textContent.toLowerCase();
      const fits = words.every(word => thing.text.includes(word));
      thing.element.hidden = !fits;
      count += fits;
    }
    return count;
  };
  const number = value => value.toLocaleString("en");
  const apply = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(word => word);
    const found = sift(findings, words);
    const lines = sift(rows, words);
    if (words.length && !wasOpen) wasOpen = folded.map(details => details.open);
    folded.forEach((details, at) => {
      if (words.length) details.open = details.querySelector(".list > tbody > tr:not([hidden])") !== null;
      else if (wasOpen) details.open = wasOpen[at];
    });
    if (!words.length) wasOpen = null;
    const parts = [];
    if (findings.length) parts.push(`${number(found)} of ${number(findings.length)} findings`);
    if (rows.length) parts.push(`${number(lines)} of ${number(rows.length)} table rows`);
    said.textContent = words.length ? parts.join(", ") : "";
  };
  let later = 0;
  filter.addEventListener("input", () => {
    clearTimeout(later);
    later = setTimeout(apply, rows.length > 2000 ? 150 : 0);
  });
  if (filter.value) apply();

  const unfold = () => {
    const target = location.hash ? byId(location.hash.slice(1)) : null;
    if (!target) return;
    const card = target.closest(".finding")?.querySelector("details");
    if (card) card.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();
  let printed = [];
  addEventListener("beforeprint", () => {
    printed = all("details:not([open])");
    for (const details of printed) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of printed) details.open = false;
  });
  byId("tools").hidden = false;
  root.dataset.ready = "yes";
})();
