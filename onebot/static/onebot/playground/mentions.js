// A typed @ opens the people of the group, and their names are mentions however they were written.

import { $, el, say } from "./dom.js";

//: Characters after an @ that may still be the beginning of a name.
const LONGEST = 30;

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** A pattern for each of `marks`, the longest first: anywhere for those in `picked`, else not inside
 *  a word or an address. */
export function markPatterns(marks, picked) {
  const sorted = [...marks].filter((mark) => mark !== "@").sort((one, other) => other.length - one.length);
  return sorted.map((mark) => (picked.has(mark) ? escaped(mark) : `(?<![\\w.@])${escaped(mark)}${/\w$/.test(mark) ? "(?!\\w)" : ""}`));
}

/** Follows what is typed in `box`. `list` says who can be mentioned, as `{ id, name }`; `pick` is
 *  told who was chosen, once the typed part of the name is selected. */
export function startMentions(box, list, pick) {
  const menu = $("play-at");
  const status = $("play-at-status");
  let found = [], chosen = 0, closedAt = -1;

  function typed() {
    const before = box.value.slice(0, box.selectionStart);
    const at = before.lastIndexOf("@");
    const word = before.slice(at + 1);
    const isBegin = at >= 0 && !/[\w.]/.test(before[at - 1] ?? " ");
    return isBegin && word.length <= LONGEST && !/\s/.test(word) ? { at, word: word.toLowerCase() } : null;
  }

  function close() {
    found = [];
    menu.hidden = true;
    menu.replaceChildren();
    status.textContent = "";
    box.removeAttribute("aria-activedescendant");
  }

  function draw() {
    menu.replaceChildren(...found.map((one, index) => el("li", {
      id: `play-at-${index}`, role: "option", "aria-selected": String(index === chosen), "data-at": one.id,
      onmousedown: (event) => { event.preventDefault(); take(index); },
    }, one.name, one.name === one.id || one.id === "all" ? null : el("span", { class: "quiet" }, ` ${one.id}`))));
    menu.hidden = false;
    box.setAttribute("aria-activedescendant", `play-at-${chosen}`);
    menu.children[chosen].scrollIntoView({ block: "nearest" });
  }

  function look() {
    const now = typed();
    if (!now) closedAt = -1;
    found = now && now.at !== closedAt ? list().filter((one) => one.name.toLowerCase().includes(now.word) || one.id.startsWith(now.word)) : [];
    if (!found.length) return close();
    chosen = 0;
    draw();
    status.textContent = say("peopleFound", { count: found.length });
  }

  function take(index) {
    const { id } = found[index];
    box.setSelectionRange(typed().at, box.selectionStart);
    close();
    pick(id);
  }

  function onKey(event) {
    if (menu.hidden || event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      chosen = (chosen + step + found.length) % found.length;
      draw();
    } else if (event.key === "Enter" || (event.key === "Tab" && !event.shiftKey)) {
      take(chosen);
    } else if (event.key === "Escape") {
      closedAt = typed()?.at ?? -1;
      close();
    } else {
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  box.addEventListener("keydown", onKey);
  box.addEventListener("input", look);
  box.addEventListener("click", look);
  box.addEventListener("blur", close);
}
