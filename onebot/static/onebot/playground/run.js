// What the bot did with one message, as the server has it on record.

import { $, root } from "./dom.js";
import { changed, state } from "./store.js";

const EVERY_MS = 1000;
//: Looks after everything is settled, and at a message that the record does not have.
const LAST_LOOKS = 4;
const MOST_EMPTY_LOOKS = 15;

let shown = null;
let timer = 0;

/** Follow the message with that id until nothing more is done for it. */
export function showRun(id) {
  const key = Object.keys(state.messages).find((chat) => state.messages[chat].some((one) => one.id === id));
  if (!key) return;
  shown = { id, key, seen: "", calm: 0, empty: 0 };
  state.shownRun = id;
  changed();
  clearTimeout(timer);
  look(shown);
}

export function forgetRun() {
  clearTimeout(timer);
  shown = null;
  state.shownRun = "";
  $("play-run").replaceChildren();
}

async function look(wanted) {
  const query = new URLSearchParams({ chat: wanted.key, message: wanted.id, seen: wanted.seen });
  try {
    const answer = await fetch(`${root.dataset.runUrl}?${query}`, { redirect: "manual" });
    if (shown !== wanted || answer.type === "opaqueredirect" || answer.status === 403) return;
    if (answer.status === 200) take(wanted, answer, await answer.text());
    else wanted.calm += wanted.isActive ? 0 : 1;
  } catch {
    wanted.calm = 0; // the server is away: it is asked again
  }
  if (shown !== wanted || wanted.calm >= LAST_LOOKS || wanted.empty >= MOST_EMPTY_LOOKS) return;
  timer = setTimeout(look, EVERY_MS, wanted);
}

function take(wanted, answer, text) {
  if (shown !== wanted) return;
  const digest = answer.headers.get("X-Playground-Seen");
  wanted.isActive = answer.headers.get("X-Playground-Active") === "1";
  wanted.empty += digest === "none" ? 1 : 0;
  wanted.calm = 0;
  if (digest !== "none") wanted.seen = digest;
  const pane = $("play-run");
  const folded = new Map([...pane.querySelectorAll("details[data-play-key]")].map((one) => [one.dataset.playKey, one.open]));
  const page = new DOMParser().parseFromString(text, "text/html");
  for (const one of page.querySelectorAll("details[data-play-key]")) one.open = folded.get(one.dataset.playKey) ?? one.open;
  pane.dataset.active = wanted.isActive ? "1" : "0";
  pane.replaceChildren(...page.body.childNodes);
}

export function startRun() {
  document.addEventListener("play:run", ({ detail }) => showRun(detail));
  if (state.shownRun) showRun(state.shownRun);
}
