// Frames of events, as a client of OneBot 11 makes them.

import { ACCOUNT, person, roleOf, state } from "./store.js";
import { toCq } from "./cq.js";

const now = () => Math.floor(Date.now() / 1000);
const number = (id) => (/^\d{1,16}$/.test(id) ? Number(id) : id);
const frame = (postType, values) => ({ time: now(), self_id: number(ACCOUNT), post_type: postType, ...values });

/** The sender of a message as clients describe one. */
export function senderOf(id, chat) {
  const who = person(id);
  const sender = { user_id: number(id), nickname: who?.name ?? (id === ACCOUNT ? "FrostAgent" : id), sex: "unknown", age: 0 };
  return chat.kind === "group" ? { ...sender, card: chat.cards?.[id] ?? "", role: roleOf(id, chat), level: "1", title: chat.titles?.[id] ?? "" } : sender;
}

/** A message as the wire has it: what is said of it everywhere, in events and in answers. */
export function messageBody(chat, message) {
  const raw = toCq(message.segments);
  return {
    message_id: number(message.id),
    message_type: chat.kind,
    ...(chat.kind === "group" ? { group_id: number(chat.peer), group_name: chat.title } : {}),
    user_id: number(message.from),
    sender: senderOf(message.from, chat),
    message: state.format === "string" ? raw : message.segments,
    raw_message: raw,
    message_format: state.format,
    font: 0,
  };
}

export function messageEvent(chat, message) {
  const isStranger = chat.kind === "private" && !person(message.from)?.friend;
  const body = { sub_type: chat.kind === "group" ? "normal" : isStranger ? "group" : "friend", ...messageBody(chat, message) };
  const through = isStranger && state.chats.find((one) => one.kind === "group");
  if (through) body.group_id = body.sender.group_id = number(through.peer);
  return frame("message", body);
}

export const lifecycleEvent = () => frame("meta_event", { meta_event_type: "lifecycle", sub_type: "connect" });

export const heartbeatEvent = (interval) =>
  frame("meta_event", { meta_event_type: "heartbeat", interval, status: { online: true, good: true } });

/** Something that happened in a group; ids may be texts. */
export function groupNotice(chat, type, values) {
  const ids = Object.entries(values).map(([name, value]) => [name, name.endsWith("_id") ? number(value) : value]);
  return frame("notice", { notice_type: type, group_id: number(chat.peer), ...Object.fromEntries(ids) });
}

export const recallEvent = (chat, message, operator = message.from) =>
  chat.kind === "group"
    ? groupNotice(chat, "group_recall", { operator_id: operator, message_id: message.id, user_id: message.from })
    : frame("notice", { notice_type: "friend_recall", message_id: number(message.id), user_id: number(message.from) });

/** In private, `user_id` is the other one, whoever poked: that is `sender_id`. */
export function pokeEvent(chat, from, target = ACCOUNT) {
  const where = chat.kind === "group" ? { user_id: number(from), group_id: number(chat.peer) } : { user_id: number(chat.peer), sender_id: number(from) };
  return frame("notice", { notice_type: "notify", sub_type: "poke", target_id: number(target), ...where });
}

export const joinEvent = (chat, id) => groupNotice(chat, "group_increase", { sub_type: "approve", operator_id: "0", user_id: id });

/** Somebody asks to join a group, or in private to be a friend. */
export function requestEvent(chat, id, flag, comment) {
  const group = chat.kind === "group" ? { request_type: "group", sub_type: "add", group_id: number(chat.peer) } : { request_type: "friend" };
  return frame("request", { ...group, user_id: number(id), comment, flag });
}

export const friendEvent = (id) => frame("notice", { notice_type: "friend_add", user_id: number(id) });

export const leaveEvent = (chat, id) => groupNotice(chat, "group_decrease", { sub_type: "leave", operator_id: id, user_id: id });

export const roleEvent = (chat, id) => groupNotice(chat, "group_admin", { sub_type: roleOf(id, chat) === "member" ? "unset" : "set", user_id: id });

/** The bot is muted in a group for some seconds; 0: it is no more. */
export const muteEvent = (chat, seconds) =>
  groupNotice(chat, "group_ban", { sub_type: seconds ? "ban" : "lift_ban", operator_id: chat.members[0] ?? "0", user_id: ACCOUNT, duration: seconds });
