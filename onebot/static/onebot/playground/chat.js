// The chat in the middle: its messages, and what can be done with each.

import { $, button, el, root, say } from "./dom.js";
import { recallEvent } from "./events.js";
import { faceName, faceSign } from "./faces.js";
import { link } from "./link.js";
import { drawSegments, plainWords } from "./segments.js";
import { ACCOUNT, changed, chatTitle, currentChat, findMessage, messagesOf, nameOf, roleOf, state } from "./store.js";

export const selection = { chosen: new Set(), isOn: false };

const drawn = new Map();
let drawnKey = "";

/** Draw the chat; messages that are as they were are left alone. */
export function drawChat() {
  const chat = currentChat();
  const list = $("play-messages");
  const isOther = drawnKey !== chat.key;
  if (isOther) drawn.clear();
  drawnKey = chat.key;
  $("play-title").textContent = chatTitle(chat);
  $("play-chat-about").textContent = chat.kind === "group" ? say("groupChat", { count: chat.members.length + 1 }) : say("privateChat");
  $("play-typing").textContent = chat.typing > Date.now() ? say("typing") : "";
  $("play-banner").hidden = !(chat.mutedUntil > Date.now());
  $("play-banner-text").textContent = say("muted");
  const rows = messagesOf(chat.key).map((message) => row(chat, message));
  fill(list, rows.length ? rows : [el("div", { class: "play-notice" }, say("empty"))]);
  if (isOther) follows = true;
  toEnd();
  drawSelection();
}

/** Whether new messages are scrolled to: as long as the last one is in sight. */
let follows = true;

function toEnd() {
  const list = $("play-messages");
  if (follows) list.scrollTop = list.scrollHeight;
}

export function startChat() {
  const list = $("play-messages");
  list.addEventListener("scroll", () => (follows = list.scrollHeight - list.scrollTop - list.clientHeight < 60));
  list.addEventListener("load", toEnd, true); // a picture has got its size
  document.addEventListener("play:said", () => (follows = true));
}

function fill(list, rows) {
  const wanted = new Set(rows);
  for (const old of [...list.children]) if (!wanted.has(old)) old.remove();
  rows.forEach((made, index) => {
    if (list.children[index] !== made) list.insertBefore(made, list.children[index] ?? null);
  });
}

function row(chat, message) {
  const sign = JSON.stringify([message.recalled, message.essence, message.reactions, selection.isOn, selection.chosen.has(message.id), message.from && nameOf(message.from), roleOf(message.from, chat), state.shownRun === message.id]);
  const known = drawn.get(message.id);
  if (known?.sign === sign) return known.made;
  const made = message.notice ? el("div", { class: "play-notice" }, message.notice) : drawMessage(chat, message);
  made.id = `play-message-${message.id}`;
  drawn.set(message.id, { sign, made });
  return made;
}

function drawMessage(chat, message) {
  const isBot = message.from === ACCOUNT;
  const name = nameOf(message.from);
  const rank = roleOf(message.from, chat);
  const role = chat.kind === "group" && rank !== "member" ? el("span", { class: "badge" }, say(rank)) : null;
  const bot = isBot ? el("span", { class: "badge" }, say("bot")) : null;
  const time = new Date(message.time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const essence = message.essence ? el("span", { class: "badge" }, say("essence")) : null;
  const head = el("header", {}, el("strong", {}, name), bot, role, essence, el("time", {}, time));
  const properties = { class: `play-message ${isBot ? "play-by-bot" : "play-by-person"}`, "data-from": message.from, "data-message": message.id };
  if (message.recalled) return el("div", { ...properties, class: "play-notice play-recalled" }, say("recalled", { name: nameOf(message.recalledBy ?? message.from) }));
  const isShort = !message.segments.some((one) => one.type !== "face") && message.segments.length <= 3;
  const body = el("div", { class: `play-body${isShort ? " play-big" : ""}` }, drawSegments(message.segments, jumpTo));
  const reactions = message.reactions.map((code) => el("span", { class: "play-reaction", title: `${say("reaction")}: ${faceName(code)}` }, faceSign(code)));
  const marked = state.shownRun === message.id ? " play-shown" : "";
  return el("article", { ...properties, class: properties.class + marked }, head, body, reactions.length ? el("p", { class: "play-reactions" }, reactions) : null, acts(chat, message, isBot));
}

function acts(chat, message, isBot) {
  if (selection.isOn) {
    const box = el("input", { type: "checkbox", checked: selection.chosen.has(message.id), "aria-label": say("select") });
    box.addEventListener("change", () => choose(message.id, box.checked));
    return el("label", { class: "play-acts play-chosen" }, box, say("select"));
  }
  return el(
    "p",
    { class: "play-acts" },
    button(say("quote"), () => emit("play:quote", message.id), { "data-act": "quote" }),
    isBot ? null : button(say("recall"), () => recall(chat, message), { "data-act": "recall" }),
    button(say("select"), () => choose(message.id, true), { "data-act": "select" }),
    button(say("showRun"), () => emit("play:run", message.id), { "data-act": "run" }),
  );
}

export const emit = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail }));

function recall(chat, message) {
  if (!link.send(recallEvent(chat, message))) return;
  message.recalled = true;
  changed();
}

export function jumpTo(id) {
  const found = $(`play-message-${id}`);
  found?.scrollIntoView({ block: "center" });
  found?.classList.add("play-jumped");
  setTimeout(() => found?.classList.remove("play-jumped"), 1500);
}

// --- Choosing messages to forward ---

function choose(id, isChosen) {
  selection.isOn = true;
  if (isChosen) selection.chosen.add(id);
  else selection.chosen.delete(id);
  changed();
}

export function endSelection() {
  selection.isOn = false;
  selection.chosen.clear();
  changed();
}

/** The chosen messages as the nodes of a forward, oldest first. */
export const chosenNodes = () =>
  [...selection.chosen]
    .map(findMessage)
    .filter((one) => one?.segments && !one.recalled)
    .sort((one, other) => one.time - other.time)
    .map((one) => ({ id: one.id, from: one.from, name: nameOf(one.from), segments: one.segments, time: one.time }));

function drawSelection() {
  $("play-select-bar").hidden = !selection.isOn;
  $("play-chosen").textContent = say("chosen", { count: selection.chosen.size });
  const target = $("play-forward-target");
  const value = target.value || state.current;
  target.replaceChildren(...state.chats.map((chat) => el("option", { value: chat.key }, chatTitle(chat))));
  target.value = state.chats.some((chat) => chat.key === value) ? value : state.current;
}

/** The last words of a chat, for the list. */
export function lastWords(chat) {
  const last = messagesOf(chat.key).filter((one) => one.segments).at(-1);
  return last ? `${nameOf(last.from)}: ${last.recalled ? "…" : plainWords(last.segments)}`.slice(0, 60) : "";
}

/** Which part is shown where there is room for one alone. */
export function showTab(name) {
  root.dataset.tab = name;
  for (const tab of document.querySelectorAll("#play-tabs [role=tab]")) {
    const isShown = tab.dataset.tab === name;
    tab.setAttribute("aria-selected", String(isShown));
    tab.tabIndex = isShown ? 0 : -1;
  }
}
