// What the server does in groups, and asks of them: carried out as far as QQ would let the bot, by its role.

import { say } from "./dom.js";
import { friendEvent, groupNotice, joinEvent, pokeEvent, recallEvent, senderOf } from "./events.js";
import { ACCOUNT, addMessage, changed, chatBy, chatOf, findMessage, messagesOf, nameOf, newId, person, roleOf, state } from "./store.js";

export const REFUSED = 1200;
const RANKS = { member: 0, admin: 1, owner: 2 };
const FOREVER = 8640000000000000;

export class Refusal extends Error {
  constructor(retcode, wording) {
    super(wording);
    this.retcode = retcode;
  }
}

const refuse = (wording) => {
  throw new Refusal(REFUSED, wording);
};

export const chatError = (key) => (key.startsWith("group") ? "群不存在或你不在该群" : "对方不是你的好友");

/** A line of the chat that is no message. */
export const tell = (chat, name, values = {}) => addMessage(chat.key, { id: newId(), notice: say(name, { bot: nameOf(ACCOUNT), ...values }) });

const groupOf = ({ group_id: id }) => chatBy(`group:${id}`) ?? refuse(chatError("group"));

function memberOf(chat, id) {
  return [ACCOUNT, ...chat.members].includes(String(id)) ? String(id) : refuse("群成员不存在");
}

/** Refuse what the bot may not do: it needs the role `least`, and a higher one than `id` has. */
function demand(chat, least, id) {
  const own = RANKS[roleOf(ACCOUNT, chat)];
  if (own < RANKS[least] || (id && id !== ACCOUNT && own <= RANKS[roleOf(id, chat)])) refuse("权限不足");
}

function messageOf(params) {
  const found = findMessage(params.message_id);
  return found?.segments && !found.recalled ? found : refuse("消息不存在");
}

function ban(params, link) {
  const chat = groupOf(params);
  const id = memberOf(chat, params.user_id);
  const seconds = Number(params.duration ?? 1800);
  demand(chat, "admin", id);
  (chat.mutes ??= {})[id] = Date.now() + seconds * 1000;
  link.send(groupNotice(chat, "group_ban", { sub_type: seconds ? "ban" : "lift_ban", operator_id: ACCOUNT, user_id: id, duration: seconds }));
  tell(chat, seconds ? "didMute" : "didUnmute", { name: nameOf(id), minutes: Math.ceil(seconds / 60) });
}

function banAll(params, link) {
  const chat = groupOf(params);
  const isOn = params.enable !== false;
  demand(chat, "admin");
  chat.mutedAll = isOn;
  link.send(groupNotice(chat, "group_ban", { sub_type: isOn ? "ban" : "lift_ban", operator_id: ACCOUNT, user_id: "0", duration: isOn ? -1 : 0 }));
  tell(chat, isOn ? "didMuteAll" : "didUnmuteAll");
}

/** Until when somebody may say nothing in a group, as a time; 0 where he may. */
export function mutedUntil(chat, id) {
  const end = chat.mutedAll && roleOf(id, chat) === "member" ? FOREVER : (chat.mutes?.[id] ?? 0);
  return end > Date.now() ? end : 0;
}

function kick(params, link) {
  const chat = groupOf(params);
  const id = memberOf(chat, params.user_id);
  demand(chat, "admin", id);
  if (id === ACCOUNT) refuse("不能踢出自己");
  chat.members = chat.members.filter((one) => one !== id);
  link.send(groupNotice(chat, "group_decrease", { sub_type: "kick", operator_id: ACCOUNT, user_id: id }));
  tell(chat, "didKick", { name: nameOf(id) });
}

function setCard(params, link) {
  const chat = groupOf(params);
  const id = memberOf(chat, params.user_id);
  const card = String(params.card ?? "");
  if (id !== ACCOUNT) demand(chat, "admin", id);
  const old = chat.cards?.[id] ?? "";
  (chat.cards ??= {})[id] = card;
  link.send(groupNotice(chat, "group_card", { user_id: id, card_new: card, card_old: old }));
  tell(chat, "didCard", { name: nameOf(id), words: card || "–" });
}

function setTitle(params, link) {
  const chat = groupOf(params);
  const id = memberOf(chat, params.user_id);
  const title = String(params.special_title ?? "");
  demand(chat, "owner");
  (chat.titles ??= {})[id] = title;
  link.send(groupNotice(chat, "notify", { sub_type: "title", user_id: id, title }));
  tell(chat, "didTitle", { name: nameOf(id), words: title || "–" });
}

const setEssence = (isOn) => (params, link) => {
  const message = messageOf(params);
  const chat = chatOf(message);
  if (chat.kind !== "group") refuse("不是群消息");
  demand(chat, "admin");
  message.essence = isOn;
  link.send(groupNotice(chat, "essence", { sub_type: isOn ? "add" : "delete", sender_id: message.from, operator_id: ACCOUNT, message_id: message.id }));
  tell(chat, isOn ? "didEssence" : "didNoEssence", { name: nameOf(message.from) });
};

function announce(params) {
  const chat = groupOf(params);
  demand(chat, "admin");
  tell(chat, "didAnnounce", { words: String(params.content ?? "") });
}

function poke(params, link) {
  const chat = params.group_id ? groupOf(params) : (chatBy(`private:${params.user_id}`) ?? refuse(chatError("private")));
  const id = chat.kind === "group" ? memberOf(chat, params.user_id) : chat.peer;
  link.send(pokeEvent(chat, ACCOUNT, id));
  tell(chat, "poked", { name: nameOf(ACCOUNT), target: nameOf(id) });
}

function like(params) {
  if (!state.people.some((one) => one.id === String(params.user_id))) refuse("用户不存在");
  tell(chatBy(state.current), "didLike", { name: nameOf(params.user_id), count: Number(params.times ?? 1) });
}

function recall(params, link) {
  const message = messageOf(params);
  const chat = chatOf(message);
  if (message.from !== ACCOUNT) chat.kind === "group" ? demand(chat, "admin", message.from) : refuse("权限不足");
  Object.assign(message, { recalled: true, recalledBy: ACCOUNT });
  link.send(recallEvent(chat, message, ACCOUNT));
  changed();
}

/** The files of a group: what its messages hold, and nobody deleted. */
const filesOf = (chat) =>
  messagesOf(chat.key)
    .filter((one) => one.segments && !one.recalled)
    .flatMap((one) => one.segments.filter(({ type, data }) => type === "file" && data.file_id && !data.deleted).map(({ data }) => ({ data, by: one.from, at: Math.floor(one.time / 1000) })));

function rootFiles(params) {
  const files = filesOf(groupOf(params)).map(({ data, by, at }) => ({
    group_id: Number(params.group_id), file_id: data.file_id, file_name: data.name, busid: 102, file_size: Number(data.file_size ?? 0),
    upload_time: at, modify_time: at, dead_time: 0, download_times: 0, uploader: Number(by), uploader_name: nameOf(by),
  }));
  return { files, folders: [] };
}

function deleteFile(params) {
  const chat = groupOf(params);
  const found = filesOf(chat).find(({ data }) => data.file_id === String(params.file_id)) ?? refuse("文件不存在");
  if (found.by !== ACCOUNT) demand(chat, "admin");
  found.data.deleted = true;
  tell(chat, "didDeleteFile", { name: found.data.name });
}

/** Answer what somebody of the playground asked for, once. */
function decide(params, link) {
  const { key, id } = state.requests?.[params.flag] ?? refuse("请求不存在或已被处理");
  const chat = chatBy(key) ?? refuse(chatError(key));
  delete state.requests[params.flag];
  const isRefused = params.approve === false;
  tell(chat, isRefused ? "didRefuse" : "didApprove", { name: nameOf(id), words: String(params.reason || params.remark || "–") });
  if (isRefused) return;
  if (chat.kind === "private") {
    Object.assign(person(id) ?? {}, { friend: true });
    link.send(friendEvent(id));
  } else if (!chat.members.includes(id)) {
    chat.members.push(id);
    link.send(joinEvent(chat, id));
  }
}

function member(groupId, id) {
  const chat = groupOf({ group_id: groupId });
  const end = memberOf(chat, id) === ACCOUNT ? (chat.mutedUntil ?? 0) : mutedUntil(chat, String(id));
  const until = end > Date.now() && end < FOREVER ? Math.floor(end / 1000) : 0;
  return { group_id: Number(groupId), ...senderOf(String(id), chat), nickname: nameOf(id), shut_up_timestamp: until, join_time: 1, last_sent_time: 1 };
}

export function group(params) {
  const chat = groupOf(params);
  return { group_id: Number(chat.peer), group_name: chat.title, member_count: chat.members.length + 1, max_member_count: 200, group_all_shut: chat.mutedAll ? -1 : 0 };
}

export const GROUP_ACTS = {
  set_group_ban: ban,
  set_group_whole_ban: banAll,
  set_group_kick: kick,
  set_group_card: setCard,
  set_group_special_title: setTitle,
  set_essence_msg: setEssence(true),
  delete_essence_msg: setEssence(false),
  _send_group_notice: announce,
  group_poke: poke,
  friend_poke: poke,
  send_poke: poke,
  send_like: like,
  delete_msg: recall,
  delete_group_file: deleteFile,
  set_friend_add_request: decide,
  set_group_add_request: decide,
  get_group_root_files: rootFiles,
  get_group_files_by_folder: (params) => (groupOf(params), { files: [], folders: [] }),
  get_group_info: group,
  get_group_member_info: (params) => member(params.group_id, params.user_id),
  get_group_member_list: (params) => [ACCOUNT, ...groupOf(params).members].map((id) => member(params.group_id, id)),
};
