// The chats and the people, and the dialogs that change them.

import { $, button, el, post, root, say } from "./dom.js";
import { lastWords, showTab } from "./chat.js";
import { roleEvent } from "./events.js";
import { link } from "./link.js";
import { ACCOUNT, changed, chatBy, chatTitle, nameOf, person, roleOf, state } from "./store.js";

let edited = null;

export function drawLists() {
  $("play-chats").replaceChildren(...state.chats.map(chatItem));
  $("play-people").replaceChildren(...state.people.map(personItem));
}

function chatItem(chat) {
  const isCurrent = chat.key === state.current;
  if (isCurrent) chat.unread = 0;
  const unread = chat.unread ? el("span", { class: "badge badge-waiting" }, String(chat.unread)) : null;
  const label = el("span", { class: "play-name" }, chatTitle(chat));
  const open = el("button", { type: "button", class: "play-chat", "data-chat": chat.key, "aria-current": isCurrent ? "true" : null, onclick: () => openChat(chat.key) }, label, unread, el("span", { class: "quiet play-last" }, lastWords(chat) || (chat.kind === "group" ? say("groupChat", { count: chat.members.length + 1 }) : say("privateChat"))));
  const edit = button("⋯", () => editChat(chat), { "aria-label": say("edit", { name: chatTitle(chat) }) });
  return el("li", {}, open, edit);
}

function personItem(one) {
  const facts = [say(one.role), one.owner ? say("botOwner") : "", one.friend ? "" : say("stranger")].filter(Boolean).join(" · ");
  const edit = button("⋯", () => editPerson(one), { "aria-label": say("edit", { name: one.name }), "data-person": one.id });
  const said = el("span", { class: "play-person" }, el("span", { class: "play-name" }, one.name), el("span", { class: "quiet play-last" }, `${one.id} · ${facts}`));
  return el("li", {}, said, edit);
}

export function openChat(key) {
  state.current = key;
  chatBy(key).unread = 0;
  showTab("chat");
  changed();
}

// --- Dialogs ---

function editChat(chat) {
  edited = chat;
  $("play-chat-kind").value = chat?.kind ?? "group";
  $("play-chat-kind").disabled = Boolean(chat);
  $("play-chat-id").value = chat?.peer ?? freeId(state.chats.map((one) => one.peer), 2001);
  $("play-chat-id").disabled = Boolean(chat);
  $("play-chat-name").value = chat?.title ?? "";
  $("play-chat-role").value = roleOf(ACCOUNT, chat ?? {});
  $("play-chat-person").replaceChildren(...state.people.map((one) => el("option", { value: one.id }, one.name)));
  $("play-chat-form").querySelector('[value="delete"]').hidden = !chat || state.chats.length < 2;
  showChatFields();
  show("play-chat-dialog");
}

function showChatFields() {
  const isGroup = $("play-chat-kind").value === "group";
  $("play-chat-id-label").hidden = $("play-chat-name-label").hidden = $("play-chat-role-label").hidden = !isGroup;
  $("play-chat-id").required = isGroup;
  $("play-chat-person-label").hidden = isGroup || Boolean(edited);
}

function saveChat() {
  const kind = $("play-chat-kind").value;
  if (edited) {
    edited.title = $("play-chat-name").value.trim();
    const role = $("play-chat-role").value;
    const isNew = edited.kind === "group" && role !== roleOf(ACCOUNT, edited);
    edited.botRole = role;
    if (isNew) link.send(roleEvent(edited, ACCOUNT));
    return "";
  }
  const peer = kind === "group" ? $("play-chat-id").value : $("play-chat-person").value;
  const key = `${kind}:${peer}`;
  if (chatBy(key)) return say("taken");
  const title = kind === "group" ? $("play-chat-name").value.trim() || peer : "";
  state.chats.push({ key, kind, peer, title, botRole: $("play-chat-role").value, members: kind === "group" ? state.people.map((one) => one.id) : [] });
  openChat(key);
  return "";
}

function deleteChat() {
  state.chats = state.chats.filter((one) => one !== edited);
  delete state.messages[edited.key];
  if (!chatBy(state.current)) state.current = state.chats[0].key;
}

function editPerson(one) {
  edited = one;
  $("play-person-id").value = one?.id ?? freeId(state.people.map((other) => other.id), 1001);
  $("play-person-id").disabled = Boolean(one);
  $("play-person-name").value = one?.name ?? "";
  $("play-person-role").value = one?.role ?? "member";
  $("play-person-friend").checked = one?.friend ?? true;
  $("play-person-owner").checked = one?.owner ?? false;
  $("play-person-form").querySelector('[value="delete"]').hidden = !one || state.people.length < 2;
  show("play-person-dialog");
}

function savePerson() {
  const id = $("play-person-id").value;
  if (!edited && (person(id) || id === root.dataset.account)) return say("taken");
  const values = {
    name: $("play-person-name").value.trim() || id,
    role: $("play-person-role").value,
    friend: $("play-person-friend").checked,
    owner: $("play-person-owner").checked,
  };
  if (edited) {
    const role = edited.role;
    Object.assign(edited, values);
    const groups = state.chats.filter((chat) => chat.members.includes(id));
    if (role !== values.role) for (const chat of groups) link.send(roleEvent(chat, id));
  } else {
    state.people.push({ id, ...values });
    state.chats.push({ key: `private:${id}`, kind: "private", peer: id, title: "", members: [] });
  }
  sendOwners();
  return "";
}

function deletePerson() {
  state.people = state.people.filter((one) => one !== edited);
  const key = `private:${edited.id}`;
  if (state.chats.length > 1) state.chats = state.chats.filter((one) => one.key !== key);
  for (const chat of state.chats) chat.members = chat.members.filter((id) => id !== edited.id);
  if (!chatBy(state.current)) state.current = state.chats[0].key;
  sendOwners();
}

/** Tell the server who owns the bot of this playground. */
export function sendOwners() {
  const owners = state.people.filter((one) => one.owner).map((one) => one.id);
  post(root.dataset.ownersUrl, { owners: owners.join(",") }).catch(() => {
    $("play-hint").textContent = say("notSent");
  });
}

const freeId = (taken, first) => {
  while (taken.includes(String(first))) first++;
  return String(first);
};

function show(id) {
  $(id).querySelector(".play-error").textContent = "";
  $(id).showModal();
}

function onSubmit(id, save, remove) {
  $(id).addEventListener("submit", (event) => {
    const wish = event.submitter?.value ?? "save";
    if (wish === "save") {
      const problem = save();
      if (problem) {
        event.preventDefault();
        event.target.querySelector(".play-error").textContent = problem;
        return;
      }
    }
    if (wish === "delete" && edited) remove();
    changed();
  });
}

export function startLists() {
  $("play-add-chat").addEventListener("click", () => editChat(null));
  $("play-add-person").addEventListener("click", () => editPerson(null));
  $("play-chat-kind").addEventListener("change", showChatFields);
  onSubmit("play-chat-form", saveChat, deleteChat);
  onSubmit("play-person-form", savePerson, deletePerson);
}
