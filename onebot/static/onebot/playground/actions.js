// What the server asks of a client, answered as a client does. Failures are those that the operator chose.

import { $, root, say } from "./dom.js";
import { messageBody, muteEvent } from "./events.js";
import { chatError, group, GROUP_ACTS, Refusal, REFUSED } from "./groups.js";
import { ACCOUNT, addMessage, changed, chatBy, findMessage, messagesOf, nameOf, newId, person, state } from "./store.js";

const MUTE_SECONDS = 600;
const SENDS = /^(send_|upload_)/;
const number = (id) => Number(id);
const chatNotice = (key, text) => addMessage(key, { id: newId(), notice: text });

/** Answer one action. `link` sends frames and can be cut. */
export async function answerAction(frame, link) {
  const { action, params = {}, echo } = frame;
  const name = String(action).replace(/_async$|_rate_limited$/, "");
  const chosen = SENDS.test(name) ? takeFailure() : "";
  if (chosen) chatNotice(chatKeyOf(name, params) ?? state.current, say("failure", { action: name, failure: say(`${chosen}Failure`) }));
  if (chosen === "timeout") return;
  if (chosen === "disconnect") return link.cut();
  if (chosen === "slow") await new Promise((done) => setTimeout(done, Number($("play-seconds").value || 5) * 1000));
  try {
    if (chosen === "error" || chosen === "risk") throw refusalOf(chosen);
    if (chosen === "mute") throw muted();
    const data = perform(name, params, link);
    link.send({ status: "ok", retcode: 0, data: data ?? null, message: "", wording: "", echo });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    link.send({ status: "failed", retcode: error.retcode, data: null, message: error.message, wording: error.message, echo });
    if (chosen === "mute") mute(chatBy(chatKeyOf(name, params)), link);
  }
}

function takeFailure() {
  const chosen = $("play-failure").value;
  if (chosen && $("play-failure-scope").value === "next") {
    $("play-failure").value = "";
    $("play-failure").dispatchEvent(new Event("change"));
  }
  return chosen;
}

function refusalOf(chosen) {
  const wording = $("play-wording").value.trim();
  return chosen === "error"
    ? new Refusal(100, wording || "SEND_MSG_API_ERROR")
    : new Refusal(REFUSED, wording || "消息发送失败，可能被风控");
}

const muted = () =>
  new Refusal(REFUSED, 'Error: EventChecker Failed: NTEvent serviceAndMethod:NodeIKernelMsgService/sendMsg EventRet: {"result": 120, "errMsg": "你已被禁言"}');

/** The bot is muted in a group from now on, and told so after the message that was refused. */
function mute(chat, link) {
  if (chat?.kind !== "group") return;
  chat.mutedUntil = Date.now() + MUTE_SECONDS * 1000;
  link.send(muteEvent(chat, MUTE_SECONDS));
  changed();
}

/** Carry out an action; the `data` of its response. Throws a Refusal. */
function perform(name, params, link) {
  const act = ACTS[name];
  if (act) return act(params, link);
  if (!/^_?get_|^can_/.test(name)) chatNotice(state.current, say("unknownAction", { action: name }));
  throw new Refusal(1404, `不支持的api ${name}`);
}

function chatKeyOf(name, params) {
  const isGroup = params.message_type === "group" || name.includes("group") || (!name.includes("private") && params.group_id && !params.user_id);
  return isGroup ? `group:${params.group_id}` : `private:${params.user_id}`;
}

function speak(name, params, segments) {
  const key = chatKeyOf(name, params);
  const chat = chatBy(key);
  if (!chat) {
    chatNotice(state.current, say("noChat", { chat: key }));
    throw new Refusal(REFUSED, chatError(key));
  }
  if (chat.mutedUntil > Date.now()) throw muted();
  const message = addMessage(key, { id: newId(), from: ACCOUNT, segments });
  chat.typing = 0;
  return { message_id: number(message.id) };
}

/** The segments of a message that the server sends; it sends arrays alone. */
const segmentsOf = (message) =>
  Array.isArray(message) ? message.map(({ type, data }) => ({ type, data: data ?? {} })) : [{ type: "text", data: { text: String(message ?? "") } }];

function forward(name, params) {
  const id = `forward-${newId()}`;
  state.forwards[id] = (params.messages ?? params.message ?? []).map((node) => nodeOf(node.data ?? node));
  const sent = speak(name, params, [{ type: "forward", data: { id } }]);
  return { ...sent, forward_id: id, res_id: id };
}

const nodeOf = (data) => ({ id: newId(), from: String(data.user_id ?? data.uin ?? ACCOUNT), name: String(data.nickname ?? data.name ?? ""), segments: segmentsOf(data.content), time: Date.now() });

function upload(name, params) {
  const file = String(params.file ?? "");
  const data = { file, name: String(params.name ?? "file"), file_id: newId() };
  speak(name, params, [{ type: "file", data }]);
  return { file_id: data.file_id };
}

function message(id) {
  const [key, found] = Object.entries(state.messages)
    .map(([key, list]) => [key, list.find((one) => one.id === String(id) && one.segments)])
    .find(([, one]) => one) ?? [];
  if (!found || found.recalled) throw new Refusal(REFUSED, "消息不存在");
  return { ...messageBody(chatBy(key) ?? { kind: "private" }, found), time: Math.floor(found.time / 1000), real_id: number(found.id) };
}

function forwarded(id) {
  const nodes = state.forwards[id];
  if (!nodes) throw new Refusal(REFUSED, "合并转发不存在");
  return { messages: nodes.map((node) => ({ message_id: number(node.id), time: Math.floor(node.time / 1000), message_type: "group", user_id: number(node.from), sender: { user_id: number(node.from), nickname: node.name || nameOf(node.from), card: "" }, message: node.segments })) };
}

/** A medium of a message that is here, by its file or id. */
function medium(type) {
  return (params) => {
    const wanted = String(params.file ?? params.file_id ?? "");
    const all = Object.values(state.messages).flat().flatMap((one) => one.segments ?? []);
    const found = all.find((one) => (type === null || one.type === type) && wanted && !one.data.deleted && [one.data.file, one.data.file_id, one.data.name].includes(wanted));
    const content = found?.data.file?.startsWith("base64://") ? found.data.file : found?.data.url;
    if (!content?.startsWith("base64://")) throw new Refusal(REFUSED, "文件不存在");
    const base64 = content.slice("base64://".length);
    return { file: content, url: content, base64, file_name: found.data.name ?? "", file_size: String(Math.floor(base64.length * 0.75)) };
  };
}

function react(params, code, isOn) {
  const found = findMessage(params.message_id);
  if (!found) throw new Refusal(REFUSED, "消息不存在");
  found.reactions = found.reactions.filter((one) => one !== String(code));
  if (isOn) found.reactions.push(String(code));
  changed();
}

function type(params) {
  const chat = chatBy(`private:${params.user_id}`);
  if (chat) chat.typing = Date.now() + 10_000;
  changed();
  setTimeout(changed, 10_100);
}

const groups = () => state.chats.filter((chat) => chat.kind === "group");
const sendMessage = (name) => (params) => speak(name, params, segmentsOf(params.message));

const ACTS = {
  ...GROUP_ACTS,
  send_private_msg: sendMessage("send_private_msg"),
  send_group_msg: sendMessage("send_group_msg"),
  send_msg: sendMessage("send_msg"),
  send_private_forward_msg: (params) => forward("send_private_forward_msg", params),
  send_group_forward_msg: (params) => forward("send_group_forward_msg", params),
  send_forward_msg: (params) => forward("send_msg", params),
  upload_group_file: (params) => upload("upload_group_file", params),
  upload_private_file: (params) => upload("upload_private_file", params),
  set_msg_emoji_like: (params) => react(params, params.emoji_id, params.set !== false),
  set_group_reaction: (params) => react(params, params.code, params.is_add !== false),
  set_input_status: type,
  get_login_info: () => ({ user_id: number(ACCOUNT), nickname: root.dataset.botName }),
  get_version_info: () => ({ app_name: "FrostAgent playground", app_version: "1", protocol_version: "v11" }),
  get_status: () => ({ online: true, good: true }),
  can_send_image: () => ({ yes: true }),
  can_send_record: () => ({ yes: true }),
  get_msg: (params) => message(params.message_id),
  get_forward_msg: (params) => forwarded(String(params.message_id ?? params.id ?? "")),
  get_image: medium("image"),
  get_record: medium("record"),
  get_file: medium(null),
  get_group_file_url: medium("file"),
  get_private_file_url: medium("file"),
  get_group_list: () => groups().map((chat) => group({ group_id: chat.peer })),
  get_friend_list: () => state.people.filter((one) => one.friend).map((one) => ({ user_id: number(one.id), nickname: one.name, remark: "" })),
  get_stranger_info: (params) => {
    const found = person(params.user_id);
    if (!found) throw new Refusal(REFUSED, "用户不存在");
    return { user_id: number(found.id), nickname: found.name, sex: "unknown", age: 0 };
  },
  get_group_msg_history: (params) => ({ messages: history(`group:${params.group_id}`, params.count) }),
  get_friend_msg_history: (params) => ({ messages: history(`private:${params.user_id}`, params.count) }),
};

const history = (key, count = 20) =>
  messagesOf(key).filter((one) => one.segments && !one.recalled).slice(-Math.min(Number(count) || 20, 100)).map((one) => message(one.id));
