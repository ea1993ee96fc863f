// People, chats and messages of the playground. They live in the tab: a reload loses nothing, closing it does.

import { root, say } from "./dom.js";

export const ACCOUNT = root.dataset.account;
const KEY = `frost-playground:${ACCOUNT}`;
//: Messages of one chat that are kept, and characters of a value that survive a reload.
const MOST_MESSAGES = 400;
const LONGEST_KEPT = 300_000;
export const GONE = "gone://";

function firstState() {
  const people = [
    { id: "1001", name: say("me"), role: "owner", friend: true, owner: true },
    { id: "1002", name: say("ming"), role: "member", friend: true, owner: false },
    { id: "1003", name: say("hong"), role: "admin", friend: false, owner: false },
  ];
  const chats = [
    { key: "private:1001", kind: "private", peer: "1001", title: "", members: [] },
    { key: "group:2001", kind: "group", peer: "2001", title: say("group"), members: ["1001", "1002", "1003"] },
  ];
  return { people, chats, messages: {}, forwards: {}, current: "private:1001", speakers: {}, format: "array", lastId: 0 };
}

export const state = restore() ?? firstState();
let saving = 0;

export const person = (id) => state.people.find((one) => one.id === String(id));
export const chatBy = (key) => state.chats.find((one) => one.key === key);
export const currentChat = () => chatBy(state.current) ?? state.chats[0];
export const messagesOf = (key) => (state.messages[key] ??= []);
/** What somebody may do in a group: a person, or the bot. */
export const roleOf = (id, chat) => (String(id) === ACCOUNT ? (chat.botRole ?? "admin") : (person(id)?.role ?? "member"));
export const chatOf = (message) => state.chats.find((chat) => messagesOf(chat.key).includes(message));
export const findMessage = (id) => Object.values(state.messages).flat().find((one) => one.id === String(id));

/** The name that somebody has in the chats: a person's, or the bot's. */
export function nameOf(id) {
  if (String(id) === ACCOUNT) return root.dataset.botName;
  return person(id)?.name ?? String(id);
}

export function chatTitle(chat) {
  return chat.kind === "private" ? nameOf(chat.peer) : chat.title || chat.peer;
}

/** A message id that no other message of this account has had. Whole numbers, exact in JSON. */
export function newId() {
  state.lastId = Math.max(state.lastId + 1, Date.now());
  return String(state.lastId);
}

/** Put a message into its chat; it is shown and saved. */
export function addMessage(key, message) {
  const list = messagesOf(key);
  list.push({ time: Date.now(), reactions: [], ...message });
  if (list.length > MOST_MESSAGES) list.splice(0, list.length - MOST_MESSAGES);
  const chat = chatBy(key);
  if (chat && key !== state.current && !message.notice) chat.unread = (chat.unread ?? 0) + 1;
  changed();
  return list.at(-1);
}

/** Say that something has changed: it is drawn and kept soon. */
export function changed() {
  document.dispatchEvent(new CustomEvent("play:changed"));
  clearTimeout(saving);
  saving = setTimeout(save, 300);
}

export function forgetAll() {
  clearTimeout(saving);
  sessionStorage.removeItem(KEY);
  const { people, chats } = state;
  for (const chat of chats) Object.assign(chat, { unread: 0, mutedUntil: 0, mutedAll: false, mutes: {}, cards: {}, titles: {} });
  Object.assign(state, { people, chats, messages: {}, forwards: {}, requests: {} });
  changed();
}

/** Keep all but large media; without room, the newest messages alone. */
function save() {
  const kept = (name, value) =>
    typeof value === "string" && value.length > LONGEST_KEPT ? GONE : value;
  try {
    sessionStorage.setItem(KEY, JSON.stringify(state, kept));
  } catch {
    const short = { ...state, forwards: {}, messages: {} };
    for (const [key, list] of Object.entries(state.messages)) short.messages[key] = list.slice(-20);
    const small = (name, value) => (typeof value === "string" && value.length > 2000 ? GONE : value);
    try {
      sessionStorage.setItem(KEY, JSON.stringify(short, small));
    } catch {
      sessionStorage.removeItem(KEY);
    }
  }
}

function restore() {
  try {
    const found = JSON.parse(sessionStorage.getItem(KEY));
    return found?.people && found.chats?.length ? found : null;
  } catch {
    return null;
  }
}
window.addEventListener("pagehide", save);
