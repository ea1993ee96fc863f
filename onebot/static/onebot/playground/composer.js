// Writing a message: words with mentions and faces in them, a quote before, media behind.

import { $, button, el, say } from "./dom.js";
import { chosenNodes, emit, endSelection, showTab } from "./chat.js";
import { joinEvent, leaveEvent, messageEvent, muteEvent, pokeEvent, requestEvent } from "./events.js";
import { faceByName, FACES } from "./faces.js";
import { mutedUntil } from "./groups.js";
import { link } from "./link.js";
import { filesIn, segmentOf, toggleRecording } from "./media.js";
import { markPatterns, startMentions } from "./mentions.js";
import { plainWords } from "./segments.js";
import { ACCOUNT, addMessage, changed, chatBy, currentChat, findMessage, nameOf, newId, person, state } from "./store.js";

const draft = { quote: "", attached: [], mentions: new Map() };

export function drawComposer() {
  const chat = currentChat();
  const speaker = $("play-speaker");
  const people = chat.kind === "private" ? [chat.peer] : chat.members;
  const wanted = people.includes(state.speakers[chat.key]) ? state.speakers[chat.key] : people[0];
  speaker.replaceChildren(...people.map((id) => el("option", { value: id }, nameOf(id))));
  speaker.value = wanted ?? "";
  speaker.disabled = people.length < 2;
  const isGroup = chat.kind === "group";
  $("play-mention").hidden = !isGroup;
  $("play-join").hidden = !isGroup && person(chat.peer)?.friend;
  $("play-mention-list").replaceChildren(...mentionable().map((id) => el("li", {}, button(nameIn(id), () => mention(id), { "data-mention": id }))));
  const outside = state.people.filter((one) => isGroup && !chat.members.includes(one.id));
  const joinable = outside.map((one) => el("li", {}, button(one.name, () => join(chat, one.id), { "data-join": one.id }), " ", button(say("asked", { name: one.name, words: say("askJoin") }), () => ask(chat, one.id), { "data-ask": one.id })));
  if (!isGroup) joinable.push(el("li", {}, button(say("askFriend"), () => ask(chat, chat.peer), { "data-ask": chat.peer })));
  if (isGroup && chat.members.length > 1) joinable.push(...chat.members.map((id) => el("li", {}, button(say("leave", { name: nameOf(id) }), () => leave(chat, id), { "data-leave": id }))));
  $("play-join-list").replaceChildren(...(joinable.length ? joinable : [el("li", { class: "quiet" }, "–")]));
  const quoted = findMessage(draft.quote);
  $("play-quoted").hidden = !quoted;
  if (quoted) $("play-quoted-text").textContent = `${nameOf(quoted.from)}: ${plainWords(quoted.segments).slice(0, 80)}`;
  $("play-format").value = state.format;
}

/** Those of the open chat who can be mentioned. */
function mentionable() {
  const chat = currentChat();
  return chat.kind === "group" ? [ACCOUNT, ...chat.members, "all"] : [];
}

const nameIn = (id) => (id === "all" ? say("everyone") : nameOf(id));

function mention(id) {
  const mark = `@${nameIn(id)}`;
  draft.mentions.set(mark, id);
  insert(`${mark} `);
}

function insert(text) {
  const box = $("play-text");
  box.setRangeText(text, box.selectionStart, box.selectionEnd, "end");
  closeMenus();
  box.focus();
}

export function closeMenus(except) {
  for (const menu of document.querySelectorAll("#playground .play-menu[open]")) if (menu !== except) menu.open = false;
}

/** The words of the draft as segments: mentions, picked or typed, and names of faces become their own. */
function parseText(text) {
  const mentions = new Map([...mentionable().reverse().map((id) => [`@${nameIn(id)}`, id]), ...draft.mentions]);
  const marks = markPatterns(mentions.keys(), draft.mentions);
  const pattern = new RegExp(`(${[...marks, "\\[[^\\[\\]\\s]{1,8}\\]"].join("|")})`);
  return text.split(pattern).filter(Boolean).map((piece) => {
    if (mentions.has(piece)) return { type: "at", data: { qq: mentions.get(piece) } };
    const face = piece.startsWith("[") && faceByName(piece.slice(1, -1));
    return face ? { type: "face", data: { id: face.id } } : { type: "text", data: { text: piece } };
  });
}

/** Say something in a chat as a person; false where there is no connection. */
function speak(chat, from, segments) {
  const message = { id: newId(), from, segments };
  if (mutedUntil(chat, from)) {
    hint(say("personMuted", { name: nameOf(from) }));
    return false;
  }
  if (!link.send(messageEvent(chat, message))) {
    hint(say("notSent"));
    return false;
  }
  emit("play:said");
  addMessage(chat.key, message);
  emit("play:run", message.id);
  return true;
}

function send() {
  const text = $("play-text").value;
  const quote = draft.quote ? [{ type: "reply", data: { id: draft.quote } }] : [];
  const segments = [...quote, ...(text.trim() ? parseText(text) : []), ...draft.attached];
  if (segments.length === quote.length) return;
  if (!speak(currentChat(), $("play-speaker").value, segments)) return;
  $("play-text").value = "";
  Object.assign(draft, { quote: "", attached: [], mentions: new Map() });
  hint("");
  drawAttached();
  drawComposer();
}

function forward() {
  const target = chatBy($("play-forward-target").value);
  const nodes = chosenNodes();
  if (!target || !nodes.length) return;
  const id = `forward-${newId()}`;
  state.forwards[id] = nodes;
  const from = target.kind === "private" ? target.peer : (state.speakers[target.key] ?? target.members[0]);
  if (!speak(target, from, [{ type: "forward", data: { id } }])) return;
  state.current = target.key;
  endSelection();
}

function poke() {
  const chat = currentChat();
  const from = $("play-speaker").value;
  if (!link.send(pokeEvent(chat, from))) return hint(say("notSent"));
  addMessage(chat.key, { id: newId(), notice: say("poked", { name: nameOf(from), target: nameOf(ACCOUNT) }) });
}

function join(chat, id) {
  closeMenus();
  if (!link.send(joinEvent(chat, id))) return hint(say("notSent"));
  chat.members.push(id);
  addMessage(chat.key, { id: newId(), notice: say("joined", { name: nameOf(id) }) });
}

function leave(chat, id) {
  closeMenus();
  if (!link.send(leaveEvent(chat, id))) return hint(say("notSent"));
  chat.members = chat.members.filter((one) => one !== id);
  addMessage(chat.key, { id: newId(), notice: say("left", { name: nameOf(id) }) });
}

/** Somebody asks to join, or to be a friend, with the words of the draft; the bot's answer names the flag. */
function ask(chat, id) {
  closeMenus();
  const flag = newId();
  if (!link.send(requestEvent(chat, id, flag, $("play-text").value.trim()))) return hint(say("notSent"));
  (state.requests ??= {})[flag] = { key: chat.key, id };
  $("play-text").value = "";
  addMessage(chat.key, { id: newId(), notice: say("asked", { name: nameOf(id), words: chat.kind === "group" ? say("askJoin") : say("askFriend") }) });
}

function unmute() {
  const chat = currentChat();
  chat.mutedUntil = 0;
  link.send(muteEvent(chat, 0));
  addMessage(chat.key, { id: newId(), notice: say("unmuted") });
}

// --- Attached media ---

async function attach(file, type) {
  try {
    draft.attached.push(await segmentOf(file, type));
    hint("");
  } catch (error) {
    hint(error.message);
  }
  drawAttached();
}

function drawAttached() {
  $("play-attached").replaceChildren(...draft.attached.map((segment, index) => {
    const name = segment.data.name;
    const isPicture = segment.type === "image";
    const shown = isPicture ? el("img", { src: `data:image/*;base64,${segment.data.file.slice(9)}`, alt: name }) : el("span", {}, name);
    return el("li", {}, shown, button("×", () => drop(index), { "aria-label": say("remove", { name }) }));
  }));
}

function drop(index) {
  draft.attached.splice(index, 1);
  drawAttached();
}

const hint = (text) => ($("play-hint").textContent = text);

function takeFiles(input, type) {
  input.addEventListener("change", async () => {
    for (const file of input.files) await attach(file, type);
    input.value = "";
  });
}

function takePasted(event) {
  const found = filesIn(event.clipboardData ?? event.dataTransfer);
  if (!found.length) return;
  event.preventDefault();
  for (const { file, type } of found) attach(file, type);
}

function startOptions() {
  $("play-format").addEventListener("change", (event) => {
    state.format = event.target.value;
    changed();
  });
  const showFields = () => {
    const chosen = $("play-failure").value;
    $("play-seconds-label").hidden = chosen !== "slow";
    $("play-wording-label").hidden = chosen !== "error" && chosen !== "risk";
  };
  $("play-failure").addEventListener("change", showFields);
  showFields();
}

export function startComposer() {
  $("play-faces").replaceChildren(...FACES.map((face) => button(face.sign, () => insert(`[${face.name}]`), { class: "play-face-button", title: face.name, "aria-label": face.name, "data-face": face.id })));
  $("play-form").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  startMentions($("play-text"), () => mentionable().map((id) => ({ id, name: nameIn(id) })), mention);
  $("play-text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    }
  });
  $("play-text").addEventListener("paste", takePasted);
  $("play-chat").addEventListener("dragover", (event) => event.preventDefault());
  $("play-chat").addEventListener("drop", takePasted);
  takeFiles($("play-picture"), "image");
  takeFiles($("play-voice"), "record");
  takeFiles($("play-document"), "file");
  $("play-record").hidden = !(window.MediaRecorder && navigator.mediaDevices);
  $("play-record").addEventListener("click", () => toggleRecording((segment) => {
    draft.attached.push(segment);
    drawAttached();
  }, hint));
  $("play-speaker").addEventListener("change", (event) => {
    state.speakers[state.current] = event.target.value;
    changed();
  });
  $("play-poke").addEventListener("click", poke);
  $("play-unmute").addEventListener("click", unmute);
  $("play-forward").addEventListener("click", forward);
  $("play-forward-cancel").addEventListener("click", endSelection);
  $("play-unquote").addEventListener("click", () => quote(""));
  document.addEventListener("play:quote", ({ detail }) => quote(detail));
  startOptions();
}

function quote(id) {
  draft.quote = id;
  showTab("chat");
  drawComposer();
  $("play-text").focus();
}
